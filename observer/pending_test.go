package observer

import (
	"testing"

	"steno/providers"
	"steno/store"
)

// Nothing more is read while too much of what was read is not committed, but
// what was begun is finished.
func TestPendingIsBounded(t *testing.T) {
	o := idleObserver(t)
	begun, next := &artifact{}, &artifact{reader: &reader{}}
	big := []store.Event{{Body: make([]byte, maxPending)}}
	o.dispatch(next, refresh, now())
	if !o.mayRead() {
		t.Fatal("nothing is pending, and nothing may be read")
	}
	begun.reader = &reader{rest: make([]providers.Record, 1), batch: 1000}
	o.weigh(begun, big)
	if o.pending != maxPending+1000 || o.mayRead() {
		t.Fatalf("%d bytes are pending, and more may be read: %v", o.pending, o.mayRead())
	}
	o.dispatch(begun, refresh, now())
	if o.queue[0].art != begun || !o.mayRead() {
		t.Fatal("what was begun may not be finished")
	}
	o.queue = o.queue[1:]
	o.stopping = true
	if !o.mayRead() {
		t.Error("the drain waits")
	}
	o.stopping = false
	begun.reader.rest = nil
	o.weigh(begun, nil)
	if o.pending != 0 || !o.mayRead() {
		t.Errorf("%d bytes are pending after the commit", o.pending)
	}
}
