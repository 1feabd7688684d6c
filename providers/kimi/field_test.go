package kimi

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// TestFieldRows has faults that users of other tools reported, each by its row
// in the field list.
func TestFieldRows(t *testing.T) {
	// Steno counts no tokens: what is to be seen is that no shape of them
	// makes an event, ends a turn or takes a text.
	for _, usage := range []struct{ name, before, inStep, after string }{
		{"A22: usage in step.end and in usage.record", "", `"usage":{"inputOther":10451,"output":33}`,
			`{"type":"usage.record","agentId":"main","usage":{"inputOther":10451,"output":33},"usageScope":"turn",TIME}`},
		{"A24: several updates of one step", `{"type":"token_counting.measured","agentId":"main","tokens":1,TIME}`, "",
			`{"type":"token_counting.measured","agentId":"main","tokens":20934,TIME}`},
		{"A25: totals of the session among those of turns", `{"type":"usage.record","agentId":"main","usage":{"output":3000},"usageScope":"session",TIME}`, "",
			`{"type":"usage.record","agentId":"main","usage":{"output":33},"usageScope":"turn",TIME}`},
		{"D24: usage at the top of its record", `{"type":"usage.record","agentId":"main","inputOther":10451,"output":33,TIME}`, "",
			`{"type":"turn.step.retrying","agentId":"main","usage":null,TIME}`},
	} {
		t.Run(usage.name, func(t *testing.T) {
			w := (&wire{ms: 1e12}).prompt("0", "p")
			w.other(usage.before).begin("0", "s1").say("0", "s1", "a", "look").call("0", "s1")
			w.event("0", strings.Trim(`"type":"step.end","uuid":"s1","finishReason":"tool_use",`+usage.inStep, ","))
			w.other(usage.after).begin("0", "s2").say("0", "s2", "b", "done").end("0", "s2", "end_turn").other(usage.after)
			w.ended("0", "completed", "").other(usage.after)
			w.want(t, "start", "agent", "say look", "say done", "final completed done", "user")
		})
	}

	t.Run("A23: the prompt is there twice", func(t *testing.T) {
		message := `{"type":"context.append_message","agentId":"main","message":{"role":"user","content":[{"type":"text","text":"p"}],"origin":{"kind":"user"}},TIME}`
		(&wire{ms: 1e12}).other(message).prompt("0", "p").other(message).ended("0", "completed", "").
			want(t, "start", "agent", "final completed", "user")
	})
	t.Run("D20: both homes, moved or not", func(t *testing.T) {
		env := map[string]string{}
		dirs := func() (out []string) {
			for _, r := range (Provider{}).Roots(providers.Env{Home: "/h", Getenv: func(k string) string { return env[k] }}) {
				out = append(out, r.Dir)
			}
			return out
		}
		if got, want := dirs(), []string{"/h/.kimi-code/sessions", "/h/.kimi/sessions"}; !slices.Equal(got, want) {
			t.Errorf("roots %q, want %q", got, want)
		}
		env["KIMI_CODE_HOME"], env["KIMI_SHARE_DIR"] = "/new", "/old"
		if got, want := dirs(), []string{"/new/sessions", "/old/sessions"}; !slices.Equal(got, want) {
			t.Errorf("roots %q, want %q", got, want)
		}
	})
	t.Run("D21: texts are in the events of steps, messages are not", func(t *testing.T) {
		(&wire{ms: 1e12}).prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "answer").end("0", "s1", "end_turn").
			other(`{"type":"context.append_message","agentId":"main","message":{"role":"assistant","content":[{"type":"text","text":"answer"}]},TIME}`).
			ended("0", "completed", "").want(t, "start", "agent", "say answer", "final completed answer", "user")
	})
	t.Run("D22: a tool's result before the end of its step", func(t *testing.T) {
		(&wire{ms: 1e12}).prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "look").call("0", "s1").
			event("0", `"type":"tool.result","toolCallId":"call_1","result":{"output":"x"}`).end("0", "s1", "tool_use").
			begin("0", "s2").say("0", "s2", "b", "done").end("0", "s2", "end_turn").ended("0", "completed", "").
			want(t, "start", "agent", "say look", "say done", "final completed done", "user")
		// Nor does it take the text of its step.
		(&wire{ms: 1e12}).prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "look").
			event("0", `"type":"tool.result","toolCallId":"call_1","result":{"output":"x"}`).end("0", "s1", "end_turn").ended("0", "completed", "").
			want(t, "start", "agent", "say look", "final completed look", "user")
	})
	t.Run("H13: what the program did not have is told", func(t *testing.T) {
		p := newProjector("S", nil)
		w := (&wire{ms: 1e12}).prompt("0", "p").other(`{"type":"turn.forked","agentId":"main",TIME}`).
			other(`{"type":"metadata","protocol_version":"2.0"}`)
		providertest.Play(p, w.recs, providertest.Script{})
		if got := fmt.Sprint(p.Drift()); got != "[turn.forked metadata/2.0]" {
			t.Errorf("Drift = %s", got)
		}
		a := providers.Artifact{Path: filepath.Join("/h/.kimi/sessions/0123456789abcdef0123456789abcdef", someUUID, "wire.jsonl")}
		old := Provider{}.Projector(a, nil)
		old.Project(providers.Record{Data: []byte(`{"message":{"type":"StatusUpdate","payload":{"token_usage":{}}}}`)})
		if got := fmt.Sprint(old.(providers.Surveyor).Drift()); got != "["+olderProgram+"]" {
			t.Errorf("Drift of the older program = %s", got)
		}
	})
}

// other adds a record that is not a turn's, or nothing. It takes no time.
func (w *wire) other(line string) *wire {
	if line != "" {
		w.raw(line)
		w.ms -= 1000
	}
	return w
}

// want plays the wire and compares its drafts, without the place and turn of
// each. A silence at the end gives nothing more.
func (w *wire) want(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, line := range lines(providertest.Play(newProjector("S", nil), w.recs, providertest.Script{End: true})) {
		_, line, _ = strings.Cut(line, " ")
		got = append(got, strings.TrimPrefix(line, "0 "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("drafts %q, want %q", got, want)
	}
}
