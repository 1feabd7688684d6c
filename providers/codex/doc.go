// Package codex observes Codex CLI: its rollouts, and which process writes
// which.
//
// Sources. Recorded with codex-cli 0.171.0 and 0.138.0 against a scripted
// server, checked 2026-11-30; the recordings are in testdata/providers/codex.
// 0.171.0 (header "history_mode":"paginated") writes task_started,
// item_completed, task_complete with an error object, turn_aborted. 0.138.0
// writes user_message and agent_message events instead of items, no ids, and no
// error: there a failed turn cannot be told from an empty answer. Inferred, not
// recorded: files that hold response_items or events alone, forks of builds
// that copied history, codes of errors that no test server could cause
// (sandbox_error, session_budget_exceeded, misalignment, unauthorized), the
// names turn_started and turn_complete. Types of records that the program of
// 0.171.0 does not name are reported (Drift); they make no event.
//
// Differs from the documents (2026-11-30, version 0.171.0, make e2e). After /new
// an embedded process keeps the old rollout and its lock open beside the new
// ones, and its log names the newest some seconds late. A prompt typed while the
// model speaks belongs to the same turn, and the text that it cut, like one cut
// by Esc, is in no record. A question leaves none until it is answered. A !
// command and /compact are turns without a prompt and an answer. Of several
// texts in one answer the last alone is the final. The shared daemon outlives
// its terminals.
//
// Promises. A start waits, in the state, for its prompt, so that it carries the
// prompt's hash; any other item, text or end of the turn, the next start or a
// gap lets it go without. A compaction does not: the prompt comes after it. A
// turn without turn_attribution, in a file whose turns have one, is a manual
// compaction and waits for nothing. A message is given once whatever sources it
// was written to, and a final's text is always given as a message before it. A
// turn has one final; what comes after it reopens nothing. Keys are made of
// turn ids and item ids, else of the byte where the record starts.
//
// Refusals. Subagents and reviewers make no event. Nothing is said of a turn
// that no record ends (kill -9). A pending approval or question leaves no
// record, so none is reported. update_plan is a tool call, no plan.
//
// Bounds. 8 turns and 8 messages are remembered, ids up to 64 bytes, the last
// text up to 1 KiB; the answer of a review may be longer and is held for the
// moment until its end, which does not repeat it. Tool output is passed over,
// never decoded.
//
// Binding, 0.171.0. Rank 1: the process holds the rollout or the writer lock
// open (embedded: --no-daemon, -c, exec, 0.138.0; after /new the older ones
// stay open and the program's log tells which is the newest), or its title
// shows the thread's id. Rank 2: a terminal of the shared daemon is followed
// through logs_2.sqlite: when it connected, on which connection, which thread
// that connection asked for last. That is why this package, beside opencode,
// reads SQLite: nothing else names the process. The log is opened read-only
// (package readdb) and only while the program has it open; all of a look takes at
// most 100 ms.
// Its rows come seconds late and are pruned (1000 a thread or process), so the
// caller looks early and remembers. A daemon that was restarted under a living
// terminal is not noticed until that terminal asks for a thread. Rank 3: the
// argument of resume. Rank 4: the name in the title is one thread's alone, or
// one thread of the directory is younger than the process.
package codex
