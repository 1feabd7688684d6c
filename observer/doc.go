// Package observer turns what agents write into committed events.
//
// One goroutine, the loop, owns all state: artifacts, agents and what is due.
// It does no I/O. Around it:
//
//	watch ---- dirty paths ----\
//	sweeper -- changed files ---> loop --jobs--> workers (read, project, seal)
//	prober --- who owns what --/   ^  \------------ results ------------/
//	exits ---- ended processes /   |
//	                               \--commits--> committer --> store
//
// Promises:
//
//   - One artifact is read by one worker at a time, and its next refresh starts
//     only after its last result was committed. So a store that does not work
//     stops the reading, and memory stays bounded.
//   - Offset, projector state, events and agent rows go into one transaction.
//   - A hint that arrives during a refresh owes exactly one more; a hint within
//     the throttle gets its trailing refresh.
//   - No event without proof: a session is read for an agent only while it is
//     bound to exactly one live process. What a process wrote before it ended is
//     committed before its unavailable event.
//   - An unchanged tree costs a sweep of stats: no file is opened, no byte is
//     read, nothing is committed.
//   - What a root held is not gone while the root is away, for an hour: its disk
//     may be unmounted for a moment.
//
// Bounds: 512 drafts or about 1 MiB a refresh, min(4, CPUs) workers, 16 MiB of
// batches and events of all artifacts before others wait, 4,096 waiting commits,
// 64 MiB of looking back for an open turn at first sight, 4 looks a second at the
// processes on behalf of artifacts that nobody owns.
package observer
