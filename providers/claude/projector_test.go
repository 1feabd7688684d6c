package claude

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

// chain makes a transcript of one long turn: a prompt, n tool calls with their
// results, an answer. Chains with other salts have other ids.
func chain(salt, n int) []byte {
	var b bytes.Buffer
	at, parent := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC), "null"
	put := func(kind, rest string) {
		at = at.Add(time.Second)
		uuid := fmt.Sprintf(`"%08x-0000-4000-8000-%012x"`, b.Len(), salt)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"type":"%s",%s,"uuid":%s,"timestamp":"%s","promptId":"p1"}`+"\n",
			parent, kind, rest, uuid, at.Format(time.RFC3339Nano))
		parent = uuid
	}
	put("user", `"promptSource":"typed","message":{"role":"user","content":"go"}`)
	for i := range n {
		put("assistant", fmt.Sprintf(`"message":{"id":"m%d","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{}}]}`, i, i))
		put("user", fmt.Sprintf(`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"x"}]}`, i))
	}
	put("assistant", `"message":{"id":"last","stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}`)
	put("system", `"subtype":"turn_duration"`)
	return b.Bytes()
}

// A turn longer than all of the projector's memory keeps its identity, over
// restarts and when observation begins inside it.
func TestLongTurn(t *testing.T) {
	c := providertest.Case{Name: "long", Data: append(chain(1, 5), chain(2, 300)...)}
	providertest.Run(t, Provider{}, []providertest.Case{c})
	drafts := providertest.Drafts(providertest.Play(newProjector(nil), providertest.Split(c.Data), providertest.Script{End: true}))
	last := drafts[len(drafts)-2]
	start := drafts[len(drafts)-5] // start, state, message, final, state
	if last.Kind != providers.TurnFinal || start.Kind != providers.TurnStarted || last.Text != "done" || last.Turn != start.Turn {
		t.Errorf("final = %s, want that of turn %s", providertest.Format(last), start.Turn)
	}
}

// Rewind stops soon after it knows enough: its cost does not grow with the
// transcript.
func TestRewindIsBounded(t *testing.T) {
	one := chain(0, 40)
	recs := providertest.Split(bytes.Repeat(one, 50))
	p, n := newProjector(nil), 0
	for i := len(recs) - 1; i >= 0; i-- {
		n++
		if p.Rewind(recs[i]) {
			break
		}
	}
	p.Rewound()
	if most := len(providertest.Split(one)) + pastBack + 1; n > most {
		t.Errorf("Rewind took %d records, want at most %d", n, most)
	}
	if turn := p.Turn(); turn.ID == "" || turn.State != providers.WaitingOnUser {
		t.Errorf("Turn = %v", turn)
	}
}

// The program writes the records of the first turn in any order: each order
// gives the same drafts, also over restarts.
func TestEveryOrderOfTheFirstBatch(t *testing.T) {
	tests := []struct {
		file string
		recs []int // the records with a uuid, in logical order
	}{
		{"t-out-of-order-first-turn-2/b349ead7-f1a9-4ae3-b90e-c444c6b285df", []int{7, 8, 9, 4, 5}},
		{"t-hooks/7f74c14c-9ba5-486a-b884-5809eb043553", []int{7, 8, 9, 10, 4, 5}},
		{"t-perm/04d5e0c5-df3d-4dab-90cd-310081f45c9c", []int{4, 5, 6, 7, 9, 10, 11}},
		{"t-plan-pending/6b11a709-55ce-40ae-a4d7-fdb5241cb4c5", []int{5, 6, 7, 8, 9, 10}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			data, err := os.ReadFile(corpus + "/" + tt.file + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			file := providertest.Split(data)
			var recs []providers.Record
			for _, i := range tt.recs {
				recs = append(recs, file[i])
			}
			want := play(recs)
			if len(want) < 3 {
				t.Fatalf("%d drafts in logical order", len(want))
			}
			orders, all := map[string]bool{}, 1
			for n := range recs {
				all *= n + 1
			}
			permute(recs, len(recs), func() {
				orders[order(recs)] = true
				if got := play(recs); !reflect.DeepEqual(got, want) {
					t.Fatalf("another order gives\n%s\nwant\n%s", lines(got), lines(want))
				}
			})
			if len(orders) != all {
				t.Errorf("%d orders were tried, want %d", len(orders), all)
			}
		})
	}
}

// What is written before the prompt is taken after a silence, over restarts and
// when observation begins behind it: it and what hangs off it is the turn's.
func TestResultsBeforeTheirTurn(t *testing.T) {
	tests := []struct {
		file  string
		early int // records before the prompt
	}{
		{"t-result-before-its-turn-pending/917227b1-a433-493d-a03c-89aa158120f3", 7},
		{"hand/results-before-prompt", 2},
		{"hand/result-never-called", 1},
		{"hand/results-before-their-calls", 2},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			data, err := os.ReadFile(corpus + "/" + tt.file + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			recs := providertest.Split(data)
			want := play(recs)
			if len(want) < 3 || want[0].Kind != providers.TurnStarted {
				t.Fatalf("without a silence\n%s", lines(want))
			}
			for _, d := range want {
				if d.Turn != want[0].Turn {
					t.Errorf("not of the turn: %s", providertest.Format(d))
				}
			}
			for n := range tt.early {
				p := newProjector(nil)
				for _, r := range recs[:n+1] {
					if out := append(p.Project(r), p.Settle()...); len(out) > 0 {
						t.Fatalf("before the prompt\n%s", lines(out))
					}
					p = newProjector(p.State())
				}
				if got := goOn(p, recs[n+1:]); !reflect.DeepEqual(got, want) {
					t.Errorf("silences up to record %d, and restarts, give\n%s\nwant\n%s", n, lines(got), lines(want))
				}
				back := newProjector(nil)
				for i := n; i >= 0 && !back.Rewind(recs[i]); i-- {
				}
				back.Rewound()
				if got := goOn(back, recs[n+1:]); !reflect.DeepEqual(got, want) {
					t.Errorf("observation from record %d gives\n%s\nwant\n%s", n+1, lines(got), lines(want))
				}
			}
		})
	}
}

// Of more missing parents than are remembered, the oldest are given up.
func TestMissingParentsAreBounded(t *testing.T) {
	p := newProjector(nil)
	const more = 3
	for i := range maxOrphans + more {
		p.Project(providers.Record{Data: fmt.Appendf(nil, `{"parentUuid":"c%d","uuid":"r%d","type":"attachment"}`, i, i)})
		p.Settle()
		if len(p.orphans) > maxOrphans {
			t.Fatalf("%d missing parents are remembered", len(p.orphans))
		}
		p = newProjector(p.State())
	}
	for _, prompt := range []string{"p", "q"} {
		p.Project(providers.Record{Data: fmt.Appendf(nil, `{"parentUuid":null,"uuid":"%s","type":"user","promptSource":"typed","message":{"content":"x"}}`, prompt)})
	}
	for i := range maxOrphans + more {
		p.Project(providers.Record{Data: fmt.Appendf(nil, `{"parentUuid":"q","uuid":"c%d","type":"attachment"}`, i)})
		out := p.Project(providers.Record{Data: fmt.Appendf(nil, `{"parentUuid":"r%d","uuid":"a%d","type":"assistant","message":{"id":"m%d","stop_reason":"tool_use","content":[{"type":"text","text":"x"}]}}`, i, i, i)})
		want := "q"
		if i < more {
			want = ""
		}
		if len(out) != 1 || out[0].Turn != want {
			t.Errorf("record %d\n%s\nwant a message of turn %q", i, lines(out), want)
		}
	}
	if len(p.orphans) != 0 {
		t.Errorf("%d missing parents are left", len(p.orphans))
	}
}

func order(recs []providers.Record) string {
	var b strings.Builder
	for _, r := range recs {
		fmt.Fprint(&b, r.Start, " ")
	}
	return b.String()
}

func play(recs []providers.Record) []providers.Draft { return goOn(newProjector(nil), recs) }

func goOn(p *projector, recs []providers.Record) []providers.Draft {
	var out []providers.Draft
	for _, r := range recs {
		out = append(out, p.Project(r)...)
		if !p.Held() {
			p = newProjector(p.State())
		}
	}
	return append(out, p.Settle()...)
}

func lines(drafts []providers.Draft) string {
	var b strings.Builder
	for _, d := range drafts {
		b.WriteString(providertest.Format(d) + "\n")
	}
	return b.String()
}

func permute(recs []providers.Record, n int, f func()) {
	if n == 1 {
		f()
		return
	}
	for i := range n {
		permute(recs, n-1, f)
		j := 0
		if n%2 == 0 {
			j = i
		}
		recs[j], recs[n-1] = recs[n-1], recs[j]
	}
}

// What waits for a parent that never comes is bounded, and every record of it
// is given.
func TestWaitingIsBounded(t *testing.T) {
	recs := providertest.Split(chain(0, 500))
	p := newProjector(nil)
	texts := 0
	for i, r := range recs[1:] {
		texts += len(p.Project(r))
		if len(p.waiting) > maxWaiting {
			t.Fatalf("record %d: %d records wait", i, len(p.waiting))
		}
	}
	texts += len(p.Settle())
	if texts == 0 || p.Held() {
		t.Errorf("%d drafts, held %v", texts, p.Held())
	}
}

func TestQuiet(t *testing.T) {
	const (
		head     = `{"parentUuid":null,"type":"assistant","uuid":"a","message":{"id":"m","stop_reason":`
		orphaned = `{"parentUuid":"z","type":"attachment","uuid":"a"}`
	)
	tests := []struct {
		name, records string
		want          time.Duration
	}{
		{"final", head + `"end_turn","content":[{"type":"text","text":"x"}]}}`, finalQuiet},
		{"no stop_reason", head + `null,"content":[{"type":"text","text":"x"}]}}`, textQuiet},
		{"thinking", head + `"end_turn","content":[{"type":"thinking","thinking":"x"}]}}`, 0},
		{"tool", head + `"tool_use","content":[{"type":"text","text":"x"}]}}`, 0},
		{"white space", head + `"end_turn","content":[{"type":"text","text":" \n"}]}}`, 0},
		{"partial", `{"parentUuid":null,"type":"assistant","uuid":"a","message":{"id":"m","model":"<synthetic>","content":[{"type":"text","text":"x"}]}}`, textQuiet},
		{"no parent", orphaned, promptQuiet},
		{"no parent, and a prompt", `{"parentUuid":null,"type":"user","promptSource":"typed","uuid":"p","message":{"content":"x"}}` + "\n" + orphaned, parentQuiet},
		{"no parent, nor has the prompt", orphaned + "\n" + `{"parentUuid":"y","type":"user","promptSource":"typed","uuid":"p","message":{"content":"x"}}`, parentQuiet},
		{"no parent after a gap", "?\n" + orphaned, parentQuiet},
	}
	for _, tt := range tests {
		p := newProjector(nil)
		for _, r := range providertest.Split([]byte(tt.records + "\n")) {
			p.Project(r)
		}
		if got := p.Quiet(); got != tt.want || p.Held() != (tt.want > 0) {
			t.Errorf("%s: Quiet = %v, Held = %v, want %v", tt.name, got, p.Held(), tt.want)
		}
	}
}

func TestReason(t *testing.T) {
	tests := []struct {
		class, stop string
		status      int
		text        string
		want        providers.Reason
	}{
		{"rate_limit", "", 429, "", providers.RateLimited},
		{"unknown", "", 429, "", providers.RateLimited},
		{"server_error", "", 500, "", providers.ProviderUnavailable},
		{"server_error", "", 529, "", providers.ModelAtCapacity},
		{"server_error", "", 0, "API Error: Repeated 529 Overloaded errors.", providers.ModelAtCapacity},
		{"authentication_failed", "", 401, "", providers.AuthenticationFailed},
		{"invalid_request", "", 400, "Prompt is too long · the request", providers.ContextLimit},
		{"invalid_request", "", 400, "", providers.InvalidRequest},
		{"unknown", "", 400, "", providers.InvalidRequest},
		{"invalid_request", "refusal", 0, "", providers.PolicyBlocked},
		{"unknown", "", 0, "the number 529", providers.ProviderError},
		{"", "", 503, "", providers.ProviderUnavailable},
		{"new_class", "", 0, "", providers.ProviderError},
	}
	for _, tt := range tests {
		if got := reason(tt.class, tt.stop, tt.status, []byte(tt.text)); got != tt.want {
			t.Errorf("reason(%q, %q, %d, %q) = %q, want %q", tt.class, tt.stop, tt.status, tt.text, got, tt.want)
		}
	}
}

func TestInputHash(t *testing.T) {
	plain := inputHash("a\nb")
	for _, same := range []string{
		"<pasted_content id=\"1\">\na\nb\n</pasted_content id=\"1\">",
		"<pasted_content id=\"1\">\na\nb\n</pasted_content>",
		" a\nb\n",
	} {
		if inputHash(same) != plain {
			t.Errorf("inputHash(%q) differs from that of its content", same)
		}
	}
	for _, other := range []string{
		"before <pasted_content id=\"1\">a\nb</pasted_content id=\"1\">",
		"<pasted_content id=\"1\">a\nb</pasted_content id=\"2\">",
		"<pasted_content id=\"1\">a</pasted_content id=\"1\"><pasted_content id=\"2\">b</pasted_content id=\"1\">",
	} {
		if inputHash(other) == plain {
			t.Errorf("inputHash(%q) is that of another text", other)
		}
	}
	if inputHash("") != "" {
		t.Error("an empty prompt has a hash")
	}
}

// The texts of one message are kept for its final up to a bound; all of them
// are given as messages.
func TestTextsOfOneMessageAreBounded(t *testing.T) {
	p := newProjector(nil)
	size, parent := 3<<20, "null"
	for i := range 4 {
		text := strings.Repeat(fmt.Sprint(i), size)
		out := p.Project(providers.Record{Data: fmt.Appendf(nil, `{"uuid":"u%d","parentUuid":%s,"type":"assistant","message":{"id":"m","stop_reason":"end_turn","content":[{"type":"text","text":"%s"}]}}`, i, parent, text)})
		if len(out) != 1 || out[0].Text != text {
			t.Fatalf("record %d: %d drafts", i, len(out))
		}
		parent = fmt.Sprintf(`"u%d"`, i)
	}
	out := p.Settle()
	if want := 2*size + 1; len(out) != 2 || len(out[0].Text) != want {
		t.Errorf("final has %d bytes, want %d", len(out[0].Text), want)
	}
}

// Commands that nobody answers do not push the newest turn out of the memory.
func TestCommandsDoNotHideTheTurn(t *testing.T) {
	p := newProjector(nil)
	p.Project(providers.Record{Data: []byte(`{"uuid":"u","parentUuid":null,"type":"user","promptSource":"typed","message":{"content":"x"}}`)})
	want := p.Turn()
	for i := range 3 * maxTurns {
		p.Project(providers.Record{Data: fmt.Appendf(nil, `{"uuid":"e%d","parentUuid":"u","type":"user","message":{"content":"<command-name>/cost</command-name>"}}`, i)})
		if got := p.Turn(); got != want || want.ID != "u" {
			t.Fatalf("after %d commands: Turn = %v, want %v", i+1, got, want)
		}
	}
}

// Observation begins so late that the end of the turn before the newest one is
// seen without its beginning: it ends nothing of the newest.
func TestRewindIntoAnOlderTurn(t *testing.T) {
	var b strings.Builder
	put := func(uuid, parent, rest string) {
		fmt.Fprintf(&b, `{"uuid":"%s","parentUuid":%s,"timestamp":"2026-11-30T10:00:00Z",%s}`+"\n", uuid, parent, rest)
	}
	put("p0", "null", `"type":"user","promptSource":"typed","message":{"content":"one"}`)
	for i := range 2 * pastBack {
		parent := `"p0"`
		if i > 0 {
			parent = fmt.Sprintf(`"a%d"`, i-1)
		}
		put(fmt.Sprintf("a%d", i), parent, `"type":"attachment"`)
	}
	put("s0", fmt.Sprintf(`"a%d"`, 2*pastBack-1), `"type":"assistant","message":{"id":"m","stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}`)
	put("d0", `"s0"`, `"type":"system","subtype":"turn_duration"`)
	put("p1", "null", `"type":"user","promptSource":"typed","message":{"content":"two"}`)
	put("t1", `"p1"`, `"type":"assistant","message":{"id":"n","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}`)
	providertest.Run(t, Provider{}, []providertest.Case{{Name: "two roots", Data: []byte(b.String())}})
}

// The longest ids that are accepted, in every place, fit into the state.
func TestStateBound(t *testing.T) {
	long := func(c byte, n int) string { return fmt.Sprintf("%04d", n) + strings.Repeat(string(c), maxID-4) }
	p := newProjector(nil)
	at := time.Date(2026, 11, 30, 10, 0, 0, 123456789, time.UTC)
	p.Next = 1<<32 - 100
	for i := range maxTurns + 3 {
		turn := p.add(turn{ID: long('t', i), Prompt: long('p', i), Parent: 1<<64 - 1, At: at, Phase: closed, Notice: true, Answered: true, Resumed: 1<<64 - 1})
		p.Current = turn.Serial
	}
	for i := range maxSeen + 5 {
		rec := record{uuid: long('r', i), class: result}
		if i%10 == 0 {
			rec.missing = uint64(i) + 1<<63
		}
		p.see(rec, p.Current)
	}
	p.Holed, p.Lost = true, p.Turns[0]
	p.Nobody = turn{Phase: closed, Answered: true, Resumed: 1<<64 - 1}
	p.Last = message{ID: long('m', 0), Turn: p.Current, Stop: long('s', 0), Record: long('r', 0), At: at, Text: true, Tool: true}
	b := p.State()
	if len(b) > providers.StateMax {
		t.Errorf("State has %d bytes, want at most %d", len(b), providers.StateMax)
	}
	t.Logf("longest state: %d bytes", len(b))
	again := newProjector(b)
	if again.Turn() != p.Turn() || !reflect.DeepEqual(again.seen, p.seen) || !reflect.DeepEqual(again.Turns, p.Turns) || !reflect.DeepEqual(again.orphans, p.orphans) {
		t.Error("the longest state is not read back")
	}
}

// A time that cannot be written again, since in UTC its year has five digits,
// does not cost the state.
func TestTimeBeyondTheYears(t *testing.T) {
	p := newProjector(nil)
	for _, r := range providertest.Split(bytes.ReplaceAll(chain(1, 1), []byte("2026-11-30T10:00:01Z"), []byte("9999-12-31T23:59:59-23:59"))) {
		p.Project(r)
		if turn := newProjector(p.State()).Turn(); turn.ID == "" || turn != p.Turn() {
			t.Fatalf("turn read back from the state = %v, want %v", turn, p.Turn())
		}
	}
}

// FuzzProject feeds any bytes as records, with silences and restarts.
func FuzzProject(f *testing.F) {
	for _, name := range []string{"hand/gap-same-prompt-id", "hand/commands", "hand/no-stop-reason", "hand/notifications-together", "hand/supersede-late-final", "hand/partial-text", "hand/partial-text-not-proved"} {
		data, err := os.ReadFile(corpus + "/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint64(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := newProjector(nil)
		recs := providertest.Split(data)
		var drafts []providers.Draft
		for _, r := range recs {
			drafts = append(drafts, p.Project(r)...)
			switch rnd.IntN(4) {
			case 0:
				drafts = append(drafts, p.Settle()...)
			case 1:
				drafts = append(drafts, p.Idle(time.Unix(1, 0))...)
			}
			if n := len(p.State()); n > providers.StateMax {
				t.Fatalf("State has %d bytes", n)
			}
			if !p.Held() && rnd.IntN(2) == 0 {
				turn := p.Turn()
				if p = newProjector(p.State()); p.Turn() != turn {
					t.Fatalf("Turn after a restart = %v, want %v", p.Turn(), turn)
				}
			}
		}
		drafts = append(drafts, p.Settle()...)
		for _, d := range drafts {
			if err := providertest.CheckDraft(d); err != nil {
				t.Fatal(err)
			}
		}
		if len(recs) <= maxSeen {
			if err := providertest.CheckOrder(drafts); err != nil {
				t.Fatal(err)
			}
		}
		back := newProjector(nil)
		for i := len(recs) - 1; i >= 0 && !back.Rewind(recs[i]); i-- {
		}
		back.Rewound()
		if back.Held() || len(back.State()) > providers.StateMax {
			t.Fatal("rewound: something is held, or the state is too long")
		}
	})
}

func BenchmarkProject(b *testing.B) {
	var all []byte
	for _, name := range []string{"t-comp/0e784dca-98e7-42ca-98c6-d8a561662098", "t-agent/68bfd5af-1af0-4893-b41f-973ee8fbb35a"} {
		data, err := os.ReadFile(corpus + "/" + name + ".jsonl")
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, data...)
	}
	big := []byte(`{"parentUuid":null,"isSidechain":false,"type":"user","uuid":"big","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` +
		strings.Repeat(`line of output \"quoted\"\n`, 40_000) + `"}]}}` + "\n")
	for name, data := range map[string][]byte{"turns": all, "output": big} {
		b.Run(name, func(b *testing.B) {
			recs := providertest.Split(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p := newProjector(nil)
				for _, r := range recs {
					p.Project(r)
				}
			}
		})
	}
}
