package observer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"steno/observer/watch"
)

// A root that is away for a moment takes nothing with it: neither when it is not
// there at all, nor when an empty directory of another disk is in its place.
func TestRootIsAway(t *testing.T) {
	base := t.TempDir()
	root, aside := filepath.Join(base, "root"), filepath.Join(base, "aside")
	roots := []watch.Root{{Dir: root}}
	s := newSweeper(time.Hour)
	var n uint64
	sweep := func() sweepDone {
		n++
		return s.sweep(t.Context(), roots, n)
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if d := sweep(); !d.missing[root] || d.away[root] {
		t.Fatalf("a root that never was: %+v", d)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(root, "a"), []byte("{}\n"))
	mustWrite(t, filepath.Join(root, "b"), []byte("{}\n"))
	if d := sweep(); len(d.changed) != 2 {
		t.Fatalf("%+v", d)
	}
	for len(sweep().changed) > 0 { // until they are not young any more
		time.Sleep(time.Millisecond)
	}

	move(root, aside)
	for range 2 {
		if d := sweep(); len(d.gone) != 0 || !d.away[root] || d.missing[root] {
			t.Fatalf("not there: %+v", d)
		}
	}
	other := s.roots[root]
	other.dev++ // the directory that is there is on another disk
	s.roots[root] = other
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if d := sweep(); len(d.gone) != 0 || !d.away[root] {
		t.Fatalf("another disk: %+v", d)
	}
	other.dev--
	s.roots[root] = other
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	move(aside, root)
	if err := os.Remove(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if d := sweep(); len(d.gone) != 1 || len(d.changed) != 0 || d.away[root] {
		t.Fatalf("back again without one file: %+v", d)
	}

	// For good.
	move(root, aside)
	sweep()
	s.patience = 0
	if d := sweep(); len(d.gone) != 1 || !d.missing[root] {
		t.Fatalf("away for longer than anybody waits: %+v", d)
	}
}

// A session that is resumed after its disk was unmounted for a moment goes on
// where it was left.
func TestSessionsOutliveTheirRoot(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Sweep = 20 * time.Millisecond })
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	a.stop()
	want = append(want, exited)
	r.want(want...)
	log, aside := filepath.Join(r.home, "fake/log"), filepath.Join(r.home, "aside")
	if err := os.Rename(log, aside); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	r.sweep()
	if s, err := r.store.Sources(t.Context()); err != nil || len(s) != 1 {
		t.Fatalf("%d restart points are left, %v", len(s), err)
	}
	r.start("s1")
	want = append(want, available)
	r.want(want...)
	r.until("its file is missed", func() bool {
		missed := false
		err := r.obs.ask(t.Context(), func() { a := r.obs.artifacts[r.path("s1")]; missed = a != nil && a.missed })
		return err == nil && missed
	})
	f, err := os.OpenFile(filepath.Join(aside, "s1.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(encodeRecords(t, records("t2")...)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, log); err != nil {
		t.Fatal(err)
	}
	r.want(append(want, turn("t2")...)...)
}

// A file that was not there when it was read is read again after the next sweep,
// also when that finds nothing new.
func TestMissedFileIsReadAgain(t *testing.T) {
	o := idleObserver(t)
	a := &artifact{agent: &agent{}, missed: true}
	o.live[a] = true
	o.onSweep(sweepDone{})
	if a.due.IsZero() {
		t.Fatal("nothing is due")
	}
}
