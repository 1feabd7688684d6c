package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func sized(id string, n int) Event {
	e := event(id)
	e.Body = fmt.Appendf(nil, `{"event_id":%q,"text":""}`, id)
	e.Body = fmt.Appendf(nil, `{"event_id":%q,"text":"%s"}`, id, strings.Repeat("x", n-len(e.Body)))
	return e
}

func TestRetention(t *testing.T) {
	type step struct {
		add            []Event
		want           Committed
		oldest         Seq
		events, nbytes int
	}
	for _, tt := range []struct {
		name  string
		o     Options
		steps []step
	}{
		{"by count", Options{RetainEvents: 3}, []step{
			{[]Event{sized("a", 100), sized("b", 100), sized("c", 100)}, Committed{3, 3, 0}, 1, 3, 300},
			{[]Event{sized("d", 100)}, Committed{4, 1, 1}, 2, 3, 300},
			{[]Event{sized("e", 50), sized("f", 50), sized("g", 50), sized("h", 50)}, Committed{8, 4, 4}, 6, 3, 150},
			{[]Event{sized("h", 50)}, Committed{8, 0, 0}, 6, 3, 150},
			// An id that was pruned is not known any more.
			{[]Event{sized("a", 60)}, Committed{9, 1, 1}, 7, 3, 160},
		}},
		{"by bytes", Options{RetainBytes: 300}, []step{
			{[]Event{sized("a", 100), sized("b", 100), sized("c", 100)}, Committed{3, 3, 0}, 1, 3, 300},
			{[]Event{sized("d", 40)}, Committed{4, 1, 1}, 2, 3, 240},
			{[]Event{sized("e", 299)}, Committed{5, 1, 3}, 5, 1, 299},
			// Alone too large: its sequence is used, the log is empty.
			{[]Event{sized("f", 301)}, Committed{6, 1, 2}, 7, 0, 0},
			{[]Event{sized("g", 100)}, Committed{7, 1, 0}, 7, 1, 100},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openTest(t, tt.o)
			for i, st := range tt.steps {
				if got := commit(t, s, Batch{Events: st.add}); got != st.want {
					t.Fatalf("step %d: Commit = %+v, want %+v", i, got, st.want)
				}
				got, err := s.Stats(t.Context())
				if err != nil || got.Oldest != st.oldest || got.Events != uint64(st.events) || got.Bytes != int64(st.nbytes) {
					t.Fatalf("step %d: Stats = %+v, %v, want %+v", i, got, err, st)
				}
				if err := s.Check(t.Context()); err != nil {
					t.Fatalf("step %d: Check: %v", i, err)
				}
			}
		})
	}
}

// Lower bounds hold from Open on, and sequences go on behind a prune of everything.
func TestRetentionAcrossReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openTest(t, Options{Path: path})
	commit(t, s, Batch{Events: events(1, 500)})
	s.Close()
	s = openTest(t, Options{Path: path, RetainEvents: 10})
	if p := page(t, s, Query{After: 490}); p.Gap || p.Oldest != 491 || len(p.Events) != 10 {
		t.Fatalf("Page = %+v", p)
	}
	s.Close()
	s = openTest(t, Options{Path: path, RetainBytes: 1})
	if p := page(t, s, Query{After: 500}); p.Gap || p.Oldest != 501 || p.Latest != 500 {
		t.Fatalf("Page of an empty log = %+v", p)
	}
	s.Close()
	s = openTest(t, Options{Path: path})
	if c := commit(t, s, Batch{Events: events(501, 501)}); c.Latest != 501 {
		t.Fatalf("Commit = %+v, want latest 501", c)
	}
}

// Pages that overlap without a pause do not fail the writer and do not keep the
// write-ahead log from being emptied.
func TestReadersDoNotHoldBackTheLog(t *testing.T) {
	s := openTest(t, Options{RetainEvents: 50})
	s.walHigh = 1 << 20
	stop := make(chan struct{})
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(stop)
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				st, err := s.Stats(t.Context())
				if err != nil {
					t.Errorf("Stats: %v", err)
					return
				}
				p, err := s.Page(t.Context(), Query{After: st.Oldest - 1, MaxBytes: 100_000})
				if err != nil {
					t.Errorf("Page: %v", err)
					return
				}
				if !p.Gap && len(p.Events) == 0 && p.Latest > p.After {
					t.Errorf("torn page: %+v", p)
					return
				}
			}
		})
	}
	var last int64
	emptied := 0
	for i := range 100 {
		commit(t, s, Batch{Events: []Event{sized(fmt.Sprint("e", i), 100_000)}})
		fi, err := os.Stat(s.opts.Path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if fi.Size() < last {
			emptied++
		}
		last = fi.Size()
		s.truncateAt = time.Time{} // a loaded machine may make a reader slow
	}
	if emptied == 0 {
		t.Errorf("write-ahead log was never emptied and has %d bytes", last)
	}
}
