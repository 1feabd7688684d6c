// Package kimi observes Kimi Code: what its main agent does, and which process
// does it.
//
// Sources: files that 2.1.0 wrote (wire protocol 1.5), headless and in tmux,
// against a scripted model server, checked 2026-12-01 and kept in
// testdata/providers/kimi. What is exact:
//
//   - start: turn.prompt, whatever started it: a prompt, or a background task
//     that finished. Numbers count up over /undo and restarts (lab-undo-compact-steer);
//     a fork goes on with its source's and leaves some out (lab-fork).
//   - text: content.part of a step that does not end with "error". Failed tries
//     leave their parts (texterr) and say nothing.
//   - end: turn.ended. completed: the answer is the last step's text, which may
//     have been cut off (maxtok). cancelled: Esc, also SIGINT to -p. failed: by
//     its code and status; its text is not read.
//   - a plan to review and a question wait: interaction.request (tui2). In -p
//     and "Never Ask" the program answers itself and nothing waits.
//   - steering, /compact, /undo, !commands and /btw belong to a turn or to none,
//     and give no event. /new and /clear begin a session, in the same process.
//   - process: state.json is written as state.json.tmp.<pid>.<hex>, for some
//     milliseconds. It is seen when a session begins, when a prompt is taken and
//     when a turn ends; of a resumed session only from its first prompt on.
//     After /fork it is seen once for the fork, which nobody shows then (Doubt).
//
// Errors are held against the program by make e2e: 400, 401, 429, 500, 529, a
// stream that is cut, fails or says nothing, content filters. Inferred, read in
// the program but not seen: turn.ended "blocked", errors of its login, the texts
// of skills before a prompt, parts of pictures, a single executable, a start
// without a number (earlier protocols).
//
// Not recorded by the program: that a killed process's turn is over (the next
// start supersedes it); which session a resumed terminal shows before its first
// prompt, but for the arguments (0.8 to 5 s, then the process overwrites them) and
// the title. Permissions to run a tool are recorded and give no event.
//
// Differences from the notes that this package was written from: /fork stays in
// the session it forked; /new writes at once, not at the first prompt.
//
// Promises. A text is held until its step shows that it stands: a tool call, a
// question, the step's end; after 2 s of silence it stands too. Records of
// kind "event" and of other agents count for nothing. After a gap each record
// still names its turn. Of a fork, what is dated before the fork gives no event;
// that date is in state.json, which Projector reads, and waits for up to 1 s
// where a record has none yet. --continue means the session of the directory that
// was used last; when another was used since the process began, it is refused.
//
// Bounds: state some 1.7 KiB; a final's text over 1 KiB is held, not saved; a
// look-back keeps 256 facts; state.json up to 64 KiB, 16 of them a look.
package kimi
