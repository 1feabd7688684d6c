package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCursorEdges(t *testing.T) {
	s := openTest(t, Options{RetainEvents: 3})
	check := func(after, oldest, latest, next Seq, gap bool, n int) {
		t.Helper()
		p := page(t, s, Query{After: after})
		if p.Gap != gap || p.After != after || p.Oldest != oldest || p.Latest != latest || p.Next != next || len(p.Events) != n {
			t.Errorf("Page(%d) = %+v, want gap %v, %d..%d, next %d, %d events", after, p, gap, oldest, latest, next, n)
		}
	}
	check(0, 1, 0, 0, false, 0)
	check(1, 1, 0, 1, true, 0)
	commit(t, s, Batch{Events: events(1, 3)})
	check(0, 1, 3, 3, false, 3)
	check(3, 1, 3, 3, false, 0)
	check(4, 1, 3, 4, true, 0)
	commit(t, s, Batch{Events: events(4, 5)})
	check(1, 3, 5, 1, true, 0) // 2 is gone
	check(2, 3, 5, 5, false, 3)
	check(5, 3, 5, 5, false, 0)
	check(1<<63+7, 3, 5, 1<<63+7, true, 0)
	check(^Seq(0), 3, 5, ^Seq(0), true, 0)
}

func TestPageBounds(t *testing.T) {
	s := openTest(t, Options{})
	big := event("big")
	big.Body = fmt.Appendf(nil, `{"event_id":"big","text":"%s"}`, strings.Repeat("x", MaxBody-len(`{"event_id":"big","text":""}`)))
	if len(big.Body) != MaxBody {
		t.Fatalf("body has %d bytes", len(big.Body))
	}
	commit(t, s, Batch{Events: []Event{event("a"), big, event("b")}})
	commit(t, s, Batch{Events: events(1, 1200)})
	for _, tt := range []struct {
		q    Query
		want []Seq // first and last
	}{
		{Query{MaxBytes: MaxBody}, []Seq{1, 1}},           // the big one does not fit behind it
		{Query{After: 1, MaxBytes: MaxBody}, []Seq{2, 2}}, // alone it is given
		{Query{After: 1, Limit: 1}, []Seq{2, 2}},          // and fits the default
		{Query{After: 1, MaxBytes: 1}, []Seq{2, 2}},
		{Query{After: 2}, []Seq{3, 102}}, // default limit
		{Query{After: 2, Limit: 5000}, []Seq{3, 1002}},
		{Query{After: 2, Limit: -1}, []Seq{3, 102}},
		{Query{After: 1202, Limit: 10}, []Seq{1203, 1203}},
	} {
		p := page(t, s, tt.q)
		n := int(tt.want[1] - tt.want[0] + 1)
		if len(p.Events) != n || p.Next != tt.want[1] {
			t.Errorf("Page(%+v) = %d events to %d, want %d to %d", tt.q, len(p.Events), p.Next, n, tt.want[1])
		}
	}
	// Two events and their comma, to the byte.
	pair := page(t, s, Query{After: 2, Limit: 2})
	size := len(pair.Events[0]) + 1 + len(pair.Events[1])
	for room, want := range map[int]int{size: 2, size - 1: 1} {
		if p := page(t, s, Query{After: 2, MaxBytes: room}); len(p.Events) != want {
			t.Errorf("Page with room for %d bytes has %d events, want %d", room, len(p.Events), want)
		}
	}
}

// A filter looks at a bounded number of events, and a quiet one still advances.
func TestFilterAdvances(t *testing.T) {
	s := openTest(t, Options{})
	for from := 1; from < MaxExamined+500; from += 1000 {
		commit(t, s, Batch{Events: events(from, from+999)})
	}
	last := commit(t, s, Batch{Events: []Event{eventOf("rare", "rare", "z")}}).Latest
	q := Query{Kinds: []string{"rare"}}
	if p := page(t, s, q); len(p.Events) != 0 || p.Next != MaxExamined {
		t.Errorf("first page = %d events, next %d, want none, next %d", len(p.Events), p.Next, MaxExamined)
	}
	q.After = MaxExamined
	if p := page(t, s, q); len(p.Events) != 1 || p.Next != last {
		t.Errorf("second page = %d events, next %d, want 1, next %d", len(p.Events), p.Next, last)
	}
	commit(t, s, Batch{Events: []Event{event("other")}})
	q = Query{After: last, Agents: []string{"z", `quote"'`}}
	if p := page(t, s, q); len(p.Events) != 0 || p.Next != last+1 {
		t.Errorf("page at the head = %d events, next %d, want none, next %d", len(p.Events), p.Next, last+1)
	}
	if _, err := s.Page(t.Context(), Query{Kinds: make([]string, maxFilter+1)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("Page with a huge filter: %v, want ErrInvalid", err)
	}
}

func TestSplice(t *testing.T) {
	for _, tt := range []struct {
		seq        Seq
		body, want string
	}{
		{1, `{"event_id":"e"}`, `{"sequence":1,"event_id":"e"}`},
		{18446744073709551615, `{"event_id":"e","text":"{\"event_id\":"}`,
			`{"sequence":18446744073709551615,"event_id":"e","text":"{\"event_id\":"}`},
	} {
		if got := string(splice(tt.seq, []byte(tt.body))); got != tt.want {
			t.Errorf("splice = %s, want %s", got, tt.want)
		}
	}
}

// Four waiters wake from one commit, also when it lands between Changed and Page.
func TestChanged(t *testing.T) {
	s := openTest(t, Options{})
	var ready, done sync.WaitGroup
	for range 4 {
		ready.Add(1)
		done.Go(func() {
			changed := s.Changed()
			ready.Done()
			<-changed
			if p, err := s.Page(context.Background(), Query{}); err != nil || len(p.Events) != 1 {
				t.Errorf("Page after wake-up = %d events, %v", len(p.Events), err)
			}
		})
	}
	ready.Wait()
	commit(t, s, Batch{Events: events(1, 1)})
	done.Wait()

	changed := s.Changed()
	commit(t, s, Batch{Events: events(2, 2)})
	if p := page(t, s, Query{After: 1}); len(p.Events) != 1 {
		t.Fatalf("Page = %d events, want 1", len(p.Events))
	}
	select {
	case <-changed:
	default:
		t.Fatal("Changed is open after a commit")
	}

	// Nothing new wakes nobody.
	changed = s.Changed()
	commit(t, s, Batch{Events: events(1, 2), Servers: []Server{{"a", 1}}})
	select {
	case <-changed:
		t.Fatal("Changed is closed by a commit without events")
	default:
	}
}

func TestState(t *testing.T) {
	path := t.TempDir() + "/db"
	s := openTest(t, Options{Path: path})
	now := time.Date(2026, 7, 1, 2, 3, 4, 567891234, time.UTC)
	odd := "/p\x00q\xff"
	sources := []Source{
		{Path: odd, Provider: "codex", Mark: []byte{0, 1}, State: []byte("s"), Offset: 1 << 40, Settled: true, Updated: now},
		{Path: "/x", Session: "s", Agent: "a", Incarnation: "i"},
	}
	agents := []Agent{
		{ID: "a", Name: "n", Harness: "h", Incarnation: "i", PID: 7, StartTicks: ^uint64(0), Boot: "b", Place: "tmux",
			PaneKey: "k", PaneID: 1<<63 | 5, TTY: "/dev/pts/1", CWD: "/c", Session: "s", Path: "/p", Rank: 2, Evidence: "e",
			Available: true, Since: now, Generation: -3, Alive: true, Status: "busy", TurnState: "unknown", Turn: "t",
			ObservedAt: now, CreatedAt: now.Add(1), ExitedAt: now.Add(2), Launch: "l"},
		{ID: "b"},
	}
	servers := []Server{{"one", 0}, {"two", 1<<32 - 1}}
	commit(t, s, Batch{Events: events(1, 2), Sources: sources, Agents: agents, Servers: servers})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, Options{Path: path})
	same := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %+v, %v, want %+v", what, got, err, want)
		}
	}
	gotSources, err := s.Sources(t.Context())
	same("Sources", gotSources, sources, err)
	asOf, gotAgents, err := s.Agents(t.Context())
	same("Agents", gotAgents, agents, err)
	same("Agents as of", asOf, Seq(2), nil)
	gotServers, err := s.Servers(t.Context())
	same("Servers", gotServers, servers, err)

	// A later batch replaces and drops; what it stores wins over what it drops.
	agents[0].Status = "exited"
	commit(t, s, Batch{Agents: agents[:1], DropAgents: []string{"a", "b", "none"}, DropSources: []string{odd}})
	_, gotAgents, err = s.Agents(t.Context())
	same("Agents", gotAgents, agents[:1], err)
	gotSources, err = s.Sources(t.Context())
	same("Sources", gotSources, sources[1:], err)

	servers[0].Slot = 7
	commit(t, s, Batch{Servers: servers[:1]})
	gotServers, err = s.Servers(t.Context())
	same("Servers", gotServers, servers, err)

	// Times that Unix nanoseconds do not have are no time.
	for _, at := range []time.Time{{}, time.Unix(-1, 0), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if n := stamp(at); n != 0 {
			t.Errorf("stamp(%v) = %d", at, n)
		}
	}

	// A slot has one owner; the batch that says otherwise is not stored at all.
	_, err = s.Commit(t.Context(), Batch{Events: events(3, 3), Servers: []Server{{"three", 7}}})
	if !errors.Is(err, ErrInvalid) || Temporary(err) || !s.Working() {
		t.Errorf("Commit of a taken slot: %v, working %v", err, s.Working())
	}
	if p := page(t, s, Query{}); p.Latest != 2 {
		t.Errorf("latest = %d, want 2", p.Latest)
	}
}

func TestInvalidBatch(t *testing.T) {
	s := openTest(t, Options{})
	body := func(b string) Batch {
		return Batch{Events: []Event{event("good"), {ID: "i", Kind: "k", Body: []byte(b)}}}
	}
	long := strings.Repeat("x", maxKey+1)
	for name, b := range map[string]Batch{
		"long body":  body(`{"event_id":"` + strings.Repeat("x", MaxBody) + `"}`),
		"no id":      {Events: []Event{{Kind: "k", Body: []byte(`{"event_id":"e"}`)}}},
		"no kind":    {Events: []Event{{ID: "e", Body: []byte(`{"event_id":"e"}`)}}},
		"no body":    body(""),
		"other key":  body(`{"sequence":1,"event_id":"e"}`),
		"cut":        body(`{"event_id":"e"`),
		"two":        body(`{"event_id":"e"}{"event_id":"f"}`),
		"two lines":  body("{\"event_id\":\"e\"\n}"),
		"return":     body("{\"event_id\":\"e\"\r}"),
		"event text": {Events: []Event{{ID: "e", Kind: "k", Agent: long, Body: []byte(`{"event_id":"e"}`)}}},
		"batch":      {DropAgents: make([]string, MaxBatch+1)},
		"state":      {Sources: []Source{{Path: "p", State: make([]byte, MaxState+1)}}},
		"mark":       {Sources: []Source{{Path: "p", Mark: make([]byte, MaxState+1)}}},
		"offset":     {Sources: []Source{{Path: "p", Offset: -1}}},
		"path":       {Sources: []Source{{}}},
		"agent":      {Agents: []Agent{{Name: "n"}}},
		"long path":  {Sources: []Source{{Path: long}}},
		"agent text": {Agents: []Agent{{ID: "a", CWD: long}}},
		"server key": {Servers: []Server{{Key: long}}},
		"server":     {Servers: []Server{{Slot: 1}}},
	} {
		if _, err := s.Commit(t.Context(), b); !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "xxx") {
			t.Errorf("%s: Commit: %.200v, want ErrInvalid", name, err)
		}
	}
	if p := page(t, s, Query{}); p.Latest != 0 || !s.Working() {
		t.Errorf("latest = %d, working %v, want 0, true", p.Latest, s.Working())
	}
}

// Whatever touches the events goes through a key: no statement walks the log.
func TestPlans(t *testing.T) {
	s := openTest(t, Options{})
	const byKey = "SEARCH events USING INTEGER PRIMARY KEY (rowid>"
	for _, tt := range []struct {
		query, want string
		args        int
	}{
		{sqlOldest, byKey, 1},
		{sqlPrune, byKey, 2},
		{sqlPage, byKey, 3},
		{sqlFiltered, byKey, 5},
		{sqlInsert, "SEARCH events USING COVERING INDEX sqlite_autoindex_events_1 (event_id=?)", 6},
	} {
		var plan []string
		rows, err := s.rdb.Query("EXPLAIN QUERY PLAN "+tt.query, []any{"x", 2, 3, "[]", "[]", "x"}[:tt.args]...)
		if err != nil {
			t.Fatalf("%s: %v", tt.query, err)
		}
		for rows.Next() {
			var id, parent, unused sql.RawBytes
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(plan, func(d string) bool { return strings.HasPrefix(d, tt.want) }) ||
			slices.ContainsFunc(plan, func(d string) bool {
				return strings.HasPrefix(d, "SCAN events") || strings.Contains(d, "TEMP B-TREE FOR ORDER")
			}) {
			t.Errorf("%s: plan %q, want %q", tt.query, plan, tt.want)
		}
	}
}
