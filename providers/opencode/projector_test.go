package opencode

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

// script writes records by hand, one a line: what, ids, and what matters.
//
//	user u1 [100]            the row of a user's message, made at ms 100
//	say u1 p1 TEXT           a prompt's text
//	syn u1 p1 TEXT           the same, synthetic
//	mark u1 auto|manual      a compaction part
//	reply a1 u1 [summary]    a new assistant message
//	begin a1 p1              a text begins
//	text a1 p1 TEXT          a text ends
//	call a1 c1 NAME STATUS [ERROR]
//	ask a1 c1 OPTIONS…       a running question
//	end a1 u1 FINISH [summary]     completed; FINISH "-" is none
//	fail a1 u1 NAME [STATUS] [summary]   completed with an error
//	session 50               session.created at ms 50
//	undo u1                  message.removed
//	gap                      a record that is too long
//	quiet                    a second of silence
//	step a1                  step-start
func script(t testing.TB, text string) []providers.Record {
	t.Helper()
	var out []providers.Record
	clock := 1000
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		clock += 10
		f := strings.Fields(l)
		rest := func(n int) string { return strings.Join(f[n:], " ") }
		has := func(s string) bool { return f[len(f)-1] == s }
		r := providers.Record{Start: int64(len(out)), End: int64(len(out) + 1), Framing: providers.Rows}
		info := func(format string, args ...any) {
			r.Data = fmt.Appendf(nil, `{"type":"message.updated.1","data":{"info":{`+format+`}}}`, args...)
		}
		part := func(msg, format string, args ...any) {
			r.Data = fmt.Appendf(nil, `{"type":"message.part.updated.1","data":{"part":{"messageID":%q,`+format+`},"time":%d}}`,
				append(append([]any{msg}, args...), clock)...)
		}
		switch f[0] {
		case "user":
			at := clock
			if len(f) > 2 {
				fmt.Sscan(f[2], &at)
			}
			info(`"id":%q,"role":"user","time":{"created":%d}`, f[1], at)
		case "say":
			part(f[1], `"id":%q,"type":"text","text":%q`, f[2], rest(3))
		case "syn":
			part(f[1], `"id":%q,"type":"text","text":%q,"synthetic":true,"time":{"start":1,"end":2}`, f[2], rest(3))
		case "mark":
			part(f[1], `"id":"k%s","type":"compaction","auto":%v`, f[1], f[2] == "auto")
		case "reply":
			at := clock
			if len(f) > 3 && !has("summary") {
				fmt.Sscan(f[3], &at)
			}
			info(`"id":%q,"role":"assistant","parentID":%q,"time":{"created":%d},"summary":%v`, f[1], f[2], at, has("summary"))
		case "begin":
			part(f[1], `"id":%q,"type":"text","text":"","time":{"start":%d}`, f[2], clock)
		case "step":
			part(f[1], `"id":"s%d","type":"step-start"`, clock)
		case "text":
			part(f[1], `"id":%q,"type":"text","text":%q,"time":{"start":%d,"end":%d}`, f[2], rest(3), clock-5, clock)
		case "call":
			part(f[1], `"id":"t%s","type":"tool","callID":%q,"tool":%q,"state":{"status":%q,"error":%q,"metadata":{"interrupted":%v}}`,
				f[2], f[2], f[3], f[4], strings.TrimSuffix(rest(5), " interrupted"), has("interrupted"))
		case "ask":
			var opts []string
			for _, o := range f[3:] {
				opts = append(opts, fmt.Sprintf(`{"label":%q}`, o))
			}
			part(f[1], `"id":"t%s","type":"tool","callID":%q,"tool":"question","state":{"status":"running","time":{"start":%d},"input":{"questions":[{"question":"Which?","header":"H","options":[%s]}]}}`,
				f[2], f[2], clock, strings.Join(opts, ","))
		case "end":
			finish := ""
			if f[3] != "-" {
				finish = `,"finish":"` + f[3] + `"`
			}
			info(`"id":%q,"role":"assistant","parentID":%q,"time":{"created":900,"completed":%d},"summary":%v%s`, f[1], f[2], clock, has("summary"), finish)
		case "fail":
			status, retry := 0, false
			if len(f) > 4 {
				fmt.Sscan(f[4], &status)
				retry = f[4] == "retryable"
			}
			info(`"id":%q,"role":"assistant","parentID":%q,"time":{"created":900,"completed":%d},"summary":%v,"error":{"name":%q,"data":{"message":"Overloaded, said the provider","statusCode":%d,"isRetryable":%v}}`,
				f[1], f[2], clock, has("summary"), f[3], status, retry)
		case "session":
			r.Data = fmt.Appendf(nil, `{"type":"session.created.1","data":{"info":{"id":"ses_x","time":{"created":%s}}}}`, f[1])
		case "undo":
			r.Data = fmt.Appendf(nil, `{"type":"message.removed.1","data":{"messageID":%q}}`, f[1])
		case "gap":
			r.Gap, r.Size = providers.Oversized, 5<<20
		case "quiet":
			r.Start = -1
		default:
			t.Fatalf("script line %q", l)
		}
		out = append(out, r)
	}
	return out
}

// play projects a script and gives each draft as "kind turn what".
func play(t testing.TB, text string, restarts bool) []string {
	t.Helper()
	p := newProjector(nil)
	var drafts []providers.Draft
	for _, r := range script(t, text) {
		if r.Start < 0 {
			if p.Quiet() > 0 {
				drafts = append(drafts, p.Settle()...)
			}
			continue
		}
		drafts = append(drafts, p.Project(r)...)
		if restarts && !p.Held() {
			p = newProjector(bytes.Clone(p.State()))
		}
	}
	if err := providertest.CheckOrder(drafts); err != nil {
		t.Error(err)
	}
	var out []string
	for _, d := range drafts {
		if err := providertest.CheckDraft(d); err != nil {
			t.Error(err)
		}
		s := map[providers.Kind]string{
			providers.TurnStarted: "start", providers.TurnStateChanged: string(d.State), providers.AssistantMessage: "says " + d.Text,
			providers.ObserverFailure: "failure " + string(d.Reason), providers.TurnFinal: "final " + string(d.Outcome) + " " + d.Text,
			providers.ApprovalRequested: "asks",
		}[d.Kind]
		out = append(out, strings.TrimSpace(d.Turn+" "+s))
	}
	turn := p.Turn()
	return append(out, strings.Join(strings.Fields("= "+turn.ID+" "+string(turn.State)), " "))
}

func TestTurns(t *testing.T) {
	const first = "user u1\nsay u1 p1 do it\nreply a1 u1\n"
	const began = "u1 start|u1 waiting_on_agent"
	tests := []struct{ name, script, want string }{
		{"two texts in one answer", first + "text a1 q1 one\ntext a1 q2 two\nend a1 u1 stop",
			began + "|u1 says one|u1 says two|u1 final completed one\ntwo|u1 waiting_on_user|= u1 waiting_on_user"},
		{"length is a final", first + "text a1 q1 cut\nend a1 u1 length", began + "|u1 says cut|u1 final completed cut|u1 waiting_on_user|= u1 waiting_on_user"},
		{"unknown lets the loop go on", first + "text a1 q1 more\nend a1 u1 unknown\nquiet\nreply a2 u1\nend a2 u1 stop",
			began + "|u1 says more|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"tool-calls never", first + "text a1 q1 go\ncall a1 c1 bash completed\nend a1 u1 tool-calls\nquiet", began + "|u1 says go|= u1 waiting_on_agent"},
		{"stop beside a call goes on", first + "call a1 c1 bash completed\nend a1 u1 stop\nreply a2 u1\ntext a2 q1 ok\nend a2 u1 stop",
			began + "|u1 says ok|u1 final completed ok|u1 waiting_on_user|= u1 waiting_on_user"},
		{"stop beside a call and silence", first + "call a1 c1 bash completed\nend a1 u1 stop\nquiet",
			began + "|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"length beside an interrupted call", first + "call a1 c1 bash error Tool execution aborted interrupted\ntext a1 q1 x\nend a1 u1 length",
			began + "|u1 says x|u1 final completed x|u1 waiting_on_user|= u1 waiting_on_user"},
		{"abort", first + "text a1 q1 par\nfail a1 u1 MessageAbortedError", began + "|u1 says par|u1 final aborted|u1 waiting_on_user|= u1 waiting_on_user"},
		{"the error comes after the end", first + "end a1 u1 content-filter\nfail a1 u1 ContentFilterError\nfail a1 u1 ContentFilterError",
			began + "|u1 failure policy_blocked|u1 waiting_on_user|= u1 waiting_on_user"},
		{"permission rejected", first + "call a1 c1 bash error " + rejectedPermission + "\nend a1 u1 tool-calls\nuser u1\nquiet",
			began + "|u1 waiting_on_user|= u1 waiting_on_user"},
		{"question dismissed", first + "ask a1 c1 A B\ncall a1 c1 question error " + dismissedQuestion + "\nend a1 u1 tool-calls\nquiet",
			began + "|u1 asks|u1 waiting_on_user|= u1 waiting_on_user"},
		{"rejected with feedback goes on", first + "call a1 c1 bash error " + rejectedPermission + " with the following feedback: no\nend a1 u1 tool-calls\nquiet", began + "|= u1 waiting_on_agent"},
		{"rejected, and the loop goes on", first + "call a1 c1 bash error " + rejectedPermission + "\nend a1 u1 tool-calls\nreply a2 u1\nquiet", began + "|= u1 waiting_on_agent"},
		{"rejected, and the next prompt before the second is over", first + "call a1 c1 bash error " + rejectedPermission +
			"\nend a1 u1 tool-calls\nuser u2\nsay u2 p2 again\nreply a2 u2\nend a2 u2 stop",
			began + "|u1 waiting_on_user|u2 start|u2 waiting_on_agent|u2 final completed|u2 waiting_on_user|= u2 waiting_on_user"},
		{"abort while a retry waits", first + "end a1 u1 -\nquiet", began + "|u1 waiting_on_user|= u1 waiting_on_user"},
		{"question waits for the text before it", first + "begin a1 q1\nask a1 c1 Red Blue\ntext a1 q1 I ask.\nask a1 c1 Red Blue\ncall a1 c1 question completed\nend a1 u1 tool-calls",
			began + "|u1 says I ask.|u1 asks|= u1 waiting_on_agent"},
		{"question and silence", first + "begin a1 q1\nask a1 c1 Red Blue\nquiet", began + "|u1 asks|= u1 waiting_on_agent"},
		{"question does not wait for a dropped attempt", first + "step a1\nbegin a1 q1\nstep a1\nask a1 c1 Red Blue", began + "|u1 asks|= u1 waiting_on_agent"},
		{"question answered before the text ended", first + "begin a1 q1\nask a1 c1 Red Blue\ncall a1 c1 question completed\ntext a1 q1 late", began + "|u1 says late|= u1 waiting_on_agent"},
		{"prompt without text begins with its answer", "user u1\nreply a1 u1\nend a1 u1 stop", began + "|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"prompt that is never answered", "user u1\nsay u1 p1 x\nquiet", began + "|= u1 waiting_on_agent"},
		{"attached file before the words", "user u1\nsyn u1 p0 Called the Read tool\nsay u1 p1 look\nreply a1 u1\nend a1 u1 stop", began + "|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"shell command is no turn", "user u1\nsyn u1 p1 The following tool was executed by the user\nreply a1 u1\nend a1 u1 -\ncall a1 c1 bash completed\nquiet", "= unknown"},
		{"manual compaction is no turn", first + "end a1 u1 stop\nuser k1\nmark k1 manual\nreply s1 k1 summary\ntext s1 q9 sum\nend s1 k1 stop summary\nquiet",
			began + "|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"overflow goes on with a synthetic message", first + "end a1 u1 -\nuser k1\nmark k1 auto\nreply s1 k1 summary\ntext s1 q9 sum\nend s1 k1 stop summary\nuser c1\nsyn c1 p9 Continue\nreply a2 c1\ntext a2 q1 ok\nend a2 c1 stop",
			began + "|u1 says ok|u1 final completed ok|u1 waiting_on_user|= u1 waiting_on_user"},
		{"overflow repeats the prompt", first + "end a1 u1 -\nuser k1\nmark k1 auto\nreply s1 k1 summary\nend s1 k1 stop summary\nuser c1\nsay c1 p9 do it\nreply a2 c1\ntext a2 q1 ok\nend a2 c1 stop",
			began + "|u1 says ok|u1 final completed ok|u1 waiting_on_user|= u1 waiting_on_user"},
		{"compaction fails", first + "end a1 u1 -\nuser k1\nmark k1 auto\nreply s1 k1 summary\nfail s1 k1 ContextOverflowError 0 summary\nquiet",
			began + "|u1 failure context_limit|u1 waiting_on_user|= u1 waiting_on_user"},
		{"compaction aborted", first + "end a1 u1 -\nuser k1\nmark k1 auto\nreply s1 k1 summary\nfail s1 k1 MessageAbortedError 0 summary",
			began + "|u1 final aborted|u1 waiting_on_user|= u1 waiting_on_user"},
		{"queued prompt is answered in place of the older one", first + "call a1 c1 bash completed\nuser u2\nsay u2 p2 stop that\nend a1 u1 tool-calls\nreply a2 u2\ntext a2 q1 ok\nend a2 u2 stop",
			began + "|u2 start|u2 waiting_on_agent|u1 final aborted|u2 says ok|u2 final completed ok|u2 waiting_on_user|= u2 waiting_on_user"},
		{"queued prompt after the answer", first + "user u2\nsay u2 p2 next\ntext a1 q1 one\nend a1 u1 stop\nreply a2 u2\nend a2 u2 stop",
			began + "|u2 start|u2 waiting_on_agent|u1 says one|u1 final completed one|u2 final completed|u2 waiting_on_user|= u2 waiting_on_user"},
		{"two queued prompts, the newest is answered", first + "user u2\nsay u2 p2 b\nuser u3\nsay u3 p3 c\nend a1 u1 tool-calls\nreply a2 u3\nend a2 u3 stop",
			began + "|u2 start|u2 waiting_on_agent|u3 start|u3 waiting_on_agent|u1 final aborted|u2 final aborted|u3 final completed|u3 waiting_on_user|= u3 waiting_on_user"},
		{"killed: nothing is invented", first + "text a1 q1 half\nuser u2\nsay u2 p2 b\nreply a2 u2\nend a2 u2 stop",
			began + "|u1 says half|u2 start|u2 waiting_on_agent|u2 final completed|u2 waiting_on_user|= u2 waiting_on_user"},
		{"error is not an end that a newer prompt makes", first + "fail a1 u1 APIError 400\nuser u2\nsay u2 p2 b\nreply a2 u2\nend a2 u2 stop",
			began + "|u1 failure invalid_request|u1 waiting_on_user|u2 start|u2 waiting_on_agent|u2 final completed|u2 waiting_on_user|= u2 waiting_on_user"},
		{"a final that proves wrong", first + "end a1 u1 stop\nreply a2 u1\ntext a2 q1 more\nend a2 u1 stop",
			began + "|u1 final completed|u1 waiting_on_user|u1 waiting_on_agent|u1 says more|u1 final completed more|u1 waiting_on_user|= u1 waiting_on_user"},
		{"a fork's copies are history", "session 500\nuser u1 100\nsay u1 p1 old\nreply a1 u1 120\ntext a1 q1 old\nend a1 u1 stop\nuser u2 600\nsay u2 p2 new\nreply a2 u2\nend a2 u2 stop",
			"u2 start|u2 waiting_on_agent|u2 final completed|u2 waiting_on_user|= u2 waiting_on_user"},
		{"undo", first + "end a1 u1 stop\nundo a1\nundo u1\nuser u2\nsay u2 p2 b", began + "|u1 final completed|u1 waiting_on_user|u2 start|u2 waiting_on_agent|= u2 waiting_on_agent"},
		{"undo of a turn that did not end", first + "undo a1\nundo u1", began + "|= unknown"},
		{"records that come again", first + "text a1 q1 x\ntext a1 q1 x\nuser u1\nend a1 u1 stop\nend a1 u1 stop\ntext a1 q1 x", began + "|u1 says x|u1 final completed x|u1 waiting_on_user|= u1 waiting_on_user"},
		{"gap in a prompt", "user u1\ngap\nreply a1 u1\nend a1 u1 stop", "failure|" + began + "|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"gap in an answer", first + "text a1 q1 one\ngap\nend a1 u1 stop", began + "|u1 says one|failure|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		{"gap, then a turn that began in it", "gap\nreply a9 u9\ntext a9 q1 x\nend a9 u9 stop", "failure|u9 says x|u9 final completed x|u9 waiting_on_user|= u9 waiting_on_user"},
		{"gap, then a text whose message was in it", first + "gap\ntext a7 q1 x", began + "|failure|says x|= unknown"},
		{"gap releases a question", first + "begin a1 q1\nask a1 c1 Red Blue\ngap", began + "|u1 asks|failure|= unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, restarts := range []bool{false, true} {
				got := strings.Join(play(t, tt.script, restarts), "|")
				if got != tt.want {
					t.Errorf("restarts %v:\n got %s\nwant %s", restarts, got, tt.want)
				}
			}
		})
	}
}

func TestReasons(t *testing.T) {
	tests := []struct {
		error string
		want  providers.Reason
	}{
		{"APIError 401", providers.AuthenticationFailed}, {"APIError 403", providers.AuthenticationFailed},
		{"APIError 429", providers.RateLimited}, {"APIError 400", providers.InvalidRequest}, {"APIError 404", providers.InvalidRequest},
		{"APIError 503", providers.ModelAtCapacity}, // the message of the script speaks of overload
		{"APIError 529", providers.ModelAtCapacity}, {"APIError 500", providers.ProviderUnavailable}, {"APIError 502", providers.ProviderUnavailable},
		{"APIError retryable", providers.ProviderUnavailable}, {"APIError", providers.ProviderError}, {"APIError 418", providers.ProviderError},
		{"ProviderAuthError", providers.AuthenticationFailed}, {"ContextOverflowError", providers.ContextLimit},
		{"ContentFilterError", providers.PolicyBlocked}, {"UnknownError", providers.ProviderError},
		{"MessageOutputLengthError", providers.ProviderError}, {"StructuredOutputError", providers.ProviderError},
	}
	for _, tt := range tests {
		got := play(t, "user u1\nsay u1 p1 x\nreply a1 u1\nfail a1 u1 "+tt.error, false)
		if want := "u1 failure " + string(tt.want); got[2] != want {
			t.Errorf("%s: %s, want %s", tt.error, got[2], want)
		}
	}
	plain := reason(&failed{Name: "APIError", Data: struct {
		Status    float64 `json:"statusCode"`
		Retryable flag    `json:"isRetryable"`
		Message   string  `json:"message"`
		Body      string  `json:"responseBody"`
	}{Status: 503}})
	if plain != providers.ProviderUnavailable {
		t.Errorf("503 without a word of overload: %s", plain)
	}
}

// A long text is not in the state: its message is held until it has ended.
func TestLongTextIsHeld(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	recs := script(t, "user u1\nsay u1 p1 x\nreply a1 u1\ntext a1 q1 "+long+"\nend a1 u1 stop")
	p := newProjector(nil)
	for _, r := range recs[:4] {
		p.Project(r)
	}
	if !p.Held() || p.Quiet() != 0 {
		t.Fatalf("Held %v, Quiet %v, want held without a silence", p.Held(), p.Quiet())
	}
	out := p.Project(recs[4])
	if p.Held() || len(out) != 2 || out[0].Text != strings.TrimSpace(long) {
		t.Errorf("Held %v, drafts %v", p.Held(), out)
	}
}

// A call in the message says that its text is no final's: nothing is held.
func TestLongTextBesideACallIsNotHeld(t *testing.T) {
	p := newProjector(nil)
	for _, r := range script(t, "user u1\nsay u1 p1 x\nreply a1 u1\ntext a1 q1 "+strings.Repeat("word ", 1000)+"\ncall a1 c1 bash pending") {
		p.Project(r)
	}
	if p.Held() {
		t.Error("held")
	}
}

func TestTimes(t *testing.T) {
	p := newProjector(nil)
	var got []string
	for _, r := range script(t, "user u1 100\nsay u1 p1 x\nreply a1 u1\ntext a1 q1 y\nend a1 u1 stop") {
		for _, d := range p.Project(r) {
			got = append(got, fmt.Sprintf("%s %d", d.Kind, d.At.UnixMilli()))
		}
	}
	want := "turn_started 100|turn_state_changed 100|assistant_message 1040|turn_final 1050|turn_state_changed 1050"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("times\n got %s\nwant %s", s, want)
	}
}

// Ids of any length keep the state small, and keys valid.
func TestStateIsBoundedByHostileIds(t *testing.T) {
	p := newProjector(nil)
	for i := range 400 {
		id := fmt.Sprint(i) + strings.Repeat("é\"", 300)
		for _, f := range []string{
			`{"type":"message.updated.1","data":{"info":{"id":%[1]q,"role":"user","time":{"created":1}}}}`,
			`{"type":"message.part.updated.1","data":{"part":{"id":"p%[1]s","messageID":%[1]q,"type":"text","text":"\u0001\u0001<<<<<%[2]s"}}}`,
			`{"type":"message.updated.1","data":{"info":{"id":"a%[1]s","parentID":%[1]q,"role":"assistant","time":{"created":1}}}}`,
			`{"type":"message.part.updated.1","data":{"part":{"id":"q%[1]s","messageID":"a%[1]s","type":"text","text":"\u0001<<<%[2]s","time":{"start":1,"end":2}}}}`,
			`{"type":"message.part.updated.1","data":{"part":{"id":"r%[1]s","messageID":"a%[1]s","type":"text","text":"","time":{"start":1}}}}`,
		} {
			esc := strings.ReplaceAll(id, `"`, `\"`)
			data := strings.NewReplacer(`%[1]q`, `"`+esc+`"`, `%[1]s`, esc, `%[2]s`, strings.Repeat("<", i)).Replace(f)
			for _, d := range p.Project(providers.Record{Data: []byte(data)}) {
				if err := providertest.CheckDraft(d); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(p.State()); n > providers.StateMax || n == 0 {
				t.Fatalf("state of %d bytes", n)
			}
		}
	}
	if p.Turn().ID == "" {
		t.Error("no turn: the records were not understood")
	}
}

func TestDrift(t *testing.T) {
	p := newProjector(nil)
	for _, data := range []string{
		`{"type":"session.next.prompted.1","data":{}}`, `{"type":"session.next.prompted.1","data":{}}`,
		`{"type":"message.updated.2","data":{"info":{"id":"u1","role":"robot"}}}`,
		`{"type":"message.part.updated.1","data":{"part":{"id":"p","messageID":"u1","type":"hologram"}}}`,
		`{"type":"message.updated.1","data":{"info":{"id":"a","role":"assistant","parentID":"u","error":{"name":"NewError"}}}}`,
		`{"type":"please tell nobody","data":{}}`, `{"type":"message.part.updated.1","data":{"part":{"id":"p","messageID":"u1","type":"` + strings.Repeat("x", 80) + `"}}}`,
	} {
		p.Project(providers.Record{Data: []byte(data)})
	}
	want := "session.next.prompted.1 message.updated.2 role:robot part:hologram error:NewError odd"
	if got := strings.Join(p.Drift(), " "); got != want {
		t.Errorf("drift %q, want %q", got, want)
	}
	if got := p.Drift(); len(got) != 0 {
		t.Errorf("told twice: %v", got)
	}
	for i := range 100 {
		p.Project(providers.Record{Data: fmt.Appendf(nil, `{"type":"new.%c%c.1","data":{}}`, 'a'+i/26, 'a'+i%26)})
	}
	if n := len(p.Drift()); n != maxDrift {
		t.Errorf("%d types at once, want %d", n, maxDrift)
	}
}

func TestChildSessionsSayNothing(t *testing.T) {
	p := newProjector(nil)
	recs := append([]providers.Record{{Data: []byte(`{"type":"session.created.1","data":{"info":{"id":"ses_c","parentID":"ses_p","time":{"created":1}}}}`)}},
		script(t, "user u1\nsay u1 p1 x\nreply a1 u1\ntext a1 q1 y\nend a1 u1 stop")...)
	for _, r := range recs {
		if out := p.Project(r); len(out) != 0 {
			t.Fatalf("drafts %v", out)
		}
	}
	if got := p.Turn(); got.ID != "" || got.State != providers.Unknown {
		t.Errorf("turn %v", got)
	}
}

func TestRewindInAMessage(t *testing.T) {
	recs := script(t, "user u1\nsay u1 p1 x\nreply a1 u1\ntext a1 q1 short\nend a1 u1 stop")
	for _, tt := range []struct{ text, want string }{{"short", "short"}, {strings.Repeat("w", 2000), ""}} {
		recs[3].Data = script(t, "text a1 q1 "+tt.text)[0].Data
		p := newProjector(nil)
		for i := 3; i >= 0; i-- {
			if p.Rewind(recs[i]) {
				break
			}
		}
		p.Rewound()
		if p.Held() || p.Turn().ID != "u1" {
			t.Errorf("held %v, turn %v", p.Held(), p.Turn())
		}
		out := p.Project(recs[4])
		if len(out) != 2 || out[0].Text != tt.want || out[0].Turn != "u1" {
			t.Errorf("final %v, want text %q", out, tt.want)
		}
	}
}

// What was decided by silence before Steno came is decided by its rewinding.
func TestRewindAfterARejection(t *testing.T) {
	recs := script(t, "user u1\nsay u1 p1 x\nreply a1 u1\ncall a1 c1 bash error "+rejectedPermission+"\nend a1 u1 tool-calls")
	p := newProjector(nil)
	for i := len(recs) - 1; i >= 0; i-- {
		p.Rewind(recs[i])
	}
	p.Rewound()
	if got := p.Turn(); got != (providers.Turn{ID: "u1", State: providers.WaitingOnUser}) || p.Held() || p.Quiet() != time.Duration(0) {
		t.Errorf("turn %v, held %v", got, p.Held())
	}
}
