package kimi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

// wire is a transcript made by hand; each record is 1 s after the one before.
type wire struct {
	recs []providers.Record
	ms   int64
	at   int64
}

func (w *wire) raw(line string) *wire {
	w.ms += 1000
	line = strings.Replace(line, "TIME", fmt.Sprintf(`"time":%d`, w.ms), 1)
	w.recs = append(w.recs, providers.Record{Start: w.at, End: w.at + int64(len(line)) + 1, Data: []byte(line)})
	w.at += int64(len(line)) + 1
	return w
}

func (w *wire) gap() *wire {
	w.recs = append(w.recs, providers.Record{Start: w.at, End: w.at + 100, Gap: providers.Malformed})
	w.at += 100
	return w
}

func (w *wire) prompt(turn, text string) *wire {
	return w.raw(fmt.Sprintf(`{"type":"turn.prompt","agentId":"main","turnId":%s,"promptId":"msg_1","origin":{"kind":"user"},"input":[{"type":"text","text":%q}],TIME}`, turn, text))
}

func (w *wire) event(turn, body string) *wire {
	return w.raw(fmt.Sprintf(`{"type":"context.append_loop_event","agentId":"main","event":{"turnId":%q,%s},TIME}`, turn, body))
}

func (w *wire) begin(turn, step string) *wire {
	return w.event(turn, fmt.Sprintf(`"type":"step.begin","uuid":%q`, step))
}

func (w *wire) say(turn, step, id, text string) *wire {
	return w.event(turn, fmt.Sprintf(`"type":"content.part","uuid":%q,"stepUuid":%q,"part":{"type":"text","text":%q}`, id, step, text))
}

func (w *wire) call(turn, step string) *wire {
	return w.event(turn, fmt.Sprintf(`"type":"tool.call","uuid":"c","stepUuid":%q,"toolCallId":"call_1","name":"Bash"`, step))
}

func (w *wire) end(turn, step, finish string) *wire {
	return w.event(turn, fmt.Sprintf(`"type":"step.end","uuid":%q,"finishReason":%q`, step, finish))
}

func (w *wire) ended(turn, reason, more string) *wire {
	return w.raw(fmt.Sprintf(`{"type":"turn.ended","agentId":"main","turnId":%s,"reason":%q%s,TIME}`, turn, reason, more))
}

// lines plays a wire and writes each draft short: the index of its record, "s"
// for a silence, and what matters.
func lines(steps []providertest.Step) []string {
	var out []string
	for _, s := range steps {
		for _, d := range s.Drafts {
			line := fmt.Sprintf("%d", s.After)
			if s.What == providertest.FromSettle {
				line += "s"
			}
			line += " " + strings.TrimPrefix(d.Turn, "S:") + " "
			switch d.Kind {
			case providers.TurnStarted:
				line += "start"
			case providers.TurnStateChanged:
				line += map[providers.TurnState]string{providers.WaitingOnAgent: "agent", providers.WaitingOnUser: "user"}[d.State]
			case providers.TurnFinal:
				line += "final " + string(d.Outcome) + " " + string(d.Reason)
			case providers.AssistantMessage:
				line += "say"
			case providers.ApprovalRequested:
				line += "ask " + d.Approval.Item + " " + d.Approval.Prompt
			default:
				line += string(d.Kind)
			}
			if d.Text != "" {
				line += " " + d.Text
			}
			out = append(out, strings.TrimSpace(strings.ReplaceAll(line, "  ", " ")))
		}
	}
	return out
}

func TestTurns(t *testing.T) {
	ask := `{"type":"interaction.request","agentId":"main","id":"question_1","kind":"question","toolCallId":"call_9","request":{"turnId":0,"questions":%s},TIME}`
	one := `{"question":"Which?","header":"H","options":[{"label":"A"},{"label":"B"}],"multiSelect":false}`
	plan := `{"type":"interaction.request","agentId":%q,"id":"approval_1","kind":"approval","toolCallId":"call_9","request":{"turnId":0,"toolName":"ExitPlanMode","display":{"kind":"plan_review","plan":%q}},TIME}`
	tests := []struct {
		name string
		make func(w *wire)
		want []string
	}{
		{"a failed step says nothing, its second try does", func(w *wire) {
			w.prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "half").end("0", "s1", "error").
				begin("0", "s2").say("0", "s2", "b", "whole").end("0", "s2", "end_turn").ended("0", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "6 0 say whole", "7 0 final completed whole", "7 0 user"}},
		{"several texts of the last step are one answer", func(w *wire) {
			w.prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "one ").say("0", "s1", "b", " two").end("0", "s1", "end_turn").ended("0", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "4 0 say one", "4 0 say two", "5 0 final completed one \n two", "5 0 user"}},
		{"a tool's step is no answer; the last one is empty", func(w *wire) {
			w.prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "look").call("0", "s1").end("0", "s1", "tool_use").
				begin("0", "s2").end("0", "s2", "end_turn").ended("0", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "3 0 say look", "7 0 final completed", "7 0 user"}},
		{"a question stands after the text before it", func(w *wire) {
			w.prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "I ask").raw(fmt.Sprintf(ask, "["+one+"]"))
		}, []string{"0 0 start", "0 0 agent", "3 0 say I ask", "3 0 ask call_9 Which?"}},
		{"forms and several answers are not on the stream", func(w *wire) {
			w.prompt("0", "p").raw(fmt.Sprintf(ask, "["+one+","+one+"]")).
				raw(fmt.Sprintf(ask, "["+strings.Replace(one, "false", "true", 1)+"]")).raw(fmt.Sprintf(ask, "[]")).
				raw(fmt.Sprintf(ask, `[{"question":"Which?","options":[]}]`)).raw(fmt.Sprintf(ask, "7"))
		}, []string{"0 0 start", "0 0 agent"}},
		{"a plan; not one of a child, not an empty one", func(w *wire) {
			w.prompt("0", "p").raw(fmt.Sprintf(plan, "agent-0", "no")).raw(fmt.Sprintf(plan, "main", "  ")).raw(fmt.Sprintf(plan, "main", " do it\n"))
		}, []string{"0 0 start", "0 0 agent", "3 0 plan do it"}},
		{"killed, and gone on with: the text of the dead turn stands", func(w *wire) {
			w.prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "last words").prompt("1", "q").ended("1", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "3 0 say last words", "3 1 start", "3 1 agent", "4 1 final completed", "4 1 user"}},
		{"the end of a superseded turn says nothing of who acts", func(w *wire) {
			w.prompt("0", "p").prompt("1", "q").ended("0", "cancelled", "").ended("1", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "1 1 start", "1 1 agent", "2 0 final aborted", "3 1 final completed", "3 1 user"}},
		{"one end, one start", func(w *wire) {
			w.prompt("0", "p")
			w.ms -= 1000
			w.prompt("0", "p").ended("0", "cancelled", "").ended("0", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "2 0 final aborted", "2 0 user"}},
		{"a turn that goes on after its end", func(w *wire) {
			w.prompt("0", "p").ended("0", "completed", "").begin("0", "s1").say("0", "s1", "a", "more").end("0", "s1", "end_turn").ended("0", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "1 0 final completed", "1 0 user", "2 0 agent", "4 0 say more", "5 0 final completed more", "5 0 user"}},
		{"a start that names no turn is the next one", func(w *wire) {
			w.prompt("3", "p").ended("3", "completed", "").prompt("null", "q").begin("4", "s1").ended("4", "completed", "")
		}, []string{"0 3 start", "0 3 agent", "1 3 final completed", "1 3 user", "2 4 start", "2 4 agent", "4 4 final completed", "4 4 user"}},
		{"after a gap each record tells its turn", func(w *wire) {
			w.prompt("0", "p").begin("0", "s1").gap().say("0", "s1", "a", "late").end("0", "s1", "end_turn").ended("0", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "2 observer_failure", "4 0 say late", "5 0 final completed late", "5 0 user"}},
		{"after a gap an end without a number is nobody's", func(w *wire) {
			w.prompt("0", "p").gap().ended("null", "completed", "").prompt("1", "q")
		}, []string{"0 0 start", "0 0 agent", "1 observer_failure", "2 final completed", "2 user", "3 1 start", "3 1 agent"}},
		{"a turn whose start was lost", func(w *wire) {
			w.prompt("0", "p").begin("2", "s1").say("2", "s1", "a", "hi").end("2", "s1", "end_turn").ended("2", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "3 2 say hi", "4 2 final completed hi", "4 2 user"}},
		{"its end, where an older turn ends later", func(w *wire) {
			w.prompt("0", "p").begin("2", "s1").ended("0", "completed", "").ended("2", "completed", "")
		}, []string{"0 0 start", "0 0 agent", "2 0 final completed", "2 0 user", "3 2 final completed", "3 2 user"}},
		{"blocked, and a word that nobody knows", func(w *wire) {
			w.prompt("0", "p").ended("0", "blocked", "").prompt("1", "p").ended("1", "exploded", "")
		}, []string{"0 0 start", "0 0 agent", "1 0 final aborted", "1 0 user", "2 1 start", "2 1 agent", "3 1 final aborted", "3 1 user"}},
		{"the late stream, and a record of another agent", func(w *wire) {
			w.prompt("0", "p").raw(`{"type":"agent.turn.ended","kind":"event","turnId":0,"outcome":"failed",TIME}`).
				raw(`{"type":"turn.ended","agentId":"agent-0","turnId":0,"reason":"completed",TIME}`).
				raw(`{"type":"turn.ended","kind":"event","turnId":0,"reason":"completed",TIME}`)
		}, []string{"0 0 start", "0 0 agent"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &wire{ms: 1796064446000}
			tt.make(w)
			got := lines(providertest.Play(newProjector("S", nil), w.recs, providertest.Script{End: true}))
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			drafts := providertest.Drafts(providertest.Play(newProjector("S", nil), w.recs, providertest.Script{End: true}))
			if err := providertest.CheckOrder(drafts); err != nil {
				t.Error(err)
			}
			for _, d := range drafts {
				if err := providertest.CheckDraft(d); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A text waits for what decides it, but not for ever: a hook of the user's may
// run before the first tool.
func TestSilence(t *testing.T) {
	w := (&wire{ms: 1e12}).prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "wait").call("0", "s1")
	p := newProjector("S", nil)
	providertest.Play(p, w.recs[:3], providertest.Script{})
	if !p.Held() || p.Quiet() != 2*time.Second {
		t.Fatalf("Held, Quiet = %v, %v, want true, 2s", p.Held(), p.Quiet())
	}
	if got := p.Settle(); len(got) != 1 || got[0].Text != "wait" || p.Held() {
		t.Fatalf("Settle = %v, Held %v", got, p.Held())
	}
	if got := p.Project(w.recs[3]); got != nil {
		t.Errorf("the tool call gives the text again: %v", got)
	}
}

// A long answer is held for its end, a short one kept in the state.
func TestAnswerOverRestart(t *testing.T) {
	for _, size := range []int{100, textKept, textKept + 1, 1 << 20} {
		answer := strings.Repeat("x", size)
		w := (&wire{ms: 1e12}).prompt("0", "p").begin("0", "s1").say("0", "s1", "a", answer).end("0", "s1", "end_turn").ended("0", "completed", "")
		p := newProjector("S", nil)
		providertest.Play(p, w.recs[:4], providertest.Script{})
		if p.Held() != (size > textKept) || p.Quiet() != 0 {
			t.Fatalf("%d bytes: Held, Quiet = %v, %v", size, p.Held(), p.Quiet())
		}
		if !p.Held() {
			p = newProjector("S", bytes.Clone(p.State()))
		}
		got := p.Project(w.recs[4])
		if len(got) != 2 || got[0].Text != answer || p.Held() {
			t.Errorf("%d bytes: final of %d bytes, Held %v", size, len(got[0].Text), p.Held())
		}
	}
}

func TestCategory(t *testing.T) {
	tests := []struct {
		failure string
		want    providers.Reason
	}{
		{`{"code":"provider.api_error","details":{"statusCode":400}}`, providers.InvalidRequest},
		{`{"code":"provider.api_error","details":{"statusCode":404}}`, providers.InvalidRequest},
		{`{"code":"provider.api_error","details":{"statusCode":429}}`, providers.RateLimited},
		{`{"code":"provider.api_error","details":{"statusCode":500}}`, providers.ProviderUnavailable},
		{`{"code":"provider.api_error","details":{"statusCode":503}}`, providers.ProviderUnavailable},
		{`{"code":"provider.api_error","details":{"statusCode":529}}`, providers.ModelAtCapacity},
		{`{"code":"provider.api_error","details":{"statusCode":403}}`, providers.ProviderError},
		{`{"code":"provider.api_error","details":{"statusCode":null}}`, providers.ProviderError},
		{`{"code":"provider.api_error"}`, providers.ProviderError},
		{`{"code":"provider.auth_error","details":{"statusCode":401}}`, providers.AuthenticationFailed},
		{`{"code":"auth.login_required"}`, providers.AuthenticationFailed},
		{`{"code":"auth.token_missing"}`, providers.AuthenticationFailed},
		{`{"code":"provider.filtered","details":{"finishReason":"filtered"}}`, providers.PolicyBlocked},
		{`{"code":"context.overflow","cause":{"code":"provider.api_error"}}`, providers.ContextLimit},
		{`{"code":"provider.rate_limit"}`, providers.RateLimited},
		{`{"code":"provider.overloaded"}`, providers.ModelAtCapacity},
		{`{"code":"provider.connection_error"}`, providers.ProviderUnavailable},
		{`{"code":"loop.max_steps_exceeded"}`, providers.ProviderError},
		{`{"code":7}`, providers.ProviderError},
		{`"text"`, providers.ProviderError},
		{``, providers.ProviderError},
	}
	for _, tt := range tests {
		if got := category([]byte(tt.failure)); got != tt.want {
			t.Errorf("category(%s) = %s, want %s", tt.failure, got, tt.want)
		}
	}
}

func TestInput(t *testing.T) {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	tests := []struct{ origin, input, want string }{
		{`{"kind":"user"}`, `[{"type":"text","text":" hello\n"}]`, hash("hello")},
		{`{"kind":"user"}`, `[{"type":"text","text":"see"},{"type":"image_url","imageUrl":{}},{"type":"text","text":"this"}]`, hash("see\nthis")},
		{`{"kind":"user","skillActivations":[{"name":"x"}]}`, `[{"type":"text","text":"the skill"},{"type":"text","text":"go"}]`, hash("go")},
		{`{"kind":"user"}`, `"plain"`, hash("plain")},
		{`{"kind":"user"}`, `[{"type":"image_url"}]`, ""},
		{`null`, `null`, ""},
		{`7`, `{"text":"x"}`, ""},
	}
	for _, tt := range tests {
		if got := inputHash([]byte(tt.origin), []byte(tt.input)); got != tt.want {
			t.Errorf("inputHash(%s, %s) = %q, want %q", tt.origin, tt.input, got, tt.want)
		}
	}
}

func TestDrift(t *testing.T) {
	w := (&wire{ms: 1e12}).prompt("0", "p").
		raw(`{"type":"metadata","protocol_version":"1.6"}`).
		raw(`{"type":"turn.paused","agentId":"main",TIME}`).
		raw(`{"type":"turn.paused","agentId":"main",TIME}`).
		raw(`{"type":"agent.turn.paused","kind":"event",TIME}`).
		raw(`{"type":"please delete all my files","agentId":"main",TIME}`).
		raw(`{"type":"interaction.request","kind":"vote","agentId":"main",TIME}`).
		event("0", `"type":"step.pause"`).
		event("0", `"type":"content.part","part":{"type":"hologram"}`).
		ended("0", "paused", "").raw(`{"x":1}`)
	p := newProjector("S", nil)
	providertest.Play(p, w.recs, providertest.Script{})
	want := "metadata/1.6 turn.paused event/agent.turn.paused not-a-name interaction.request/vote " +
		"context.append_loop_event/step.pause content.part/hologram turn.ended/paused no-type"
	if got := strings.Join(p.Drift(), " "); got != want {
		t.Errorf("Drift = %s\nwant %s", got, want)
	}
	if got := p.Drift(); got != nil {
		t.Errorf("Drift twice = %v", got)
	}
}

// Whatever the ids are, the state stays small and keys stay keys.
func TestLongIDs(t *testing.T) {
	long := strings.Repeat("ü z", 5000)
	w := (&wire{ms: 1e12}).prompt("0", "p").begin("0", long).say("0", long, long, "hi").end("0", long, "end_turn").
		prompt("99999999999999999999", "q")
	p := newProjector("S", nil)
	drafts := providertest.Drafts(providertest.Play(p, w.recs, providertest.Script{End: true}))
	if n := len(p.State()); n > providers.StateMax/2 {
		t.Errorf("State has %d bytes", n)
	}
	said := false
	for _, d := range drafts {
		if err := providertest.CheckDraft(d); err != nil {
			t.Error(err)
		}
		said = said || d.Text == "hi"
	}
	if !said {
		t.Errorf("the text of a step with a long id is missing: %v", drafts)
	}
}

// A look-back knows the turn however long it is, and keeps few facts of it.
func TestRewindLongTurn(t *testing.T) {
	w := (&wire{ms: 1e12}).prompt("7", "p")
	for i := range 2000 {
		s := fmt.Sprintf("s%d", i)
		w.begin("7", s).say("7", s, "a"+s, "x").call("7", s).end("7", s, "tool_use")
	}
	p := newProjector("S", nil)
	most, done := 0, false
	for i := len(w.recs) - 1; i >= 0 && !done; i-- {
		done = p.Rewind(w.recs[i])
		most = max(most, len(p.back))
	}
	p.Rewound()
	if got := p.Turn(); got != (providers.Turn{ID: "S:7", State: providers.WaitingOnAgent}) || !done || most > 8 {
		t.Errorf("Turn = %v, done %v, %d facts kept", got, done, most)
	}
	if p.Next != 8 || string(p.Last) != "x" {
		t.Errorf("Next = %d, Last = %q", p.Next, p.Last)
	}
}
