// Package files reads what programs leave beside their sessions: short records,
// the heads of transcripts, lists.
//
// Promises:
//
//   - No call waits for another process: a pipe that somebody put in a file's
//     place is opened without blocking and refused.
//   - Only regular files are read, and never more bytes than the caller says.
//   - Nothing is written, and no error holds what a file says.
//
// Errors are those of package os, and ErrUnfit; the caller says what it was
// doing.
package files
