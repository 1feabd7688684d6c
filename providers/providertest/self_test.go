package providertest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// toy is a small provider that keeps the contract, or breaks it in one way.
type toy struct{ fault string }

func (toy) ID() string                                                   { return "toy" }
func (toy) Roots(providers.Env) []providers.Root                         { return nil }
func (toy) Claim(providers.Root, string) (a providers.Artifact, ok bool) { return a, false }
func (y toy) Projector(_ providers.Artifact, state []byte) providers.Projector {
	p := &toyProjector{fault: y.fault}
	if json.Unmarshal(state, &p.s) != nil {
		p.s.Turn, p.s.Done = "", false
	}
	if p.fault == "forgets" {
		p.s.Turn = ""
	}
	return p
}

type toyProjector struct {
	fault string
	s     struct {
		Turn string
		Done bool
		Fill string `json:",omitempty"`
	}
	held  []providers.Draft
	count int
	back  []providers.Record
}

func (p *toyProjector) Project(r providers.Record) []providers.Draft {
	out := p.release()
	if r.Gap != providers.Whole {
		if p.fault != "gap" {
			p.s.Turn, p.s.Done = "", false
		}
		if p.fault == "quiet gap" {
			return out
		}
		return append(out, r.Failure("toy"))
	}
	var rec struct{ Do, ID, Text string }
	if err := json.Unmarshal(r.Data, &rec); err != nil {
		if p.fault == "panics" {
			panic(err)
		}
		return out
	}
	key := rec.ID
	if len(key) > 100 || key == "" {
		return out
	}
	if p.count++; p.fault == "counts" {
		key = fmt.Sprint(p.count)
	}
	at := time.Unix(r.Start, 0).UTC()
	switch rec.Do {
	case "start":
		p.s.Turn, p.s.Done = key, false
		out = append(out, providers.Draft{Key: key + "/s", Kind: providers.TurnStarted, Turn: key, At: at})
		if p.fault != "stateless" {
			out = append(out, providers.Draft{Key: key + "/w", Kind: providers.TurnStateChanged, Turn: key, At: at, State: providers.WaitingOnAgent})
		}
	case "say":
		text := strings.TrimSpace(rec.Text)
		if p.fault == "blanks" {
			text = " " + rec.Text
		}
		if text != "" {
			out = append(out, providers.Draft{Key: key + "/t", Kind: providers.AssistantMessage, Turn: p.s.Turn, At: at, Text: text})
		}
	case "end":
		p.s.Done = true
		p.held = []providers.Draft{
			{Key: key + "/f", Kind: providers.TurnFinal, Turn: p.s.Turn, At: at, Outcome: providers.Completed},
			{Key: key + "/u", Kind: providers.TurnStateChanged, Turn: p.s.Turn, At: at, State: providers.WaitingOnUser},
		}
	case "fail":
		d := providers.Draft{Key: key + "/e", Kind: providers.ObserverFailure, Turn: p.s.Turn, At: at, Recoverable: true, Detail: "the toy broke"}
		if p.fault == "leaks" {
			d.Detail = rec.Text
		}
		out = append(out, d)
	}
	if p.fault == "grows" {
		p.s.Fill += strings.Repeat("x", 500)
	}
	return out
}

func (p *toyProjector) release() []providers.Draft {
	out := p.held
	p.held = nil
	return out
}

func (p *toyProjector) Turn() providers.Turn {
	state := providers.Unknown
	switch {
	case p.s.Done:
		state = providers.WaitingOnUser
	case p.s.Turn != "":
		state = providers.WaitingOnAgent
	}
	return providers.Turn{ID: p.s.Turn, State: state}
}

func (p *toyProjector) State() []byte { b, _ := json.Marshal(p.s); return b }
func (p *toyProjector) Held() bool    { return p.held != nil }
func (p *toyProjector) Quiet() time.Duration {
	if p.Held() {
		return time.Second
	}
	return 0
}
func (p *toyProjector) Settle() []providers.Draft {
	if p.fault == "holds on" {
		return nil
	}
	return p.release()
}

func (p *toyProjector) Rewind(r providers.Record) bool {
	r.Data = append([]byte(nil), r.Data...)
	p.back = append(p.back, r)
	return false
}

func (p *toyProjector) Rewound() {
	if p.fault == "looks at one" && len(p.back) > 1 {
		p.back = p.back[:1]
	}
	for i := len(p.back) - 1; i >= 0; i-- {
		p.Project(p.back[i])
	}
	p.held, p.back = nil, nil
}

var toyCorpus = []Case{{Name: "toy", Data: []byte(`{"do":"start","id":"a","text":"please do all of this"}
{"do":"say","id":"b","text":" yes of course "}
{"do":"end","id":"c"}

{"do":"start","id":"d"}
{"do":"fail","id":"e","text":"the secret words of a user"}
{"do":"say","id":"f","text":"well"}
{"do":"end","id":"g"}
`)}}

const faultEnv = "PROVIDERTEST_FAULT"

// TestRun passes the toy, and in a child process the broken toys.
func TestRun(t *testing.T) { Run(t, toy{os.Getenv(faultEnv)}, toyCorpus) }

// TestRunFindsFaults runs TestRun over broken toys and wants each to fail in
// the test that is there for it.
func TestRunFindsFaults(t *testing.T) {
	if os.Getenv(faultEnv) != "" {
		t.Skip("already in a child")
	}
	for fault, where := range map[string]string{
		"forgets": "restart", "gap": "gap", "quiet gap": "gap", "panics": "panic", "counts": "restart", "stateless": "shape",
		"blanks": "shape", "leaks": "shape", "grows": "state", "holds on": "silence", "looks at one": "rewind",
	} {
		t.Run(fault, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRun$", "-test.count=1")
			cmd.Env = append(os.Environ(), faultEnv+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("a provider that %s passes", fault)
			}
			if !strings.Contains(string(out), where) {
				t.Errorf("a provider that %s does not fail in %q:\n%s", fault, where, out)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 513) + "1" + strings.Repeat("}", 513)
	tests := []struct {
		in   string
		want []string // data, or "!" and the gap
	}{
		{"", nil},
		{`{"a":1}`, nil},
		{"{\"a\":1}\n{\"b\":2}\n{\"c\"", []string{`{"a":1}`, `{"b":2}`}},
		{"\xef\xbb\xbf{}\n\n \n{}\r\n", []string{"{}", "{}\r"}},
		{"nope\n[1]\n{}\n", []string{"!malformed", "!malformed", "{}"}},
		{"\x00\x00\n{}\n", []string{"!padding", "{}"}},
		{deep + "\n", []string{"!too_deep"}},
		{`{"a":"` + strings.Repeat("[", 600) + `"}` + "\n", []string{`{"a":"` + strings.Repeat("[", 600) + `"}`}},
		{`{"a":"` + strings.Repeat("x", providers.MaxRecord) + `"}` + "\n{}\n", []string{"!oversized", "{}"}},
	}
	for _, tt := range tests {
		var got []string
		end := int64(0)
		for _, r := range Split([]byte(tt.in)) {
			if r.Start < end || r.End <= r.Start {
				t.Errorf("record %d..%d after %d", r.Start, r.End, end)
			}
			end = r.End
			if r.Gap != providers.Whole {
				got = append(got, "!"+string(r.Gap))
			} else {
				got = append(got, string(r.Data))
			}
		}
		if strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("Split(%.40q) = %.80q, want %.80q", tt.in, got, tt.want)
		}
	}
}

func TestCheckDraft(t *testing.T) {
	at := time.Unix(1, 0)
	good := []providers.Draft{
		{Key: "k", Kind: providers.TurnStarted, Turn: "t", At: at, InputSHA256: strings.Repeat("ab", 32)},
		{Key: "k", Kind: providers.AssistantMessage, Text: "x"},
		{Key: "k", Kind: providers.TurnFinal, Turn: "t", Outcome: providers.Aborted, Reason: providers.NoReply, Detail: providers.NoReply.Detail()},
		{Key: "k", Kind: providers.ApprovalRequested, Approval: &providers.Approval{Kind: "user_question", Item: "i", Choices: []providers.Choice{{ID: "option_1"}}}},
	}
	for _, d := range good {
		if err := CheckDraft(d); err != nil {
			t.Errorf("%s: %v", d.Kind, err)
		}
	}
	bad := map[string]providers.Draft{
		"no key":           {Kind: providers.AssistantMessage, Text: "x"},
		"blanks":           {Key: "k", Kind: providers.AssistantMessage, Text: "x "},
		"not UTF-8":        {Key: "k", Kind: providers.AssistantMessage, Text: "\xff"},
		"no text":          {Key: "k", Kind: providers.Plan},
		"no turn":          {Key: "k", Kind: providers.TurnStarted},
		"hash":             {Key: "k", Kind: providers.TurnStarted, Turn: "t", InputSHA256: strings.Repeat("AB", 32)},
		"state":            {Key: "k", Kind: providers.TurnStateChanged, State: providers.Unknown},
		"outcome":          {Key: "k", Kind: providers.TurnFinal},
		"aborted text":     {Key: "k", Kind: providers.TurnFinal, Outcome: providers.Aborted, Text: "x"},
		"completed reason": {Key: "k", Kind: providers.TurnFinal, Outcome: providers.Completed, Reason: providers.NoReply, Detail: providers.NoReply.Detail()},
		"own detail":       {Key: "k", Kind: providers.TurnFinal, Outcome: providers.Aborted, Reason: providers.NoReply, Detail: "because"},
		"text of a state":  {Key: "k", Kind: providers.TurnStateChanged, State: providers.WaitingOnUser, Text: "x"},
		"no detail":        {Key: "k", Kind: providers.ObserverFailure, Recoverable: true},
		"long detail":      {Key: "k", Kind: providers.ObserverFailure, Recoverable: true, Detail: strings.Repeat("x", 999)},
		"no choices":       {Key: "k", Kind: providers.ApprovalRequested, Approval: &providers.Approval{Kind: "user_question", Item: "i"}},
		"colon":            {Key: "k", Kind: providers.ApprovalRequested, Approval: &providers.Approval{Kind: "user_question", Item: "i", Choices: []providers.Choice{{ID: "a:b"}}}},
		"lifecycle":        {Key: "k", Kind: "agent_lifecycle"},
	}
	for name, d := range bad {
		if CheckDraft(d) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestGoldenLines(t *testing.T) {
	const uuid = "0a884aad-f3bb-441b-9bfc-20cf978f52f0"
	d := providers.Draft{Key: uuid + "/final", Kind: providers.TurnFinal, Turn: uuid, At: time.Date(2026, 11, 30, 1, 2, 3, 4e6, time.UTC),
		Outcome: providers.Aborted, Reason: providers.NoReply, Detail: providers.NoReply.Detail()}
	if got, want := Format(d), "turn_final key=0a884aad/final turn=0a884aad at=01:02:03.004 outcome=aborted reason=no_reply"; got != want {
		t.Errorf("Format = %s\nwant     %s", got, want)
	}
	sum := sha256.Sum256([]byte("a\nb"))
	if got, want := hashInput(t, `0 turn_started input="a\nb" x`), "0 turn_started input="+hex.EncodeToString(sum[:])[:12]+" x"; got != want {
		t.Errorf("hashInput = %s, want %s", got, want)
	}
}
