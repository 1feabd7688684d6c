// Package gemini knows Gemini CLI: where it leaves files, what its records mean,
// and what binds one of its processes to a session.
//
// Sources: files written by 0.61.0 on Linux, headless (-p) and in tmux, checked
// 2026-12-01 and kept in testdata/providers/gemini, and the program's own text
// (chatRecordingService, geminiChat, useGeminiStream, windowTitle). They prove:
//
//   - start: a user message with a text, that no mark shows to be the program's
//     own: the session's context, a detected loop, "Please continue.", a hook's
//     text for the open turn, a command of shell mode, the editor's state.
//   - text: the first record of an id whose content is a string. An array is
//     history that is written again, with new ids.
//   - tools: the same id once more with toolCalls, after all of them ended.
//   - cancel: info "Request cancelled.", or toolCalls that are all cancelled.
//   - error: an error message in the TUI; headless only a list that lacks the
//     prompt. plan: the file that exit_plan_mode names, when its call is recorded.
//
// Inferred: a final. No record proves one (the answer is written before the
// calls that may follow it), so an answer is held until two looks find the title
// "Ready", the next prompt or /rewind ("recorded"), or until 3 s of silence with
// no title and no child process younger than the prompt, or the end of the
// process ("settled"). One that proves wrong is followed by waiting_on_agent and
// by one more final. Inferred, too: that a list without the open turn's prompt,
// and with nothing newer, is a request that failed.
//
// Not recorded: open approvals and questions (the title tells that somebody is
// asked), retries, text before its stream ends, what SIGINT does to -p, an Esc
// after some of several calls succeeded: the turn stays open until the next prompt.
//
// Promises. A prompt gives its start at once, except after /rewind: then the
// history has no context in front, and a prompt waits for its next record or
// 150 ms. A list without the prompt waits for its error: until the title is
// "Ready", for 1 s where there is no title, for 10 s at most. A cancel up to 1 s
// before a prompt is for that prompt, by their times. After a record that could
// not be read nothing has a turn until a prompt, and a held answer is not given:
// such a record is nearly always its tool output. Keys are ids of messages; a
// legacy .json and the .jsonl that goes on with it have the same.
//
// Refusals: subagents; errors' texts; files that were put aside, checkpoints and
// logs; plans outside <project>/<session>/plans, or over 256 KiB. A file without
// a header is never bound by agreement. Of a document only what stands behind the newest
// known message is new; a wholly different list is history.
//
// Binding: no record names a process. Rank 3: --session-id, or --resume with an
// id. Rank 4: .project_root is the working directory, and the session, or the
// stub that a resumed run leaves (in the first minute of a session: a header in
// its own file), began within 30 s after the process; logs.json tells what /clear began. Two processes that began
// sessions within that time of each other are refused.
//
// Bounds: state 2.6 KiB (192 hashes: some 64 messages); a look back 600 records
// or 8 MiB of text; evidence reads 64 KiB of a session's files where it has more
// than one, .project_root of 64 sessions, projects.json and logs.json up to 4 MiB.
//
// Differences from the notes, 0.61.0, 2026-12-01: history is also written again
// when tool output is shortened in mid-turn; after /rewind a list has no context;
// the error of a rollback comes up to 1 s later; another start in the directory
// deletes the file of a session without a prompt, which goes on in one without a
// header (bound by name and --session-id); shell output is cut to 40 kB. On a
// terminal 429, 500 and 503 are asked again without end, whatever maxAttempts
// says: the turn stays open until Esc; -p gives up.
package gemini
