package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

var _ source = (*mute)(nil)

// mute has watches and reports nothing, so that every end of a directory is lost.
// Just before one watch is set or taken it does what the test says. It is used by
// the goroutine that settles the tree alone.
type mute struct {
	events  chan fsnotify.Event
	errs    chan error
	watched map[string]bool
	on, dir string // "add" or "remove", and of which directory; "" = never
	do      func()
}

func (m *mute) Events() <-chan fsnotify.Event { return m.events }
func (m *mute) Errors() <-chan error          { return m.errs }

func (m *mute) Close() error {
	close(m.events)
	close(m.errs)
	return nil
}

func (m *mute) now(on, dir string) {
	if m.on == on && m.dir == dir {
		m.on = ""
		m.do()
	}
}

func (m *mute) Add(dir string) error {
	m.now("add", dir)
	if dirID(dir) == (inode{}) {
		return unix.ENOENT
	}
	m.watched[dir] = true
	return nil
}

func (m *mute) Remove(dir string) error {
	if m.watched[dir] {
		m.now("remove", dir)
	}
	delete(m.watched, dir)
	return nil
}

// The end of a directory is not reported when its parent gets or loses its watch at
// that time, and its coming not when the watch there is younger. Both must be seen
// in the same pass: no event will tell.
func TestEndsThatAreNotReported(t *testing.T) {
	for _, tt := range []struct {
		name   string
		roots  []Root // Dir as seen from the base
		budget int
		have   []string // directories at the start; then a first pass
		made   []string // then made, and the first of them reported
		on, at string   // when
		ends   string   // this goes
		to     string   // here; "" = it is removed
		want   []string // watched after one more pass
	}{
		{
			name:  "root goes while it is scanned",
			roots: []Root{{"x/s", 2}}, have: []string{"x"}, made: []string{"x/s", "x/s/p"},
			on: "add", at: "x/s/p", ends: "x/s", want: []string{"x"},
		},
		{
			name:  "root goes as its ancestor loses the watch",
			roots: []Root{{"x/s", 2}}, have: []string{"x"}, made: []string{"x/s", "x/s/p"},
			on: "remove", at: "x", ends: "x/s", want: []string{"x"},
		},
		{
			name:  "root goes as its parent becomes an ancestor",
			roots: []Root{{"x/a", 0}, {"x/b", 0}}, have: []string{"x/a"},
			on: "add", at: "x", ends: "x/a", want: []string{"x"},
		},
		{
			name:  "ancestor goes as the one above it gets a watch",
			roots: []Root{{"x/y/c", 0}, {"x/b", 0}}, have: []string{"x/y"},
			on: "add", at: "x", ends: "x/y", want: []string{"x"},
		},
		{
			name:  "ancestor goes as the one above it loses the watch",
			roots: []Root{{"x/y/c", 0}, {"x/b", 0}}, have: []string{"x/y"}, made: []string{"x/b"},
			on: "remove", at: "x", ends: "x/y", want: []string{"x", "x/b"},
		},
		{
			name:  "inner root goes as the outer gets its watch",
			roots: []Root{{"x/a", 0}, {"x", 0}}, have: []string{"x/a"},
			on: "add", at: "x", ends: "x/a", want: []string{"x"},
		},
		{
			name:  "directory goes as the budget takes its parent's watch",
			roots: []Root{{"x", 2}}, budget: 3, have: []string{"x/p/k"}, made: []string{"x/n"},
			on: "remove", at: "x/p", ends: "x/p/k", want: []string{"x", "x/n"},
		},
		{
			name:  "directory goes to where the pass comes later",
			roots: []Root{{"x/a", 1}, {"x/b", 1}}, have: []string{"x/a/m", "x/b"},
			on: "add", at: "x/b", ends: "x/a/m", to: "x/b/m", want: []string{"x/a", "x/b", "x/b/m"},
		},
		{
			name:  "directory goes there before its first watch",
			roots: []Root{{"x/a", 1}, {"x/b", 1}}, have: []string{"x/a/m", "x/b"},
			on: "add", at: "x/a/m", ends: "x/a/m", to: "x/b/m", want: []string{"x/a", "x/b", "x/b/m"},
		},
		{
			name:  "root comes as its ancestor gets the watch",
			roots: []Root{{"x/s", 1}}, have: []string{"x", "y/s/p"},
			on: "add", at: "x", ends: "y/s", to: "x/s", want: []string{"x/s", "x/s/p"},
		},
		{
			name:  "nearer ancestor comes as the ancestor gets the watch",
			roots: []Root{{"x/s/p", 1}}, have: []string{"x", "y/s"},
			on: "add", at: "x", ends: "y/s", to: "x/s", want: []string{"x/s"},
		},
		{
			name:  "nothing goes",
			roots: []Root{{"x/a", 0}, {"x", 0}, {"x/y/c", 0}}, have: []string{"x/a", "x/y"}, made: []string{"x/y/c"},
			want: []string{"x", "x/a", "x/y/c"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			in := func(dir string) string { return filepath.Join(base, dir) }
			old := time.Now().Add(-time.Hour)
			for _, d := range tt.have {
				must(t, os.MkdirAll(in(d), 0o755))
				must(t, os.Chtimes(filepath.Dir(in(d)), old, old)) // the upper is the colder
			}
			m := &mute{events: make(chan fsnotify.Event), errs: make(chan error), watched: map[string]bool{}}
			arm := func() {
				m.on, m.dir, m.do = tt.on, in(tt.at), func() {
					if tt.to == "" {
						must(t, os.RemoveAll(in(tt.ends)))
					} else {
						must(t, os.Rename(in(tt.ends), in(tt.to)))
					}
				}
			}
			w := New(Options{Budget: tt.budget, open: func() (source, error) { return m, nil }})
			var roots []Root
			for _, r := range tt.roots {
				roots = append(roots, Root{in(r.Dir), r.Depth})
			}
			w.SetRoots(roots)
			tr := &tree{w: w, ctx: t.Context(), backoff: time.Minute}
			defer tr.close()
			if len(tt.made) == 0 {
				arm()
			}
			tr.settle()
			if len(tt.made) > 0 {
				for _, d := range tt.made {
					must(t, os.MkdirAll(in(d), 0o755))
				}
				arm()
				w.resync(in(tt.made[0]))
				tr.settle()
			}
			if tt.on != "" && m.on != "" {
				t.Fatalf("no %s of %s", tt.on, tt.at)
			}
			var known, want []string
			for path := range w.nodes {
				known = append(known, path)
			}
			slices.Sort(known)
			for _, d := range tt.want {
				want = append(want, in(d))
			}
			if got := keys(m.watched); !slices.Equal(got, want) || !slices.Equal(known, want) {
				t.Errorf("watched %v, known %v, want %v", got, known, want)
			}
			if h := w.Health(); h.Watches != len(want) {
				t.Errorf("Health = %+v, want %d watches", h, len(want))
			}
		})
	}
}
