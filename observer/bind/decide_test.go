package bind

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"steno/providers"
)

// ago is a time before the decision.
func ago(d time.Duration) time.Time { return at.Add(-d) }

// ev makes evidence that tells no time.
func ev(rank providers.Rank, session, source string) providers.Evidence {
	return providers.Evidence{Rank: rank, Session: session, Source: source}
}

func when(e providers.Evidence, t time.Time) providers.Evidence { e.At = t; return e }

func refused(e providers.Evidence) providers.Evidence { e.Refused = "stale record"; return e }

func cand(pid int, list ...providers.Evidence) Candidate {
	return Candidate{Owner: Owner{Provider: "x", Process: providers.Process{PID: pid, StartTicks: uint64(pid) * 10, Started: ago(time.Hour)}}, Evidence: list}
}

func (c Candidate) remember(e providers.Evidence) Candidate { c.Remembered = &e; return c }

func (c Candidate) of(provider string) Candidate { c.Provider = provider; return c }

// Field list: F4, F6, F7, F9, F11, F19.
func TestDecide(t *testing.T) {
	t.Parallel()
	const none = "no usable evidence"
	exact, args, agree := ev(providers.Exact, "A", "record"), ev(providers.Arguments, "A", "args"), ev(providers.Agreement, "A", "directory")
	youngB := ev(providers.Young, "B", "log")
	for _, c := range []struct {
		name string
		in   []Candidate
		want []string // "pid: session rank source" or "pid: reason"
	}{
		{"nobody", nil, nil},
		{"no evidence", []Candidate{cand(1)}, []string{"1: nothing names one yet, as before a first prompt"}},
		{"exact", []Candidate{cand(1, exact)}, []string{"1: A 1 record"}},
		{"each rank", []Candidate{cand(1, ev(2, "B", "log")), cand(2, ev(3, "C", "args")), cand(3, ev(4, "D", "directory"))},
			[]string{"1: B 2 log", "2: C 3 args", "3: D 4 directory"}},
		{"refused", []Candidate{cand(1, refused(exact))}, []string{"1: " + none}},
		{"refused beside usable", []Candidate{cand(1, refused(exact), youngB)}, []string{"1: B 2 log"}},
		{"refused does not count against another process", []Candidate{cand(1, refused(exact)), cand(2, agree)}, []string{"1: " + none, "2: A 4 directory"}},
		{"ranks that are not used", []Candidate{cand(1, ev(0, "A", "x"), ev(5, "A", "bytes"), ev(9, "A", "x"), ev(1, "", "record"))}, []string{"1: " + none}},
		{"a stronger rank wins", []Candidate{cand(1, agree, args, youngB)}, []string{"1: B 2 log"}},
		{"two pieces, one session", []Candidate{cand(1, exact, ev(1, "A", "lock"), args)}, []string{"1: A 1 lock"}},

		{"two sessions for one process", []Candidate{cand(1, exact, ev(1, "B", "lock"))}, []string{"1: 2 sessions for one process at rank 1"}},
		{"a tie is not broken by weaker evidence", []Candidate{cand(1, exact, ev(1, "B", "lock"), ev(2, "B", "log"))}, []string{"1: 2 sessions for one process at rank 1"}},
		{"two sessions by one record without times", []Candidate{cand(1, agree, ev(4, "B", "directory"))}, []string{"1: 2 sessions for one process at rank 4"}},
		{"of one record the newest counts", []Candidate{cand(1, when(exact, ago(2)), when(ev(1, "B", "record"), ago(1)))}, []string{"1: B 1 record"}},
		{"of two records no time decides", []Candidate{cand(1, when(exact, ago(2)), when(ev(1, "B", "lock"), ago(1)))}, []string{"1: 2 sessions for one process at rank 1"}},
		{"one record, one time, two sessions", []Candidate{cand(1, when(exact, ago(1)), when(ev(1, "B", "record"), ago(1)))}, []string{"1: 2 sessions for one process at rank 1"}},
		{"a refused newer piece does not hide the older", []Candidate{cand(1, when(exact, ago(2)), refused(when(ev(1, "B", "record"), ago(1))))}, []string{"1: A 1 record"}},
		{"one source at two ranks", []Candidate{cand(1, when(exact, ago(2)), when(ev(4, "B", "record"), ago(1)))}, []string{"1: A 1 record"}},

		{"two processes for one session", []Candidate{cand(1, exact), cand(2, exact)},
			[]string{"1: 2 live processes name session A: 1, 2", "2: 2 live processes name session A: 1, 2"}},
		{"seven processes for one session", []Candidate{cand(7, args), cand(6, args), cand(5, args), cand(4, args), cand(3, args), cand(2, args), cand(1, args)},
			func() (out []string) {
				for i := 1; i <= 7; i++ {
					out = append(out, fmt.Sprintf("%d: 7 live processes name session A: 1, 2, 3, 4, 5, 6, 7", i))
				}
				return out
			}()},
		{"the stronger process wins", []Candidate{cand(1, agree), cand(2, exact)}, []string{"1: stronger evidence gives session A to process 2", "2: A 1 record"}},
		{"the loser does not fall back on weaker evidence", []Candidate{cand(1, args, ev(4, "B", "directory")), cand(2, exact)},
			[]string{"1: stronger evidence gives session A to process 2", "2: A 1 record"}},
		{"two stronger processes", []Candidate{cand(1, agree), cand(2, exact), cand(3, exact)},
			[]string{"1: stronger evidence gives session A to process 2, 3", "2: 2 live processes name session A: 2, 3", "3: 2 live processes name session A: 2, 3"}},
		{"a process with a tie still names both", []Candidate{cand(1, exact, ev(1, "B", "lock")), cand(2, exact), cand(3, ev(2, "B", "log"))},
			[]string{"1: 2 sessions for one process at rank 1", "2: 2 live processes name session A: 1, 2", "3: stronger evidence gives session B to process 1"}},
		{"what a process names below its best rank is no claim", []Candidate{cand(1, ev(1, "B", "record"), args), cand(2, args)}, []string{"1: B 1 record", "2: A 3 args"}},
		{"two sessions, two processes", []Candidate{cand(1, exact), cand(2, ev(1, "B", "record"))}, []string{"1: A 1 record", "2: B 1 record"}},
		{"one id, two programs", []Candidate{cand(1, exact), cand(2, exact).of("y")}, []string{"1: A 1 record", "2: A 1 record"}},
		{"the same candidate twice is one process", []Candidate{cand(1, exact), cand(1, exact)}, []string{"1: A 1 record"}},

		{"arguments that nothing newer contradicts", []Candidate{cand(1, args, when(ev(4, "B", "directory"), ago(2*time.Hour)))}, []string{"1: A 3 args"}},
		{"arguments lose to a newer session", []Candidate{cand(1, args, when(ev(4, "B", "directory"), ago(time.Minute)))}, []string{"1: B 4 directory"}},
		{"arguments lose to stronger evidence", []Candidate{cand(1, args, youngB)}, []string{"1: B 2 log"}},
		{"newer evidence for the same session keeps the arguments", []Candidate{cand(1, args, when(agree, ago(time.Minute)))}, []string{"1: A 3 args"}},

		{"remembered alone", []Candidate{cand(1).remember(youngB)}, []string{"1: B 2 log"}},
		{"remembered and refused now", []Candidate{cand(1, refused(exact)).remember(when(youngB, ago(time.Minute)))}, []string{"1: B 2 log"}},
		{"remembered with itself", []Candidate{cand(1, youngB).remember(youngB)}, []string{"1: B 2 log"}},
		{"remembered, confirmed by weaker evidence", []Candidate{cand(1, ev(3, "B", "args")).remember(youngB)}, []string{"1: B 2 log"}},
		{"remembered against weaker evidence", []Candidate{cand(1, when(args, ago(1))).remember(when(youngB, ago(time.Minute)))}, []string{"1: B 2 log"}},
		{"remembered against the same rank, newer", []Candidate{cand(1, when(ev(2, "C", "log"), ago(1))).remember(when(youngB, ago(2)))}, []string{"1: C 2 log"}},
		{"remembered against the same rank, older", []Candidate{cand(1, when(ev(2, "C", "log"), ago(3))).remember(when(youngB, ago(2)))}, []string{"1: B 2 log"}},
		{"remembered against the same rank, read now", []Candidate{cand(1, ev(2, "C", "log")).remember(when(youngB, ago(2)))}, []string{"1: C 2 log"}},
		{"remembered against the same rank and time", []Candidate{cand(1, when(ev(2, "C", "log"), ago(2))).remember(when(youngB, ago(2)))}, []string{"1: C 2 log"}},
		{"remembered against a stronger rank, older", []Candidate{cand(1, when(exact, ago(3))).remember(when(youngB, ago(2)))}, []string{"1: A 1 record"}},
		{"remembered is newer than the arguments", []Candidate{cand(1, args).remember(when(ev(4, "B", "directory"), ago(time.Minute)))}, []string{"1: B 4 directory"}},
		{"remembered does not settle a tie", []Candidate{cand(1, ev(2, "B", "log"), ev(2, "C", "other log")).remember(when(youngB, ago(2)))}, []string{"1: 2 sessions for one process at rank 2"}},
		{"remembered, and an agreement that names a second session", []Candidate{cand(1, agree, ev(4, "B", "directory")).remember(when(agree, ago(2)))}, []string{"1: A 4 directory"}},
		{"an agreement that names two others", []Candidate{cand(1, ev(4, "B", "directory"), ev(4, "C", "directory")).remember(when(agree, ago(2)))}, []string{"1: 2 sessions for one process at rank 4"}},
		{"the second session may be this process's, so it is nobody else's", []Candidate{cand(1, agree, ev(4, "B", "directory")).remember(when(agree, ago(2))), cand(2, ev(4, "B", "directory"))},
			[]string{"1: A 4 directory", "2: 2 live processes name session B: 1, 2"}},
		{"nor does it stand against stronger evidence", []Candidate{cand(1, agree, ev(4, "B", "directory")).remember(when(agree, ago(2))), cand(2, ev(1, "B", "record"))},
			[]string{"1: A 4 directory", "2: B 1 record"}},
		{"a stronger piece for the second session", []Candidate{cand(1, agree, ev(4, "B", "directory"), ev(2, "B", "log")).remember(when(agree, ago(2)))}, []string{"1: B 2 log"}},
		{"remembered by one, proved by another", []Candidate{cand(1).remember(youngB), cand(2, ev(1, "B", "record"))},
			[]string{"1: stronger evidence gives session B to process 2", "2: B 1 record"}},
		{"remembered by one, named as strongly by another", []Candidate{cand(1).remember(youngB), cand(2, youngB)},
			[]string{"1: 2 live processes name session B: 1, 2", "2: 2 live processes name session B: 1, 2"}},
		{"a session that moved on to another process", []Candidate{cand(1, when(ev(2, "C", "log"), ago(1))).remember(when(youngB, ago(2))), cand(2, youngB)},
			[]string{"1: C 2 log", "2: B 2 log"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var first []Match
			for i := range 50 {
				in := slices.Clone(c.in)
				rng := rand.New(rand.NewPCG(uint64(i), 2))
				rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
				for k := range in {
					in[k].Evidence = slices.Clone(in[k].Evidence)
					e := in[k].Evidence
					rng.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
				}
				out := Decide(in)
				var got []string
				for _, m := range out {
					text := fmt.Sprintf("%d: %s %d %s", m.PID, m.Session, m.Rank, m.Source)
					if !m.Bound {
						text = fmt.Sprintf("%d: %s", m.PID, m.Reason)
					}
					got = append(got, text)
					checkMatch(t, m)
				}
				if !slices.Equal(got, c.want) {
					t.Fatalf("Decide = %q, want %q", got, c.want)
				}
				if i == 0 {
					first = out
				} else if !reflect.DeepEqual(out, first) {
					t.Fatalf("another order gives %+v, first %+v", out, first)
				}
			}
		})
	}
}

// checkMatch checks what holds for every decision.
func checkMatch(t *testing.T, m Match) {
	t.Helper()
	if m.Bound != (m.Reason == "") || m.Bound != (m.Session != "") || m.Bound != (m.Rank != 0) {
		t.Errorf("bound %v, reason %q, session %q, rank %d", m.Bound, m.Reason, m.Session, m.Rank)
	}
	accepted := 0
	for _, r := range m.Rows {
		if r.Accepted != (r.Reason == "") {
			t.Errorf("row %+v", r)
		}
		if r.Accepted {
			accepted++
			if r.Evidence.Session != m.Session {
				t.Errorf("row of session %q is accepted for %q", r.Evidence.Session, m.Session)
			}
		}
	}
	if (accepted > 0) != m.Bound {
		t.Errorf("%d rows accepted, bound %v", accepted, m.Bound)
	}
}

// Random evidence keeps the rules that do not depend on the case.
func TestDecideRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		piece := func() providers.Evidence {
			e := ev(providers.Rank(rng.IntN(5)), string(rune('A'+rng.IntN(3))), string(rune('p'+rng.IntN(2))))
			if rng.IntN(2) == 0 {
				e.At = ago(time.Duration(rng.IntN(4)) * time.Minute)
			}
			if rng.IntN(6) == 0 {
				e = refused(e)
			}
			return e
		}
		var in []Candidate
		for pid := 1; pid <= 1+rng.IntN(4); pid++ {
			c := cand(pid)
			for range rng.IntN(5) {
				c.Evidence = append(c.Evidence, piece())
			}
			if rng.IntN(3) == 0 {
				c = c.remember(piece())
			}
			in = append(in, c)
		}
		out := Decide(in)
		if len(out) != len(in) {
			t.Fatalf("seed %d: %d decisions for %d processes", seed, len(out), len(in))
		}
		bound := map[string]int{}
		for i, m := range out {
			checkMatch(t, m)
			if len(m.Rows) != len(in[i].Evidence)+yes(in[i].Remembered != nil) {
				t.Fatalf("seed %d: %d rows", seed, len(m.Rows))
			}
			if !m.Bound {
				continue
			}
			if other, twice := bound[m.Session]; twice {
				t.Fatalf("seed %d: session %s bound to %d and %d", seed, m.Session, other, m.PID)
			}
			bound[m.Session] = m.PID
		}
		slices.Reverse(in)
		if again := Decide(in); !reflect.DeepEqual(out, again) {
			t.Fatalf("seed %d: order matters:\n%+v\n%+v", seed, out, again)
		}
	}
}

// Field list: G11.
func TestMatchDetails(t *testing.T) {
	t.Parallel()
	record := providers.Evidence{Rank: 1, Session: "A", Source: "record", Activity: providers.Waiting, Waiting: "permission prompt", Since: ago(time.Minute)}
	located := providers.Evidence{Rank: 4, Session: "A", Source: "directory", Path: "/p/A.jsonl"}
	old := providers.Evidence{Rank: 1, Session: "A", Source: "record", Path: "/old/A.jsonl", Activity: providers.Busy, Since: ago(time.Second)}
	other := providers.Evidence{Rank: 4, Session: "B", Source: "directory"}

	m := Decide([]Candidate{cand(1, other, located, record).remember(old)})[0]
	want := Match{
		PID: 1, StartTicks: 10, Provider: "x", Bound: true, Session: "A", Path: "/p/A.jsonl", Rank: 1, Source: "record",
		Activity: providers.Waiting, Waiting: "permission prompt", Since: ago(time.Minute),
		Rows: []Row{
			{Evidence: record, Accepted: true},
			{Evidence: old, Remembered: true, Accepted: true},
			{Evidence: located, Accepted: true},
			{Evidence: other, Reason: "weaker than the evidence for another session"},
		},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("Decide =\n%+v, want\n%+v", m, want)
	}
	if m := Decide([]Candidate{cand(1, record).remember(old)})[0]; m.Path != "/old/A.jsonl" || m.Activity != providers.Waiting {
		t.Errorf("path %q, activity %q: a remembered path counts when none is known, a status never", m.Path, m.Activity)
	}

	// Two files that call themselves one session.
	file := func(path string, t time.Time) providers.Evidence {
		return providers.Evidence{Rank: 1, Session: "A", Source: path, Path: path, At: t}
	}
	for _, c := range []struct {
		a, b providers.Evidence
		want string
	}{
		{file("/1", time.Time{}), file("/2", time.Time{}), ""},
		{file("/1", ago(1)), file("/2", ago(1)), ""},
		{file("/1", ago(1)), file("/2", ago(2)), "/1"},
		{file("/1", ago(2)), file("/2", ago(1)), "/2"},
		{file("/1", time.Time{}), file("/1", time.Time{}), "/1"},
	} {
		m := Decide([]Candidate{cand(1, c.a, c.b)})[0]
		if m.Path != c.want || m.Bound != (c.want != "") {
			t.Errorf("%v, %v: path %q, bound %v (%s), want %q", c.a, c.b, m.Path, m.Bound, m.Reason, c.want)
		}
	}
	// What was refused on its own keeps its reason when all is refused.
	for _, r := range Decide([]Candidate{cand(1, refused(record), ev(1, "A", "x"), ev(1, "B", "y"))})[0].Rows {
		want := "2 sessions for one process at rank 1"
		if r.Evidence.Refused != "" {
			want = "stale record"
		}
		if r.Reason != want || r.Accepted {
			t.Errorf("%+v: want %q", r, want)
		}
	}
	// Only what is read now and of the best rank names files that can contradict.
	first := file("/p/A.jsonl", time.Time{})
	weak, no := file("/q/A.jsonl", time.Time{}), file("", time.Time{})
	weak.Rank = providers.Agreement
	for _, more := range [][]providers.Evidence{{weak}, {no}, {weak, no}, {refused(file("/r/A.jsonl", time.Time{}))}} {
		if m := Decide([]Candidate{cand(1, append(more, first)...).remember(old)})[0]; m.Path != "/p/A.jsonl" {
			t.Errorf("beside %v: path %q, bound %v (%s)", more, m.Path, m.Bound, m.Reason)
		}
	}
}
