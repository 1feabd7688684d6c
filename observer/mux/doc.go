// Package mux asks a terminal multiplexer what panes it has. tmux is the first.
//
// Promises:
//
//   - A server is never started, and nothing in it is changed.
//   - Only socket files of this uid are spoken to; a symbolic link is not
//     followed, neither as socket nor as the directory of sockets.
//   - A listing is whole or it is an error. An error means "unknown": a caller
//     must not read it as "these panes are gone".
//   - A pane's title, name or directory cannot break the parser or imitate
//     another pane: fields are separated by a random word that is new in each
//     call.
//   - No title or directory appears in an error.
//
// Bounds: one command a socket, at most 4 at once, 2 s each and then it is
// killed with its process group; 8 MiB of output, 10,000 panes, 64 sockets, 1,024
// entries of one directory, 4 KiB a field.
//
// Sources, seen with tmux 3.3a on 2026-11-30: without -u and without a UTF-8
// locale the client prints "_" for each control or non-ASCII byte, so -u is
// always given; a window name is kept with octal escapes, a pane title with
// control characters is not taken by the server, but a pane's directory may hold
// tabs and newlines, and these are printed as they are. A window that is linked
// into several sessions (a session group) is listed once for each of them.
//
// Inferred: later versions escape control characters in a directory when they
// print it. Such a directory is then only good for display.
package mux
