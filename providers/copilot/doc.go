// Package copilot knows GitHub Copilot CLI: where it leaves the events of its
// sessions, what they mean, and what binds one of its processes to a session.
//
// Sources: files written by 1.0.102 on Linux against a scripted model, headless
// (-p) and in tmux, checked 2026-12-01 and kept in testdata/providers/copilot;
// the schema of all events in its package (schemas/session-events.schema.json).
//
//   - start: user.message without agentId; its interactionId is the turn's id.
//     Subagents write into the same file, each event with their agentId (sub, sub2).
//   - final: an assistant.message without tool calls before assistant.turn_end,
//     which also stands before abort and session.error (tui1), so what follows
//     decides; where nothing does, 500 ms of silence.
//   - plan (exit_plan_mode), question (ask_user): a call that fails at once was not
//     shown; headless runs have neither tool (plan, ask).
//   - a notification after the end of a turn begins one (bg).
//   - process: inuse.<pid>.hold of a session, held open, also at the trust dialog.
//
// Other than formats/copilot.md says, or not in it (1.0.102, 2026-12-01): after
// /new and /fork the process keeps a session with prompts open, so it has several
// hold files, and its log tells which is shown ("Registering foreground session").
// /fork copies events with their ids and times. Autopilot's own prompts have an
// interactionId each and come 0.3 to 0.8 s after an answer: they belong to the
// turn, and there the silence is 2 s. Steering is a user.message with the running
// turn's interactionId. Esc Esc before any output takes the turn back: the file is
// replaced by one without it, which the observer reports. A ! command is no turn.
// /compact writes model.* events that are in no schema. Every question takes
// "Other", too.
//
// Inferred, from the schema alone: session.task_complete, injected prompts
// (source), chunked answers, errors other than authentication, rate_limit and
// query, questions with choices, detached sessions. Not recorded: retries, what
// was said before an abort, the end of a turn by kill -9.
//
// Promises: keys are an event's id and a role, or its place in the file where it
// has none. A final that proves wrong is followed by waiting_on_agent, and by
// one more final. After a gap only the open turn's interactionId brings it back.
// An error ends no turn but says, after a model call, that the user has to act.
//
// Refusals: a lock without its hold file; several open sessions of which the log
// tells none; agreement of directory and time, which the hold makes needless;
// sessions that another one started; a session that is not shown, until it is.
// The JavaScript program of before 1.0 is no worker.
//
// Bounds: state 2 KiB (128 events); one answer and 8 plans or questions wait; a
// look-back keeps 3,000 events; questions of 64 KiB and 32 answers; 512 locks;
// 4 MiB of log, read only when several sessions are open.
package copilot

// version is the newest version that this package was tried with.
const version = "1.0.102"
