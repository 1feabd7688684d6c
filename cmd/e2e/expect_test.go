package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"steno/ipc/wire"
)

// The rows of a scenario are lines such as
//
//	available
//	started A "what was typed"
//	working A
//	message A "what the model said"
//	final A completed "what the model said"
//	waiting A
//	unavailable process_exited
//
// Turns are named A, B, C by their first appearance, so a row has the right turn
// exactly if it has the right letter. A row of an agent in another directory
// than "work" begins with its name and a colon.

// teller spells the events of one agent as rows.
type teller struct {
	prompts     *[]string // what was typed so far, by anyone
	turns       map[string]string
	incarnation string
	known       map[string]bool // incarnations so far
}

func newTeller(prompts *[]string) *teller {
	return &teller{prompts: prompts, turns: map[string]string{}, known: map[string]bool{}}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// turn names a turn by its first appearance.
func (t *teller) turn(id *string) string {
	if id == nil {
		return "-"
	}
	if t.turns[*id] == "" {
		t.turns[*id] = string(rune('A' + len(t.turns)))
	}
	return t.turns[*id]
}

// longest is how much of a text a row has.
const longest = 120

// quote spells a text; of a long one its beginning and length.
func quote(s string, total int64) string {
	if len(s) <= longest {
		return fmt.Sprintf("%q", s)
	}
	if total == 0 {
		total = int64(len(s))
	}
	return fmt.Sprintf("%q... %d of %d bytes", s[:40], len(s), total)
}

// input spells the prompt that has the hash of a start.
func (t *teller) input(hash *string) string {
	if hash == nil {
		return ""
	}
	for _, p := range *t.prompts {
		sum := sha256.Sum256([]byte(p))
		if hex.EncodeToString(sum[:]) == *hash {
			return fmt.Sprintf(" %q", p)
		}
	}
	return " something that was not typed"
}

// row spells one event.
func (t *teller) row(e wire.Event) string {
	var parts []string
	add := func(s ...string) {
		for _, s := range s {
			if s != "" {
				parts = append(parts, s)
			}
		}
	}
	textOf := func() string {
		if e.Text == nil {
			return ""
		}
		return quote(*e.Text, e.TextBytes)
	}
	if e.Kind != wire.AgentLifecycle && e.IncarnationID != t.incarnation {
		add("of another incarnation:")
	}
	switch e.Kind {
	case wire.AgentLifecycle:
		add(value(e.Lifecycle), value(e.Reason), t.life(e))
	case wire.TurnStarted:
		add("started", t.turn(e.TurnID)+t.input(e.InputSHA256))
	case wire.TurnStateChanged:
		switch value(e.TurnState) {
		case "waiting_on_agent":
			add("working", t.turn(e.TurnID))
		case "waiting_on_user":
			add("waiting", t.turn(e.TurnID))
		default:
			add("in state", value(e.TurnState), t.turn(e.TurnID))
		}
	case wire.AssistantMessage:
		add("message", t.turn(e.TurnID), textOf())
	case wire.Plan:
		add("plan", t.turn(e.TurnID), textOf())
	case wire.TurnFinal:
		add("final", t.turn(e.TurnID), value(e.Outcome), value(e.Reason), textOf())
	case wire.ObserverFailure:
		add("failure", t.turn(e.TurnID), value(e.Reason))
		if e.Recoverable == nil || !*e.Recoverable || value(e.Detail) == "" {
			add("without what a failure needs")
		}
	case wire.ApprovalRequested:
		add("question", t.turn(e.TurnID), approval(e))
	default:
		add(e.Kind)
	}
	return strings.Join(parts, " ")
}

// life tells what an incarnation is to the ones before, and nothing for the
// first.
func (t *teller) life(e wire.Event) string {
	was := t.incarnation
	if value(e.Lifecycle) != wire.Available {
		if e.IncarnationID != was {
			return "of another incarnation"
		}
		return ""
	}
	first := len(t.known) == 0
	again := t.known[e.IncarnationID]
	t.incarnation = e.IncarnationID
	t.known[e.IncarnationID] = true
	switch {
	case first:
		return ""
	case again:
		return "again"
	}
	return "as another incarnation"
}

func approval(e wire.Event) string {
	a := e.Approval
	if a == nil || a.AgentID != e.AgentID || a.IncarnationID != e.IncarnationID || a.TurnID != value(e.TurnID) || len(a.RequestID) != 24 {
		return "that does not agree with its event"
	}
	var labels []string
	for _, c := range a.Choices {
		labels = append(labels, c.Label)
	}
	return fmt.Sprintf("%s %q %q %s", a.Kind, value(a.Reason), value(a.Prompt), strings.Join(labels, "|"))
}

// split divides rows by their agent. Rows without a name are of "work".
func split(rows string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(rows) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		agent, row := "work", line
		if name, rest, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(name, ` "`) {
			agent, row = name, rest
		}
		out[agent] = append(out[agent], row)
	}
	return out
}

// textless is a row without its texts.
func textless(row string) string {
	row, _, _ = strings.Cut(row, " \"")
	return strings.TrimSuffix(row, " something that was not typed")
}

func textlessRows(rows []string) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = textless(row)
	}
	return out
}

// compare tells whether got is want (done), a beginning of it (no error), or
// something else.
func compare(got, want []string) (done bool, err error) {
	for i, row := range got {
		if i >= len(want) {
			return false, fmt.Errorf("too much: %s", row)
		}
		if row != want[i] {
			return false, fmt.Errorf("row %d is\n\t%s\nwant\n\t%s", i+1, row, want[i])
		}
	}
	return len(got) == len(want), nil
}
