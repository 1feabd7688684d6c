// Package opencode knows OpenCode: where its databases are, what their rows
// mean, and which of its processes shows which session.
//
// Sources: databases and logs that OpenCode 1.18.33 wrote on Linux, headless and
// in tmux, checked 2026-11-30 and kept as dumps in testdata/providers/opencode;
// its own bundle for what was not recorded (so marked below: bundle).
//
// A session is rows: of the append-only table event by sequence where the
// database has it, else of message and part by what is not known of the newest
// two turns (snapshot.go). Both give the projector the same records. A change of
// the file or its -wal is the wake-up.
//
// Exact: a turn's start (the prompt's text part), texts (a part that has ended),
// the final (an assistant message that is complete, with a finish other than
// tool-calls, unknown, content-filter and error, without a call), Esc
// (MessageAbortedError), errors, questions, compaction, and the process: its
// place in opencode.log leads to its run and to the session that this run named
// last, or to the one that this works for.
//
// Inferred, by 1 s of quiet: the agent stopped after a rejected permission, a
// dismissed question, or a message that ended without finish and error (a
// retry's wait was aborted). A finish beside a call ends the turn if nothing
// follows. Without a place in the log, the session is the one of the command
// line, or the only one of the directory that changed since the process began.
//
// Not recorded: retries, permission dialogs, partial texts, and the end of a turn
// by Ctrl-C or kill -9. Attached clients of serve are told apart by -s alone;
// serve, web and acp own no pane.
//
// Seen with the program itself (1.18.33, 2026-12-01, cmd/e2e): a session that -c
// opens is named in the log with its first prompt; five retries at most, then the
// error is recorded; an error within a stream is an UnknownError, whatever its
// code; only a subagent's permission can be refused with words, and its loop goes
// on. Experimental: plan_exit asks, and records no question; "no" is a dismissed
// question, "yes" a synthetic message, both of the same turn; a subagent in the
// background reports in a synthetic message after the final, which reopens the
// last turn (D23).
//
// Other than the recorded cases say (bundle): finish "unknown" lets the loop go
// on; so does any finish beside a call; after an overflow the program may repeat
// the prompt in a message of its own; /fork copies messages with their old times,
// which are history; ! makes a synthetic prompt, which is no turn.
//
// Promises: keys are the program's ids. A newer prompt that is answered ends the
// older ones whose messages are complete (D21). After a gap a record's own ids
// tell its turn; a final whose text may lack a part has none. A look is one
// transaction of at most 100 ms; a busy database is an error that passes. A
// row's length is asked for before its bytes. Each repeated query uses an index.
//
// Nothing is written: see look for how the files are opened, and how a database
// is read whose last writer has closed it.
//
// Bounds: state 4 KiB (6 turns, 7 messages, 40 given parts); a batch 256 rows; a
// mark 1 KiB; 1 MiB of log; 256 sessions compared with a directory; 600 facts
// looked back. Without events: 64 messages and 4,096 parts a look, 64 items of
// messages that go on.
package opencode
