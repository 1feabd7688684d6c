package ipc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

const waitLong = wire.MaxWait

// A commit between the read and the wait wakes the waiter.
func TestNoLostWakeup(t *testing.T) {
	s := openLog(t, store.Options{})
	s.afterPage = func(n int64) {
		if n == 1 { // the empty page is read, the wait has not begun
			s.add(t, wire.AssistantMessage, agentA, "in between")
		}
	}
	c := serve(t, Options{Store: s}).dial(t)
	began := time.Now()
	p, err := c.ReadEvents(t.Context(), wire.ReadParams{Wait: waitLong})
	if err != nil || time.Since(began) > soon {
		t.Fatalf("ReadEvents = %v after %v", err, time.Since(began))
	}
	if got := texts(t, p); !slices.Equal(got, []string{"in between"}) {
		t.Errorf("texts = %q", got)
	}
}

// Four waiters, on one connection and on others, all wake from one commit.
func TestOneCommitWakesAll(t *testing.T) {
	s := openLog(t, store.Options{})
	d := serve(t, Options{Store: s})
	one, two := d.dial(t), d.dial(t)
	var wg sync.WaitGroup
	for _, c := range []*Client{one, one, one, two} {
		wg.Go(func() {
			p, err := c.ReadEvents(t.Context(), wire.ReadParams{Wait: waitLong})
			if err != nil || len(p.Events) != 1 {
				t.Errorf("ReadEvents = %d events, %v", len(p.Events), err)
			}
		})
	}
	eventually(t, "four wait", func() bool { return s.pages.Load() == 4 })
	// Those on the same connection do not stand in the way of other requests.
	if _, err := one.Catalog(t.Context()); err != nil {
		t.Error(err)
	}
	began := time.Now()
	s.add(t, wire.AssistantMessage, agentA, "one")
	wg.Wait()
	if e := time.Since(began); e > soon {
		t.Errorf("woken after %v", e)
	}
	if n := s.pages.Load(); n != 8 {
		t.Errorf("%d pages were read, want 8", n)
	}
}

func TestWaitEndsEmpty(t *testing.T) {
	s := openLog(t, store.Options{})
	c := serve(t, Options{Store: s}).dial(t)
	began := time.Now()
	p, err := c.ReadEvents(t.Context(), wire.ReadParams{Wait: 60})
	if err != nil || len(p.Events) != 0 || *p.NextAfterSequence != 0 {
		t.Errorf("ReadEvents = %+v, %v", p, err)
	}
	if e := time.Since(began); e < 60*time.Millisecond || e > soon {
		t.Errorf("the wait of 60 ms took %v", e)
	}
	// The largest wait that can be asked for is clamped, not refused. Events
	// that are there end it at once.
	s.add(t, wire.AssistantMessage, agentA, "x")
	p, err = c.ReadEvents(t.Context(), wire.ReadParams{Wait: 1<<63 - 1})
	if err != nil || len(p.Events) != 1 {
		t.Errorf("ReadEvents = %d events, %v", len(p.Events), err)
	}
}

// Waits that no clock can hold are waits, too: the answer is the event, not an empty
// page at once.
func TestLargestWaits(t *testing.T) {
	s := openLog(t, store.Options{})
	d := serve(t, Options{Store: s})
	var all []*raw
	for _, ms := range []string{"30001", "9223372036854776", "9223372036854775807", "18446744073709551615"} {
		r := d.raw(t)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"ReadAgentEvents","params":{"wait_ms":` + ms + `}}`)
		all = append(all, r)
	}
	eventually(t, "all of them wait", func() bool { return s.pages.Load() >= int64(len(all)) })
	s.add(t, wire.AssistantMessage, agentA, "x")
	for i, r := range all {
		if _, code, result := r.reply(); code != "" || !strings.Contains(string(result), wire.AssistantMessage) {
			t.Errorf("wait %d: error %s, page %s", i, code, result)
		}
	}
}

// A closed client ends its wait at once, and so does one that dies.
func TestClosedClientEndsWait(t *testing.T) {
	s := openLog(t, store.Options{})
	d := serve(t, Options{Store: s})
	r, c := d.raw(t), d.dial(t)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"ReadAgentEvents","params":{"wait_ms":30000}}`)
	failed := make(chan error, 1)
	go func() {
		_, err := c.ReadEvents(t.Context(), wire.ReadParams{Wait: waitLong})
		failed <- err
	}()
	eventually(t, "both wait", func() bool { return s.pages.Load() == 2 })
	began := time.Now()
	r.Close()
	c.Close()
	if err := <-failed; err == nil {
		t.Error("a call over a closed client succeeds")
	}
	eventually(t, "both are gone", func() bool { return d.clients() == 0 })
	if e := time.Since(began); e > soon {
		t.Errorf("gone after %v", e)
	}
}

// A filtered wait goes on over events that do not match, and its cursor passes
// them.
func TestFilteredWait(t *testing.T) {
	s := openLog(t, store.Options{})
	s.add(t, wire.AssistantMessage, agentA, "a1", "a2")
	c := serve(t, Options{Store: s}).dial(t)
	p, err := c.ReadEvents(t.Context(), wire.ReadParams{Agents: []string{agentB}})
	if err != nil || len(p.Events) != 0 || *p.NextAfterSequence != 2 || p.RequestedAfterSequence != 0 {
		t.Errorf("quiet filter: %+v, %v", p, err)
	}
	p, err = c.ReadEvents(t.Context(), wire.ReadParams{Agents: []string{agentB}, Wait: 50})
	if err != nil || len(p.Events) != 0 || *p.NextAfterSequence != 2 {
		t.Errorf("quiet filter with a wait: %+v, %v", p, err)
	}

	done := make(chan wire.Page, 1)
	before := s.pages.Load()
	go func() {
		p, err := c.ReadEvents(t.Context(), wire.ReadParams{
			Agents: []string{agentB}, Kinds: []string{wire.AssistantMessage, wire.Plan}, Wait: waitLong,
		})
		if err != nil {
			t.Error(err)
		}
		done <- p
	}()
	eventually(t, "it waits", func() bool { return s.pages.Load() == before+1 })
	s.add(t, wire.AssistantMessage, agentA, "a3") // another agent
	eventually(t, "it looked at a3", func() bool { return s.pages.Load() == before+2 })
	s.add(t, wire.TurnStarted, agentB, "") // another kind
	eventually(t, "it looked at the turn", func() bool { return s.pages.Load() == before+3 })
	s.add(t, wire.AssistantMessage, agentB, "b1")
	p = <-done
	if got := texts(t, p); !slices.Equal(got, []string{"b1"}) || *p.NextAfterSequence != 5 || p.RequestedAfterSequence != 0 {
		t.Errorf("filtered wait: %q, %+v", got, p)
	}
}

// A filter that matches nothing in a long log gets to its head in steps, within
// one wait.
func TestFilteredWaitOverLongLog(t *testing.T) {
	s := openLog(t, store.Options{})
	for range 3 {
		s.add(t, wire.AssistantMessage, agentA, make([]string, 7000)...)
	}
	c := serve(t, Options{Store: s}).dial(t)
	p, err := c.ReadEvents(t.Context(), wire.ReadParams{Agents: []string{agentB}})
	if err != nil || *p.NextAfterSequence != store.MaxExamined {
		t.Errorf("without a wait: %+v, %v", p, err)
	}
	before := s.pages.Load()
	p, err = c.ReadEvents(t.Context(), wire.ReadParams{Agents: []string{agentB}, Wait: 50})
	if err != nil || *p.NextAfterSequence != 21000 {
		t.Errorf("with a wait: %+v, %v", p, err)
	}
	if n := s.pages.Load() - before; n != 4 { // two full steps, the rest, and the last look
		t.Errorf("%d pages were read, want 4", n)
	}
}

// A wait whose cursor is pruned away meanwhile says so.
func TestGapDuringWait(t *testing.T) {
	s := openLog(t, store.Options{RetainEvents: 2})
	s.afterPage = func(n int64) {
		if n == 1 {
			s.add(t, wire.AssistantMessage, agentA, "1", "2", "3", "4")
		}
	}
	c := serve(t, Options{Store: s}).dial(t)
	p, err := c.ReadEvents(t.Context(), wire.ReadParams{Wait: waitLong})
	if err != nil || p.Status != wire.CursorTooOld || p.Recovery == nil || p.Recovery.CatalogAsOfSequence != 4 ||
		p.OldestAvailableSequence != 3 || p.NextAfterSequence != nil {
		t.Errorf("ReadEvents = %+v, %v", p, err)
	}
	if p, err = c.ReadEvents(t.Context(), wire.ReadParams{After: 2}); err != nil || len(p.Events) != 2 {
		t.Errorf("after what was pruned: %+v, %v", p, err)
	}
	if p, err = c.ReadEvents(t.Context(), wire.ReadParams{After: 5, Wait: waitLong}); err != nil || p.Status != wire.CursorTooOld {
		t.Errorf("beyond the head: %+v, %v", p, err)
	}
}

// A page is cut by bytes so that its line, with the envelope and the longest
// id, stays below the bound; no event is lost at the cut.
func TestByteCut(t *testing.T) {
	s := openLog(t, store.Options{})
	// Large events and many of the smallest: what is left over in a page that
	// was cut among those is less than the envelope with its id.
	var all []string
	for i := range 3 {
		all = append(all, fmt.Sprint(i)+strings.Repeat("x", 300_000))
	}
	for i := range 600 {
		all = append(all, fmt.Sprint(i))
	}
	// Texts whose JSON is much longer than they are, and one event of nearly
	// the largest size.
	for i := range 20 {
		all = append(all, fmt.Sprintf("%03d", i)+strings.Repeat("\x01", 10_000))
	}
	all = append(all, strings.Repeat("h", 989_000))
	s.add(t, wire.AssistantMessage, agentA, all...)
	r := serve(t, Options{Store: s}).raw(t)
	id := `"` + strings.Repeat("i", maxID-2) + `"`
	var got []string
	longest := 0
	for after := uint64(0); after < uint64(len(all)); {
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ReadAgentEvents","params":{"after_sequence":%d,"limit":1000}}`, id, after))
		line := r.line()
		if len(line)+1 >= wire.MaxLine {
			t.Fatalf("a line of %d bytes", len(line)+1)
		}
		longest = max(longest, len(line))
		var in struct {
			Result wire.Page `json:"result"`
		}
		if err := unmarshal(line, &in); err != nil {
			t.Fatal(err)
		}
		if err := CheckPage(in.Result, after); err != nil || len(in.Result.Events) == 0 {
			t.Fatalf("page after %d: %d events, %v", after, len(in.Result.Events), err)
		}
		got = append(got, texts(t, in.Result)...)
		after = *in.Result.NextAfterSequence
	}
	if !slices.Equal(got, all) {
		t.Errorf("%d texts, want %d", len(got), len(all))
	}
	if longest < 900_000 {
		t.Errorf("the longest line has %d bytes only", longest)
	}
}

// What appendPage writes by hand is what the encoder would write.
func TestAppendPage(t *testing.T) {
	for name, shape := range shapes {
		if _, ok := shape.(wire.Page); !ok {
			continue
		}
		p := fixture[wire.Page](t, name)
		if p.Schema != wire.SchemaEvents {
			continue
		}
		if p.Recovery != nil && p.Recovery.CatalogAsOfSequence == 0 {
			t.Errorf("%s: recovery without a sequence", name)
		}
		// Events are committed without white space.
		for i, e := range p.Events {
			b, err := encode(e)
			if err != nil {
				t.Fatal(err)
			}
			p.Events[i] = []byte(strings.TrimSpace(string(b)))
		}
		want, err := encodeResult([]byte("7"), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendPage(nil, []byte("7"), p); string(got) != string(want) {
			t.Errorf("%s:\n%.500s, want\n%.500s", name, got, want)
		}
	}
}

// BenchmarkReadEvents reads pages of 200 events over the socket.
func BenchmarkReadEvents(b *testing.B) {
	s := openLog(b, store.Options{})
	all := make([]string, 5000)
	for i := range all {
		all[i] = strings.Repeat("x", 300)
	}
	s.add(b, wire.AssistantMessage, agentA, all...)
	c := serve(b, Options{Store: s}).dial(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p, err := c.ReadEvents(b.Context(), wire.ReadParams{After: uint64(i*200) % 4800, Limit: 200})
		if err != nil || len(p.Events) != 200 {
			b.Fatal(len(p.Events), err)
		}
	}
}
