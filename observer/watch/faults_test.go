package watch

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
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
		g.live(filepath.Join(root, d, "x"))
	}
}

// C10: the watches that the system gives go to what changed last, too.
func TestNoMoreWatchesForTheCold(t *testing.T) {
	root := t.TempDir()
	a := filepath.Join(root, "a")
	must(t, os.Mkdir(a, 0o755))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(a, old, old))
	open, _ := faulty(&gate{shut: true, most: 2})
	w := start(t, Options{open: open, retry: time.Hour})
	g := newGather(t, w, Root{root, 1})
	g.event2(filepath.Join(root, "b", "x"))
	g.event2(filepath.Join(root, "b", "y"))
	g.health("a without a watch", func(h Health) bool { return h.Watches == 2 && h.Unwatched == 1 })
	for _, err := range []error{syscall.ENOSPC, syscall.ENOMEM, syscall.EMFILE} {
		if !limited(err) {
			t.Errorf("%v is no limit", err)
		}
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
	g.live(filepath.Join(root, "a"))
}

// The sweep does not wait until the source is back.
func TestBrokenSourceSweepsAtOnce(t *testing.T) {
	open, made := faulty(nil)
	w := start(t, Options{open: open, retry: time.Hour})
	g := newGather(t, w, Root{t.TempDir(), 0})
	f := <-made
	before := g.sweeps
	f.errs <- errors.New("read inotify: broken")
	g.until("sweep", func() bool { return g.sweeps > before })
	g.health("polling", func(h Health) bool {
		return h.Mode == Polling && h.Reason == lost && h.Watches == 0 && h.Unwatched == 1
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
	g.live(filepath.Join(root, "a"))
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

// A number that was free is soon another file's. Then the source is given up, and
// what has its number stays open.
func TestDescriptorTaken(t *testing.T) {
	before := inotifies(t)
	w := New(Options{retry: time.Minute})
	w.SetRoots([]Root{{t.TempDir(), 0}})
	tr := &tree{w: w, ctx: t.Context(), backoff: w.opt.retry}
	defer tr.close()
	tr.settle()
	stranger, err := os.Open(t.TempDir())
	must(t, err)
	defer stranger.Close()
	taken := -1
	for n := range inotifies(t) {
		if !before[n] {
			taken = n
			must(t, unix.Dup3(int(stranger.Fd()), n, unix.O_CLOEXEC))
		}
	}
	w.SetRoots(w.roots)
	tr.settle()
	if h := w.Health(); h.Mode != Polling || h.Reason != lost || !w.sweep {
		t.Errorf("Health = %+v, sweep %v; want polling and a sweep", h, w.sweep)
	}
	if err := syscall.Close(taken); err != nil {
		t.Errorf("the stranger's descriptor was closed: %v", err)
	}
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
	// The watch that waits for a missing root tells of no file.
	w.SetRoots([]Root{{there, 1}, {filepath.Join(base, "missing"), 1}})
	g.health("polling", func(h Health) bool { return h.Mode == Polling && h.Watches == 1 && h.Unwatched == 1 })
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
	if n := New(Options{Budget: math.MaxInt}).Health().Budget; n != systemBudget() {
		t.Errorf("budget = %d, want what the system allows", n)
	}
	for magic, name := range map[uint32]string{
		unix.V9FS_MAGIC: "9p", unix.NFS_SUPER_MAGIC: "nfs", unix.FUSE_SUPER_MAGIC: "fuse", unix.CIFS_SUPER_MAGIC: "cifs",
		unix.SMB2_SUPER_MAGIC: "smb", unix.SMB_SUPER_MAGIC: "smb", unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph",
	} {
		if foreign[magic] != name {
			t.Errorf("foreign[%#x] = %q, want %q", magic, foreign[magic], name)
		}
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
		alien  func(string) (string, bool)
		timer  bool
	}{
		{"healthy", []Root{{root, 1}}, 0, nil, false},
		{"no roots", nil, 0, nil, false},
		{"missing root", []Root{{missing, 0}}, 0, nil, true},
		{"over budget", []Root{{root, 1}}, 1, nil, true},
		{"foreign", []Root{{root, 1}}, 0, func(string) (string, bool) { return "9p", true }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			must(t, os.MkdirAll(filepath.Join(root, "sub"), 0o755))
			w := New(Options{Budget: tt.budget, alien: tt.alien})
			w.SetRoots(tt.roots)
			tr := &tree{w: w, ctx: t.Context(), backoff: time.Minute}
			defer tr.close()
			if d := tr.settle(); (d > 0) != tt.timer {
				t.Errorf("settle asks to be called after %v, want a timer: %v", d, tt.timer)
			}
			// Nor when all is well again.
			tr.w.opt.Budget, w.opt.alien = defaultBudget, alien
			w.SetRoots([]Root{{root, 1}, {filepath.Join(root, "sub"), 0}})
			if d := tr.settle(); d != 0 || !tr.retryAt.IsZero() || tr.backoff != w.opt.retry {
				t.Errorf("settle asks to be called after %v, tries again at %v and then after %v", d, tr.retryAt, tr.backoff)
			}
		})
	}
}

// That a source ends when it is closed is no trouble, and no second sweep.
func TestClosedSourceIsNoTrouble(t *testing.T) {
	m := &mute{events: make(chan fsnotify.Event), errs: make(chan error), watched: map[string]bool{}}
	w := New(Options{open: func() (source, error) { return m, nil }})
	w.SetRoots([]Root{{t.TempDir(), 0}})
	tr := &tree{w: w, ctx: t.Context(), backoff: w.opt.retry}
	defer tr.close()
	tr.settle()
	w.trouble(errors.New("broken"))
	w.trouble(errors.New("broken still"))
	if tr.settle(); tr.src != nil || w.broken || w.rescan {
		t.Errorf("source %v, broken %v, rescan %v after it was closed", tr.src, w.broken, w.rescan)
	}
}

// A missing root and refused watches have their own times; what happens in between
// moves neither.
func TestTwoTimers(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "sub"), 0o755))
	missing := filepath.Join(root, "missing")
	w := New(Options{Budget: 1, look: time.Minute, retry: time.Hour})
	w.SetRoots([]Root{{root, 1}, {missing, 0}})
	tr := &tree{w: w, ctx: t.Context(), backoff: w.opt.retry}
	defer tr.close()
	if d := tr.settle(); d <= 0 || d > time.Minute {
		t.Errorf("the missing root is looked for after %v", d)
	}
	at := tr.retryAt
	w.resync(filepath.Join(root, "sub"))
	if tr.settle(); tr.retryAt != at {
		t.Errorf("the retry was put off by %v", tr.retryAt.Sub(at))
	}
	must(t, os.Mkdir(missing, 0o755))
	w.resync(missing)
	if d := tr.settle(); d <= time.Minute || tr.retryAt != at {
		t.Errorf("called again after %v, want the retry alone", d)
	}
}

func TestBackoff(t *testing.T) {
	tr := &tree{backoff: retryFirst}
	now := time.Now()
	for _, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
		if tr.later(now); tr.retryAt.Sub(now) != want*time.Second {
			t.Errorf("next try after %v, want %v", tr.retryAt.Sub(now), want*time.Second)
		}
	}
}

// The reason that somebody can do something about wins.
func TestReason(t *testing.T) {
	w := New(Options{})
	tr := &tree{w: w, src: inotify{}, cold: map[string]string{"a": alienFS + "9p", "b": noBudget, "c": denied, "d": noWatches}}
	for _, want := range []string{noWatches, noBudget} {
		for range 20 { // the order of a map is any
			if tr.report(nil); w.Health().Reason != want {
				t.Errorf("Reason = %q, want %q", w.Health().Reason, want)
			}
		}
		delete(tr.cold, "d")
	}
}

// refusing is a source that may not watch one directory.
type refusing struct {
	source
	dir string
	no  *atomic.Bool
}

func (r refusing) Add(dir string) error {
	if dir == r.dir && r.no.Load() {
		return syscall.EACCES
	}
	return r.source.Add(dir)
}

// A directory that may not be watched is named as that, and tried again.
func TestRefusedDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a")
	must(t, os.Mkdir(dir, 0o755))
	no := new(atomic.Bool)
	no.Store(true)
	w := start(t, Options{retry: time.Millisecond, open: func() (source, error) {
		s, err := openInotify()
		return refusing{s, dir, no}, err
	}})
	g := newGather(t, w, Root{root, 1})
	g.health("mixed", func(h Health) bool { return h.Mode == Mixed && h.Reason == denied && h.Unwatched == 1 })
	no.Store(false)
	g.health("inotify", func(h Health) bool { return h.Mode == Inotify })
	g.live(filepath.Join(dir, "x"))
}

// A foreign file system may begin anywhere below a root.
func TestForeignBelowRoot(t *testing.T) {
	m := &mute{events: make(chan fsnotify.Event), errs: make(chan error), watched: map[string]bool{}}
	w := New(Options{open: func() (source, error) { return m, nil }, alien: func(dir string) (string, bool) { return "9p", dir == "/proc" }})
	w.SetRoots([]Root{{"/", 1}})
	tr := &tree{w: w, ctx: t.Context(), backoff: time.Minute}
	defer tr.close()
	tr.settle()
	if h := w.Health(); h.Mode != Mixed || h.Reason != alienFS+"9p" || m.watched["/proc"] {
		t.Errorf("Health = %+v, /proc watched: %v", h, m.watched["/proc"])
	}
}

// Too many directories that changed become one look at everything.
func TestTooManyChangedDirectories(t *testing.T) {
	w := New(Options{MaxDirty: 4})
	for i := range 4 {
		w.resync(strconv.Itoa(i))
		w.resync(strconv.Itoa(i))
	}
	if len(w.changed) != 4 || w.rescan {
		t.Errorf("%d directories wait, rescan %v; want 4 and none", len(w.changed), w.rescan)
	}
	w.resync("more")
	if len(w.changed) != 4 || !w.rescan {
		t.Errorf("%d directories wait, rescan %v; want 4 and one", len(w.changed), w.rescan)
	}
}

// A descriptor that was lost costs one try and one wait, however much its source
// complains while it is closed.
func TestLostDescriptorWaitsOnce(t *testing.T) {
	before := inotifies(t)
	w := New(Options{retry: time.Minute})
	w.SetRoots([]Root{{t.TempDir(), 0}})
	tr := &tree{w: w, ctx: t.Context(), backoff: w.opt.retry}
	defer tr.close()
	tr.settle()
	for n := range inotifies(t) {
		if !before[n] {
			must(t, syscall.Close(n))
		}
	}
	w.SetRoots(w.roots)
	tr.settle()
	if h := w.Health(); h.Mode != Polling || h.Reason != lost || h.Watches != 0 {
		t.Fatalf("Health = %+v, want polling", h)
	}
	at := tr.retryAt
	tr.settle()
	if tr.retryAt != at || tr.backoff != 2*time.Minute {
		t.Errorf("tried again %v later than planned, and then after %v", tr.retryAt.Sub(at), tr.backoff)
	}
}
