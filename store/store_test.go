package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

// open opens a store whose invariants are checked when the test ends.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "state", "steno.db")
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if s.isClosed() {
			return
		}
		if err := s.Check(context.Background()); err != nil {
			t.Errorf("Check: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func event(id string) Event { return eventOf(id, "plan", "a") }

func eventOf(id, kind, agent string) Event {
	return Event{ID: id, Kind: kind, Agent: agent, Incarnation: "i",
		Body: fmt.Appendf(nil, `{"event_id":%q,"kind":%q,"agent_id":%q}`, id, kind, agent)}
}

func events(from, to int) []Event {
	var all []Event
	for i := from; i <= to; i++ {
		all = append(all, event(fmt.Sprintf("e%d", i)))
	}
	return all
}

func commit(t testing.TB, s *Store, b Batch) Committed {
	t.Helper()
	c, err := s.Commit(context.Background(), b)
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return c
}

func page(t testing.TB, s *Store, q Query) Page {
	t.Helper()
	p, err := s.Page(context.Background(), q)
	if err != nil {
		t.Fatalf("Page(%+v): %v", q, err)
	}
	return p
}

func TestCommitAndPage(t *testing.T) {
	s := openTest(t, Options{})
	if got, want := commit(t, s, Batch{}), (Committed{}); got != want {
		t.Fatalf("empty Commit = %+v, want %+v", got, want)
	}
	got := commit(t, s, Batch{Events: append(events(1, 3), event("e2"))})
	if want := (Committed{Latest: 3, Inserted: 3}); got != want {
		t.Fatalf("Commit = %+v, want %+v", got, want)
	}
	got = commit(t, s, Batch{Events: append(events(1, 3), event("e4"))})
	if want := (Committed{Latest: 4, Inserted: 1}); got != want {
		t.Fatalf("Commit with duplicates = %+v, want %+v", got, want)
	}
	p := page(t, s, Query{After: 2})
	if p.Gap || p.Oldest != 1 || p.Latest != 4 || p.Next != 4 || len(p.Events) != 2 {
		t.Fatalf("Page = %+v", p)
	}
	if got, want := string(p.Events[0]), `{"sequence":3,"event_id":"e3","kind":"plan","agent_id":"a"}`; got != want {
		t.Fatalf("event = %s, want %s", got, want)
	}
}
