package gemini

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

var mainArtifact = providers.Artifact{Provider: ID, Path: "/h/.gemini/tmp/work/chats/session-2026-11-30T10-00-65a45b4d.jsonl"}

// play projects lines and gives all drafts.
func play(p *projector, lines ...string) []providers.Draft {
	var out []providers.Draft
	for _, r := range providertest.Split([]byte(strings.Join(lines, "\n") + "\n")) {
		out = append(out, p.Project(r)...)
	}
	return out
}

func fresh() *projector { return newProjector(mainArtifact, nil, nil) }

func stamp(s float64) string {
	return time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second))).Format("2006-01-02T15:04:05.000Z")
}

func userLine(id string, at float64, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"user","content":[{"text":%q}]}`, id, stamp(at), text)
}

func geminiLine(id string, at float64, text, more string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"gemini","content":%q,"thoughts":[],"tokens":{"input":1},"model":"m"%s}`, id, stamp(at), text, more)
}

func replayLine(id string, at float64) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"gemini","content":[{"text":"again"}],"thoughts":[],"tokens":null}`, id, stamp(at))
}

const calls = `,"toolCalls":[{"id":"c1","name":"run_shell_command","args":{},"status":"success"}]`

func kinds(drafts []providers.Draft) string {
	var s []string
	for _, d := range drafts {
		k := string(d.Kind)
		if d.Kind == providers.TurnStateChanged {
			k = string(d.State)
		}
		if d.Completion != "" {
			k += ":" + d.Completion
		}
		s = append(s, k)
	}
	return strings.Join(s, " ")
}

// A history of thousands of messages that is written again repeats nothing, and
// neither do late forms of messages that are long forgotten.
func TestReplayOfLongHistory(t *testing.T) {
	const turns = 3000
	p := fresh()
	texts, at := 0, 1.0
	for i := range turns {
		texts += strings.Count(kinds(play(p, userLine(fmt.Sprintf("u%d", i), at, "go"), geminiLine(fmt.Sprintf("g%d", i), at+.1, "answer", ""))), "assistant_message")
		at++
	}
	if texts != turns {
		t.Fatalf("%d texts, want %d", texts, turns)
	}
	late := play(p, geminiLine("g0", 1.1, "answer", calls), geminiLine("g7", 8.1, "answer", ""), userLine(fmt.Sprintf("u%d", turns-1), at-1, "go"))
	if len(late) != 0 {
		t.Errorf("late forms of old messages gave %s", kinds(late))
	}
	var got []providers.Draft
	got = append(got, play(p, userLine("r", at, "<session_context>\nx"))...)
	list := []string{userLine("r", at, "<session_context>\nx")}
	for i := range turns {
		got = append(got, play(p, userLine(fmt.Sprintf("ru%d", i), at, "go"), replayLine(fmt.Sprintf("rg%d", i), at))...)
		list = append(list, strings.TrimSpace(userLine(fmt.Sprintf("ru%d", i), at, "go")), replayLine(fmt.Sprintf("rg%d", i), at))
		at += .001
	}
	if got = append(got, play(p, `{"$set":{"messages":[`+strings.Join(list, ",")+`]}}`)...); len(got) != 0 {
		t.Errorf("history written again gave %d drafts: %.200s", len(got), kinds(got))
	}
	if n := len(p.State()); n > providers.StateMax {
		t.Errorf("state has %d bytes", n)
	}
	if got := kinds(play(p, userLine("next", at+10, "go"))); got != "turn_final:recorded waiting_on_user turn_started waiting_on_agent" {
		t.Errorf("the next prompt gave %q", got)
	}
}

// The same with a record in the burst that is too long to read: what follows it
// is history all the same.
func TestReplayWithGap(t *testing.T) {
	p := fresh()
	play(p, userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""), userLine("r0", 9, "<session_context>"), replayLine("r1", 9))
	gap := providers.Record{Start: 1000, End: 9000000, Gap: providers.Oversized}
	if got := p.Project(gap); len(got) != 1 || got[0].Kind != providers.ObserverFailure {
		t.Fatalf("gap gave %s", kinds(got))
	}
	if got := play(p, userLine("r2", 9.01, "two"), replayLine("r3", 9.01)); len(got) != 0 {
		t.Errorf("history behind a gap gave %s", kinds(got))
	}
	p.Project(gap) // the list, as long as that
	if got := kinds(play(p, userLine("u2", 30, "three"))); got != "turn_started waiting_on_agent" {
		t.Errorf("the next prompt gave %q", got)
	}
}

// An answer that is held is not given because its calls could not be read.
func TestGapDropsHeldAnswer(t *testing.T) {
	p := fresh()
	play(p, userLine("u1", 1, "one"), geminiLine("g1", 2, "Reading.", ""))
	got := p.Project(providers.Record{Start: 1000, End: 9000000, Gap: providers.Oversized})
	if kinds(got) != "observer_failure" || p.Held() || p.Turn() != (providers.Turn{State: providers.Unknown}) {
		t.Errorf("gap gave %s, held %v, turn %v", kinds(got), p.Held(), p.Turn())
	}
	p.Project(providers.Record{Start: 9000000, End: 19000000, Gap: providers.Oversized})
	if got := kinds(play(p, geminiLine("g2", 9, "Read.", ""))); got != "assistant_message" {
		t.Errorf("the answer gave %q", got)
	}
	if got := p.Settle(); kinds(got) != "turn_final:settled waiting_on_user" || got[0].Turn != "" {
		t.Errorf("the end gave %s of turn %q", kinds(got), got[0].Turn)
	}
}

func TestStateBound(t *testing.T) {
	long := strings.Repeat("é", 5000)
	p := newProjector(mainArtifact, nil, func(_, _, _ string) string { return "plan" })
	for i := range 400 {
		id := fmt.Sprintf("%s-%d", long, i)
		play(p, fmt.Sprintf(`{"sessionId":%q,"projectHash":"0"}`, long), userLine(id, float64(i), "x"), geminiLine("g"+id, float64(i)+.5, "y", strings.ReplaceAll(calls, "run_shell_command", "exit_plan_mode")),
			fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"info","content":"Request cancelled."}`, "i"+id, stamp(float64(i))))
		if n := len(p.State()); n == 0 || n > providers.StateMax {
			t.Fatalf("state has %d bytes after %d turns", n, i)
		}
	}
	again := newProjector(mainArtifact, bytes.Clone(p.State()), nil)
	if again.Turn() != p.Turn() || again.Turn().ID == "" {
		t.Errorf("turn made again = %v, want %v", again.Turn(), p.Turn())
	}
	// Full of what is longest.
	s := state{Session: strings.Repeat("s", maxID), Last: strings.Repeat("l", maxID), Cancel: strings.Repeat("c", maxID),
		Replay: true, ReplayAt: time.Unix(1, 1).UTC(), Bare: true, Cut: true, CancelAt: time.Unix(1, 1).UTC(), CancelTold: true, Sub: true,
		Turn: turn{ID: strings.Repeat("t", maxID), Input: strings.Repeat("f", 64), At: time.Unix(1, 1).UTC(), Phase: failed}}
	for i := range seenKept {
		s.seen = append(s.seen, ^uint64(i))
	}
	b := s.save()
	var back state
	back.load(b)
	if len(b) > 2600 || !reflect.DeepEqual(back.seen, s.seen) || back.Turn != s.Turn {
		t.Errorf("a full state has %d bytes, and came back as %+v", len(b), back.Turn)
	}
}

func TestWaits(t *testing.T) {
	p := fresh()
	want := func(what string, held bool, quiet, look time.Duration) {
		t.Helper()
		if p.Held() != held || p.Quiet() != quiet || p.Look() != look {
			t.Errorf("%s: held %v, quiet %v, look %v; want %v, %v, %v", what, p.Held(), p.Quiet(), p.Look(), held, quiet, look)
		}
	}
	want("new", false, 0, 0)
	play(p, userLine("u1", 1, "one"))
	want("prompt", false, 0, 0)
	play(p, geminiLine("g1", 2, "One.", ""))
	want("answer", true, 0, lookEvery)
	play(p, geminiLine("g1", 2, "One.", calls))
	want("calls", false, 0, 0)
	play(p, `{"$set":{"messages":[],"lastUpdated":"`+stamp(3)+`"}}`)
	want("rollback", true, errorWait, lookEvery)
	p.Settle()
	want("settled", false, 0, 0)
	play(p, userLine("u2", 9, "two")) // the history has no context
	want("bare prompt", true, briefly, 0)
	if p.See(providers.Witness{At: time.Now(), Activity: providers.Idle}, time.Hour) != nil {
		t.Error("a look decided a prompt")
	}
}

// Two looks that both say idle count only if the state was not another one
// between them, and if they are two.
func TestSee(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 1, 0, 0, time.UTC)
	idle := func(n int, since time.Time) providers.Witness {
		return providers.Witness{At: at.Add(time.Duration(n) * time.Second), Activity: providers.Idle, Since: since}
	}
	p := fresh()
	play(p, userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""))
	for i, w := range []providers.Witness{idle(0, at), idle(0, at), idle(1, at.Add(time.Second)), {At: at.Add(2 * time.Second), Activity: providers.Waiting}, idle(3, at.Add(time.Second))} {
		if got := p.See(w, time.Minute); len(got) != 0 {
			t.Fatalf("look %d gave %s", i, kinds(got))
		}
	}
	if got := kinds(p.See(idle(4, at.Add(time.Second)), 0)); got != "turn_final:recorded waiting_on_user" {
		t.Errorf("the last look gave %q", got)
	}
	if got := p.See(idle(5, at.Add(time.Second)), time.Hour); len(got) != 0 {
		t.Errorf("a look at nothing gave %s", kinds(got))
	}
}

// A rollback waits for its error as long as the title says that the program
// works: on a busy machine that takes seconds.
func TestSeeRollback(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 1, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		looks []providers.Witness
		quiet time.Duration
		want  string
	}{
		{"works", []providers.Witness{{At: at, Activity: providers.Busy}, {At: at.Add(1), Activity: providers.Busy}}, 9 * time.Second, ""},
		{"ready once", []providers.Witness{{At: at, Activity: providers.Idle}}, 9 * time.Second, ""},
		{"ready", []providers.Witness{{At: at, Activity: providers.Idle}, {At: at.Add(1), Activity: providers.Idle}}, 0, "observer_failure waiting_on_user"},
		{"no title, soon", []providers.Witness{{At: at}}, errorQuiet - 1, ""},
		{"no title", []providers.Witness{{At: at, Child: at}}, errorQuiet, "observer_failure waiting_on_user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := fresh()
			play(p, userLine("u1", 1, "one"), `{"$set":{"messages":[],"lastUpdated":"`+stamp(3)+`"}}`)
			var got []providers.Draft
			for _, w := range c.looks {
				got = append(got, p.See(w, c.quiet)...)
			}
			if kinds(got) != c.want {
				t.Errorf("the looks gave %q, want %q", kinds(got), c.want)
			}
		})
	}
	// A look at the answer before a record does not count for what came after it.
	p := fresh()
	play(p, userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""))
	p.See(providers.Witness{At: at, Activity: providers.Idle}, 0)
	play(p, geminiLine("g2", 3, "Two.", ""))
	if got := p.See(providers.Witness{At: at.Add(time.Second), Activity: providers.Idle}, 0); len(got) != 0 {
		t.Errorf("one look at the second answer gave %s", kinds(got))
	}
}

// A child process that the title does not explain stands against silence; so
// does one after a gap, where the turn's prompt is not known.
func TestSilenceWithChild(t *testing.T) {
	child := func(s float64) time.Time {
		at, err := time.Parse(time.RFC3339, stamp(s))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	p := fresh()
	p.Project(providers.Record{Gap: providers.Malformed})
	play(p, geminiLine("g1", 2, "One.", ""))
	if got := p.See(providers.Witness{Child: child(3)}, time.Minute); len(got) != 0 {
		t.Errorf("a younger child: %s", kinds(got))
	}
	if got := kinds(p.See(providers.Witness{Child: child(1)}, longQuiet)); got != "turn_final:settled waiting_on_user" {
		t.Errorf("an older child: %q", got)
	}
}

// A document may hold a message that is too long to be a record; the rest goes on.
func TestLongMessageInDocument(t *testing.T) {
	big := strings.Repeat("x", providers.MaxRecord)
	doc := func(more ...string) providers.Record {
		list := append([]string{userLine("u1", 1, "one"), geminiLine("g1", 2, big, calls)}, more...)
		return providers.Record{Framing: providers.Document, Data: []byte(`{"sessionId":"` + sid + `","messages":[` + strings.Join(list, ",") + `]}`)}
	}
	p := fresh()
	got := p.Project(doc())
	if kinds(got) != "turn_started waiting_on_agent observer_failure" || got[2].Key != "long/g1" || strings.Contains(got[2].Detail, "xx") {
		t.Fatalf("the long message gave %s: %+v", kinds(got), got[len(got)-1])
	}
	if got := p.Project(doc()); len(got) != 0 {
		t.Errorf("the next version gave %s", kinds(got))
	}
	if got := kinds(p.Project(doc(geminiLine("g2", 5, "Done.", ""), userLine("u2", 9, "two")))); got != "assistant_message turn_final:recorded waiting_on_user turn_started waiting_on_agent" {
		t.Errorf("what follows gave %q", got)
	}
	if got := kinds(p.Project(providers.Record{Framing: providers.Document, Start: 3, End: 4, Gap: providers.Oversized})); got != "observer_failure" {
		t.Errorf("a document that is too long gave %q", got)
	}
}

// A long document that grows by one message gives that message's drafts alone,
// also with a projector that was made again.
func TestDocumentGrows(t *testing.T) {
	var list []string
	version := func() providers.Record {
		return providers.Record{Framing: providers.Document, Data: []byte(`{"sessionId":"` + sid + `","messages":[` + strings.Join(list, ",") + `]}`)}
	}
	p := newProjector(providers.Artifact{Path: "/w/chats/session-x.json"}, nil, nil)
	for i := range 500 {
		list = append(list, userLine(fmt.Sprintf("u%d", i), float64(2*i), "go"))
		play := kinds(p.Project(version()))
		if want := "turn_started waiting_on_agent"; play != want {
			t.Fatalf("prompt %d gave %q", i, play)
		}
		list = append(list, geminiLine(fmt.Sprintf("g%d", i), float64(2*i+1), "answer", calls))
		if got := kinds(p.Project(version())); got != "assistant_message" {
			t.Fatalf("answer %d gave %q", i, got)
		}
		p = newProjector(providers.Artifact{Path: "/w/chats/session-x.json"}, p.State(), nil)
	}
	fresh := newProjector(providers.Artifact{Path: "/w/chats/session-x.json"}, nil, nil)
	fresh.Rewind(version())
	fresh.Rewound()
	if fresh.Turn() != p.Turn() {
		t.Errorf("rewound turn = %v, want %v", fresh.Turn(), p.Turn())
	}
	if got := fresh.Project(version()); len(got) != 0 {
		t.Errorf("the version that was looked back at gave %s", kinds(got))
	}
}

// A legacy session that goes on in its sibling keeps its keys: what is written
// there once more is the same events.
func TestSiblingKeepsKeys(t *testing.T) {
	file := corpusDir + "/legacy/session-2026-11-30T03-04-0a1b2c3d.json"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(file + "l")
	if err != nil {
		t.Fatal(err)
	}
	old := newProjector(providers.Artifact{Path: "/w/" + "session-1.json"}, nil, nil)
	a := old.Project(providers.Record{Framing: providers.Document, Data: doc})
	a = append(a, old.Settle()...)
	if len(a) != 5 {
		t.Fatalf("%d drafts of the legacy file", len(a))
	}
	keys := map[string]providers.Kind{}
	for _, d := range play(fresh(), strings.Split(string(lines), "\n")...) {
		keys[d.Key] = d.Kind
	}
	for _, d := range a {
		if keys[d.Key] != d.Kind {
			t.Errorf("%s %q is not in the sibling", d.Kind, d.Key)
		}
	}
}

func TestDrift(t *testing.T) {
	p := fresh()
	play(p, `{"event":"new"}`, `{"id":"a","type":"banner"}`, `{"id":"b","type":"two words"}`, `{"$set":{"colour":1,"lastUpdated":"x"}}`,
		`{"id":"c","type":"user","content":[{"video":1}]}`, `{"id":"d","type":"gemini","content":"","toolCalls":[{"status":"denied"}]}`, `{"id":"e","type":"banner"}`)
	want := []string{"record/event", "message/banner", "message/other", "$set/colour", "part/video", "status/denied"}
	if got := p.Drift(); !reflect.DeepEqual(got, want) {
		t.Errorf("Drift = %q, want %q", got, want)
	}
	if got := p.Drift(); len(got) != 0 {
		t.Errorf("Drift once more = %q", got)
	}
	for i := range 50 {
		play(p, fmt.Sprintf(`{"id":"x%d","type":"t%d"}`, i, i))
	}
	if got := p.Drift(); len(got) != 16 {
		t.Errorf("%d names at once, want 16", len(got))
	}
	// Nothing of the recorded files is new.
	for _, c := range corpus(t) {
		if strings.HasPrefix(c.Name, "hand/") {
			continue
		}
		p := newProjector(c.Artifact, nil, nil)
		for _, r := range providertest.Records(c) {
			p.Project(r)
		}
		if got := p.Drift(); len(got) != 0 {
			t.Errorf("%s: Drift = %q", c.Name, got)
		}
	}
}

func TestRewindStopsEarly(t *testing.T) {
	p := fresh()
	for i := range 100 {
		for n, line := range []string{geminiLine(fmt.Sprintf("g%d", i), 1000-float64(i), "x", ""), userLine(fmt.Sprintf("u%d", i), 999.5-float64(i), "y")} {
			if p.Rewind(providers.Record{Data: []byte(line)}) {
				p.Rewound()
				if i > 4 || p.Turn() != (providers.Turn{ID: "u0", State: providers.WaitingOnUser}) {
					t.Errorf("after turn %d, record %d: turn %v", i, n, p.Turn())
				}
				return
			}
		}
	}
	t.Error("never done")
}

// A look back that ends at its limit, or at a gap, knows no turn rather than a
// wrong one.
func TestRewindLimits(t *testing.T) {
	p := fresh()
	n := 0
	for ; n < 10*backKept; n++ {
		if p.Rewind(providers.Record{Data: []byte(geminiLine(fmt.Sprintf("g%d", n), 100, "", calls))}) {
			break
		}
	}
	if p.Rewound(); n != backKept-1 || p.Turn().ID != "" {
		t.Errorf("done after %d records, turn %v", n, p.Turn())
	}
	p = fresh()
	if p.Rewind(providers.Record{Data: []byte(geminiLine("g", 100, "x", calls))}) || p.Rewind(providers.Record{Gap: providers.Malformed}) {
		t.Error("done before a border")
	}
	if !p.Rewind(providers.Record{Data: []byte(geminiLine("h", 99, "x", calls))}) {
		t.Error("not done at the border before a gap")
	}
	if p.Rewound(); p.Turn() != (providers.Turn{State: providers.Unknown}) {
		t.Errorf("turn behind a gap = %v", p.Turn())
	}
}
