// Steno is the daemon beside a terminal multiplexer that writes down what the
// coding agents in its panes say, and the commands that read it.
//
//	steno serve                             the daemon
//	steno agent events --after 7 --follow   one page of events a line, for ever
//	steno agent catalog                     which agents live, where, in which state
//	steno doctor                            what works, and what to do where it does not
//
// This package owns flags, configuration, paths, signals, the service manager
// and human output. It holds the only list of providers. One file is one command.
//
// Rules of the commands:
//
//   - Standard output is data: JSON when it is not a terminal, or when --json or
//     --format json is given; a table or coloured lines for a person otherwise.
//     Standard error is prose: "steno: error: ...", then "steno: hint: ...".
//   - Exit codes: 0 ok, 1 failed, 2 usage, 3 the daemon is not reachable.
//   - A flag beats the environment, which beats the configuration file, which
//     beats the default. "steno config" says which of them gave a value.
//   - Text of an agent is shown only with terminal escapes and control
//     characters made harmless, and never logged.
//   - No command but serve opens the event log; they ask the daemon.
//
// Bounds: a configuration file of 1 MiB, an external command 2 s, a prompt that
// is read from standard input 1 MiB.
package main
