package observer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/observer/tail"
)

// Invariants 9 and 11: an unchanged tree of 5,000 sessions costs a sweep of
// stats. No file is opened, no byte is read, nothing is committed. An append
// touches its own artifact alone.
//
// Field list: C14, C15.
func TestUnchangedTreeCostsNothing(t *testing.T) {
	var stats tail.Stats
	r := newRig(t, func(o *Options) { o.Sweep, o.Stats = 50*time.Millisecond, &stats })
	const files = 5000
	body := encodeRecords(t, records("o")...)
	for i := range files {
		mustWrite(t, r.path(fmt.Sprint("old", i)), body)
	}
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	r.until("the agent's row is complete", func() bool {
		_, rows, err := r.store.Agents(t.Context())
		return err == nil && len(rows) == 1 && rows[0].Path != ""
	})
	sweeps := r.obs.Status().Watch.Sweeps
	r.until("sweeps have seen the last write", func() bool { return r.obs.Status().Watch.Sweeps > sweeps+1 })
	r.quiet()
	head, commits := len(r.events()), r.commits()
	opens, bytes, jobs := stats.Opens.Load(), stats.Bytes.Load(), r.jobs()
	swept := r.obs.Status().Watch.Sweeps
	r.until("some sweeps have passed", func() bool { return r.obs.Status().Watch.Sweeps > swept+3 })
	if n := stats.Opens.Load() - opens; n != 0 {
		t.Errorf("%d files opened", n)
	}
	if n := stats.Bytes.Load() - bytes; n != 0 {
		t.Errorf("%d bytes read", n)
	}
	if n := r.jobs() - jobs; n != 0 {
		t.Errorf("%d refreshes", n)
	}
	if n := r.commits() - commits; n != 0 {
		t.Errorf("%d commits", n)
	}
	if n := len(r.events()); n != head {
		t.Errorf("%d events, then %d", head, n)
	}
	r.write("s1", records("t2")...)
	r.want(append(want, turn("t2")...)...)
	for path, n := range r.refreshed() {
		if path != r.path("s1") && n != 0 {
			t.Errorf("%s was read %d times", path, n)
		}
	}
}

// An append of n bytes to a long transcript reads n bytes and the 4 KiB that
// prove the file to be the same.
//
// Field list: C16, B19.
func TestAppendCostsItsBytes(t *testing.T) {
	var stats tail.Stats
	r := newRig(t, func(o *Options) { o.Stats = &stats })
	long := encodeRecords(t, fakeRecord{ID: "x", Do: "note", Text: strings.Repeat("long ", 20_000), At: now()})
	f, err := os.Create(r.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 0; n < 50<<20; n += len(long) {
		if _, err := f.Write(long); err != nil {
			t.Fatal(err)
		}
	}
	// What is open is found near the end: the look-back has its own test.
	if _, err := f.Write(encodeRecords(t, fakeRecord{ID: "f", Do: "final", At: now()})); err != nil {
		t.Fatal(err)
	}
	r.start("s1")
	r.run()
	r.want(available)
	r.until("the transcript is attached", func() bool { return r.jobs() > 0 })
	r.quiet()
	before := stats.Bytes.Load()
	rec := encodeRecords(t, fakeRecord{ID: "m", Do: "say", Text: "hello", At: now()})
	if _, err := f.Write(rec); err != nil {
		t.Fatal(err)
	}
	r.want(available, "assistant_message hello")
	r.quiet()
	if n, most := stats.Bytes.Load()-before, int64(len(rec)+4<<10); n > most {
		t.Errorf("%d bytes read for %d new ones, at most %d", n, len(rec), most)
	}
}

// A program that writes byte by byte costs a refresh in each throttle window,
// and what lands inside a window is not left there.
func TestThrottle(t *testing.T) {
	const window = 50 * time.Millisecond
	r := newRig(t, func(o *Options) { o.Throttle = window })
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	r.quiet()
	before := r.jobs()
	f, err := os.OpenFile(r.path("s1"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began := time.Now()
	for _, b := range encodeRecords(t, records("t2")...) {
		if _, err := f.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	r.want(all([]string{available}, turn("t1"), turn("t2"))...)
	took := time.Since(began)
	if n, most := r.jobs()-before, int(took/window)+2; n > most {
		t.Errorf("%d refreshes in %v, at most %d", n, took, most)
	}
}

// Without watches everything still arrives, by sweeps, and the status says so.
//
// Field list: C10, C11.
func TestWithoutWatches(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Watch.Budget, o.SweepDegraded = 1, 20*time.Millisecond })
	if err := os.MkdirAll(filepath.Join(r.home, "fake/log/deeper"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.run()
	r.start("s1")
	r.write("deeper/s1", records("t1")...)
	r.write("s2", records("t0")...) // nobody's
	r.want(all([]string{available}, turn("t1"))...)
	if w := r.obs.Status().Watch; w.Mode == "inotify" || w.Unwatched == 0 || w.Reason == "" {
		t.Errorf("watch status %+v does not tell", w)
	}
}

// Two agents of one program may use two roots: an agent's own environment says
// where it writes.
//
// Field list: D35.
func TestRootOfAnAgent(t *testing.T) {
	r := newRig(t)
	r.run()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "fake/reg"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.startIn(home, "s9")
	r.want(available)
	log := filepath.Join(home, "fake/log")
	if err := os.MkdirAll(log, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(log, "s9.jsonl"), encodeRecords(t, records("t1")...))
	r.want(all([]string{available}, turn("t1"))...)
}

// A root that is a symbolic link, and an agent that names the place behind it,
// are one place: a file reached twice is one artifact.
//
// Field list: C17.
func TestSymlinkedRoot(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Sweep = 20 * time.Millisecond })
	behind := filepath.Join(t.TempDir(), "behind")
	if err := os.Rename(filepath.Join(r.home, "fake"), behind); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(behind, filepath.Join(r.home, "fake")); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Symlink(behind, filepath.Join(home, "fake")); err != nil {
		t.Fatal(err)
	}
	r.run()
	r.startIn(home, "s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	swept := r.obs.Status().Watch.Sweeps
	r.until("both names were swept", func() bool { return r.obs.Status().Watch.Sweeps > swept+3 })
	r.write("s1", records("t2")...)
	r.want(append(want, turn("t2")...)...)
	if n := r.obs.Status().Providers[0].Artifacts; n != 1 {
		t.Errorf("%d artifacts of one file", n)
	}
}

// The roots of agents that are gone are not kept for ever.
func TestRootsOfDeadAgentsAreDropped(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Sweep, o.rootPatience = 20*time.Millisecond, 50*time.Millisecond })
	r.run()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "fake/reg"), 0o700); err != nil {
		t.Fatal(err)
	}
	own := len(r.obs.Status().Providers[0].Roots)
	a := r.startIn(home, "s9")
	r.want(available)
	r.until("the agent's roots are known", func() bool { return len(r.obs.Status().Providers[0].Roots) == 2*own })
	a.stop()
	r.want(available, exited)
	if err := os.RemoveAll(filepath.Join(home, "fake")); err != nil {
		t.Fatal(err)
	}
	r.until("they are dropped", func() bool { return len(r.obs.Status().Providers[0].Roots) == own })
}

// A root that does not exist yet, goes away and comes back.
func TestRootComesAndGoes(t *testing.T) {
	r := newRig(t)
	if err := os.RemoveAll(filepath.Join(r.home, "fake/log")); err != nil {
		t.Fatal(err)
	}
	r.run()
	r.start("s1")
	r.want(available)
	make := func() {
		if err := os.Mkdir(filepath.Join(r.home, "fake/log"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	make()
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	if err := os.Rename(filepath.Join(r.home, "fake/log"), filepath.Join(r.home, "gone")); err != nil {
		t.Fatal(err)
	}
	make()
	r.write("s1", records("t2")...)
	// Another file has the path now: one failure, and it goes on from there.
	r.until("the new file is read", func() bool {
		l := r.lines()
		return len(l) > len(want) && l[len(want)] == "observer_failure"
	})
	r.write("s1", records("t3")...)
	r.until("the turn after that", func() bool { return strings.Contains(strings.Join(r.lines(), "\n"), turn("t3")[4]) })
}

// quiet waits until no artifact has anything under way or due.
func (r *rig) quiet() {
	r.t.Helper()
	r.until("nothing is under way", func() bool {
		busy := false
		err := r.obs.ask(context.Background(), func() {
			for a := range r.obs.live {
				busy = busy || a.busy || a.dirty || !a.due.IsZero()
			}
			busy = busy || len(r.obs.out) > 0 || len(r.obs.queue) > 0
		})
		return err == nil && !busy
	})
}

// commits counts what was sent to the committer.
func (r *rig) commits() int {
	n := 0
	if err := r.obs.ask(context.Background(), func() { n = r.obs.sent }); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// refreshed counts the refreshes of each artifact.
func (r *rig) refreshed() map[string]int {
	out := map[string]int{}
	err := r.obs.ask(context.Background(), func() {
		for path, a := range r.obs.artifacts {
			out[path] = a.refreshes
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) jobs() int {
	n := 0
	for _, c := range r.refreshed() {
		n += c
	}
	return n
}
