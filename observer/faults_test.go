package observer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"steno/observer/bind"
	"steno/observer/watch"
	"steno/providers"
	"steno/store"
)

// idleObserver is an observer that does not run.
func idleObserver(t *testing.T, change ...func(*Options)) *Observer {
	t.Helper()
	o, err := New(newRig(t, change...).opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.exits.Close)
	return o
}

// A sweep that lost events ask for is not put off because the mode of watching
// changed at the same time.
func TestSweepThatIsDueStaysDue(t *testing.T) {
	o := idleObserver(t)
	o.watchMode = "another"
	o.take(watch.Changes{Sweep: true})
	if wait := time.Until(o.sweepAt); wait > 0 {
		t.Fatalf("the sweep is put off by %v", wait)
	}
	o.watchMode, o.sweeping = "another", true
	o.take(watch.Changes{Sweep: true})
	o.watchMode = "yet another"
	o.onSweep(sweepDone{})
	if wait := time.Until(o.sweepAt); wait > 0 {
		t.Fatalf("the second sweep is put off by %v", wait)
	}
}

// While the last commits wait for the store, the loop sleeps.
func TestDrainDoesNotSpin(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.want(available)
	unlock := r.lockStore()
	r.write("s1", records("t1")...)
	r.until("the store stopped working", func() bool { return !r.store.Working() })
	ended := make(chan struct{})
	go func() { r.halt(); close(ended) }()
	r.until("the drain has begun", func() bool {
		stopping := false
		return r.obs.ask(context.Background(), func() { stopping = r.obs.stopping }) == nil && stopping
	})
	before := cpu(t)
	time.Sleep(500 * time.Millisecond) // the span that is measured
	used := cpu(t) - before
	unlock()
	<-ended
	if used > 250*time.Millisecond {
		t.Errorf("%v of CPU time in 500 ms of waiting", used)
	}
	r.want(all([]string{available}, turn("t1"))...)
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A session that another agent had before goes on where that one was: its turns
// are not told twice.
func TestSessionTakenOverIsNotRepeated(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.want(available)
	b := r.start("sb")
	r.want(available, available)
	r.write("s1", records("t1")...)
	want := all([]string{available, available}, turn("t1"))
	r.want(want...)
	a.stop()
	want = append(want, exited)
	r.want(want...)
	b.register(fakeRegistry{Session: "s1"})
	r.write("s1", records("t2")...)
	want = append(want, turn("t2")...)
	r.want(want...)
	// Also after a restart, when only the restart point tells.
	r.halt()
	c := r.start("sc")
	r.run()
	want = append(want, restarted)
	r.until("both are there", func() bool { return len(r.lines()) == len(want)+2 })
	want = append(want, available, available)
	b.stop()
	want = append(want, exited)
	r.want(want...)
	c.register(fakeRegistry{Session: "s1"})
	r.write("s1", records("t3")...)
	r.want(append(want, turn("t3")...)...)
}

// D15: what was written while two processes named a session is nobody's, also
// when one of them was bound to it before.
//
// Field list: F7.
func TestAmbiguityAfterBinding(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	b := r.start("s1")
	want = append(want, available)
	r.want(want...)
	r.until("the session is refused", func() bool { return r.refused("s1") > 0 })
	r.write("s1", records("t2")...)
	info, err := os.Stat(r.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	r.until("what was written meanwhile is refused", func() bool { return r.refused("s1") == info.Size() })
	b.register(fakeRegistry{Session: "other"})
	r.until("the first is bound again", func() bool {
		bound := false
		err := r.obs.ask(context.Background(), func() { a := r.obs.artifacts[r.path("s1")]; bound = a != nil && a.agent != nil })
		return err == nil && bound
	})
	r.write("s1", records("t3")...)
	r.want(append(want, turn("t3")...)...)
}

func (r *rig) refused(session string) int64 {
	var n int64
	err := r.obs.ask(context.Background(), func() {
		if a := r.obs.artifacts[r.path(session)]; a != nil && a.refused.rank > 0 {
			n = a.refused.size
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// What the prober keeps of artifacts is what it was asked about last.
func TestDescriptionsAreForgotten(t *testing.T) {
	o := idleObserver(t)
	var arts []providers.Artifact
	for i := range 20 {
		path := filepath.Join(o.opt.Env.Home, "fake/log", fmt.Sprint(i, ".jsonl"))
		mustWrite(t, path, encodeRecords(t, records("t")...))
		arts = append(arts, providers.Artifact{Provider: "fake", Path: path, Session: fmt.Sprint(i)})
	}
	o.prober.probe(t.Context(), probe{recent: arts, forced: true})
	if n := len(o.prober.described); n != len(arts) {
		t.Fatalf("%d descriptions of %d artifacts", n, len(arts))
	}
	o.prober.probe(t.Context(), probe{recent: arts[:1], forced: true})
	if n := len(o.prober.described); n != 1 {
		t.Fatalf("%d descriptions are kept for 1 artifact", n)
	}
}

// Artifacts that are gone are forgotten: one that was bound when it went, and
// those that no sweep ever saw.
//
// Field list: C23, C25.
func TestGoneArtifactsAreForgotten(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	for i := range 20 {
		r.write(fmt.Sprint("short", i), fakeRecord{ID: "x", Do: "note"})
	}
	r.until("they are known", func() bool { return r.knows("short19") })
	for i := range 20 {
		if err := os.Remove(r.path(fmt.Sprint("short", i))); err != nil {
			t.Fatal(err)
		}
	}
	r.sweep()
	if err := os.Remove(r.path("s1")); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	r.sweep()
	a.stop()
	r.want(all([]string{available}, turn("t1"), []string{exited})...)
	r.until("no artifact is left", func() bool { r.sweep(); return r.obs.Status().Providers[0].Artifacts == 0 })
	r.until("no restart point is left", func() bool {
		s, err := r.store.Sources(t.Context())
		return err == nil && len(s) == 0
	})
}

// sweep waits for a full sweep that begins now.
func (r *rig) sweep() {
	r.t.Helper()
	from := r.obs.Status().Watch.Sweeps
	r.until("a sweep has passed", func() bool {
		err := r.obs.ask(context.Background(), func() {
			if !r.obs.sweeping {
				r.obs.sweepSoon()
			}
		})
		return err == nil && r.obs.Status().Watch.Sweeps > from+1
	})
}

// A directory that cannot be listed for a moment is not an empty one.
//
// Field list: B12.
func TestUnreadableDirectoryIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "a.jsonl"), []byte("{}\n"))
	mustWrite(t, filepath.Join(dir, "b.jsonl"), []byte("{}\n"))
	s := newSweeper(time.Hour)
	roots := []watch.Root{{Dir: dir}}
	if d := s.sweep(t.Context(), roots, 1); len(d.changed) != 2 {
		t.Fatalf("%+v", d)
	}
	for len(s.sweep(t.Context(), roots, 1).changed) > 0 { // until they are not young any more
		time.Sleep(time.Millisecond)
	}
	restore := noDescriptors(t)
	d := s.sweep(t.Context(), roots, 2)
	restore()
	if len(d.gone) != 0 {
		t.Fatalf("%d files are taken for gone because no descriptor was left", len(d.gone))
	}
	if err := os.Remove(filepath.Join(dir, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	if d := s.sweep(t.Context(), roots, 3); len(d.gone) != 1 || len(d.changed) != 0 {
		t.Fatalf("%+v", d)
	}
}

// The sweep sees what its times alone tell of a file: one that took another's
// place has its size and its time of modification, one that is written twice
// within a tick of the kernel's clock all of its times. What is left alone is not
// told of again.
func TestSweepSeesEveryChange(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	at := time.Now().Add(-time.Hour)
	put := func(path, text string) {
		mustWrite(t, path, []byte(text))
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(path, "{\"n\":0}\n")
	s := newSweeper(time.Hour)
	var n uint64
	sweep := func() int {
		n++
		return len(s.sweep(t.Context(), []watch.Root{{Dir: dir}}, n).changed)
	}
	quiet := func() {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); sweep() > 0; {
			if time.Now().After(end) {
				t.Fatal("a file that is left alone is told of again and again")
			}
			time.Sleep(time.Millisecond)
		}
	}
	sweep()
	quiet()
	for i := range 3 {
		put(path+".new", fmt.Sprintf("{\"n\":%d}\n", i+1))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if sweep() != 1 {
			t.Errorf("another file in its place, of the same size and time, is not seen: %d", i)
		}
		quiet()
	}
	for i := range 200 {
		put(path, fmt.Sprintf("{\"n\":%d}\n", i%10))
		sweep()
		put(path, fmt.Sprintf("{\"n\":%d}\n", (i+1)%10))
		if sweep() != 1 {
			t.Fatalf("a second change within a tick is not seen: %d", i)
		}
	}
}

// noDescriptors lets every open fail until the function it gives is called.
func noDescriptors(t *testing.T) func() {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(fd)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(fd), Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}
}

// A worker does not wait for a loop that has given up.
func TestWorkersEndWithTheLoop(t *testing.T) {
	o := idleObserver(t, func(o *Options) { o.Workers = 1 })
	ended := make(chan struct{})
	go func() { _ = o.work(); close(ended) }()
	for range 2 { // one more than results hold
		o.jobs <- &job{attach: &attachment{artifact: providers.Artifact{Path: "/nowhere/s.jsonl"}, provider: fake{}}}
	}
	close(o.jobs)
	close(o.ended)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		<-o.results
		t.Fatal("the worker waits for a loop that is gone")
	}
}

// flaky is a provider that cannot look for a moment.
type flaky struct {
	fake
	fails *atomic.Int32
}

func (f flaky) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	if f.fails.Add(-1) >= 0 {
		return nil, errors.New("cannot look")
	}
	return f.fake.Evidence(ctx, p, known)
}

// Evidence that could not be looked at is looked for again.
//
// Field list: F17.
func TestEvidenceErrorIsAskedAgain(t *testing.T) {
	f := flaky{fails: new(atomic.Int32)}
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{f} })
	r.run()
	a := r.start("s1")
	a.register(fakeRegistry{Session: "s1", Activity: "idle", Since: now()})
	activity := func() (got providers.Activity) {
		_ = r.obs.ask(context.Background(), func() {
			for _, a := range r.obs.byProcess {
				got = a.match.Activity
			}
			r.obs.recheckUntil = time.Time{}
		})
		return got
	}
	r.until("it is idle", func() bool { return activity() == providers.Idle })
	r.quiet()
	f.fails.Store(1)
	a.register(fakeRegistry{Session: "s1", Activity: "idle", Since: now()})
	r.until("the look has failed", func() bool { return f.fails.Load() <= 0 })
	r.until("it is idle again", func() bool { return activity() == providers.Idle })
}

// A look that failed is owed still.
//
// Field list: F17.
func TestFailedProbeIsRepeated(t *testing.T) {
	o := idleObserver(t)
	o.onProbe(probed{err: errors.New("no processes")})
	if !o.probeForced {
		t.Fatal("what asked for the look is forgotten")
	}
}

// Of several agents that a place or a session had, the newest goes on.
func TestNewestAgentGoesOn(t *testing.T) {
	o := idleObserver(t)
	at := now()
	for i := range 20 {
		id := fmt.Sprint("a", i)
		o.agents[id] = &agent{row: store.Agent{ID: id, Harness: "fake", PaneKey: "k", Session: "s",
			PID: 1<<22 + i, ExitedAt: at.Add(time.Duration(i) * time.Second)}}
	}
	w := &bind.Owner{Provider: "fake", Process: providers.Process{PID: 1 << 23, Started: at}}
	w.Place = bind.Place{Kind: bind.InTmux, Key: "k"}
	if row, _ := o.identify(w, bind.Match{}, at); row.ID != "a19" {
		t.Errorf("the pane goes to %s", row.ID)
	}
	w.Place = bind.Place{Kind: bind.Headless, Key: "other"}
	if row, _ := o.identify(w, bind.Match{Bound: true, Session: "s"}, at); row.ID != "a19" {
		t.Errorf("the session goes to %s", row.ID)
	}
	// A clock that was set back does not make a process wait for it.
	w.Process.Started = at.Add(time.Hour)
	if _, wait := o.identify(w, bind.Match{}, at); wait {
		t.Error("the process waits for the clock")
	}
}

// Both clocks have to be quiet for 5 s, also right after a restart.
func TestIdleLooksAtTheFile(t *testing.T) {
	o := idleObserver(t)
	g := &agent{match: bind.Match{Activity: providers.Idle, Since: now().Add(-time.Hour)}, turn: providers.Turn{State: providers.WaitingOnAgent}}
	a := &artifact{agent: g, reader: readerOf(t, 0), modified: now()}
	g.art = a
	if at := o.idleAt(a); at.Before(a.modified.Add(idleAfter)) {
		t.Fatalf("given up %v after the file was written", at.Sub(a.modified))
	}
}

// An agent that leaves nothing on disk yet is seen by the next scan, also when
// there was none before.
func TestFirstAgentIsSeenByTheScan(t *testing.T) {
	r := newRig(t)
	r.run()
	r.until("the machine was looked at", func() bool {
		looked := false
		err := r.obs.ask(t.Context(), func() { looked = !r.obs.probedAt.IsZero() && !r.obs.probing })
		return err == nil && looked
	})
	began := time.Now()
	r.start("")
	r.want(available)
	if took := time.Since(began); took > 2*scanEvery {
		t.Errorf("seen after %v", took)
	}
}

// A look at the processes that began before one of them ended, and comes in
// after its end, does not bring it back to life.
func TestLookFromBeforeTheEnd(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	var before probed
	r.until("a look shows the process", func() bool {
		err := r.obs.ask(t.Context(), func() {
			if before = r.obs.last; len(before.owners) == 1 && !r.obs.probing {
				r.obs.probing = true // as if that look were under way still
			} else {
				before.owners = nil
			}
		})
		return err == nil && len(before.owners) == 1
	})
	a.stop()
	want = append(want, exited)
	r.want(want...)
	if err := r.obs.ask(t.Context(), func() { r.obs.onProbe(before) }); err != nil {
		t.Fatal(err)
	}
	r.start("s2") // something that comes after
	r.write("s2", records("t2")...)
	r.want(all(want, []string{available}, turn("t2"))...)
}
