package watch

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ErrRunning is returned by Run when the Watcher runs or ran already.
var ErrRunning = errors.New("watcher was run before")

const (
	defaultBudget   = 8192
	defaultMaxDirty = 1024
	maxDirs         = 1 << 17 // directories that one scan looks at

	missingEvery = 10 * time.Second // how often a missing root is looked for
	retryFirst   = 30 * time.Second // first retry of watches that were refused
	retryMost    = 10 * time.Minute // each retry waits twice as long, up to this
)

// Root is a directory below which paths matter.
type Root struct {
	Dir   string // absolute; need not exist, may be a symbolic link
	Depth int    // levels of directories below Dir that count; 0 = Dir alone
}

// Options configure a Watcher. The zero value is the default.
type Options struct {
	Budget       int  // watches at most; default 8192, and never more than the system allows
	MaxDirty     int  // dirty paths that wait before a Sweep takes their place; default 1024
	ForcePolling bool // use no events at all

	// Seams for tests.
	open  func() (source, error)
	alien func(dir string) (name string, yes bool) // file systems that give no events
	retry time.Duration                            // first retry; default 30 s
	look  time.Duration                            // period of looking for missing roots; default 10 s
}

// Mode says how changes are noticed.
type Mode string

const (
	Inotify Mode = "inotify" // every directory is watched
	Mixed   Mode = "mixed"   // some are not; sweep more often
	Polling Mode = "polling" // none is; sweep more often
)

// Health is the state of a Watcher.
type Health struct {
	Mode      Mode
	Reason    string // why Mode is not inotify, in fixed words; "" when it is
	Watches   int    // in use, those that wait for a missing root included
	Budget    int    // how many there may be
	Unwatched int    // directories without a watch; a tree on a foreign file system counts once
	Overflows uint64 // times that events were lost by a full queue
}

// Changes is what happened since the last Take.
type Changes struct {
	Paths []string // files, oldest change first; each once; they may be gone
	Sweep bool     // events may be missing: look at everything
}

// Watcher watches the directories of its roots while Run runs.
type Watcher struct {
	opt   Options
	ready chan struct{} // cap 1: a flag
	wake  chan struct{} // cap 1: a flag for Run

	mu sync.Mutex // guards all below; no I/O under it
	// Towards the caller.
	dirty  map[string]struct{}
	order  []string
	sweep  bool
	health Health
	// Towards Run.
	ran     bool
	roots   []Root
	asked   bool     // SetRoots was called
	rescan  bool     // the tree has to be compared with the roots again
	broken  bool     // the source failed
	changed []string // directories that came or went, oldest first
	// The tree, for the classification of events. Only Run changes it.
	nodes map[string]*node
}

// New makes a Watcher. Nothing is watched until Run.
func New(opt Options) *Watcher {
	if opt.Budget <= 0 {
		opt.Budget = defaultBudget
	}
	if opt.MaxDirty <= 0 {
		opt.MaxDirty = defaultMaxDirty
	}
	if opt.open == nil {
		opt.open = openInotify
	}
	if opt.alien == nil {
		opt.alien = alien
	}
	if opt.retry <= 0 {
		opt.retry = retryFirst
	}
	if opt.look <= 0 {
		opt.look = missingEvery
	}
	opt.Budget = min(opt.Budget, systemBudget())
	return &Watcher{
		opt:    opt,
		ready:  make(chan struct{}, 1),
		wake:   make(chan struct{}, 1),
		dirty:  map[string]struct{}{},
		nodes:  map[string]*node{},
		health: Health{Mode: Polling, Reason: "not running", Budget: opt.Budget},
	}
}

// SetRoots says what to watch; it may be called at any time and returns at once.
// A Sweep is due when the watches stand. With roots that are already watched it
// only checks, by one stat for each, that they are still the same directories.
// Roots with a relative Dir are left out.
func (w *Watcher) SetRoots(roots []Root) {
	clean := make([]Root, 0, len(roots))
	for _, r := range roots {
		if filepath.IsAbs(r.Dir) {
			clean = append(clean, Root{Dir: filepath.Clean(r.Dir), Depth: max(0, r.Depth)})
		}
	}
	w.mu.Lock()
	if !slices.Equal(clean, w.roots) {
		w.roots, w.rescan = clean, true
	}
	w.asked = true
	w.mu.Unlock()
	flag(w.wake)
}

// Ready receives when there is something to take.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Take gives the changes since the last Take and forgets them.
func (w *Watcher) Take() Changes {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Changes{Paths: w.order, Sweep: w.sweep}
	w.order, w.sweep = nil, false
	clear(w.dirty)
	return c
}

// Health says how well the watching goes.
func (w *Watcher) Health() Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}

// Run watches until ctx is done and then returns nil. It owns every goroutine
// and joins them. Trouble with the system's watches never ends it: Health tells.
// It returns ErrRunning when it was called before.
func (w *Watcher) Run(ctx context.Context) error {
	w.mu.Lock()
	again := w.ran
	w.ran = true
	w.mu.Unlock()
	if again {
		return ErrRunning
	}
	t := &tree{w: w, ctx: ctx, backoff: w.opt.retry}
	defer t.close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		if d := t.settle(); d > 0 {
			timer.Reset(d)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// mark notes a dirty path. Over MaxDirty a Sweep takes the place of all.
func (w *Watcher) mark(path string) {
	w.mu.Lock()
	if _, ok := w.dirty[path]; !ok && !w.sweep {
		if len(w.order) >= w.opt.MaxDirty {
			w.sweep, w.order = true, nil
			clear(w.dirty)
		} else {
			w.dirty[path] = struct{}{}
			w.order = append(w.order, path)
		}
	}
	w.mu.Unlock()
	flag(w.ready)
}

// lose notes that events may be missing.
func (w *Watcher) lose() {
	w.mu.Lock()
	w.sweep = true
	w.mu.Unlock()
	flag(w.ready)
}

// flag sets a one-place channel that stands for "look at the state".
func flag(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
