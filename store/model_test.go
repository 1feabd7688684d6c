package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// model is what the log must be, kept the slow and obvious way.
type model struct {
	events []modelEvent // stored, oldest first
	latest Seq
	o      Options
}

type modelEvent struct {
	seq Seq
	Event
}

func (m *model) bytes() (n int64) {
	for _, e := range m.events {
		n += int64(len(e.Body))
	}
	return n
}

func (m *model) retain() (pruned int) {
	for len(m.events) > m.o.RetainEvents || m.bytes() > m.o.RetainBytes {
		m.events = m.events[1:]
		pruned++
	}
	return pruned
}

func (m *model) commit(batch []Event) (c Committed) {
	for _, e := range batch {
		if slices.ContainsFunc(m.events, func(have modelEvent) bool { return have.ID == e.ID }) {
			continue
		}
		m.latest++
		m.events = append(m.events, modelEvent{m.latest, e})
		c.Inserted++
	}
	c.Pruned = m.retain()
	c.Latest = m.latest
	return c
}

func (m *model) page(q Query) Page {
	p := Page{After: q.After, Oldest: m.latest + 1, Latest: m.latest, Next: q.After}
	if len(m.events) > 0 {
		p.Oldest = m.events[0].seq
	}
	if p.Gap = q.After+1 < p.Oldest || q.After > m.latest; p.Gap {
		return p
	}
	filtered := len(q.Kinds)+len(q.Agents) > 0
	size, full := 0, false
	for _, e := range m.events {
		if e.seq <= q.After {
			continue
		}
		if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Kind) || len(q.Agents) > 0 && !slices.Contains(q.Agents, e.Agent) {
			continue
		}
		wire := fmt.Sprintf(`{"sequence":%d,%s`, e.seq, e.Body[1:])
		if size += len(wire); len(p.Events) > 0 {
			size++
		}
		if len(p.Events) == q.Limit || size > q.MaxBytes && len(p.Events) > 0 {
			full = true
			break
		}
		p.Events = append(p.Events, []byte(wire))
		p.Next = e.seq
	}
	// A full page may stop at its last event though nothing is left to find.
	if filtered && !full && len(p.Events) < q.Limit {
		p.Next = m.latest
	}
	return p
}

func TestModel(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, rand.Uint64()} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runModel(t, seed)
		})
	}
}

func runModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "db")
	bounds := func() Options {
		return Options{Path: path, RetainEvents: 1 + r.IntN(60), RetainBytes: int64(200 + r.IntN(9000)), Recover: r.IntN(4) == 0}
	}
	m := &model{o: bounds()}
	s := openTest(t, m.o)
	for step := range 300 {
		switch n := r.IntN(20); {
		case n == 0:
			if err := s.Check(t.Context()); err != nil {
				t.Fatalf("step %d: Check: %v", step, err)
			}
			if err := s.Close(); err != nil {
				t.Fatalf("step %d: Close: %v", step, err)
			}
			m.o = bounds()
			s = openTest(t, m.o)
			m.retain()
		case n < 9:
			var batch []Event
			for range r.IntN(20) {
				e := eventOf(fmt.Sprintf("e%d", r.IntN(500)), fmt.Sprintf("k%d", r.IntN(3)), fmt.Sprintf("a%d", r.IntN(4)))
				if r.IntN(5) == 0 {
					e.Body = append(e.Body[:len(e.Body)-1], fmt.Sprintf(`,"text":"%s"}`, strings.Repeat("x", r.IntN(3000)))...)
				}
				batch = append(batch, e)
			}
			if got, want := commit(t, s, Batch{Events: batch}), m.commit(batch); got != want {
				t.Fatalf("step %d: Commit = %+v, want %+v", step, got, want)
			}
		default:
			q := Query{After: Seq(r.IntN(int(m.latest) + 4)), Limit: 1 + r.IntN(40), MaxBytes: 1 + r.IntN(6000)}
			if len(m.events) > 0 && r.IntN(2) == 0 {
				q.After = m.events[r.IntN(len(m.events))].seq - 1
			}
			for i := range 4 {
				if r.IntN(6) == 0 {
					q.Kinds = append(q.Kinds, fmt.Sprintf("k%d", i))
				}
				if r.IntN(6) == 0 {
					q.Agents = append(q.Agents, fmt.Sprintf("a%d", i))
				}
			}
			comparePages(t, step, q, page(t, s, q), m.page(q))
		}
	}
}

func comparePages(t *testing.T, step int, q Query, got, want Page) {
	t.Helper()
	if got.Gap != want.Gap || got.After != want.After || got.Oldest != want.Oldest || got.Latest != want.Latest ||
		got.Next != want.Next || !slices.EqualFunc(got.Events, want.Events, bytes.Equal) {
		t.Fatalf("step %d: Page(%+v) =\n%+v, want\n%+v", step, q, got, want)
	}
	size := 0
	for i, e := range got.Events {
		if size += len(e); i > 0 {
			size++
		}
		if !json.Valid(e) {
			t.Fatalf("step %d: event is not JSON: %s", step, e)
		}
	}
	if len(got.Events) > 1 && size > q.MaxBytes {
		t.Fatalf("step %d: page has %d bytes, want at most %d", step, size, q.MaxBytes)
	}
}
