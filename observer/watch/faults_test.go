package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

var _ source = (*fake)(nil)

// fake is the real source with faults put in.
type fake struct {
	source
	errs chan error
	once sync.Once // closes errs
	ga   *gate     // nil: every watch is allowed
}

func (f *fake) Errors() <-chan error { return f.errs }

func (f *fake) Add(dir string) error {
	if f.ga == nil {
		return f.source.Add(dir)
	}
	if err := f.ga.take(syscall.ENOSPC); err != nil {
		return err
	}
	err := f.source.Add(dir)
	if err != nil {
		f.ga.give()
	}
	return err
}

func (f *fake) Remove(dir string) error {
	err := f.source.Remove(dir)
	if err == nil && f.ga != nil {
		f.ga.give()
	}
	return err
}

func (f *fake) Close() error {
	err := f.source.Close()
	f.once.Do(func() { close(f.errs) })
	return err
}

func faulty(ga *gate) (func() (source, error), chan *fake) {
	out := make(chan *fake, 8)
	return func() (source, error) {
		s, err := openInotify()
		if err != nil {
			return nil, err
		}
		f := &fake{source: s, errs: make(chan error), ga: ga}
		out <- f
		return f, nil
	}, out
}

// gate gives things out, no more than most at a time while it is shut.
type gate struct {
	mu   sync.Mutex
	shut bool
	most int
	used int
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
}

// take gives err when there is nothing left.
func (g *gate) take(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut && g.used >= g.most {
		return err
	}
	g.used++
	return nil
}

func (g *gate) give() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used--
}

func TestOverflowAsksForASweep(t *testing.T) {
	root := t.TempDir()
	open, made := faulty(nil)
	w := start(t, Options{open: open})
	g := newGather(t, w, Root{root, 2})
	f := <-made
	before := g.sweeps
	f.errs <- fsnotify.ErrEventOverflow
	g.until("sweep", func() bool { return g.sweeps > before })
	g.health("one overflow", func(h Health) bool { return h.Overflows == 1 && h.Mode == Inotify })
	g.event2(filepath.Join(root, "p", "a"))
	if g.sweeps != before+1 {
		t.Errorf("%d sweeps for one overflow", g.sweeps-before)
	}
}

// A watch that was gone before it could be removed is no trouble.
func TestHarmlessErrors(t *testing.T) {
	root := t.TempDir()
	open, made := faulty(nil)
	w := start(t, Options{open: open})
	g := newGather(t, w, Root{root, 1})
	f := <-made
	f.errs <- &os.SyscallError{Syscall: "inotify_rm_watch", Err: syscall.EINVAL}
	g.event2(filepath.Join(root, "p", "a"))
	if h := w.Health(); g.sweeps != 1 || h.Mode != Inotify {
		t.Errorf("%d sweeps, health %+v; want the first sweep and inotify", g.sweeps, h)
	}
}

// C10, C11: no more watches. What is there goes on, Health says so, and the
// rest is tried again, ever more seldom.
func TestNoMoreWatches(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"a", "b", "c"} {
		must(t, os.Mkdir(filepath.Join(root, d), 0o755))
	}
	old := time.Now().Add(-time.Hour)
	for _, d := range []string{"a", "b", "c"} { // equally old: none takes another's watch
		must(t, os.Chtimes(filepath.Join(root, d), old, old))
	}
	ga := &gate{shut: true, most: 2}
	open, _ := faulty(ga)
	w := start(t, Options{open: open, retry: time.Millisecond})
	g := newGather(t, w, Root{root, 1})
	g.health("the limit", func(h Health) bool {
		return h.Mode == Mixed && h.Reason == noWatches && h.Watches == 2 && h.Unwatched == 2
	})
	before := g.sweeps
	ga.set(false)
	g.health("inotify", func(h Health) bool { return h.Mode == Inotify && h.Watches == 4 && h.Reason == "" })
	g.until("sweep for what came meanwhile", func() bool { return g.sweeps > before })
	for _, d := range []string{"a", "b", "c"} {
		g.event2(filepath.Join(root, d, "x"))
	}
}

// C11: no inotify instance at all; polling until one can be had.
func TestNoSource(t *testing.T) {
	root := t.TempDir()
	ga := &gate{shut: true}
	w := start(t, Options{retry: time.Millisecond, open: func() (source, error) {
		if err := ga.take(syscall.EMFILE); err != nil {
			return nil, err
		}
		return openInotify()
	}})
	g := newGather(t, w, Root{root, 0})
	g.health("polling", func(h Health) bool { return h.Mode == Polling && h.Reason == noSource && h.Unwatched == 1 })
	before := g.sweeps
	ga.set(false)
	g.health("inotify", func(h Health) bool { return h.Mode == Inotify && h.Reason == "" })
	g.until("sweep", func() bool { return g.sweeps > before })
	g.event2(filepath.Join(root, "a"))
}

// A source that fails is replaced, and everything is swept.
func TestBrokenSource(t *testing.T) {
	root := t.TempDir()
	open, made := faulty(nil)
	w := start(t, Options{open: open, retry: time.Millisecond})
	g := newGather(t, w, Root{root, 0})
	f := <-made
	before := g.sweeps
	f.errs <- errors.New("read inotify: broken")
	<-made
	g.until("sweep", func() bool { return g.sweeps > before })
	g.health("inotify", func(h Health) bool { return h.Mode == Inotify && h.Watches == 1 })
	g.until("an event or a sweep", func() bool {
		put(t, filepath.Join(root, "a"))
		return g.paths[filepath.Join(root, "a")]
	})
}

// A source that ends by itself is replaced too.
func TestSourceEnds(t *testing.T) {
	root := t.TempDir()
	open, made := faulty(nil)
	w := start(t, Options{open: open, retry: time.Millisecond})
	g := newGather(t, w, Root{root, 0})
	f := <-made
	before := g.sweeps
	must(t, f.Close())
	<-made
	g.until("sweep", func() bool { return g.sweeps > before })
	g.health("inotify", func(h Health) bool { return h.Mode == Inotify && h.Watches == 1 })
	g.event2(filepath.Join(root, "a"))
}

// A descriptor that somebody closed makes no error and no event. The next call
// of SetRoots, which comes with each sweep, finds out.
func TestDescriptorClosed(t *testing.T) {
	root := t.TempDir()
	before := inotifies(t)
	w := start(t, Options{retry: time.Hour})
	g := newGather(t, w, Root{root, 0})
	g.event2(filepath.Join(root, "a"))
	var fd int
	for n := range inotifies(t) {
		if !before[n] {
			fd = n
		}
	}
	if fd == 0 {
		t.Fatal("no descriptor of inotify")
	}
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
	sweeps := g.sweeps
	w.SetRoots([]Root{{root, 0}})
	g.health("polling", func(h Health) bool { return h.Mode == Polling && h.Reason == lost && h.Unwatched == 1 })
	g.until("sweep", func() bool { return g.sweeps > sweeps })
}

// inotifies are the descriptors of inotify that this process has.
func inotifies(t *testing.T) map[int]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	out := map[int]bool{}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == "anon_inode:inotify" {
			n, err := strconv.Atoi(e.Name())
			must(t, err)
			out[n] = true
		}
	}
	return out
}

// C19: a file system without events is not watched, and Health names it.
func TestForeignFileSystem(t *testing.T) {
	base := t.TempDir()
	here, there := filepath.Join(base, "here"), filepath.Join(base, "there")
	must(t, os.MkdirAll(filepath.Join(here, "p"), 0o755))
	must(t, os.MkdirAll(filepath.Join(there, "p"), 0o755))
	alien := func(dir string) (string, bool) { return "9p", strings.HasPrefix(dir, there) }

	w := start(t, Options{alien: alien})
	g := newGather(t, w, Root{here, 1}, Root{there, 1})
	g.health("mixed", func(h Health) bool {
		return h.Mode == Mixed && h.Reason == alienFS+"9p" && h.Watches == 2 && h.Unwatched == 1
	})
	g.event2(filepath.Join(here, "p", "a"))
	w.SetRoots([]Root{{there, 1}})
	g.health("polling", func(h Health) bool { return h.Mode == Polling && h.Watches == 0 && h.Unwatched == 1 })
}

func TestKnownFileSystems(t *testing.T) {
	if name, yes := alien(t.TempDir()); yes {
		t.Skipf("the test runs on %s", name)
	}
	if name, yes := alien("/proc"); yes {
		t.Errorf("alien(/proc) = %q", name)
	}
	if systemBudget() < 1 {
		t.Error("the system allows no watch")
	}
}

// Nothing is planned while all is well; a missing root or a refused watch is.
func TestIdleHasNoTimer(t *testing.T) {
	root := t.TempDir()
	missing := filepath.Join(root, "missing")
	for _, tt := range []struct {
		name   string
		roots  []Root
		budget int
		timer  bool
	}{
		{"healthy", []Root{{root, 1}}, 0, false},
		{"no roots", nil, 0, false},
		{"missing root", []Root{{missing, 0}}, 0, true},
		{"over budget", []Root{{root, 1}}, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			must(t, os.MkdirAll(filepath.Join(root, "sub"), 0o755))
			w := New(Options{Budget: tt.budget})
			w.SetRoots(tt.roots)
			tr := &tree{w: w, ctx: t.Context(), backoff: time.Minute}
			defer tr.close()
			if d := tr.settle(); (d > 0) != tt.timer {
				t.Errorf("settle asks to be called after %v, want a timer: %v", d, tt.timer)
			}
		})
	}
}
