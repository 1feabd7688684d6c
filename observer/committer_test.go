package observer

import (
	"context"
	"database/sql"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	_ "modernc.org/sqlite"
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

	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.home, "state", "events.db")+"?_txlock=exclusive")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	r.write("s1", records("t2")...)
	r.until("the store stopped working", func() bool { return !r.store.Working() })
	for len(beats) > 0 {
		<-beats
	}
	<-beats // the committer still lives
	r.write("s1", records("t3")...)
	r.want(first...)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	r.want(all(first, turn("t2"), turn("t3"))...)
	if !r.store.Working() {
		t.Fatal("the store works again and does not say so")
	}
}

// Invariant 9 and 11: an idle observer does nothing but look, and an append
// touches only its own artifact.
func TestWorkCounts(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Sweep = 50 * time.Millisecond })
	const files = 200
	for i := range files {
		r.write("old"+string(rune('a'+i%26))+string(rune('a'+i/26)), records("o")...)
	}
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	head := r.events()[5].Sequence
	before := r.jobs()
	swept := r.obs.Status().Watch.Sweeps
	r.until("some sweeps have passed", func() bool { return r.obs.Status().Watch.Sweeps > swept+5 })
	if n := r.jobs() - before; n != 0 {
		t.Fatalf("%d refreshes of an unchanged tree", n)
	}
	r.write("s1", records("t2")...)
	r.want(all([]string{available}, turn("t1"), turn("t2"))...)
	r.until("the refresh is committed", func() bool { return r.jobs() > before })
	for path, n := range r.refreshed() {
		if path != r.path("s1") && n != 0 {
			t.Fatalf("%s was read %d times", path, n)
		}
	}
	if last := r.events()[10].Sequence; last != head+5 {
		t.Fatalf("sequence %d after %d", last, head)
	}
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
