// Package claude knows Claude Code: where it leaves files, what its records
// mean, and what binds one of its processes to a session.
//
// Sources: files written by 2.1.197 and 2.1.332 on Linux, headless (-p) and in
// tmux, checked 2026-11-30 and kept in testdata/providers/claude. What they prove:
//
//   - start: a user record with text, not isMeta; its uuid is the turn's id. Also
//     a task notification (t-agent), and the echo of a ! line that the model answers (t-two).
//   - place: parentUuid. The first turn can be in any order (t-out-of-order-*), its
//     prompt over 300 ms after what hangs off it (t-result-before-its-turn-pending).
//   - final: all records of an API message carry stop_reason end_turn, the thinking too
//     (p-multitext). system/turn_duration ends a turn; -p writes none, nor does 2.1.332 after an error.
//   - Esc: the marker's own record (t-int); before any output nothing but a next
//     prompt with the same parent (t-slow).
//   - errors: isApiErrorMessage (t-err, v2.1.332-t-err). Retries leave no record. One with
//     truncatedAfterOutput takes back the end_turn of the answer before it (v2.1.332-t-late-error).
//   - plan and question: the input of ExitPlanMode and AskUserQuestion (t-plan, t-ask).
//   - process: sessions/<pid>.json, procStart = /proc/<pid>/stat field 22.
//
// Inferred, not recorded: a blocking Stop hook's "Stop hook feedback" record,
// answered custom commands, system/api_error and missing stop_reasons of older
// versions, two notifications at once, the native installer's path.
//
// Differs from the documents (2026-11-30, version 2.1.197, make e2e):
//
//   - A session that goes on after a command or prompt without an answer (/exit
//     leaves its echo, two Ctrl-D leave none) gets "No response requested." from
//     the program, which nobody sees. It has the shape of an interrupt's partial
//     text (t-slow, t-queue), but no marker hangs off it.
//   - While an answer of some MiB is drawn, nothing is written: an idle status
//     came 7 s after its statusUpdatedAt, the answer 0.8 s after that. So a status
//     counts from when it was written. Should the answer come over 5 s later still,
//     the turn is told as no_reply, and goes on with it.
//   - --continue registers under a new id first and changes it when it has loaded.
//   - A cut stream is asked again, max_tokens goes on, a prompt too long is
//     compacted first, all in one turn.
//
// Differs in 2.1.332 (2026-12-01, make e2e-latest): after a refusal the program goes on
// once by itself, in the same turn (an isMeta record with refusalRetry); an answer whose
// stream fails behind its end is an error.
//
// Promises:
//
//   - A text is given when its place is known; a final is held until a record
//     of another message, turn_duration or 150 ms of silence. A text of the program
//     itself (model <synthetic>, no error) waits up to 2 s for its marker, else is dropped.
//   - A record without its parent waits for 300 ms of silence, 10 s before the first
//     prompt of a file without a gap; then it is taken in file order. If the parent
//     comes later still, what follows is given its turn; what was given stays.
//   - A final that proves wrong is followed by waiting_on_agent, and by one more
//     final. What comes late for an older turn opens and ends nothing.
//   - Keys are a record's uuid and a role ("<uuid>/text"); that of a final has
//     the answer's uuid. A record that comes again gives nothing.
//   - After a gap nothing has a turn until a prompt, or a result with the lost turn's promptId.
//   - turn_duration after a message with text and no stop_reason, or one that
//     was cut off, completes the turn; after thinking, a tool call or nothing: no_reply.
//
// Refusals: sidechains and files of subagents, thinking, summaries, forms with several
// questions or answers, permission dialogs (they leave no record), every text of an error.
//
// Bounds: state 3.9 KiB (128 records, 6 turns, 8 missing parents); 256 records or 8 MiB of text
// wait; 8 MiB of one message are kept for its final; a look-back keeps 400
// records; registry record 64 KiB, read at most 5 times within 50 ms.
package claude
