// Package store is the durable log: events, the restart points of the files
// they came from, and the agents they belong to, in one SQLite database.
//
// Promises
//
//   - One Commit is one transaction: events, sources, agents and retention
//     become durable together or not at all (WAL, synchronous=FULL).
//   - A sequence is never given to a second event: not after a rollback, a
//     prune of everything, a power loss, a lost database file or a recovery. A
//     side file (database name + "-sequence") holds a number that no sequence
//     has passed; a new log starts above it, and makes every older cursor too
//     old. Where the side file cannot be read either, it starts at the Unix time
//     in milliseconds. Only the loss of both files begins at 1 again.
//   - Sequences have no holes: the stored events are pruned_through+1 .. latest.
//     An event id that is still in the log adds nothing and uses no sequence.
//   - Both retention bounds hold after every commit. The cost of a commit
//     depends on what it adds and prunes, never on the length of the log.
//   - A page is read in one snapshot and holds no transaction afterwards.
//   - A reader never makes the writer fail. Pages cannot keep the WAL growing;
//     a foreign program that holds a snapshot open can.
//   - A database file that is deleted or replaced while it is open acknowledges
//     nothing any more: ErrReplaced.
//
// Not seen: somebody who deletes the -wal of a crashed log that nobody has
// open, or who puts an older copy of the database back. The log goes back
// silently then, and sequences above its head are given again.
//
// Refusals
//
//   - Files that are a symbolic link, not regular, owned by someone else, or of
//     another program (ErrForeign); a directory that anybody may write.
//   - A newer schema (ErrNewer), also with Recover: its data is sound, and the
//     remedy is the newer program. A foreign file likewise: it was never ours
//     to move, the path is wrong. Recover moves a corrupt database aside (to
//     its name + ".corrupt-" and a UTC time) and nothing else.
//   - Batches beyond the bounds (ErrInvalid). Their text never names content.
//
// Bounds: body 990,000 bytes, 10,000 events a batch, mark and state 4 KiB each,
// page 1,000 events, 10,000 rows examined and 990,100 bytes unless asked otherwise,
// 100,000 events and 2 GiB of bodies kept unless asked otherwise, 4 read
// connections, 2 s of waiting for another process's lock.
//
// A reader follows the log without missing a wake-up like this:
//
//	for {
//		changed := s.Changed() // before the page
//		page, err := s.Page(ctx, store.Query{After: cursor})
//		...
//		<-changed
//	}
package store
