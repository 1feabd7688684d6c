package observer

import (
	"context"
	"testing"
	"time"
)

// A process that writes its only records and ends before any hint has told of
// the file: they are told, and then its end.
func TestEndBeforeTheHint(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.want(available)
	r.until("its session is known", func() bool {
		bound := false
		err := r.obs.ask(context.Background(), func() {
			for _, a := range r.obs.byProcess {
				bound = a.match.Bound
			}
		})
		return err == nil && bound
	})
	err := r.obs.ask(context.Background(), func() { // the loop hears of nothing meanwhile
		r.write("s1", records("t1")...)
		for id := range r.obs.byProcess {
			r.obs.onExit(id)
			r.obs.dead[id] = now().Add(time.Hour) // no look brings it back: it lives a little longer
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	a.stop()
	r.want(all([]string{available}, turn("t1"), []string{exited})...)
}

// One that never wrote anything ends all the same.
func TestEndWithoutTranscript(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.want(available)
	a.stop()
	r.want(available, exited)
}
