package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// node is a watched directory.
type node struct {
	path string
	id   inode
	left int  // levels below it that count; negative: it only leads to a missing root. Guarded by Watcher.mu
	root bool // keeps its watch when the budget is short

	hot     int64  // when it last changed, Unix nanoseconds
	touched int64  // when it last had an event. Guarded by Watcher.mu
	pass    uint64 // the scan that saw it last
	index   int    // place in the heap, -1 when it is not there
}

// tree is what Run owns: the source and which directories it watches. nodes
// lives in the Watcher, because the pump reads it.
type tree struct {
	w   *Watcher
	ctx context.Context

	src     source
	pumped  chan struct{} // closed when the pump has ended
	closing *atomic.Bool  // its end is wanted
	failed  string        // why there is no source

	byID    map[inode]*node
	kids    map[string]map[*node]struct{} // the nodes right below each path that has some
	again   map[string]struct{}           // directories that this pass has to set anew
	heap    coldest
	cold    map[string]string // directories without a watch, and why
	state   map[string]inode  // what each root was when it was scanned; zero = missing
	full    bool              // the system gave no more watches
	added   bool              // a watch was added since the last health
	pass    uint64
	looked  int           // directories of this pass
	seen    map[inode]int // levels that this pass looked at below a directory
	retryAt time.Time     // zero when nothing is to be tried again
	backoff time.Duration
	lookAt  time.Time // when missing roots are looked for; zero when there are none
}

const (
	noBudget  = "watch budget is used up"
	noWatches = "system limit of inotify watches is reached"
	noSource  = "inotify cannot be opened"
	lost      = "inotify failed"
	forced    = "polling was asked for"
	denied    = "a directory cannot be watched"
	tooMany   = "too many directories"
	alienFS   = "file system without events: "
)

// settle does what is due and says after how long it has to be called again, 0
// when only a wake-up is to be waited for.
func (t *tree) settle() time.Duration {
	w, now := t.w, time.Now()
	w.mu.Lock()
	roots, rescan, asked, broken, changed := w.roots, w.rescan, w.asked, w.broken, w.changed
	w.rescan, w.asked, w.broken, w.changed = false, false, false, nil
	w.mu.Unlock()

	if w.opt.ForcePolling {
		t.failed = forced
		t.report(roots)
		if rescan {
			w.lose()
		}
		return 0
	}
	if asked || broken {
		if gone, taken := t.deaf(); gone {
			broken, rescan = true, true
			if taken {
				t.abandon()
			}
		}
	}
	if broken {
		t.close()
		t.failed = lost
		t.later(now)
	}
	due := !t.retryAt.IsZero() && !now.Before(t.retryAt)
	look := !t.lookAt.IsZero() && !now.Before(t.lookAt)
	if t.src == nil && (t.failed == "" || due) {
		if t.open() {
			rescan = true
		} else {
			t.later(now)
		}
	}
	sweep := rescan // without a source there are no watches to wait for
	if t.src != nil {
		whole := true
		switch {
		case rescan || due:
			t.full = false
			t.compare(roots)
		case (asked || look) && !t.same(roots):
			rescan = true
			t.compare(roots)
		default:
			whole = false
			for _, dir := range changed {
				t.resync(dir, roots)
			}
		}
		t.recheck(roots)
		// What a whole scan found was not reported path by path.
		sweep = whole && len(roots) > 0 && (rescan || t.added || len(changed) > 0)
	}
	t.report(roots)
	if sweep {
		w.lose()
	}
	return t.next(now, due)
}

// open gets a source and starts its pump.
func (t *tree) open() bool {
	src, err := t.w.opt.open()
	if err != nil {
		t.failed = noSource
		return false
	}
	t.src, t.failed, t.pumped, t.closing = src, "", make(chan struct{}), new(atomic.Bool)
	t.byID, t.cold, t.state = map[inode]*node{}, map[string]string{}, map[string]inode{}
	t.kids, t.again = map[string]map[*node]struct{}{}, map[string]struct{}{}
	done, closing := t.pumped, t.closing
	go func() { // owned by the tree; joined in close
		defer close(done)
		t.w.pump(src, closing)
		if !closing.Load() {
			t.w.trouble(errEnded)
		}
	}()
	return true
}

// deaf says whether the source has lost its descriptor, and whether another file has
// its number by now. Nothing else would tell, its events only stay away. To ask for a
// watch that stands changes nothing.
func (t *tree) deaf() (gone, taken bool) {
	if t.src == nil {
		return false, false
	}
	for _, n := range t.w.nodes {
		if n.root && dirID(n.path) == n.id {
			err := t.src.Add(n.path)
			taken = errors.Is(err, unix.EINVAL)
			return taken || errors.Is(err, unix.EBADF), taken
		}
	}
	return false, false
}

// abandon forgets the source without closing it: that would close the file which has
// its number. Its goroutines are left waiting for ever.
func (t *tree) abandon() {
	t.closing.Store(true)
	t.src = nil
}

// close ends the source and its pump, and forgets the tree.
func (t *tree) close() {
	if t.src != nil {
		t.closing.Store(true)
		t.src.Close() // its error changes nothing for us: we are done with it
		<-t.pumped
	}
	t.src, t.byID, t.heap, t.cold, t.state = nil, nil, nil, nil, nil
	t.kids, t.again = nil, nil
	t.w.mu.Lock()
	t.w.broken = false // what it reported until here, about itself or its closing
	clear(t.w.nodes)
	t.w.health.Mode, t.w.health.Reason = Polling, "not running"
	t.w.health.Watches, t.w.health.Unwatched = 0, 0
	t.w.mu.Unlock()
}

// later plans the next try, each twice as far away as the last.
func (t *tree) later(now time.Time) {
	t.retryAt = now.Add(t.backoff)
	t.backoff = min(2*t.backoff, retryMost)
}

// next plans what has to be tried again, and gives the time until then.
func (t *tree) next(now time.Time, due bool) time.Duration {
	switch {
	case t.src == nil: // planned where it failed
	case len(t.cold) > 0 && hopeful(t.cold):
		if due || t.retryAt.IsZero() {
			t.later(now)
		}
	default:
		t.retryAt, t.backoff = time.Time{}, t.w.opt.retry
	}
	t.lookAt = time.Time{}
	for _, id := range t.state {
		if id == (inode{}) {
			t.lookAt = now.Add(t.w.opt.look)
		}
	}
	at := t.retryAt
	if at.IsZero() || (!t.lookAt.IsZero() && t.lookAt.Before(at)) {
		at = t.lookAt
	}
	if at.IsZero() {
		return 0
	}
	return max(time.Millisecond, time.Until(at))
}

// hopeful says whether a later try may give some directory its watch. A foreign
// file system stays one.
func hopeful(cold map[string]string) bool {
	for _, why := range cold {
		if why == noBudget || why == noWatches || why == denied {
			return true
		}
	}
	return false
}

// report writes the health.
func (t *tree) report(roots []Root) {
	w := t.w
	unwatched, reason := len(t.cold), t.failed
	for _, why := range t.cold {
		if reason == "" || why == noWatches || (why == noBudget && reason != noWatches) {
			reason = why
		}
	}
	if t.src == nil {
		unwatched = len(roots)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	real := 0
	for _, n := range w.nodes {
		if n.left >= 0 {
			real++
		}
	}
	mode := Mixed
	switch {
	case t.src == nil || (real == 0 && unwatched > 0):
		mode = Polling
	case unwatched == 0:
		mode = Inotify
	}
	w.health.Mode, w.health.Reason = mode, reason
	w.health.Watches, w.health.Unwatched = len(w.nodes), unwatched
	t.added = false
}

// same says whether each root is still the directory that was scanned.
func (t *tree) same(roots []Root) bool {
	for _, r := range roots {
		if was, ok := t.state[r.Dir]; !ok || was != dirID(r.Dir) {
			return false
		}
	}
	return true
}

// dirID is the inode of a directory, zero when there is none.
func dirID(dir string) inode {
	fi, err := os.Stat(dir)
	if err != nil || !fi.IsDir() {
		return inode{}
	}
	return inodeOf(fi)
}

// under says whether path lies below dir.
func under(path, dir string) bool {
	if dir == string(filepath.Separator) {
		return path != dir
	}
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == filepath.Separator
}

// levels counts how far path lies below dir.
func levels(path, dir string) int {
	return strings.Count(strings.Trim(path[len(dir):], "/"), "/") + 1
}
