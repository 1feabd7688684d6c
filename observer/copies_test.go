package observer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"steno/observer/bind"
)

// A8, C17: a session in several places. What evidence names counts, then what is
// being read, then what was written last; and what is left when one goes away.
func TestCopiesOfASession(t *testing.T) {
	o := idleObserver(t)
	o.addOwnRoots()
	at := time.Now()
	path := func(dir string) string { return filepath.Join(o.opt.Env.Home, "fake/log", dir, "s1.jsonl") }
	for i, dir := range []string{"", "b", "a"} { // each is newer than the one before
		if o.touch(path(dir), at.Add(time.Duration(i)*time.Second)) == nil {
			t.Fatalf("%s is nobody's", path(dir))
		}
	}
	a := &agent{match: bind.Match{Bound: true, Session: "s1"}}
	a.row.Harness = "fake"
	for _, tt := range []struct {
		name, named string
		reads       string
		gone        string
		want        string
	}{
		{name: "the newest", want: path("a")},
		{name: "what evidence names", named: path("b"), want: path("b")},
		{name: "what is read", reads: path(""), want: path("")},
		{name: "the one that is left over", gone: path("a"), want: path("b")},
		{name: "and then", gone: path("b"), want: path("")},
		{name: "none", gone: path("")},
	} {
		a.match.Path, a.art = tt.named, o.artifacts[tt.reads]
		if tt.gone != "" {
			o.forget(tt.gone)
		}
		got := ""
		if art := o.find(a); art != nil {
			got = art.Path
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if len(o.bySession) != 0 {
		t.Errorf("%d sessions are kept", len(o.bySession))
	}
}

// A8: a copy of a transcript in another folder is not told again, and does not
// take the place of what is being read.
func TestCopyIsNotToldAgain(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Sweep = 20 * time.Millisecond })
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	dir := filepath.Join(r.home, "fake/log/backup")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(r.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, "s1.jsonl"), whole)
	r.until("the copy is known", func() bool { return r.obs.Status().Providers[0].Artifacts == 2 })
	r.sweep()
	r.write("s1", records("t2")...)
	want = append(want, turn("t2")...)
	r.want(want...)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r.until("the copy is forgotten", func() bool { r.sweep(); return r.obs.Status().Providers[0].Artifacts == 1 })
	r.write("s1", records("t3")...)
	r.want(append(want, turn("t3")...)...)
}
