package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

const patience = 10 * time.Second

// start runs a Watcher until the test ends, and then checks that every goroutine
// of it is gone.
func start(t *testing.T, opt Options) *Watcher {
	t.Helper()
	before := runtime.NumGoroutine()
	w := New(opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(patience):
			t.Error("Run did not end")
		}
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Errorf("%d goroutines after Run, %d before", runtime.NumGoroutine(), before)
				return
			}
		}
	})
	return w
}

// gather takes changes, sweeping when asked to, until ok is satisfied.
type gather struct {
	t      *testing.T
	w      *Watcher
	roots  []Root
	paths  map[string]bool // reported by an event
	swept  map[string]bool // seen by a sweep
	sweeps int
}

func newGather(t *testing.T, w *Watcher, roots ...Root) *gather {
	g := &gather{t: t, w: w, roots: roots, paths: map[string]bool{}, swept: map[string]bool{}}
	w.SetRoots(roots)
	g.until("the first sweep", func() bool { return g.sweeps > 0 })
	return g
}

func (g *gather) take() {
	c := g.w.Take()
	for _, p := range c.Paths {
		g.paths[p] = true
	}
	if c.Sweep {
		g.sweeps++
		if _, err := Walk(g.t.Context(), g.roots, func(p string, _ fs.FileInfo) error {
			g.swept[p] = true
			return nil
		}); err != nil {
			g.t.Fatalf("Walk: %v", err)
		}
	}
}

func (g *gather) until(what string, ok func() bool) {
	g.t.Helper()
	end := time.After(patience)
	for !ok() {
		select {
		case <-g.w.Ready():
			g.take()
		case <-end:
			g.t.Fatalf("no %s; events %v, swept %v, health %+v", what, keys(g.paths), keys(g.swept), g.w.Health())
		}
	}
}

func (g *gather) event(path string) {
	g.t.Helper()
	g.until("event for "+path, func() bool { return g.paths[path] })
}

func (g *gather) health(what string, ok func(Health) bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !ok(g.w.Health()); runtime.Gosched() {
		if time.Now().After(end) {
			g.t.Fatalf("health never says %s: %+v", what, g.w.Health())
		}
	}
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Codex makes YYYY/MM/DD and writes at once.
func TestDirectoriesMadeAndFilledAtOnce(t *testing.T) {
	root := t.TempDir()
	w := start(t, Options{})
	g := newGather(t, w, Root{root, 3})
	for i := range 20 {
		p := filepath.Join(root, fmt.Sprint("y", i), "07", "31", "rollout.jsonl")
		put(t, p)
		g.event(p)
	}
	// Beyond the depth nothing counts; the event after it proves that it was seen.
	deep := filepath.Join(root, "y0", "07", "31", "deep", "x.jsonl")
	put(t, deep)
	last := filepath.Join(root, "y0", "07", "31", "last.jsonl")
	put(t, last)
	g.event(last)
	if g.paths[deep] {
		t.Errorf("%s lies below the depth and was reported", deep)
	}
	g.health("inotify with 61 watches", func(h Health) bool {
		return h.Mode == Inotify && h.Unwatched == 0 && h.Reason == "" && h.Watches == 61
	})
}

// C8, rename over a file; and a change that comes while nobody takes (pitfall 39).
func TestKindsOfChange(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	put(t, a)
	w := start(t, Options{})
	g := newGather(t, w, Root{root, 0})
	must(t, os.Rename(a, b))
	g.event(b)
	g.event(a)
	clear(g.paths)
	must(t, os.WriteFile(b, []byte("more"), 0o600))
	g.event(b)
	clear(g.paths)
	must(t, os.Remove(b))
	g.event(b)
}

func TestWatchThenWalkMissesNothing(t *testing.T) {
	root := t.TempDir()
	w := start(t, Options{})
	const n = 300
	go func() { // ends by itself; the test waits for its files
		for i := range n {
			os.WriteFile(filepath.Join(root, fmt.Sprintf("%03d", i)), []byte("x"), 0o600)
		}
	}()
	g := newGather(t, w, Root{root, 0})
	g.until("300 files", func() bool {
		all := map[string]bool{}
		for p := range g.paths {
			all[p] = true
		}
		for p := range g.swept {
			all[p] = true
		}
		return len(all) == n
	})
}

// event2 writes a file and waits for it.
func (g *gather) event2(path string) {
	g.t.Helper()
	put(g.t, path)
	g.event(path)
}

// live writes a file until an event tells of it. While a sweep is due, that stands
// for events.
func (g *gather) live(path string) {
	g.t.Helper()
	g.until("event for "+path, func() bool {
		if !g.paths[path] {
			put(g.t, path)
		}
		return g.paths[path]
	})
}

func TestRootAppearsGoesAndReturns(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "one", "two", "sessions")
	w := start(t, Options{look: time.Hour}) // by events alone
	g := newGather(t, w, Root{root, 2})
	g.health("one watch for the ancestor", func(h Health) bool { return h.Watches == 1 && h.Mode == Inotify })
	p := filepath.Join(root, "p", "a.jsonl")
	for i := range 5 {
		clear(g.paths)
		g.event2(p)
		clear(g.paths)
		if i%2 == 0 {
			must(t, os.RemoveAll(root))
		} else {
			must(t, os.Rename(root, filepath.Join(base, fmt.Sprint("moved", i))))
		}
		g.health("the ancestor alone again", func(h Health) bool { return h.Watches == 1 })
	}
	// All the way up.
	must(t, os.RemoveAll(filepath.Join(base, "one")))
	clear(g.paths)
	g.event2(p)
	g.event2(filepath.Join(root, "p", "b.jsonl"))
}

// A root whose parent is renamed gives no event; SetRoots looks again.
func TestParentOfRootRenamed(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "conf", "sessions")
	put(t, filepath.Join(root, "a"))
	w := start(t, Options{})
	g := newGather(t, w, Root{root, 0})
	must(t, os.Rename(filepath.Join(base, "conf"), filepath.Join(base, "old")))
	put(t, filepath.Join(root, "b"))
	before := g.sweeps
	w.SetRoots(g.roots)
	g.until("sweep of the new root", func() bool { return g.sweeps > before })
	g.event2(filepath.Join(root, "c"))
}

func TestSetRootsIsIdempotent(t *testing.T) {
	root := t.TempDir()
	w := start(t, Options{})
	g := newGather(t, w, Root{root, 1})
	for range 10 {
		w.SetRoots(g.roots)
	}
	g.event2(filepath.Join(root, "sub", "a"))
	if g.sweeps != 1 {
		t.Errorf("%d sweeps, want the first alone", g.sweeps)
	}
}

// C17: a root that is a link, to a directory that is a root too.
func TestSymlinkedRoot(t *testing.T) {
	base := t.TempDir()
	data, link := filepath.Join(base, "data"), filepath.Join(base, "link")
	must(t, os.Mkdir(data, 0o755))
	must(t, os.Symlink(data, link))
	w := start(t, Options{})
	g := newGather(t, w, Root{link, 1}, Root{data, 1})
	g.event2(filepath.Join(link, "a"))
	g.event2(filepath.Join(link, "p", "b"))
	g.health("one watch a directory", func(h Health) bool { return h.Watches == 2 })
	if g.paths[filepath.Join(data, "a")] {
		t.Error("one file was reported under two paths")
	}
}

// Pitfall 38: what another root still needs stays watched.
func TestRemovingOneRootKeepsTheOther(t *testing.T) {
	base := t.TempDir()
	inner := filepath.Join(base, "p", "q")
	must(t, os.MkdirAll(inner, 0o755))
	w := start(t, Options{})
	g := newGather(t, w, Root{base, 3}, Root{inner, 0})
	g.health("three watches", func(h Health) bool { return h.Watches == 3 })
	w.SetRoots([]Root{{inner, 0}})
	g.until("sweep", func() bool { return g.sweeps > 1 })
	g.health("one watch", func(h Health) bool { return h.Watches == 1 })
	g.event2(filepath.Join(inner, "a"))
	w.SetRoots([]Root{{base, 0}})
	g.until("sweep", func() bool { return g.sweeps > 2 })
	g.event2(filepath.Join(base, "b"))
}

func TestDirectoryRenamedBelowRoot(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a", "b", "f"))
	w := start(t, Options{})
	g := newGather(t, w, Root{root, 2})
	must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "z")))
	g.event(filepath.Join(root, "z", "b", "f"))
	clear(g.paths)
	g.event2(filepath.Join(root, "z", "b", "g"))
	g.event2(filepath.Join(root, "a", "b", "h"))
	if g.paths[filepath.Join(root, "a", "b", "g")] {
		t.Error("an event came under the old name")
	}
}

// A directory that is removed gives its watch back, and those that had none below it
// are forgotten with it.
func TestDirectoryRemoved(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "p", "q")
	must(t, os.MkdirAll(deep, 0o755))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(deep, old, old))
	w := start(t, Options{Budget: 2, retry: time.Hour})
	g := newGather(t, w, Root{root, 2})
	g.health("mixed", func(h Health) bool { return h.Watches == 2 && h.Unwatched == 1 })
	must(t, os.RemoveAll(filepath.Join(root, "p")))
	g.health("the root alone", func(h Health) bool { return h.Mode == Inotify && h.Watches == 1 && h.Unwatched == 0 })
}

// A directory on the way to a root may be renamed while what is above it is watched.
func TestWayToRootRenamed(t *testing.T) {
	base := t.TempDir()
	inner := filepath.Join(base, "p", "q")
	must(t, os.MkdirAll(inner, 0o755))
	w := start(t, Options{look: time.Hour})
	g := newGather(t, w, Root{base, 0}, Root{inner, 0})
	g.health("two watches", func(h Health) bool { return h.Watches == 2 })
	must(t, os.Rename(filepath.Join(base, "p"), filepath.Join(base, "away")))
	g.health("one watch", func(h Health) bool { return h.Watches == 1 })
	g.event2(filepath.Join(inner, "a"))
}

// A root that leads to the ancestor of a missing one spells its own paths.
func TestLinkToAncestor(t *testing.T) {
	base := t.TempDir()
	must(t, os.Mkdir(filepath.Join(base, "x"), 0o755))
	link := filepath.Join(base, "link")
	w := start(t, Options{look: time.Hour})
	g := newGather(t, w, Root{filepath.Join(base, "x", "s"), 0}, Root{link, 0})
	must(t, os.Symlink("x", link))
	g.event2(filepath.Join(link, "a"))
	g.event2(filepath.Join(link, "b"))
}

// No event tells when a link on the way begins to lead somewhere; the look does.
func TestMissingRootIsLookedFor(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "link", "root")
	must(t, os.Mkdir(filepath.Join(base, "there"), 0o755))
	must(t, os.Symlink("there/data", filepath.Join(base, "link")))
	g := newGather(t, start(t, Options{look: time.Millisecond}), Root{root, 0})
	must(t, os.MkdirAll(filepath.Join(base, "there", "data", "root"), 0o755))
	g.until("sweep", func() bool { return g.sweeps > 1 })
	g.live(filepath.Join(root, "a"))
}

// What lies beside the way to a missing root is nobody's.
func TestAncestorOfMissingRootIsNotReported(t *testing.T) {
	base := t.TempDir()
	g := newGather(t, start(t, Options{look: time.Hour}), Root{filepath.Join(base, "root"), 1})
	put(t, filepath.Join(base, "secret"))
	put(t, filepath.Join(base, "other", "secret"))
	g.event2(filepath.Join(base, "root", "a"))
	for p := range g.paths {
		if filepath.Dir(p) != filepath.Join(base, "root") {
			t.Errorf("%s was reported", p)
		}
	}
}

// Links to directories count as directories, whether they were there or come.
func TestLinkedDirectories(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	must(t, os.Mkdir(root, 0o755))
	for _, d := range []string{"one", "two"} {
		must(t, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	must(t, os.Symlink("../one", filepath.Join(root, "one")))
	g := newGather(t, start(t, Options{}), Root{root, 1})
	g.event2(filepath.Join(root, "one", "a"))
	put(t, filepath.Join(base, "two", "a"))
	must(t, os.Symlink("../two", filepath.Join(root, "two")))
	g.event(filepath.Join(root, "two", "a"))
	g.event2(filepath.Join(root, "two", "b"))
}

// A directory that two roots reach is wanted as deep as the deeper one says.
func TestDeeperByAnotherPath(t *testing.T) {
	base := t.TempDir()
	data, link := filepath.Join(base, "data"), filepath.Join(base, "link")
	must(t, os.Mkdir(data, 0o755))
	must(t, os.Symlink(data, link))
	g := newGather(t, start(t, Options{}), Root{data, 0}, Root{link, 2})
	g.event2(filepath.Join(data, "p", "a"))
	g.event2(filepath.Join(data, "p", "b"))
}

// Below the depth nothing is watched; of a directory that comes, files are reported
// and nothing else that has a name like one. New permissions are no change.
func TestWhatCounts(t *testing.T) {
	base := t.TempDir()
	root, come := filepath.Join(base, "root"), filepath.Join(base, "come")
	put(t, filepath.Join(root, "a", "b", "c", "f"))
	put(t, filepath.Join(root, "old"))
	put(t, filepath.Join(come, "f.jsonl"))
	must(t, syscall.Mkfifo(filepath.Join(come, "fifo.jsonl"), 0o600))
	w := start(t, Options{})
	g := newGather(t, w, Root{root, 1})
	g.health("two watches", func(h Health) bool { return h.Watches == 2 })
	must(t, os.Rename(come, filepath.Join(root, "came")))
	g.event(filepath.Join(root, "came", "f.jsonl"))
	must(t, os.Chmod(filepath.Join(root, "old"), 0o644))
	g.event2(filepath.Join(root, "came", "g.jsonl"))
	for _, p := range []string{filepath.Join(root, "old"), filepath.Join(root, "came", "fifo.jsonl")} {
		if g.paths[p] {
			t.Errorf("%s was reported", p)
		}
	}
}

// Directories are taken as they are meant; after Run nothing is claimed.
func TestRootsAndEnd(t *testing.T) {
	root := t.TempDir()
	w := New(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	g := newGather(t, w, Root{root + "/./", -3}, Root{"relative", 9})
	g.health("one watch", func(h Health) bool { return h.Mode == Inotify && h.Watches == 1 })
	g.event2(filepath.Join(root, "a"))
	if want := []Root{{root, 0}}; !slices.Equal(w.roots, want) {
		t.Errorf("roots = %v, want %v", w.roots, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
	if h := w.Health(); h.Mode != Polling || h.Reason != "not running" || h.Watches != 0 || h.Unwatched != 0 {
		t.Errorf("Health after Run = %+v", h)
	}
}

func TestTooManyDirtyPathsBecomeASweep(t *testing.T) {
	root := t.TempDir()
	g := newGather(t, start(t, Options{MaxDirty: 4}), Root{root, 0})
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(root, fmt.Sprint(i)), nil, 0o600))
	}
	g.until("everything", func() bool { return len(g.swept)+len(g.paths) >= 20 })

	w := New(Options{MaxDirty: 4})
	w.mark("a")
	w.mark("b")
	w.mark("a")
	if c := w.Take(); !slices.Equal(c.Paths, []string{"a", "b"}) || c.Sweep {
		t.Errorf("Take = %+v, want a, b", c)
	}
	for i := range 6 { // nor does it keep what comes after
		w.mark(fmt.Sprint(i))
	}
	if c := w.Take(); len(c.Paths) != 0 || !c.Sweep {
		t.Errorf("Take = %+v, want a sweep alone", c)
	}
}

func TestRunTwiceIsRefused(t *testing.T) {
	w := start(t, Options{})
	newGather(t, w, Root{t.TempDir(), 0})
	if err := w.Run(t.Context()); !errors.Is(err, ErrRunning) {
		t.Errorf("second Run = %v, want ErrRunning", err)
	}
}

func TestForcePolling(t *testing.T) {
	w := start(t, Options{ForcePolling: true, open: func() (source, error) {
		t.Error("a source was opened")
		return nil, errors.ErrUnsupported
	}})
	newGather(t, w, Root{t.TempDir(), 0})
	if h := w.Health(); h.Mode != Polling || h.Reason != forced || h.Unwatched != 1 {
		t.Errorf("Health = %+v, want polling as asked for", h)
	}
}
