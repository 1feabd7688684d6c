package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// fullStore has the default 100,000 events, so each commit prunes too.
func fullStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Options{Path: b.TempDir() + "/db"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	for from := 0; from < DefaultRetainEvents; from += MaxBatch {
		commit(b, s, Batch{Events: typical("fill", from, MaxBatch)})
	}
	return s
}

// typical events have 900 bytes and ids as long as real ones.
func typical(prefix string, from, n int) []Event {
	text := strings.Repeat("x", 800)
	all := make([]Event, n)
	for i := range all {
		id := fmt.Sprintf("%s-%0*d", prefix, 63-len(prefix), (from+i)*7919%1_000_003)
		all[i] = Event{ID: id, Kind: "assistant_message", Agent: "6f0c6d3e-5d5b-4f0e-9a43-000000000001", Incarnation: id,
			Body: fmt.Appendf(nil, `{"event_id":%q,"text":%q}`, id, text)}
	}
	return all
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := fullStore(b)
			next := 0
			for b.Loop() {
				c := commit(b, s, Batch{Events: typical("bench", next, n), Sources: []Source{{Path: "p", Offset: int64(next)}}})
				if c.Inserted != n || c.Pruned != n {
					b.Fatalf("Commit = %+v", c)
				}
				next += n
			}
		})
	}
}

func BenchmarkPage200(b *testing.B) {
	s := fullStore(b)
	after := Seq(0)
	for b.Loop() {
		p, err := s.Page(context.Background(), Query{After: after % (DefaultRetainEvents - 200), Limit: 200})
		if err != nil || len(p.Events) != 200 {
			b.Fatalf("Page = %d events, %v", len(p.Events), err)
		}
		after += 7777
	}
}

// BenchmarkPageQuiet reads pages in which a filter finds nothing.
func BenchmarkPageQuiet(b *testing.B) {
	s := fullStore(b)
	for b.Loop() {
		p, err := s.Page(context.Background(), Query{After: 50_000, Kinds: []string{"none"}})
		if err != nil || p.Next != 50_000+MaxExamined {
			b.Fatalf("Page: next %d, %v", p.Next, err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s := fullStore(b)
	s.Close()
	for b.Loop() {
		s, err := Open(b.Context(), s.opts)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
