package codex

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

const (
	thread = "01a20000-0000-7000-8000-000000000000"
	turn1  = "01a20001-0000-7000-8000-000000000001"
	turn2  = "01a20002-0000-7000-8000-000000000002"
)

// feed projects lines one after the other, as a file would hold them.
func feed(p providers.Projector, lines ...string) []providers.Draft {
	var data []byte
	for _, l := range lines {
		data = append(append(data, l...), '\n')
	}
	return providertest.Drafts(providertest.Play(p, providertest.Split(data), providertest.Script{}))
}

func kinds(drafts []providers.Draft) string {
	var s []string
	for _, d := range drafts {
		w := string(d.Kind)
		if d.State != "" {
			w = string(d.State)
		}
		if d.Turn != "" {
			w += "/" + d.Turn[7:8]
		}
		s = append(s, w)
	}
	return strings.Join(s, " ")
}

func event(typ, turn, more string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-30T10:00:00Z","type":"event_msg","payload":{"type":%q,"turn_id":%q%s}}`, typ, turn, more)
}

func prompt(turn string) string {
	return event("item_completed", turn, `,"item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"p"}]}`)
}

func newTest() providers.Projector {
	return Provider{}.Projector(providers.Artifact{Provider: ID, Session: thread}, nil)
}

// TestSupersededTurn: the end of an older turn, while a newer one is open, is
// given without saying that the agent waits (D21).
func TestSupersededTurn(t *testing.T) {
	p := newTest()
	got := kinds(feed(p, event("task_started", turn1, ""), prompt(turn1), event("task_started", turn2, ""), prompt(turn2),
		event("task_complete", turn1, `,"last_agent_message":"late"`)))
	want := "turn_started/1 waiting_on_agent/1 turn_started/2 waiting_on_agent/2 assistant_message/1 turn_final/1"
	if got != want {
		t.Errorf("drafts = %s\nwant %s", got, want)
	}
	if turn := p.Turn(); turn.ID != turn2 || turn.State != providers.WaitingOnAgent {
		t.Errorf("Turn = %v, want the newer turn, running", turn)
	}
	if got, want := kinds(feed(p, event("task_complete", turn2, ""))), "turn_final/2 waiting_on_user/2"; got != want {
		t.Errorf("drafts = %s, want %s", got, want)
	}
}

// TestTurn follows Turn through a turn: a start that is still held runs already.
func TestTurn(t *testing.T) {
	p := newTest()
	steps := []struct {
		line string
		want providers.Turn
	}{
		{event("thread_name_updated", "", ""), providers.Turn{State: providers.Unknown}},
		{event("task_started", turn1, ""), providers.Turn{ID: turn1, State: providers.WaitingOnAgent}},
		{prompt(turn1), providers.Turn{ID: turn1, State: providers.WaitingOnAgent}},
		{event("turn_aborted", turn1, `,"reason":"interrupted"`), providers.Turn{ID: turn1, State: providers.WaitingOnUser}},
		{"not json", providers.Turn{State: providers.Unknown}},
		{event("task_started", turn2, ""), providers.Turn{ID: turn2, State: providers.WaitingOnAgent}},
	}
	for _, s := range steps {
		feed(p, s.line)
		if got := p.Turn(); got != s.want {
			t.Errorf("after %s: Turn = %v, want %v", s.line, got, s.want)
		}
	}
}

// TestLateTurn: an item of a turn that is no longer remembered does not start
// it again.
func TestLateTurn(t *testing.T) {
	p := newTest()
	id := func(i int) string { return fmt.Sprintf("01a2%04x-0000-7000-8000-00000000%04x", 0x400+i, i) }
	for i := range turnsKept + 2 {
		feed(p, event("task_started", id(i), ""), prompt(id(i)), event("task_complete", id(i), ""))
	}
	last := p.Turn()
	if got := feed(p, event("item_completed", id(0), `,"item":{"type":"CommandExecution","id":"c"}`)); len(got) != 0 {
		t.Errorf("drafts = %s, want none", kinds(got))
	}
	if got := kinds(feed(p, event("item_completed", id(1), `,"item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":"late"}]}`))); got != "assistant_message/1" {
		t.Errorf("drafts = %s, want the text alone", got)
	}
	if got := p.Turn(); got != last {
		t.Errorf("Turn = %v, want %v", got, last)
	}
}

// TestManyChildren: a start that waits is not forgotten over many turns of
// others.
//
// Field list: A13, A14.
func TestManyChildren(t *testing.T) {
	p := newTest()
	feed(p, event("task_started", turn1, ""))
	for i := range 2 * turnsKept {
		feed(p, event("task_started", fmt.Sprintf("01a2%04x-0000-7000-8000-000000000000", 0x500+i), `,"turn_attribution":{"parent_turn_id":"x"}`))
	}
	if got, want := kinds(feed(p, prompt(turn1))), "turn_started/1 waiting_on_agent/1"; got != want {
		t.Errorf("drafts = %s, want %s", got, want)
	}
}

// TestOtherThread: a start that its prompt shows to be another thread's is
// taken back, and the turn before it is the current one again.
func TestOtherThread(t *testing.T) {
	p := newTest()
	feed(p, event("item_completed", turn1, `,"item":{"type":"EnteredReviewMode","id":"e"}`))
	foreign := strings.Replace(prompt(turn2), `"item":`, `"thread_id":"01a2ffff-0000-7000-8000-000000000000","item":`, 1)
	if got := feed(p, event("task_started", turn2, ""), foreign, event("task_complete", turn2, `,"last_agent_message":"x"`)); len(got) != 0 {
		t.Errorf("drafts = %s, want none", kinds(got))
	}
	if got, want := p.Turn(), (providers.Turn{ID: turn1, State: providers.WaitingOnAgent}); got != want {
		t.Errorf("Turn = %v, want %v", got, want)
	}
}

// TestCopiedHistory: what follows a second header of another thread is history
// even where its start is missing, up to the thread's own first start.
//
// Field list: A6, A13, A14.
func TestCopiedHistory(t *testing.T) {
	p := newTest()
	meta := func(id string) string {
		return fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"source":"cli"}}`, id)
	}
	copied := feed(p, meta(thread), meta("019fffff-0000-7000-8000-000000000000"), event("agent_message", "", `,"message":"old"`),
		event("task_complete", "", `,"last_agent_message":"old"`), event("task_started", "", ""))
	if len(copied) != 0 {
		t.Errorf("drafts = %s, want none of the copied records", kinds(copied))
	}
	if got, want := kinds(feed(p, event("task_started", turn1, ""), prompt(turn1))), "turn_started/1 waiting_on_agent/1"; got != want {
		t.Errorf("drafts = %s, want %s", got, want)
	}
}

// TestInternal: no record of a subagent's rollout makes an event, a gap still
// gives its failure.
//
// Field list: D12.
func TestInternal(t *testing.T) {
	for _, header := range []string{
		`"source":{"subagent":"review"}`,
		`"source":{"internal":"memory_consolidation"}`,
		`"source":"cli","thread_source":"subagent"`,
		`"source":"cli","thread_source":"feature"`,
	} {
		p := newTest()
		meta := fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,%s}}`, thread, header)
		if got := feed(p, meta, event("task_started", turn1, ""), prompt(turn1), event("task_complete", turn1, `,"last_agent_message":"x"`)); len(got) != 0 {
			t.Errorf("%s: %s, want no drafts", header, kinds(got))
		}
		if got, want := kinds(p.Project(providers.Record{Start: 9, End: 10, Gap: providers.Oversized})), "observer_failure"; got != want {
			t.Errorf("%s: a gap gave %q, want %q", header, got, want)
		}
	}
}

// TestStateBound fills every part of the state with the longest values that a
// file can give it.
func TestStateBound(t *testing.T) {
	long := func(n int) string { return strings.Repeat(":", 62) + fmt.Sprintf("%02d", n) }
	p := Provider{}.Projector(providers.Artifact{Session: long(99)}, nil)
	most := 0
	for i := range 40 {
		id := long(i)
		feed(p, event("task_started", id, `,"turn_attribution":{"turn_trigger":"user"}`),
			`{"timestamp":"2026-11-30T10:00:00.123456789Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"p"}]}}`)
		most = max(most, len(p.State()))
		for k := range 3 {
			feed(p, event("item_completed", id, fmt.Sprintf(`,"item":{"type":"AgentMessage","id":"%s%d","content":[{"type":"Text","text":%q}]}`,
				strings.Repeat("m", 200), k, strings.Repeat("x", textKept))))
			most = max(most, len(p.State()))
		}
	}
	if most > providers.StateMax || most < providers.StateMax/2 {
		t.Errorf("largest State = %d bytes, want at most %d and not far below: else this test fills it no more", most, providers.StateMax)
	}
	if p.State() == nil {
		t.Error("State = nil")
	}
}

// TestReviewHolds: an answer too long for the state holds the records until the
// end, and Settle lets go of it.
func TestReviewHolds(t *testing.T) {
	answer := strings.Repeat("word ", 400)
	p := newTest()
	h := p.(providers.Holder)
	feed(p, event("item_completed", turn1, `,"item":{"type":"EnteredReviewMode","id":"e"}`))
	if h.Held() {
		t.Fatal("Held before the answer")
	}
	feed(p, event("item_completed", turn1, fmt.Sprintf(`,"item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":%q}]}`, answer)))
	if !h.Held() || h.Quiet() != 0 {
		t.Fatalf("Held = %v, Quiet = %v, want true, 0", h.Held(), h.Quiet())
	}
	if got := h.Settle(); got != nil || h.Held() {
		t.Fatalf("Settle = %v, Held = %v", got, h.Held())
	}
	got := feed(p, event("task_complete", turn1, `,"last_agent_message":null`))
	if len(got) != 2 || got[0].Text != "" {
		t.Errorf("drafts after Settle = %s, want a final without text", kinds(got))
	}
}

// TestInputHash: the hash is that of the trimmed text, of all text parts.
func TestInputHash(t *testing.T) {
	p := newTest()
	got := feed(p, event("task_started", turn1, ""),
		event("item_completed", turn1, `,"item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":" abc\n"},{"type":"image","url":"x"}]}`))
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4's example
	if len(got) != 2 || got[0].InputSHA256 != abc {
		t.Errorf("drafts = %+v, want the hash of abc", got)
	}
}

// TestTimes: a record's own time or none, never a clock's.
//
// Field list: H8.
func TestTimes(t *testing.T) {
	p := newTest()
	for _, stamp := range []string{`"not a time"`, `7`, `null`, `""`} {
		line := strings.Replace(event("agent_message", turn1, `,"message":"m`+stamp[:1]+`"`), `"2026-11-30T10:00:00Z"`, stamp, 1)
		if stamp[0] == '"' {
			line = strings.Replace(line, `"m""`, `"m"`, 1)
		}
		for _, d := range feed(p, line) {
			if !d.At.IsZero() {
				t.Errorf("timestamp %s: At = %v, want zero", stamp, d.At)
			}
		}
	}
	got := feed(p, strings.Replace(event("task_complete", turn1, ""), "10:00:00Z", "12:00:00.5+02:00", 1))
	if want := time.Date(2026, 11, 30, 10, 0, 0, 5e8, time.UTC); len(got) == 0 || !got[0].At.Equal(want) || got[0].At.Location() != time.UTC {
		t.Errorf("drafts = %+v, want %v", got, want)
	}
	// In UTC its year has five digits, which no state can hold.
	feed(p, strings.Replace(event("task_started", turn2, ""), "2026-11-30T10:00:00Z", "9999-12-31T23:59:59-23:59", 1))
	if p.State() == nil || p.Turn().ID != turn2 {
		t.Errorf("a time that cannot be written leaves no state; turn %v", p.Turn())
	}
}

func FuzzProject(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(corpusDir, "h-*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		f.Fatalf("corpus: %v, %d files", err, len(files))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, again := newTest(), newTest()
		keys := map[string]bool{}
		var at int64
		n := 0
		for line := range bytes.Lines(data) {
			if n++; n > 200 {
				break // a longer file shows nothing new, and makes fuzzing slow
			}
			r := providers.Record{Start: at, End: at + int64(len(line)), Data: bytes.TrimSuffix(line, []byte("\n"))}
			at = r.End
			got := p.Project(r)
			for _, d := range got {
				if err := providertest.CheckDraft(d); err != nil {
					t.Fatal(err)
				}
				// The memory is bounded, so a turn may come again after 8 others.
				if keys[d.Key] && bytes.Count(data, []byte("\n")) < turnsKept {
					t.Fatalf("key %q comes twice", d.Key)
				}
				keys[d.Key] = true
			}
			if n := len(p.State()); n == 0 || n > providers.StateMax {
				t.Fatalf("State has %d bytes", n)
			}
			if want := again.Project(r); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("made again: %v, want %v", want, got)
			}
			if !p.(providers.Holder).Held() {
				again = Provider{}.Projector(providers.Artifact{Provider: ID, Session: thread}, p.State())
			}
		}
		back := newTest().(*projector)
		for _, r := range providertest.Split(data) {
			back.Rewind(r)
		}
		back.Rewound()
	})
}

func BenchmarkProject(b *testing.B) {
	out := strings.Repeat(`output with \"quotes\" and \\ and\n`, 60_000) // about 2 MB
	big := fmt.Sprintf(`{"timestamp":"2026-11-30T10:00:00Z","ordinal":1,"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"%s"}}`, out)
	session, err := os.ReadFile(filepath.Join(corpusDir, "t-two", "rollout-2026-11-30T18-57-30-01a22dd1-bf50-7402-8b2d-7ea2be530548.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	for name, data := range map[string][]byte{"session": session, "output2MB": []byte(big + "\n")} {
		recs := providertest.Split(data)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p := newTest()
				for _, r := range recs {
					p.Project(r)
				}
			}
		})
	}
}
