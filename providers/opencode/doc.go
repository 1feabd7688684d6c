// Package opencode knows OpenCode: where its databases are, what their rows
// mean, and which of its processes shows which session.
//
// Sources: databases and logs that OpenCode 1.18.33 wrote on Linux, headless and
// in tmux, checked 2026-11-30 and kept as dumps in testdata/providers/opencode.
//
// A session is rows: of the append-only table event where the database has it,
// else of message and part by their time. Both give the projector the same
// records. The write-ahead log's file is the wake-up.
//
// Exact: a turn's start (the prompt's text part), texts (a text part that has
// ended), the final (an assistant message that is complete, with a finish that is
// no tool call and no error), Esc (MessageAbortedError), errors, questions, and
// the process: its place in opencode.log leads to its run and to the session that
// this run named last.
//
// Inferred: a rejected permission and an abort while a retry waited end the
// agent's work after 1 s of quiet, without a final. Without a place in the log,
// the session is the one of the command line, or the only one of the process's
// directory that changed since it began.
//
// Not recorded: retries, permission dialogs, plans, partial texts, and the end of
// a turn by Ctrl-C or kill.
//
// Promises: the database is opened for reading only, beside its writer, never as
// immutable. A look is one transaction of at most 100 ms and one call of at most
// 2 s; a database that is busy is an error, and is tried again. Lengths are asked
// for before bytes: a row over 4 MiB is a gap that names its sequence. The cost of
// a look is what is new: every query that is repeated uses an index.
//
// The file and its shared memory are opened O_RDONLY (readonly_shm): nothing of
// the program is written or made. A database that was closed cleanly, so that
// its -wal and -shm are gone, is read as one that does not change, and what was
// read counts only if nobody touched it meanwhile.
package opencode
