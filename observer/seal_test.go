package observer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"steno/ipc/wire"
	"steno/providers"
	"steno/store"
)

func sealed(t *testing.T, d providers.Draft) (wire.Event, store.Event) {
	t.Helper()
	e, err := identity{agent: "a", incarnation: "i"}.seal("fake", "s", d, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Body) > store.MaxBody {
		t.Fatalf("body has %d bytes, at most %d", len(e.Body), store.MaxBody)
	}
	if !strings.HasPrefix(string(e.Body), `{"event_id":`) || strings.ContainsRune(string(e.Body), '\n') {
		t.Fatalf("body %.80q", e.Body)
	}
	var w wire.Event
	if err := json.Unmarshal(e.Body, &w); err != nil {
		t.Fatal(err)
	}
	return w, e
}

// D7: a text is cut on a code point, and says so; D6: its JSON stays below the
// bound of a line however it has to be escaped.
func TestSealCutsTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		cut        bool
		least      int // bytes that have to be left
	}{
		{"short", "hello", false, 5},
		{"at the bound", strings.Repeat("x", wire.MaxText), false, wire.MaxText},
		{"over the bound", strings.Repeat("x", wire.MaxText+1), true, wire.MaxText},
		{"two bytes a letter", "x" + strings.Repeat("é", wire.MaxText/2), true, wire.MaxText - 1},
		{"four bytes a letter", "xyz" + strings.Repeat("😀", wire.MaxText/4), true, wire.MaxText - 4},
		{"quotes", strings.Repeat(`"`, wire.MaxText), false, wire.MaxText},
		{"control characters", strings.Repeat("\x01", wire.MaxText), true, maxEncodedText/6 - 1},
		{"line separators", strings.Repeat("\u2028", wire.MaxText/3), false, wire.MaxText / 3 * 3},
		{"markup", strings.Repeat("<&>", wire.MaxText/3), false, wire.MaxText / 3 * 3},
		{"invalid UTF-8", "a\xff\xfeb", false, 5}, // a run of it becomes one U+FFFD
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := sealed(t, providers.Draft{Key: "k", Kind: providers.AssistantMessage, Turn: "t", Text: c.text})
			if w.TextTruncated != c.cut {
				t.Errorf("truncated = %v, want %v (%d bytes left)", w.TextTruncated, c.cut, len(*w.Text))
			}
			if c.cut && w.TextBytes != int64(len(strings.ToValidUTF8(c.text, "\uFFFD"))) {
				t.Errorf("text_bytes = %d", w.TextBytes)
			}
			if len(*w.Text) < c.least || len(*w.Text) > wire.MaxText || !utf8.ValidString(*w.Text) {
				t.Errorf("%d bytes left, want %d to %d", len(*w.Text), c.least, wire.MaxText)
			}
		})
	}
}

// D3: every key is there, null when unused, whatever the kind.
func TestSealHasEveryKey(t *testing.T) {
	t.Parallel()
	want := []string{"agent_id", "approval", "detail", "event_id", "incarnation_id", "input_sha256", "kind", "lifecycle",
		"observed_at", "outcome", "reason", "recoverable", "text", "turn_id", "turn_state"}
	_, e := sealed(t, providers.Draft{Key: "k", Kind: providers.TurnStarted, Turn: "t"})
	life, err := identity{agent: "a", incarnation: "i"}.lifecycle(wire.Available, "", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{e.Body, life.Body} {
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		var got []string
		for k := range m {
			got = append(got, k)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("keys %v, want %v", got, want)
		}
	}
}

// An approval of the largest and worst texts still fits an event; its id has 24
// hex characters and its header is a string (D17).
func TestSealBoundsApprovals(t *testing.T) {
	t.Parallel()
	worst := strings.Repeat("\x01", 1<<20)
	var many []providers.Choice
	for range 100 {
		many = append(many, providers.Choice{ID: "option_1", Label: worst, Description: worst})
	}
	a := &providers.Approval{Kind: "user_question", Item: "tool-4", Prompt: worst, Reason: worst, Command: worst, CWD: worst, Choices: many}
	for i := range 10 {
		a.Questions = append(a.Questions, providers.Question{Index: i, Header: worst, Question: worst, Options: many})
	}
	w, _ := sealed(t, providers.Draft{Key: "k", Kind: providers.ApprovalRequested, Turn: "t", Approval: a})
	got := w.Approval
	if len(got.RequestID) != 24 || strings.Trim(got.RequestID, "0123456789abcdef") != "" {
		t.Errorf("request id %q", got.RequestID)
	}
	if got.AgentID != w.AgentID || got.IncarnationID != w.IncarnationID || got.TurnID != *w.TurnID || got.ItemID != "tool-4" {
		t.Errorf("approval is of %s %s %s %s", got.AgentID, got.IncarnationID, got.TurnID, got.ItemID)
	}
	w, e := sealed(t, providers.Draft{Key: "k", Kind: providers.ApprovalRequested, Turn: "t",
		Approval: &providers.Approval{Kind: "user_question", Item: "x", Questions: []providers.Question{{Question: "Which?"}}}})
	if !strings.Contains(string(e.Body), `"header":""`) || !strings.Contains(string(e.Body), `"choices":[]`) || w.Approval.Reason != nil {
		t.Errorf("approval %s", e.Body)
	}
}

// Event ids depend on agent, incarnation, session and key, and on nothing else.
func TestEventIDs(t *testing.T) {
	t.Parallel()
	d := providers.Draft{Key: "k", Kind: providers.AssistantMessage, Turn: "t", Text: "x"}
	id := func(i identity, session string, d providers.Draft, now time.Time) string {
		e, err := i.seal("fake", session, d, now)
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	i, at := identity{"a", "i"}, time.Unix(1_800_000_000, 0)
	first := id(i, "s", d, at)
	later := d
	later.Turn, later.Text = "other", "y"
	if got := id(i, "s", later, at.Add(time.Hour)); got != first {
		t.Errorf("id follows time, turn or text: %s, %s", got, first)
	}
	seen := map[string]string{first: "first"}
	for what, got := range map[string]string{
		"agent":       id(identity{"b", "i"}, "s", d, at),
		"incarnation": id(identity{"a", "j"}, "s", d, at),
		"session":     id(i, "s2", d, at),
		"key":         id(i, "s", providers.Draft{Key: "k2", Kind: d.Kind, Text: "x"}, at),
		"split":       id(identity{"ai", ""}, "s", d, at),
	} {
		if other, twice := seen[got]; twice || len(got) != 64 {
			t.Errorf("%s: id %s, as for %s", what, got, other)
		}
		seen[got] = what
	}
}
