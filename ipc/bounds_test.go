package ipc

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"steno/ipc/wire"
	"steno/store"
)

// The time for a request line counts from its first byte: a connection may be
// quiet between two requests for as long as it likes.
func TestQuietBetweenRequests(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{}), LineTimeout: 50 * time.Millisecond})
	quiet := d.raw(t)
	quiet.alive()
	stalled := d.raw(t) // begun later, and cut off
	stalled.Write([]byte(`{`))
	if _, code, _ := stalled.reply(); code != CodeRequest {
		t.Errorf("code %s, want %s", code, CodeRequest)
	}
	quiet.alive()
}

// onePage is a log that counts how many pages are read at a time.
type onePage struct {
	Store
	now, most atomic.Int64
	turns     chan struct{} // a page for each
}

func (s *onePage) Page(ctx context.Context, q store.Query) (store.Page, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for {
		most := s.most.Load()
		if n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	select {
	case <-s.turns:
	case <-ctx.Done():
	}
	return s.Store.Page(ctx, q)
}

// However many pages a connection asks for at once, one is in memory at a time,
// beside the one that is being written.
func TestOnePageAtATime(t *testing.T) {
	log := openLog(t, store.Options{})
	log.add(t, wire.AssistantMessage, agentA, "text")
	s := &onePage{Store: log, turns: make(chan struct{})}
	d := serve(t, Options{Store: s})
	r := d.raw(t)
	for i := range maxInFlight {
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ReadAgentEvents"}`, i))
	}
	for range maxInFlight {
		s.turns <- struct{}{}
		if _, code, _ := r.reply(); code != "" {
			t.Errorf("error %s", code)
		}
	}
	if most := s.most.Load(); most != 1 {
		t.Errorf("%d pages at a time", most)
	}
}

// Clients leave three quarters of the descriptors to the daemon's own work.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}()
	for limit, want := range map[uint64]int{2: 1, 64: 16, 800: 200, 1024: 256, 4096: 256} {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
			t.Skipf("limit %d: %v", limit, err)
		}
		if got := mostConns(); got != want {
			t.Errorf("with %d descriptors %d connections, want %d", limit, got, want)
		}
	}
}

// noRoom is a listener of a process without descriptors.
type noRoom struct {
	net.Listener
	tries atomic.Int64
	after int64 // it is closed after so many tries
	close context.CancelFunc
}

func (l *noRoom) Accept() (net.Conn, error) {
	if l.tries.Add(1) == l.after {
		l.close()
	}
	return nil, unix.EMFILE
}

func (l *noRoom) Close() error { return nil }

// While no connection can be accepted the daemon does not spin: it waits longer
// each time, and a second at most.
func TestAcceptWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &noRoom{after: 5, close: cancel}
	began := time.Now()
	if err := NewServer(Options{Store: openLog(t, store.Options{}), Live: &stub{}}).Serve(ctx, l); err != nil {
		t.Errorf("Serve = %v", err)
	}
	if took := time.Since(began); took < (10+20+40+80)*time.Millisecond {
		t.Errorf("%d tries in %v", l.tries.Load(), took)
	}
}
