// Standin plays a coding agent, so that Steno can be seen and tested without one.
//
// Run under the name of one (claude, codex, gemini, opencode, kimi, copilot; copy
// or hard-link the binary), it looks
// like that program to an observer: executable name, working directory, terminal,
// and the files that the program leaves. It replays a recorded session into the
// directories of that program, with new ids, its own working directory and the
// present time. What it imitates was seen in Claude Code 2.1.197, Codex CLI 0.171.0,
// Gemini CLI 0.61.0, OpenCode 1.18.33, Kimi Code 2.1.0 and Copilot CLI 1.0.102:
//
//   - claude keeps sessions/<pid>.json with sessionId, procStart and status,
//     written in place, and removes it on a clean exit; each batch of records is
//     one open, write, close of projects/<slug>/<session>.jsonl.
//   - codex holds its rollout and a lock file open and writes a record per write.
//   - gemini keeps nothing open; .project_root names its directory.
//   - opencode inserts rows into the database and holds the common log open.
//   - kimi replaces state.json by temporary files with its pid in their names.
//   - copilot holds inuse.<pid>.hold open and locked, beside inuse.<pid>.lock.
//
// Settings come from the environment, because the command line is part of the
// imitation: STANDIN_RECORD (the recorded session, required), STANDIN_SESSION (a
// session id to use or resume), STANDIN_PACE (replay by itself, one record each
// such time, then exit after STANDIN_LINGER; without it commands are read from
// standard input), HOME, and the variables that move a program's directory.
//
// Commands, one a line; each is answered by one line, "error: ..." when it failed:
//
//	next              write the next record
//	write N           write the next N records, for claude in one write
//	all               write what is left
//	skip N            pass over N records
//	half              write the next record without its second half and newline
//	rest              write the second half
//	again             start over with new ids in the same session
//	clear             go on in a new session (as /clear and /new do)
//	status S          claude: publish S (busy, idle, waiting, auto) as status
//	raw TEXT          write TEXT and a newline as it is
//	where             print process id, session and file
//	exit              leave cleanly (also: end of input, SIGTERM, SIGHUP)
//
// Run under its own name, "standin demo" starts the daemon beside one of each
// in pseudo-terminals; see demo.go. Recordings over 64 MiB are refused.
package main
