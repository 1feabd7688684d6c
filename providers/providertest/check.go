package providertest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"steno/providers"
)

// maxDetail bounds a failure's fixed sentence, in bytes.
const maxDetail = 300

// CheckDraft says what is wrong with a draft by itself, or nil.
func CheckDraft(d providers.Draft) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s %q: %s", d.Kind, d.Key, fmt.Sprintf(format, args...))
	}
	if d.Key == "" || !utf8.ValidString(d.Key) || len(d.Key) > 512 {
		return bad("key is empty, not UTF-8 or over 512 bytes")
	}
	if d.Text != strings.TrimSpace(d.Text) || !utf8.ValidString(d.Text) {
		return bad("text is not trimmed UTF-8")
	}
	want := providers.Draft{Key: d.Key, Kind: d.Kind, Turn: d.Turn, At: d.At}
	switch d.Kind {
	case providers.TurnStarted:
		want.InputSHA256 = d.InputSHA256
		if d.Turn == "" {
			return bad("no turn")
		}
		if raw, err := hex.DecodeString(d.InputSHA256); d.InputSHA256 != "" &&
			(err != nil || len(raw) != 32 || d.InputSHA256 != strings.ToLower(d.InputSHA256)) {
			return bad("input hash %q", d.InputSHA256)
		}
	case providers.TurnStateChanged:
		want.State = d.State
		if d.State != providers.WaitingOnAgent && d.State != providers.WaitingOnUser {
			return bad("state %q", d.State)
		}
	case providers.Plan, providers.AssistantMessage:
		want.Text = d.Text
		if d.Text == "" {
			return bad("no text")
		}
	case providers.ObserverFailure:
		want.Detail, want.Reason, want.Recoverable = d.Detail, d.Reason, d.Recoverable
		if d.Detail == "" || !d.Recoverable {
			return bad("no detail, or not recoverable")
		}
		if d.Reason != "" && d.Detail != d.Reason.Detail() {
			return bad("detail is not the sentence of %s", d.Reason)
		}
	case providers.TurnFinal:
		want.Text, want.Outcome, want.Reason, want.Detail, want.Completion = d.Text, d.Outcome, d.Reason, d.Detail, d.Completion
		switch {
		case d.Outcome != providers.Completed && d.Outcome != providers.Aborted:
			return bad("outcome %q", d.Outcome)
		case d.Completion != "" && d.Completion != providers.CompletionRecorded && d.Completion != providers.CompletionSettled:
			return bad("completion %q", d.Completion)
		case d.Outcome == providers.Aborted && d.Text != "":
			return bad("an aborted final has a text")
		case d.Outcome == providers.Completed && d.Reason != "":
			return bad("a completed final has a reason")
		case d.Detail != d.Reason.Detail():
			return bad("detail is not the sentence of %q", d.Reason)
		}
	case providers.ApprovalRequested:
		want.Approval = d.Approval
		if err := checkApproval(d.Approval); err != nil {
			return bad("%v", err)
		}
	default:
		return bad("unknown kind")
	}
	if len(d.Detail) > maxDetail {
		return bad("detail has %d bytes", len(d.Detail))
	}
	if d != want {
		return bad("has fields of another kind")
	}
	return nil
}

func checkApproval(a *providers.Approval) error {
	switch {
	case a == nil:
		return fmt.Errorf("no approval")
	case a.Kind != "command_approval" && a.Kind != "user_question":
		return fmt.Errorf("approval kind %q", a.Kind)
	case a.Item == "":
		return fmt.Errorf("no item")
	case len(a.Choices) == 0:
		return fmt.Errorf("no choices")
	}
	ids := map[string]bool{}
	for _, c := range a.Choices {
		if c.ID == "" || len(c.ID) > 33 || strings.Contains(c.ID, ":") || ids[c.ID] {
			return fmt.Errorf("choice id %q is empty, long, has a colon or comes twice", c.ID)
		}
		ids[c.ID] = true
	}
	for i, q := range a.Questions {
		if q.Index != i || q.Question == "" {
			return fmt.Errorf("question %d has index %d or no text", i, q.Index)
		}
	}
	return nil
}

// CheckOrder says what is wrong with drafts as a sequence: a key that comes
// twice, a start or final without its state. A final of a turn that was
// superseded may stand alone while the newer turn is open.
func CheckOrder(drafts []providers.Draft) error {
	keys := map[string]int{}
	newest, open := "", false
	for i, d := range drafts {
		if j, ok := keys[d.Key]; ok {
			return fmt.Errorf("key %q of draft %d (%s) was that of draft %d (%s)", d.Key, i, d.Kind, j, drafts[j].Kind)
		}
		keys[d.Key] = i
		var next providers.Draft
		if i+1 < len(drafts) {
			next = drafts[i+1]
		}
		state := next.Kind == providers.TurnStateChanged && next.Turn == d.Turn
		switch d.Kind {
		case providers.TurnStarted:
			newest, open = d.Turn, true
			if !state || next.State != providers.WaitingOnAgent {
				return fmt.Errorf("draft %d: turn_started %q is not followed by waiting_on_agent", i, d.Turn)
			}
		case providers.TurnStateChanged:
			if d.Turn == newest {
				open = d.State == providers.WaitingOnAgent
			}
		case providers.TurnFinal:
			if d.Turn != newest && open {
				continue
			}
			if next.Kind != providers.TurnStarted && (!state || next.State != providers.WaitingOnUser) {
				return fmt.Errorf("draft %d: turn_final %q is followed neither by waiting_on_user nor by a start", i, d.Turn)
			}
		}
	}
	return nil
}

// leak says whether a failure's detail holds a sentence of the artifact.
func leak(drafts []providers.Draft, sentences []string) error {
	for _, d := range drafts {
		if d.Detail == "" {
			continue
		}
		for _, s := range sentences {
			if strings.Contains(d.Detail, s) {
				return fmt.Errorf("detail of %q repeats text of the artifact", d.Key)
			}
		}
	}
	return nil
}

// sentences collects the strings of an artifact that are long enough to be
// somebody's words.
func sentences(recs []providers.Record) []string {
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if s := strings.TrimSpace(v); len(s) >= 12 && strings.Contains(s, " ") {
				out = append(out, s)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, r := range recs {
		var v any
		if json.Unmarshal(r.Data, &v) == nil {
			walk(v)
		}
	}
	return out
}
