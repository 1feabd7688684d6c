// Package bind finds out which process owns which session, and in which place.
//
// It has four parts. Scanner reads /proc. Owners picks, for each pane and
// terminal, the one harness of its foreground job, and every headless harness.
// Decide binds sessions to these owners by ranked evidence. Exits tells when an
// owner has ended. Owners and Decide are pure: the same input, in any order,
// gives the same answer.
//
// Promises:
//
//   - A process is a pid with its start ticks. A pid that was reused is another
//     process.
//   - A harness that was started by a harness never owns anything, and neither
//     does a program's helper.
//   - A session is bound only if one process names exactly one session, and no
//     other live process names that session as well. Otherwise it is unbound,
//     and the reason is kept. The newest file is never a reason.
//   - An answer that could not be had is an error or a gap, never "no".
//   - Nothing is written, no file of an agent is opened, and of a process's
//     environment only the variables that were asked for are kept.
//
// Cost of a Scan without news: one stat(2) a process of the system, and for the
// harnesses and their ancestors one read of /proc/<pid>/stat. Every process's
// stat is read again after 3 s, because a shell may become a harness by exec.
//
// Bounds: 131,072 processes; 64 arguments of 4 KiB; 256 KiB of environment, 4 KiB
// a variable; 4,096 descriptors of one process; 64 generations of ancestors;
// 4,096 watched processes, or a quarter of the descriptors that there may be.
//
// Sources: proc(5) for the fields of /proc/<pid>/stat. What harnesses look like
// in /proc is known to the providers, not here.
package bind
