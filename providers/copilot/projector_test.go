package copilot

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"steno/observer/tail"
	"steno/providers"
	"steno/providers/providertest"
)

func project(p *projector, lines ...string) []providers.Draft {
	var out []providers.Draft
	for _, line := range lines {
		out = append(out, p.Project(providers.Record{Data: []byte(line)})...)
	}
	return out
}

const (
	promptLine = `{"type":"user.message","data":{"content":"go","interactionId":"i1"},"id":"u1"}`
	autoLine   = `{"type":"user.message","data":{"content":"go","interactionId":"i1","agentMode":"autopilot"},"id":"u1"}`
	modeLine   = `{"type":"session.mode_changed","data":{"previousMode":"plan","newMode":"autopilot"},"id":"y1"}`
	textLine   = `{"type":"assistant.message","data":{"content":"One.","toolRequests":[],"interactionId":"i1"},"id":"m1"}`
	endLine    = `{"type":"assistant.turn_end","data":{"turnId":"0"},"id":"e1"}`
	planLine   = `{"type":"tool.execution_start","data":{"toolName":"exit_plan_mode","toolCallId":"c1","arguments":{"summary":"x"}},"id":"t1"}`
)

func TestQuiet(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		held  bool
		want  time.Duration
	}{
		{"prompt", []string{promptLine}, false, 0},
		{"answer", []string{promptLine, textLine}, true, 0},
		{"end", []string{promptLine, textLine, endLine}, true, quiet},
		{"end without an answer", []string{promptLine, endLine}, false, 0},
		{"autopilot", []string{autoLine, textLine, endLine}, true, autopilotQuiet},
		{"autopilot from a plan", []string{promptLine, modeLine, textLine, endLine}, true, autopilotQuiet},
		{"autopilot left", []string{autoLine, strings.Replace(modeLine, `"newMode":"autopilot"`, `"newMode":"interactive"`, 1), textLine, endLine}, true, quiet},
		{"plan", []string{promptLine, planLine}, true, quiet},
	}
	for _, tt := range tests {
		p := newProjector(nil)
		project(p, tt.lines...)
		if p.Held() != tt.held || p.Quiet() != tt.want {
			t.Errorf("%s: Held = %v, Quiet = %v, want %v, %v", tt.name, p.Held(), p.Quiet(), tt.held, tt.want)
		}
	}
}

func TestReason(t *testing.T) {
	tests := []struct {
		class  string
		status int
		want   providers.Reason
	}{
		{"authentication", 401, providers.AuthenticationFailed},
		{"authentication", 0, providers.AuthenticationFailed},
		{"authorization", 403, providers.AuthenticationFailed},
		{"rate_limit", 429, providers.RateLimited},
		{"query", 429, providers.RateLimited},
		{"rate_limit", 0, providers.RateLimited},
		{"quota", 402, providers.UsageLimit},
		{"policy", 400, providers.PolicyBlocked},
		{"context_limit", 400, providers.ContextLimit},
		{"query", 400, providers.InvalidRequest},
		{"query", 404, providers.InvalidRequest},
		{"query", 500, providers.ProviderUnavailable},
		{"query", 529, providers.ProviderUnavailable},
		{"query", 0, providers.ProviderError},
		{"query", 403, providers.ProviderError},
		{"query", 600, providers.ProviderError},
		{"", 0, providers.ProviderError},
	}
	for _, tt := range tests {
		if got := reason(tt.class, tt.status); got != tt.want {
			t.Errorf("reason(%q, %d) = %q, want %q", tt.class, tt.status, got, tt.want)
		}
	}
}

func TestDrift(t *testing.T) {
	p := newProjector(nil)
	if got := p.Drift(); got != nil {
		t.Fatalf("Drift of nothing = %q", got)
	}
	project(p,
		promptLine, `{"type":"session.start","data":{}}`, `{"type":"model.response","data":{}}`,
		`{"type":"session.new_thing","data":{"text":"secret words"},"agentId":"g"}`, `{"type":"session.new_thing"}`,
		`{"type":"secret words"}`, `{"type":7}`, `{}`, `{"type":"`+strings.Repeat("x", 65)+`"}`, `{"type":"`+strings.Repeat("x", 4000)+`"}`,
		`{"type":"session.idle","data":{}}`, // never written by 1.0.102
		`{"type":"abort","data":{"reason":"user_abort"},"id":"a1"}`, `{"type":"abort","data":{"reason":"new_reason"},"id":"a2"}`,
		`{"type":"system.notification","data":{"kind":{"type":"agent_idle"}},"id":"n1"}`,
		`{"type":"system.notification","data":{"kind":{"type":"new_kind"}},"id":"n2"}`,
		`{"type":"human_response.recorded","data":{"response":{"responseKind":"new_form"}},"id":"h1"}`,
		`{"type":"user.message","data":{"delivery":"new_way"},"id":"u2"}`,
		`{"type":"session.mode_changed","data":{"previousMode":"x","newMode":"new_mode"},"id":"y1"}`,
		`{"type":"session.task_complete","data":{"outcome":"new_outcome","reason":"any"},"id":"k1"}`,
		`{"type":"permission.requested","data":{"permissionRequest":{"kind":"any","type":"any"}},"id":"h2"}`,
		`{"type":"tool.execution_complete","data":{"success":true,"result":{}},"id":"t1"}`)
	want := []string{"session.new_thing", "unreadable", "session.idle", "abort/new_reason", "system.notification/new_kind",
		"human_response.recorded/new_form", "user.message/new_way", "session.mode_changed/new_mode", "session.task_complete/new_outcome"}
	if got := p.Drift(); !reflect.DeepEqual(got, want) {
		t.Errorf("Drift = %q\nwant %q", got, want)
	}
	if got := p.Drift(); got != nil {
		t.Errorf("Drift again = %q", got)
	}
	for i := range 40 {
		project(p, fmt.Sprintf(`{"type":"new.%d"}`, i))
	}
	if got := p.Drift(); len(got) != maxDrift {
		t.Errorf("Drift has %d names, want %d", len(got), maxDrift)
	}
}

// Nothing that 1.0.102 wrote is drift.
func TestNoDriftInTheCorpus(t *testing.T) {
	for _, c := range providertest.Load(t, ID, corpus, nil) {
		if c.Name == "hand/odd-values" {
			continue
		}
		p := newProjector(nil)
		for _, r := range providertest.Split(c.Data) {
			p.Project(r)
		}
		if got := p.Drift(); got != nil {
			t.Errorf("%s: Drift = %q", c.Name, got)
		}
	}
}

// A time that cannot be written again, since in UTC its year has five digits,
// does not cost the state.
func TestTimeBeyondTheYears(t *testing.T) {
	p := newProjector(nil)
	project(p, `{"type":"session.start","data":{},"id":"s1","timestamp":"9999-12-31T23:59:59-23:59"}`, promptLine)
	if turn := newProjector(p.State()).Turn(); turn.ID != "i1" || turn != p.Turn() {
		t.Errorf("turn read back from the state = %v, want %v", turn, p.Turn())
	}
}

// The longest ids that are accepted, in every place, fit into the state; longer
// ones are none.
func TestStateBound(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, maxID) }
	p := newProjector(nil)
	for i := range 3 * maxSeen {
		project(p, fmt.Sprintf(`{"type":"session.resume","id":"%s%03d"}`, strings.Repeat("r", maxID-3), i))
	}
	project(p, `{"type":"user.message","data":{"interactionId":"`+long("i")+`"},"id":"`+long("u")+`"}`, endLine)
	p.Project(providers.Record{Gap: providers.Oversized})
	project(p, `{"type":"assistant.turn_start","data":{"interactionId":"`+long("j")+`"},"id":"`+long("s")+`"}`, modeLine,
		`{"type":"abort","id":"`+long("a")+`"}`, `{"type":"system.notification","id":"`+long("n")+`"}`)
	p.Lost, p.LostInteraction, p.LostOpen = long("l"), long("m"), true
	b := p.State()
	if len(b) > 2<<10 {
		t.Errorf("State has %d bytes", len(b))
	}
	again := newProjector(b)
	again.Version = 0
	if !reflect.DeepEqual(again.state, p.state) {
		t.Errorf("state read back = %+v\nwant %+v", again.state, p.state)
	}
	if p.state.Turn != long("j") || p.Notice != long("n") {
		t.Errorf("state = %+v", p.state)
	}
	got := project(newProjector(nil), `{"type":"user.message","data":{"interactionId":"`+long("i")+`x"},"id":"`+long("u")+`"}`)
	if len(got) != 2 || got[0].Turn != long("u") {
		t.Errorf("an interactionId over the bound: %v", got)
	}
}

// What waits is bounded, and is given.
func TestCallsAreBounded(t *testing.T) {
	p := newProjector(nil)
	n := len(project(p, promptLine))
	for i := range 3 * maxCalls {
		n += len(project(p, fmt.Sprintf(`{"type":"tool.execution_start","data":{"toolName":"exit_plan_mode","toolCallId":"c%d","arguments":{"summary":"x"}},"id":"t%d"}`, i, i)))
		if len(p.calls) > maxCalls {
			t.Fatalf("%d calls wait", len(p.calls))
		}
	}
	if n += len(p.Settle()); n != 2+3*maxCalls {
		t.Errorf("%d drafts", n)
	}
}

// A turn so long that the look-back does not reach its start: interactionId
// names it all the same.
func TestRewindGivesUp(t *testing.T) {
	p := newProjector(nil)
	var i int
	for done := false; !done; i++ {
		if i > 2*maxBack {
			t.Fatal("Rewind goes on for ever")
		}
		done = p.Rewind(providers.Record{Start: 1, Data: fmt.Appendf(nil, `{"type":"assistant.turn_start","data":{"interactionId":"i1"},"id":"s%d"}`, i)})
	}
	p.Rewound()
	q := newProjector(nil)
	q.Rewind(providers.Record{Start: 1, Data: []byte(endLine)})
	q.Rewound()
	if out := project(q, `{"type":"abort","id":"a1"}`); len(out) != 2 || out[0].Kind != providers.TurnFinal || out[0].Turn != "" {
		t.Errorf("abort of a turn that began before the look-back: %v", out)
	}
	if got, want := p.Turn(), (providers.Turn{ID: "i1", State: providers.WaitingOnAgent}); got != want || p.Held() {
		t.Errorf("Turn = %v, want %v", got, want)
	}
}

// /fork of 1.0.102: the copied events keep ids and times, session.start has new
// ones. What was copied is told in the session that it comes from; what follows
// is new even if the clock was set back meanwhile.
func TestFork(t *testing.T) {
	line := func(kind, id, at, data string) string {
		return `{"type":"` + kind + `","data":{` + data + `},"id":"` + id + `","timestamp":"2026-12-01T00:48:` + at + `Z"}`
	}
	lines := []string{
		line("session.start", "z1", "35.443", `"sessionId":"x","version":1`),
		line("session.model_change", "y1", "15.572", ``),
		line("user.message", "u1", "26.918", `"content":"go","interactionId":"i1"`),
		line("assistant.turn_start", "s1", "27.087", `"interactionId":"i1"`),
		line("tool.execution_start", "t1", "27.500", `"toolName":"exit_plan_mode","toolCallId":"c1","arguments":{"summary":"x"}`),
		line("session.error", "x1", "27.600", `"errorType":"query"`),
		line("assistant.message", "m1", "30.118", `"content":"One.","toolRequests":[],"interactionId":"i1"`),
		line("assistant.turn_end", "e1", "30.270", ``),
		line("session.info", "q1", "35.517", `"infoType":"fork"`),
		line("session.resume", "r1", "35.819", ``),
		line("user.message", "u2", "20.000", `"content":"next","interactionId":"i2"`),
		line("assistant.turn_start", "s2", "20.100", `"interactionId":"i2"`),
		line("assistant.message", "m2", "20.200", `"content":"Two.","toolRequests":[],"interactionId":"i2"`),
		line("assistant.turn_end", "e2", "20.300", ``),
	}
	want := []string{"u2/started i2", "u2/working i2", "m2/text i2", "m2/final i2", "m2/waiting i2"}
	for _, restarts := range []bool{false, true} {
		for silence := -1; silence < len(lines); silence++ {
			p := newProjector(nil)
			var got []string
			tell := func(drafts []providers.Draft) {
				for _, d := range drafts {
					got = append(got, d.Key+" "+d.Turn)
				}
			}
			for i, l := range lines {
				tell(project(p, l))
				if i == silence {
					tell(p.Settle())
				}
				if turn := p.Turn(); i == 9 && silence != 6 && turn != (providers.Turn{ID: "i1", State: providers.WaitingOnUser}) {
					t.Errorf("after the copy: Turn = %v", turn)
				}
				if restarts && !p.Held() {
					p = newProjector(p.State())
				}
			}
			if tell(p.Settle()); silence != 12 && !reflect.DeepEqual(got, want) { // at 6 and 12 the answer is not ended
				t.Errorf("silence after %d, restarts %v: %q, want %q", silence, restarts, got, want)
			}
		}
	}
}

// bigtext of 1.0.102: a line of 5.4 MB lay there as exactly 4 MiB, without its
// newline, for half a second. Until it is complete nothing comes of it; then it
// is a gap, and the final after it has its turn.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	big := `{"type":"assistant.message","data":{"content":"` + strings.Repeat("x", 5<<20) + `","toolRequests":[{}],"interactionId":"i1"},"id":"m0"}` + "\n"
	rest := `{"type":"assistant.turn_start","data":{"interactionId":"i1"},"id":"s2"}` + "\n" + textLine + "\n" + endLine + "\n"
	f, p := tail.New(path, tail.Mark{}), newProjector(nil)
	appendTo := func(s string) []providers.Draft {
		t.Helper()
		w, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(s); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var out []providers.Draft
		for {
			b, err := f.Read(256 << 10)
			if err != nil || b.Reset != providers.Same {
				t.Fatalf("Read = %v, %v", b.Reset, err)
			}
			for _, r := range b.Records {
				out = append(out, p.Project(r)...)
			}
			if !b.More {
				return out
			}
		}
	}
	start := int64(len(promptLine) + 1)
	if got := appendTo(promptLine + "\n"); len(got) != 2 {
		t.Fatalf("prompt: %d drafts", len(got))
	}
	if got := appendTo(big[:4<<20]); got != nil {
		t.Fatalf("4 MiB without an end: %d drafts", len(got))
	}
	if f.Offset() != start {
		t.Fatalf("Offset = %d inside the torn line, want %d", f.Offset(), start)
	}
	hole := providers.Record{Start: start, End: start + int64(len(big)), Gap: providers.Oversized}
	if got := appendTo(big[4<<20:]); len(got) != 1 || !reflect.DeepEqual(got[0], hole.Failure(ID)) {
		t.Fatalf("the rest of the line: %v", got)
	}
	got := append(appendTo(rest), p.Settle()...)
	var kinds []string
	for _, d := range got {
		kinds = append(kinds, string(d.Kind)+" "+d.Turn)
	}
	if want := []string{"assistant_message i1", "turn_final i1", "turn_state_changed i1"}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("after the gap: %q, want %q", kinds, want)
	}
}

// A torn line of exactly 4 MiB that is within the bound once it is complete is
// an event like any other.
func TestLongestLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	line := func(n int) string {
		return `{"type":"assistant.message","data":{"content":"` + strings.Repeat("x", n) + `","interactionId":"i1"},"id":"m0"}`
	}
	whole := line(providers.MaxRecord - len(line(0)))
	f, p := tail.New(path, tail.Mark{}), newProjector(nil)
	var got []providers.Draft
	for _, text := range []string{whole, whole + "\n"} { // the writer appends; the content is the same
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := f.Read(64 << 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Records {
			got = append(got, p.Project(r)...)
		}
	}
	if len(got) != 3 || got[2].Kind != providers.AssistantMessage || len(got[2].Text) != providers.MaxRecord-len(line(0)) {
		t.Errorf("%d drafts of a line of %d bytes", len(got), len(whole))
	}
}

// FuzzProject feeds any bytes as records, with silences and restarts.
func FuzzProject(f *testing.F) {
	for _, c := range providertest.Load(f, ID, corpus, nil) {
		if len(c.Data) < 20<<10 {
			f.Add(c.Data, uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := newProjector(nil)
		recs := providertest.Split(data)
		var drafts []providers.Draft
		for _, r := range recs {
			drafts = append(drafts, p.Project(r)...)
			if rnd.IntN(4) == 0 {
				drafts = append(drafts, p.Settle()...)
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
		if p.Held() || p.Quiet() != 0 {
			t.Fatal("something is held after Settle")
		}
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
		for _, name := range p.Drift() {
			if name == "" || len(name) > 64 || word(name) != name {
				t.Fatalf("Drift names %q", name)
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

// FuzzState gives the projector states that it did not write.
func FuzzState(f *testing.F) {
	p := newProjector(nil)
	project(p, promptLine, textLine, endLine)
	p.Settle()
	f.Add(p.State())
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newProjector(b)
		for _, d := range append(project(p, textLine, endLine, autoLine, modeLine, planLine), p.Settle()...) {
			if err := providertest.CheckDraft(d); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.State()); n > providers.StateMax {
			t.Fatalf("State has %d bytes", n)
		}
	})
}

// FuzzQuestion feeds any arguments of ask_user.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"message":"Which?","requestedSchema":{"type":"object","properties":{"x":{"type":"string","enum":["a","b"]}}}}`))
	f.Add([]byte(`{"question":"Sure?","choices":["Yes","No"],"allow_freeform":false}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := question("c1", b)
		if a == nil {
			return
		}
		d := providers.Draft{Key: "k", Kind: providers.ApprovalRequested, Approval: a}
		if err := providertest.CheckDraft(d); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzLog looks for the shown session in any bytes.
func FuzzLog(f *testing.F) {
	f.Add("2026-11-30T23:54:58.394Z [INFO] Registering foreground session: "+someID+"\n", 100)
	f.Fuzz(func(t *testing.T, text string, before int) {
		text = strings.Repeat("x", min(max(before, 0), 3*logBlock)) + "\n" + text
		if got := lastShown(strings.NewReader(text), int64(len(text))); got != "" && (!providers.IsUUID(got) || !strings.Contains(text, got)) {
			t.Fatalf("lastShown = %q", got)
		}
	})
}

func BenchmarkProject(b *testing.B) {
	data, err := os.ReadFile(corpus + "/tui1/" + someID + ".jsonl")
	if err != nil {
		b.Fatal(err)
	}
	recs := providertest.Split(data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		p := newProjector(nil)
		for _, r := range recs {
			p.Project(r)
		}
	}
}

// A turn that its program took out of the file ends, once, and only if it was
// open.
func TestReverted(t *testing.T) {
	start := func() *projector {
		p := Provider{}.Projector(providers.Artifact{}, nil).(*projector)
		p.Phase, p.state.Turn = open, "11111111-2222-4333-8444-555555555555"
		return p
	}
	p := start()
	got := p.Reverted(providers.Turn{ID: "earlier", State: providers.WaitingOnUser})
	if len(got) != 2 || got[0].Kind != providers.TurnFinal || got[0].Outcome != providers.Aborted || got[0].Turn != p.state.Turn || got[1].State != providers.WaitingOnUser {
		t.Errorf("drafts %+v", got)
	}
	if got := p.Reverted(providers.Turn{}); got != nil {
		t.Errorf("a turn that ended is taken back: %+v", got)
	}
	p = start()
	if got := p.Reverted(p.Turn()); got != nil {
		t.Errorf("a turn that is still there is taken back: %+v", got)
	}
}
