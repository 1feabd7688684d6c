package opencode

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
		r := providers.Record{Start: int64(len(out)), End: int64(len(out) + 1), Framing: providers.Rows}
		compose(t, &r, f, clock)
		out = append(out, r)
	}
	return out
}

// compose writes the record of one line.
func compose(t testing.TB, r *providers.Record, f []string, clock int) {
	t.Helper()
	rest := func(n int) string { return strings.Join(f[n:], " ") }
	has := func(s string) bool { return f[len(f)-1] == s }
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
		t.Fatalf("script line %q", f)
	}
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

const (
	first = "user u1\nsay u1 p1 do it\nreply a1 u1\n"
	began = "u1 start|u1 waiting_on_agent"
)

// turnCases are scripts by hand and what they give.
var turnCases = []struct{ name, script, want string }{
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
	{"an error's finish is no answer", first + "text a1 q1 par\nend a1 u1 error\nquiet\nfail a1 u1 APIError 500",
		began + "|u1 says par|u1 failure provider_unavailable|u1 waiting_on_user|= u1 waiting_on_user"},
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
	{"question waits for both texts before it", first + "begin a1 q1\nbegin a1 q2\nask a1 c1 Red Blue\ntext a1 q1 One.\ntext a1 q2 Two.\nbegin a1 q3",
		began + "|u1 says One.|u1 says Two.|u1 asks|= u1 waiting_on_agent"},
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
	{"gap before an answer's text", first + "gap\ntext a1 q2 two\nend a1 u1 stop", began + "|failure|u1 says two|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
	{"gap, then a turn that began in it", "gap\nreply a9 u9\ntext a9 q1 x\nend a9 u9 stop", "failure|u9 says x|u9 final completed x|u9 waiting_on_user|= u9 waiting_on_user"},
	{"gap, then a text whose message was in it", first + "gap\ntext a7 q1 x", began + "|failure|says x|= unknown"},
	{"gap releases a question", first + "begin a1 q1\nask a1 c1 Red Blue\ngap", began + "|u1 asks|failure|= unknown"},
}

func TestTurns(t *testing.T) {
	for _, tt := range turnCases {
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
