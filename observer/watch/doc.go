// Package watch turns directories into dirty paths.
//
//	w := watch.New(watch.Options{})
//	go func() { errc <- w.Run(ctx) }()
//	w.SetRoots(roots)
//	for range w.Ready() {
//		c := w.Take()
//		if c.Sweep {
//			watch.Walk(ctx, roots, visit) // everything, by stat
//		}
//		// look at c.Paths
//	}
//
// A watch is a hint; the sweep is the truth. Promises:
//
//   - Watch first, then scan: once the watches of new roots stand, a Sweep is
//     due. What is written before it is seen by the sweep, what is written after
//     it by an event.
//   - A directory that appears below a root is watched at once, and what it
//     already holds is reported.
//   - Whenever events may be lost (queue overflow, too many dirty paths, a source
//     that failed and came back) a Sweep is due.
//   - Ready fires on the first event. Nothing is delayed here.
//   - Directories are watched, never files, so a rename over a file is no loss.
//   - A directory that is reached by several roots or links has one watch, and
//     keeps it as long as one root needs it.
//   - Idle costs nothing: a timer runs only while a root is missing, a watch
//     was refused, or the budget is used up.
//
// What it cannot see by events: writes to a file that is only linked into a root; a
// directory above a root being renamed, or a symbolic link on the way to a root
// being changed. The sweep sees the first. For the others SetRoots looks at the roots
// again each time, one stat for each, so it is to be called with each sweep. That
// call also finds out that the descriptor of the watches was closed by somebody.
//
// Network and user-space file systems (NFS, CIFS, 9p, FUSE, drvfs) are not
// watched; what lies there is counted as unwatched, one for each tree, and Health
// says mixed or polling. Then the caller has to sweep more often.
//
// Bounds: Budget watches; the directories touched last keep theirs. MaxDirty
// paths and as many changed directories wait at once, more become a Sweep. A
// scan looks at 131,072 directories at most. Paths are reported as the
// root's Dir spells them; a file reached by two roots under the first one's.
package watch
