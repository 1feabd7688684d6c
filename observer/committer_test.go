package observer

import (
	"runtime"
	"testing"
	"time"

	"steno/store"
)

// A store that another process locks takes nothing and acknowledges nothing;
// afterwards everything is there, once and in order.
func TestLockedStoreLosesNothing(t *testing.T) {
	r := newRig(t)
	beats := make(chan struct{}, 1000)
	r.opt.Heartbeat = func() {
		select {
		case beats <- struct{}{}:
		default:
		}
	}
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	first := all([]string{available}, turn("t1"))
	r.want(first...)

	unlock := r.lockStore()
	r.write("s1", records("t2")...)
	r.until("the store stopped working", func() bool { return !r.store.Working() })
	for len(beats) > 0 {
		<-beats
	}
	<-beats // the committer still lives
	r.write("s1", records("t3")...)
	r.want(first...)
	unlock()
	r.want(all(first, turn("t2"), turn("t3"))...)
	if !r.store.Working() {
		t.Fatal("the store works again and does not say so")
	}
}

// A store that takes nothing when Steno starts is waited for.
func TestStartWhileStoreIsLocked(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.want(available)
	r.halt()
	unlock := r.lockStore()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for deadline := time.Now().Add(10 * time.Second); r.store.Working() && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond) // between two looks
		}
		if r.store.Working() {
			t.Error("the store took the first commit")
		}
		unlock()
	}()
	r.run()
	<-done
	r.want(available, restarted, available)
}

// Everything that Run starts has ended when it returns; newRig checks it again
// after every test.
func TestRunJoinsEverything(t *testing.T) {
	r := newRig(t)
	before := runtime.NumGoroutine()
	r.run()
	r.halt()
	noLeak(t, before)
	if err := r.obs.ask(t.Context(), func() {}); err == nil {
		t.Fatal("the loop answers after its end")
	}
	if _, err := r.obs.Panes(t.Context()); err == nil {
		t.Fatal("the prober answers after its end")
	}
}

// A commit that the store can never take does not take its neighbours or the
// daemon with it.
func TestInvalidCommitIsDropped(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.want(available)
	if err := r.obs.ask(t.Context(), func() {
		r.obs.send(commit{batch: store.Batch{Sources: []store.Source{{Path: "/x", State: make([]byte, store.MaxState+1)}}}})
	}); err != nil {
		t.Fatal(err)
	}
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
}
