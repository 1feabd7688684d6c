package opencode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

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

// A subagent's session says so in each of its own records, not in the first alone:
// a look back may not reach that.
func TestChildOfALaterRecord(t *testing.T) {
	p := newProjector(nil)
	for _, r := range script(t, "end a1 u1 stop\ntext a1 q1 y\nreply a1 u1") {
		p.Rewind(r)
	}
	p.Rewind(providers.Record{Data: []byte(`{"type":"session.updated.1","data":{"info":{"id":"ses_c","parentID":"ses_p","time":{"created":1}}}}`)})
	p.Rewound()
	if got := p.Turn(); got.ID != "" {
		t.Errorf("turn %v", got)
	}
	for _, r := range script(t, first) {
		if out := p.Project(r); len(out) != 0 {
			t.Errorf("drafts %v", out)
		}
	}
}

// What the provider's own server ran is no call of the loop: the answer around it
// is final. And a part that the program ignores is nobody's prompt.
func TestPartsOfAnotherKind(t *testing.T) {
	part := func(data string) providers.Record {
		return providers.Record{Data: []byte(`{"type":"message.part.updated.1","data":{"part":` + data + `,"time":1}}`)}
	}
	p := newProjector(nil)
	var got []string
	for _, r := range append(append(script(t, "user u1\nsay u1 p1 x\nreply a1 u1\ntext a1 q1 Found."),
		part(`{"id":"t1","messageID":"a1","type":"tool","tool":"web_search","callID":"c1","metadata":{"providerExecuted":true},"state":{"status":"completed"}}`)),
		append(script(t, "end a1 u1 stop\nuser u2"), part(`{"id":"p2","messageID":"u2","type":"text","text":"a note","ignored":true}`))...) {
		for _, d := range p.Project(r) {
			got = append(got, string(d.Kind)+" "+d.Turn+" "+d.Text)
		}
	}
	want := "turn_started u1 |turn_state_changed u1 |assistant_message u1 Found.|turn_final u1 Found.|turn_state_changed u1 "
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("drafts %s, want %s", s, want)
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
