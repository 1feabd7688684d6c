package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// C12: the budget goes to the roots and then to what changed last.
func TestBudget(t *testing.T) {
	root := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i, d := range []string{"a", "b", "c", "d"} {
		must(t, os.Mkdir(filepath.Join(root, d), 0o755))
		at := old.Add(time.Duration(i) * time.Minute)
		if d == "b" {
			at = time.Now().Add(-time.Minute)
		}
		must(t, os.Chtimes(filepath.Join(root, d), at, at))
	}
	w := start(t, Options{Budget: 2})
	g := newGather(t, w, Root{root, 1})
	h := w.Health()
	g.health("mixed", func(x Health) bool { h = x; return x.Mode == Mixed })
	if h.Watches != 2 || h.Budget != 2 || h.Unwatched != 3 || h.Reason != noBudget {
		t.Fatalf("Health = %+v, want 2 of 2 watches and 3 without", h)
	}
	g.event2(filepath.Join(root, "b", "x"))
	// A directory that is made now is hotter than any.
	p := filepath.Join(root, "e", "y")
	put(t, p)
	g.event(p)
	g.health("four unwatched", func(x Health) bool { return x.Watches == 2 && x.Unwatched == 4 })
	g.event2(filepath.Join(root, "e", "z"))
}

// One that had no watch and is made anew counts once.
func TestUnwatchedDirectoryMadeAgain(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	old := time.Now().Add(-time.Hour)
	for i, d := range []string{a, b} {
		must(t, os.Mkdir(d, 0o755))
		must(t, os.Chtimes(d, old, old.Add(time.Duration(i)*time.Minute)))
	}
	w := start(t, Options{Budget: 2, retry: time.Hour})
	g := newGather(t, w, Root{root, 1})
	g.health("mixed", func(h Health) bool { return h.Watches == 2 && h.Unwatched == 1 })
	must(t, os.Remove(a))
	g.event2(filepath.Join(a, "x"))
	g.health("b without a watch", func(h Health) bool { return h.Watches == 2 && h.Unwatched == 1 })
}

// An event keeps a directory warm: it is not the first to lose its watch.
func TestBusyDirectoryKeepsItsWatch(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	put(t, filepath.Join(a, "x"))
	put(t, filepath.Join(b, "x"))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(a, old, old))
	must(t, os.Chtimes(b, old, old.Add(time.Minute)))
	w := start(t, Options{Budget: 3, retry: time.Hour})
	g := newGather(t, w, Root{root, 1})
	g.event2(filepath.Join(a, "x"))
	g.event2(filepath.Join(root, "c", "x"))
	g.health("one without a watch", func(h Health) bool { return h.Watches == 3 && h.Unwatched == 1 })
	clear(g.paths)
	g.event2(filepath.Join(a, "x"))
}

// A root keeps its watch whatever changes below it, and takes that of another when
// it has none, however long ago it changed.
func TestRootsComeFirst(t *testing.T) {
	base := t.TempDir()
	at := func(s string) string { return filepath.Join(base, s) }
	old := time.Now().Add(-time.Hour)
	for _, d := range []string{"out/in", "out/other", "mix/in", "mix/sub", "hot/sub", "cold"} {
		must(t, os.MkdirAll(at(d), 0o755))
	}
	for _, d := range []string{"out/in", "out/other", "out", "mix/in", "mix", "hot", "cold"} {
		must(t, os.Chtimes(at(d), old, old))
	}
	for _, tt := range []struct {
		roots  []Root
		budget int
		others int
	}{
		{[]Root{{at("out"), 1}, {at("out/in"), 0}}, 2, 2},
		{[]Root{{at("out"), 2}, {at("out/other"), 0}, {at("out/in"), 0}}, 3, 1},
		{[]Root{{at("mix"), 1}, {at("mix/in"), 0}}, 2, 2},
		{[]Root{{at("hot"), 1}, {at("cold"), 0}}, 2, 2},
		{[]Root{{at("cold"), 1}}, 1, 1},
	} {
		w := start(t, Options{Budget: tt.budget, retry: time.Hour})
		g := newGather(t, w, tt.roots...)
		must(t, os.Mkdir(filepath.Join(tt.roots[0].Dir, "new"), 0o755)) // the hottest of all
		g.health("the roots alone", func(h Health) bool { return h.Watches == tt.budget && h.Unwatched == tt.others })
		for _, r := range tt.roots {
			g.event2(filepath.Join(r.Dir, "a"))
		}
		must(t, os.Remove(filepath.Join(tt.roots[0].Dir, "new")))
	}
}

// The watch of a directory that went is free; it is not taken from it again.
func TestRemovedDirectoryIsNotEvicted(t *testing.T) {
	root := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i, d := range []string{"a", "b"} {
		must(t, os.Mkdir(filepath.Join(root, d), 0o755))
		must(t, os.Chtimes(filepath.Join(root, d), old, old.Add(time.Duration(i)*time.Minute)))
	}
	w := start(t, Options{Budget: 3, retry: time.Hour})
	g := newGather(t, w, Root{root, 1})
	must(t, os.Remove(filepath.Join(root, "a")))
	g.health("two watches", func(h Health) bool { return h.Watches == 2 && h.Mode == Inotify })
	g.event2(filepath.Join(root, "c", "x"))
	g.event2(filepath.Join(root, "d", "x"))
	g.health("b without a watch", func(h Health) bool { return h.Watches == 3 && h.Unwatched == 1 })
	g.event2(filepath.Join(root, "c", "y"))
	g.event2(filepath.Join(root, "d", "y"))
}
