package watch

import (
	"container/heap"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// fresh is the age below which a directory counts as changed just now.
const fresh = time.Second

// compare sets all watches anew. The Sweep that follows sees what happened while
// there were none. It is rare: other roots, lost events, a retry.
func (t *tree) compare(roots []Root) {
	t.begin()
	clear(t.cold)
	clear(t.state)
	for _, n := range t.all() {
		t.drop(n)
	}
	for _, r := range roots {
		t.root(r, false)
	}
	t.anchor(roots)
}

// resync looks at one directory again: it may have come, gone, or been replaced.
// What it holds is reported.
func (t *tree) resync(dir string, roots []Root) {
	if t.renew(dir, roots) {
		t.anchor(roots)
	}
}

// renew sets the watches of dir and of all below it anew, and reports what they
// hold. It says whether dir is a root or lies above one.
func (t *tree) renew(dir string, roots []Root) (leads bool) {
	t.begin()
	t.forget(dir)
	for _, r := range roots {
		if r.Dir == dir || under(r.Dir, dir) {
			leads = true
			t.root(r, true)
		}
	}
	left, ok := t.covered(dir, roots)
	up := t.w.nodes[filepath.Dir(dir)]
	if up != nil && up.left > left {
		left, ok = up.left-1, true // the parent is wanted by another path too
	}
	if ok {
		var dev uint64
		if up != nil {
			dev = up.id.dev
		}
		t.scan(dir, left, dev, false, true)
	}
	return leads
}

// forget drops what is known of dir and of all below it. An inode number alone
// does not tell a directory from the one that had it before, so where something
// has happened no watch is taken for alive.
func (t *tree) forget(dir string) {
	for _, n := range t.all() {
		if n.path == dir || under(n.path, dir) {
			t.drop(n)
		}
	}
	for path := range t.cold {
		if path == dir || under(path, dir) {
			delete(t.cold, path)
		}
	}
}

// begin starts a pass.
func (t *tree) begin() {
	t.pass++
	t.looked = 0
	t.seen = map[inode]int{}
}

// root scans one root, or notes that it is missing. Of one that went away while it
// was scanned nothing stays known: the report of its end may be lost (see moved).
func (t *tree) root(r Root, report bool) {
	id := dirID(r.Dir)
	if id != (inode{}) {
		t.scan(r.Dir, r.Depth, 0, true, report)
		n := t.byID[id]
		if t.cold[r.Dir] == "" && (n == nil || dirID(n.path) != id) {
			id = inode{} // it went away meanwhile
		}
	}
	if id == (inode{}) {
		t.forget(r.Dir)
	}
	t.state[r.Dir] = id
}

// scan watches dir and the directories below it: each first, then its content,
// so that what comes in between gives an event.
func (t *tree) scan(dir string, left int, dev uint64, root, report bool) {
	fi, err := os.Stat(dir)
	if err != nil || !fi.IsDir() || t.ctx.Err() != nil {
		return
	}
	id := inodeOf(fi)
	if before, ok := t.seen[id]; ok && before >= left && !t.strayed(id) {
		// A root that lies below another was found as one of its directories.
		switch n := t.byID[id]; {
		case !root:
			return
		case n != nil:
			t.keep(n, left, 0, true)
			return
		}
		delete(t.cold, dir) // it may take the watch of another
	}
	t.seen[id] = left
	if t.looked++; t.looked > maxDirs {
		if t.looked == maxDirs+1 {
			t.cold[dir] = tooMany
		}
		return
	}
	if id.dev != dev {
		if name, yes := t.w.opt.alien(dir); yes {
			t.cold[dir] = alienFS + name
			return
		}
	}
	hot := fi.ModTime()
	if now := time.Now(); now.Sub(hot) < fresh {
		hot = now // the kernel's clock for files is some ms behind that of events
	}
	t.watch(dir, id, left, hot.UnixNano(), root)

	var below []string
	err = list(dir, func(now fs.FileInfo) bool {
		// Another directory took the name before the watch was set. Its parent
		// sees that too and has it looked at again; for a root nobody does.
		if inodeOf(now) != id && root {
			t.w.resync(dir)
		}
		return true
	}, func(path string, e fs.DirEntry) error {
		kind := e.Type()
		if kind&fs.ModeSymlink != 0 {
			if fi, err := os.Stat(path); err == nil {
				kind = fi.Mode().Type()
			}
		}
		switch {
		case kind.IsDir():
			if left > 0 {
				below = append(below, path)
			}
		case kind.IsRegular() && report:
			t.w.mark(path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.cold[dir] = denied
	}
	for _, path := range below {
		t.scan(path, left-1, id.dev, false, report)
	}
}

// strayed says whether a directory that this pass has looked at left its path since.
// The event of its new place may be older than the watch there.
func (t *tree) strayed(id inode) bool {
	n := t.byID[id]
	return n != nil && dirID(n.path) != id
}

// watch sets the watch of a directory, unless it has one.
func (t *tree) watch(dir string, id inode, left int, hot int64, root bool) {
	if n := t.w.nodes[dir]; n != nil {
		if n.id == id {
			t.keep(n, left, hot, root)
			return
		}
		t.doubt(n)
	}
	if n := t.byID[id]; n != nil {
		// The same directory by another path: one watch is enough, unless that
		// path is not the directory's any more.
		if dirID(n.path) == id && n.left >= 0 {
			t.keep(n, left, hot, root)
			return
		}
		t.doubt(n)
	}
	why := t.add(dir, id, left, hot, root)
	if why != "" {
		t.cold[dir] = why
	}
}

// add gives the reason why there is no watch, or "".
func (t *tree) add(dir string, id inode, left int, hot int64, root bool) string {
	if t.full || len(t.w.nodes) >= t.w.opt.Budget {
		if !t.evict(hot, root) {
			if t.full {
				return noWatches
			}
			return noBudget
		}
	}
	n := &node{path: dir, id: id, left: left, root: root, hot: hot, pass: t.pass, index: -1}
	err := t.set(n)
	if limited(err) {
		t.full = true
		if !t.evict(hot, root) {
			return noWatches
		}
		err = t.set(n)
	}
	switch {
	case err == nil:
		t.added = true
		if !root && left >= 0 {
			heap.Push(&t.heap, n)
		}
		return ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		delete(t.seen, id) // gone already, maybe to where this pass has not been yet
		return ""
	case limited(err):
		return noWatches
	}
	return denied
}

// set makes the directory known and then watched: its end may be the first event.
func (t *tree) set(n *node) error {
	for _, old := range []*node{t.w.nodes[n.path], t.byID[n.id]} {
		if old != nil {
			t.doubt(old) // one node for a path, and for an inode
		}
	}
	t.w.mu.Lock()
	t.w.nodes[n.path] = n
	t.w.mu.Unlock()
	t.byID[n.id] = n
	up := filepath.Dir(n.path)
	if t.kids[up] == nil {
		t.kids[up] = map[*node]struct{}{}
	}
	t.kids[up][n] = struct{}{}
	err := t.src.Add(n.path)
	if err != nil {
		t.drop(n)
		return err
	}
	t.moved(n.path)
	return nil
}

// moved notes that a directory got or lost its watch while directories right below
// it kept theirs. When a directory ends, fsnotify leaves the report to the watch of
// its parent, if there is one at that moment. So the report is lost when the parent
// got its watch after the end, or lost it before it could tell. Those below are set
// anew before the pass is over; then each has ended, or its end will be reported.
func (t *tree) moved(dir string) {
	for n := range t.kids[dir] {
		t.again[n.path] = struct{}{}
	}
}

// recheck sets anew what moved has noted. A directory that this sets has no watch
// below it, so the second round is seldom and the third needs changes meanwhile.
func (t *tree) recheck(roots []Root) {
	for range 8 {
		if len(t.again) == 0 {
			return
		}
		again := t.again
		t.again = map[string]struct{}{}
		for dir := range again {
			t.resync(dir, roots)
		}
	}
	for dir := range t.again { // it never rests: let Run report and come back
		t.w.resync(dir)
	}
	clear(t.again)
}

// limited says whether the system has no more watches to give.
func limited(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE)
}

// keep notes that a watched directory is still wanted.
func (t *tree) keep(n *node, left int, hot int64, root bool) {
	if n.pass == t.pass { // two roots want it
		left, root = max(left, n.left), root || n.root
	}
	t.w.mu.Lock()
	n.left = left
	t.w.mu.Unlock()
	n.pass, n.root = t.pass, root
	n.hot = max(n.hot, hot)
	switch {
	case n.root && n.index >= 0:
		heap.Remove(&t.heap, n.index)
	case n.root:
	case n.index >= 0:
		heap.Fix(&t.heap, n.index)
	default:
		heap.Push(&t.heap, n)
	}
}

// drop takes the watch off a directory.
func (t *tree) drop(n *node) {
	t.src.Remove(n.path) // it fails when the directory is gone, and the watch with it
	t.w.mu.Lock()
	delete(t.w.nodes, n.path)
	t.w.mu.Unlock()
	up := filepath.Dir(n.path)
	if delete(t.kids[up], n); len(t.kids[up]) == 0 {
		delete(t.kids, up)
	}
	if t.byID[n.id] == n {
		delete(t.byID, n.id)
	}
	if n.index >= 0 {
		heap.Remove(&t.heap, n.index)
	}
}

// doubt drops a directory that is not what it was, and has it looked at again: the
// event of its end goes with its watch.
func (t *tree) doubt(n *node) {
	t.drop(n)
	t.w.resync(n.path)
}

// all are the nodes, to change the map meanwhile.
func (t *tree) all() []*node {
	out := make([]*node, 0, len(t.w.nodes))
	for _, n := range t.w.nodes {
		out = append(out, n)
	}
	return out
}

// covered says whether dir is a root or below one, and how many levels below it
// count.
func (t *tree) covered(dir string, roots []Root) (left int, ok bool) {
	left = -1
	for _, r := range roots {
		switch {
		case dir == r.Dir:
			left = max(left, r.Depth)
		case under(dir, r.Dir):
			left = max(left, r.Depth-levels(dir, r.Dir))
		}
	}
	return left, left >= 0
}

// anchor watches the nearest directory above each missing root, that one alone,
// and no others.
func (t *tree) anchor(roots []Root) {
	want := map[string]bool{}
	for _, r := range roots {
		// Between looking and watching a directory may appear: then once more.
		dir := ""
		for range 8 {
			if t.state[r.Dir] != (inode{}) {
				break
			}
			dir = above(r.Dir)
			id := dirID(dir)
			if id == (inode{}) {
				continue // gone already
			}
			n := t.byID[id]
			if n != nil && dirID(n.path) != id {
				t.doubt(n) // its directory is gone, and the inode has come back
				n = nil
			}
			if n == nil {
				t.add(dir, id, -1, 0, true)
			}
			if dirID(r.Dir) != (inode{}) {
				t.renew(r.Dir, roots)
				t.again[r.Dir] = struct{}{} // roots below it may need another ancestor now
			} else if above(r.Dir) == dir && t.byID[id] != nil {
				break
			}
		}
		if t.state[r.Dir] == (inode{}) {
			want[dir] = true // if it is gone by now, that is an event
		}
	}
	for _, n := range t.all() {
		if n.left < 0 && !want[n.path] {
			t.drop(n)
			t.moved(n.path)
		}
	}
}

// above is the nearest existing directory above dir.
func above(dir string) string {
	for {
		up := filepath.Dir(dir)
		if up == dir || dirID(up) != (inode{}) {
			return up
		}
		dir = up
	}
}

// coldest is a heap of the directories whose watch may be taken, the one that
// changed longest ago first.
type coldest []*node

func (h coldest) Len() int           { return len(h) }
func (h coldest) Less(i, j int) bool { return h[i].hot < h[j].hot }
func (h coldest) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *coldest) Push(x any) {
	n := x.(*node)
	n.index = len(*h)
	*h = append(*h, n)
}
func (h *coldest) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	n.index = -1
	return n
}

// evict takes the watch of the coldest directory if it is colder than hot, or if
// a root needs it. An event in a directory warms it as its own change would.
func (t *tree) evict(hot int64, root bool) bool {
	for len(t.heap) > 0 {
		n := t.heap[0]
		t.w.mu.Lock()
		touched := n.touched
		t.w.mu.Unlock()
		if touched > n.hot {
			n.hot = touched
			heap.Fix(&t.heap, 0)
			continue
		}
		if n.hot >= hot && !root {
			return false
		}
		t.drop(n)
		t.cold[n.path] = noBudget
		// As in moved, but setting all below anew would cost more than it gains while
		// watches are short: what is there stays, the next retry sets it anew.
		for k := range t.kids[n.path] {
			if dirID(k.path) != k.id {
				t.again[k.path] = struct{}{}
			}
		}
		return true
	}
	return false
}
