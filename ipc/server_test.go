package ipc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

// Whatever arrives, the answer is one error line with a stable code, and the
// connection is of further use.
func TestBadRequests(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{})})
	long := strings.Repeat("x", wire.MaxRequest)
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
	}
	read := func(params string) string { return call("ReadAgentEvents", params) }
	names := func(n int) string { return `"` + strings.Repeat(`x","`, n-1) + `x"` }
	for _, tt := range []struct {
		name, line, id string
		code           Code
	}{
		{"empty", "", "null", CodeParse},
		{"text", "hello", "null", CodeParse},
		{"half an object", `{"jsonrpc":"2.0","id":7`, "null", CodeParse},
		{"two values", `{} {}`, "null", CodeParse},
		{"bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"Hello\"}", "null", CodeParse},
		{"NUL bytes", "\x00\x00", "null", CodeParse},
		{"deep", strings.Repeat("[", 100_000), "null", CodeParse},
		{"deep and closed", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), "null", CodeRequest},
		{"batch", `[{"jsonrpc":"2.0","id":7,"method":"Hello"}]`, "null", CodeRequest},
		{"number", `7`, "null", CodeRequest},
		{"null", `null`, "null", CodeRequest},
		{"no version", `{"id":7,"method":"Hello"}`, "7", CodeRequest},
		{"version 1", `{"jsonrpc":"1.0","id":7,"method":"Hello"}`, "7", CodeRequest},
		{"version as number", `{"jsonrpc":2.0,"id":7,"method":"Hello"}`, "7", CodeRequest},
		{"no method", `{"jsonrpc":"2.0","id":7}`, "7", CodeRequest},
		{"method as number", `{"jsonrpc":"2.0","id":7,"method":1}`, "7", CodeRequest},
		{"id as object", `{"jsonrpc":"2.0","id":{},"method":"Hello"}`, "null", CodeRequest},
		{"id as bool", `{"jsonrpc":"2.0","id":true,"method":"Hello"}`, "null", CodeRequest},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 300) + `","method":"Hello"}`, "null", CodeRequest},
		{"unknown method", call("Nonsense", "{}"), "7", CodeMethod},
		{"method in another case", call("hello", "{}"), "7", CodeMethod},
		{"params as array", read(`[1]`), "7", CodeParams},
		{"params as text", read(`"x"`), "7", CodeParams},
		{"limit 0", read(`{"limit":0}`), "7", CodeParams},
		{"limit 1001", read(`{"limit":1001}`), "7", CodeParams},
		{"limit -1", read(`{"limit":-1}`), "7", CodeParams},
		{"limit as text", read(`{"limit":"10"}`), "7", CodeParams},
		{"limit with a fraction", read(`{"limit":1.5}`), "7", CodeParams},
		{"cursor below 0", read(`{"after_sequence":-1}`), "7", CodeParams},
		{"cursor of 70 bits", read(`{"after_sequence":1180591620717411303424}`), "7", CodeParams},
		{"wait below 0", read(`{"wait_ms":-1}`), "7", CodeParams},
		{"unknown kind", read(`{"kinds":["agent_dreamt"]}`), "7", CodeParams},
		{"kinds as text", read(`{"kinds":"plan"}`), "7", CodeParams},
		{"257 agents", read(`{"agents":[` + names(257) + `]}`), "7", CodeParams},
		{"257 kinds", read(`{"kinds":[` + names(257) + `]}`), "7", CodeParams},
		{"empty agent", read(`{"agents":[""]}`), "7", CodeParams},
		{"long agent", read(`{"agents":["` + strings.Repeat("a", 257) + `"]}`), "7", CodeParams},
		{"long client name", call("Hello", `{"client":"`+strings.Repeat("c", 129)+`"}`), "7", CodeParams},
		{"major 2", call("Hello", `{"api_major":2}`), "7", CodeMajor},
		{"explain nothing", call("Explain", `{}`), "7", CodeParams},
		{"explain unknown", call("Explain", `{"target":"oak"}`), "7", CodeNotFound},
		{"requests limit", call("ReadRequests", `{"limit":101}`), "7", CodeParams},
		{"over 2 MiB", long + "x", "null", CodeTooLarge},
		{"2 MiB", long, "null", CodeParse},
		{"null id is answered", `{"jsonrpc":"2.0","id":null,"method":"Nonsense"}`, "null", CodeMethod},
		{"id of text", `{"jsonrpc":"2.0","id":"<&>\u2028","method":"Nonsense"}`, `"<&>\u2028"`, CodeMethod},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := d.raw(t)
			r.send(tt.line)
			if id, code, _ := r.reply(); id != tt.id || code != tt.code {
				t.Errorf("id %s, code %s, want id %s, code %s", id, code, tt.id, tt.code)
			}
			r.alive()
		})
	}
}

func TestGoodRequests(t *testing.T) {
	s := openLog(t, store.Options{})
	s.add(t, wire.AssistantMessage, agentA, "one", "two")
	d := serve(t, Options{Store: s})
	r := d.raw(t)
	for _, tt := range []struct{ line, id, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"Hello","params":null}`, "1",
			`{"schema":"wakterm.agent-api.v1","api_major":1,"service":"steno","version":"0.0.1"}`},
		{` { "jsonrpc" : "2.0" , "id" : -1.5e3 , "method" : "Hello" , "later" : [ ] } ` + "\r", "-1.5e3",
			`{"schema":"wakterm.agent-api.v1","api_major":1,"service":"steno","version":"0.0.1"}`},
		{`{"jsonrpc":"2.0","id":"c","method":"Capabilities","params":{"later":1}}`, `"c"`,
			`{"schema":"wakterm.agent-api.v1","api_major":1,"capabilities":["catalog.v1","prompt_admission.v1","return_request_terminal_stream.v1","event_stream.v1"]}`},
		{`{"jsonrpc":"2.0","id":2,"method":"Catalog"}`, "2",
			`{"schema":"wakterm.agent-api.v1","as_of_event_sequence":2,"agents":[]}`},
		{`{"jsonrpc":"2.0","id":3,"method":"ListAgents"}`, "3", `{"agents":[]}`},
		{`{"jsonrpc":"2.0","id":4,"method":"ListPanes"}`, "4", `{"panes":[]}`},
		{`{"jsonrpc":"2.0","id":5,"method":"ReadRequests","params":{"after_terminal_sequence":0}}`, "5", `{"requests":[]}`},
		{`{"jsonrpc":"2.0","id":6,"method":"ReadAgentEvents","params":{"after_sequence":2,"limit":null,"kinds":null}}`, "6",
			`{"schema":"wakterm.agent-events.v1","status":"ok","requested_after_sequence":2,"oldest_available_sequence":1,"latest_sequence":2,"next_after_sequence":2,"events":[],"recovery":null}`},
		{`{"jsonrpc":"2.0","id":6,"method":"ReadAgentEvents","params":{"after_sequence":3,"wait_ms":30000}}`, "6",
			`{"schema":"wakterm.agent-events.v1","status":"cursor_too_old","requested_after_sequence":3,"oldest_available_sequence":1,"latest_sequence":2,"next_after_sequence":null,"events":[],"recovery":{"kind":"catalog_snapshot","catalog_as_of_sequence":2}}`},
	} {
		r.send(tt.line)
		id, code, result := r.reply()
		if id != tt.id || code != "" || string(result) != tt.want {
			t.Errorf("%s\ngives id %s, error %s,\n%s, want\n%s", tt.line, id, code, result, tt.want)
		}
	}
	c := d.dial(t)
	if st, err := c.Status(t.Context()); err != nil || st.PID != os.Getpid() || st.Clients != 2 || st.Store.Latest != 2 ||
		!st.Store.Working || st.Socket != "steno.sock" || st.Version != "0.0.1" || st.Store.RetainEvents != 100_000 {
		t.Errorf("Status = %+v, %v", st, err)
	}
	if ex, err := c.Explain(t.Context(), "maple"); err != nil || ex.Name != "maple" {
		t.Errorf("Explain = %+v, %v", ex, err)
	}
}

// Notifications have no answer, whatever they ask.
func TestNotifications(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{})})
	r := d.raw(t)
	r.send(`{"jsonrpc":"2.0","method":"Hello"}`, `{"jsonrpc":"2.0","method":"Nonsense","params":[]}`)
	r.alive() // its answer is the first
}

// A request may come in pieces; a client may leave in the middle of one.
func TestHalfRequests(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{})})
	r := d.raw(t)
	for _, part := range []string{`{"jsonrpc":"2.`, `0","id":"p`, `","method":"Hello"}`, "\n"} {
		if _, err := r.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if id, code, _ := r.reply(); id != `"p"` || code != "" {
		t.Errorf("id %s, error %s", id, code)
	}
	r.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"Hello"}`)) // no newline: no request
	r.Close()
	eventually(t, "the connection is given up", func() bool { return d.clients() == 0 })
}

// A request that is begun and never ended holds its connection for a bounded
// time only.
func TestStalledRequest(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{}), LineTimeout: 50 * time.Millisecond})
	r := d.raw(t)
	r.Write([]byte(`{"jsonrpc"`))
	if _, code, _ := r.reply(); code != CodeRequest {
		t.Errorf("code %s, want %s", code, CodeRequest)
	}
	if _, err := r.r.ReadByte(); err == nil {
		t.Error("the connection stays open")
	}
	idle := d.raw(t) // without a first byte there is no such limit
	eventually(t, "the stalled one is gone, the idle one there", func() bool { return d.clients() == 1 })
	idle.alive()
}

// A client that shuts down its writing side still gets its answers, without
// the wait that it asked for.
func TestHalfClose(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{})})
	r := d.raw(t)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"ReadAgentEvents","params":{"wait_ms":30000}}`)
	r.Conn.(*net.UnixConn).CloseWrite()
	began := time.Now()
	if id, code, _ := r.reply(); id != "1" || code != "" || time.Since(began) > soon {
		t.Errorf("id %s, error %s after %v", id, code, time.Since(began))
	}
}

func TestInFlight(t *testing.T) {
	live := &stub{block: make(chan struct{}), began: make(chan struct{}, 64)}
	d := serve(t, Options{Store: openLog(t, store.Options{}), Live: live})
	r := d.raw(t)
	for i := range maxInFlight {
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"Explain","params":{"target":"maple"}}`, i))
		<-live.began
	}
	r.send(`{"jsonrpc":"2.0","id":"over","method":"Hello"}`)
	if id, code, _ := r.reply(); id != `"over"` || code != CodeTooMany {
		t.Errorf("id %s, error %s, want %s", id, code, CodeTooMany)
	}
	close(live.block)
	got := map[string]bool{}
	for range maxInFlight {
		id, code, _ := r.reply()
		if code != "" {
			t.Errorf("%s: %s", id, code)
		}
		got[id] = true
	}
	if len(got) != maxInFlight {
		t.Errorf("answers to %d requests, want %d", len(got), maxInFlight)
	}
	eventually(t, "there is room again", func() bool {
		r.send(`{"jsonrpc":"2.0","id":"again","method":"Hello"}`)
		_, code, _ := r.reply()
		return code == ""
	})
}

// 256 clients are served at a time, and no more.
func TestConnections(t *testing.T) {
	s := openLog(t, store.Options{})
	var log notes
	d := serve(t, Options{Store: s, Log: log.logger()})
	clients := make([]*Client, 256)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c, err := Dial(t.Context(), d.path)
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for range 3 {
		_, err := Dial(t.Context(), d.path)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeTooMany {
			t.Errorf("one more: %v, want %s", err, CodeTooMany)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d log lines, want 1:\n%s", n, log.String())
	}
	// All of them wait, and one commit reaches all.
	pages := make(chan wire.Page, len(clients))
	for _, c := range clients {
		wg.Go(func() {
			p, err := c.ReadEvents(t.Context(), wire.ReadParams{Wait: wire.MaxWait})
			if err != nil {
				t.Error(err)
			}
			pages <- p
		})
	}
	eventually(t, "all wait", func() bool { return s.pages.Load() == int64(len(clients)) })
	s.add(t, wire.AssistantMessage, agentA, "to all")
	wg.Wait()
	close(pages)
	for p := range pages {
		if got := texts(t, p); !slices.Equal(got, []string{"to all"}) {
			t.Fatalf("texts = %q", got)
		}
	}
	clients[0].Close()
	eventually(t, "one place is free", func() bool { return d.clients() == 255 })
	d.dial(t)
	for _, c := range clients[1:] {
		c.Close()
	}
}

// A client that asks and does not read costs a few pages, and only for the
// time of the deadline.
func TestSlowReader(t *testing.T) {
	s := openLog(t, store.Options{})
	big := strings.Repeat("x", 200<<10)
	s.add(t, wire.AssistantMessage, agentA, big, big, big, big, big)
	before := runtime.NumGoroutine()
	d := serve(t, Options{Store: s, WriteTimeout: 300 * time.Millisecond})
	r := d.raw(t)
	for i := range 200 {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ReadAgentEvents"}`+"\n", i)
		if _, err := r.Write([]byte(line)); err != nil {
			break // cut off already
		}
	}
	eventually(t, "the client is cut off", func() bool { return d.clients() == 0 })
	if n := s.pages.Load(); n > 4 {
		t.Errorf("%d pages were made for a client that reads none", n)
	}
	d.stop()
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// A flood of bad lines by a client that does not read ends the same way.
func TestSlowReaderOfErrors(t *testing.T) {
	d := serve(t, Options{Store: openLog(t, store.Options{}), WriteTimeout: 100 * time.Millisecond})
	r := d.raw(t)
	flood := []byte(strings.Repeat("x\n", 1<<10))
	for range 10_000 {
		if _, err := r.Write(flood); err != nil {
			break
		}
	}
	eventually(t, "the client is cut off", func() bool { return d.clients() == 0 })
}

// The end of the server answers who waits, and closes who does not.
func TestShutdown(t *testing.T) {
	s := openLog(t, store.Options{})
	live := &stub{block: make(chan struct{}), began: make(chan struct{}, 1)}
	d := serve(t, Options{Store: s, Live: live})
	waiting, asking, idle, half := d.raw(t), d.raw(t), d.raw(t), d.raw(t)
	waiting.send(`{"jsonrpc":"2.0","id":1,"method":"ReadAgentEvents","params":{"wait_ms":30000}}`)
	asking.send(`{"jsonrpc":"2.0","id":2,"method":"Explain","params":{"target":"maple"}}`)
	half.Write([]byte(`{"jsonrpc":`))
	<-live.began
	eventually(t, "all are there", func() bool { return d.clients() == 4 && s.pages.Load() == 1 })
	began := time.Now()
	d.stop()
	if e := time.Since(began); e > 5*time.Second {
		t.Errorf("the end took %v", e)
	}
	if id, code, _ := waiting.reply(); id != "1" || code != "" {
		t.Errorf("the waiter: id %s, error %s", id, code)
	}
	if id, code, _ := asking.reply(); id != "2" || code != CodeUnavailable {
		t.Errorf("the asker: id %s, error %s, want %s", id, code, CodeUnavailable)
	}
	for _, r := range []*raw{waiting, asking, idle, half} {
		if _, err := r.r.ReadByte(); err == nil {
			t.Error("a connection stays open")
		}
	}
	if _, err := os.Lstat(d.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
}

// Errors of the log and of the observer reach the client as codes, and the
// log as text, once.
func TestFailures(t *testing.T) {
	s := openLog(t, store.Options{})
	secret := errors.New("disk /secret/path is full")
	s.fail = func(string) error { return secret }
	live := &stub{err: secret}
	var log notes
	d := serve(t, Options{Store: s, Live: live, Log: log.logger()})
	r := d.raw(t)
	for range 3 {
		for method, want := range map[string]Code{
			"ReadAgentEvents": CodeUnavailable, "Catalog": CodeUnavailable, "ListAgents": CodeUnavailable,
			"ListPanes": CodeInternal,
		} {
			r.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
			line := r.line()
			if strings.Contains(line, "secret") || !strings.Contains(line, `"`+string(want)+`"`) {
				t.Errorf("%s: %s, want %s", method, line, want)
			}
		}
	}
	if n := strings.Count(log.String(), "secret"); n != 4 {
		t.Errorf("%d log lines, want 4:\n%s", n, log.String())
	}
	// The agents are known without their panes.
	s.fail = nil
	r.send(`{"jsonrpc":"2.0","id":1,"method":"ListAgents"}`)
	if _, code, result := r.reply(); code != "" || string(result) != `{"agents":[]}` {
		t.Errorf("ListAgents = %s, %s", result, code)
	}
}

// broken is a log whose store has failed.
type broken struct {
	*spy
	err error
}

func (b *broken) Working() bool { return b.err == nil }
func (b *broken) Err() error    { return b.err }

func TestCapabilityFollowsTheLog(t *testing.T) {
	b := &broken{spy: openLog(t, store.Options{})}
	d := serve(t, Options{Store: b})
	c := d.dial(t)
	for _, err := range []error{nil, errors.New("disk full"), nil} {
		b.err = err
		caps, cerr := c.Capabilities(t.Context())
		if cerr != nil || slices.Contains(caps.Capabilities, wire.CapEventStream) != (err == nil) {
			t.Errorf("log %v: capabilities %v, %v", err, caps.Capabilities, cerr)
		}
		st, cerr := c.Status(t.Context())
		if cerr != nil || st.Store.Working != (err == nil) || (st.Store.Error == "") != (err == nil) {
			t.Errorf("log %v: status %+v, %v", err, st.Store, cerr)
		}
	}
	want := fixture[wire.Capabilities](t, "current_capabilities")
	if caps, err := c.Capabilities(t.Context()); err != nil || !slices.Equal(caps.Capabilities, want.Capabilities) {
		t.Errorf("capabilities = %v, %v, want %v", caps.Capabilities, err, want.Capabilities)
	}
}

// A listener that was inherited works like one of our own.
func TestInheritedListener(t *testing.T) {
	path := shortDir(t) + "/activated.sock"
	first, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := first.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.FileListener(f) // as socket activation does
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	s := NewServer(Options{Store: openLog(t, store.Options{}), Live: &stub{}})
	done := make(chan error, 1)
	ctx, cancel := contextOf(t)
	go func() { done <- s.Serve(ctx, ln) }()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Catalog(t.Context()); err != nil {
		t.Error(err)
	}
	c.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket of the one who activated us: %v", err)
	}
	first.Close()
}

// A listener that is closed under the server ends it with an error.
func TestServeClosedListener(t *testing.T) {
	ln, err := net.Listen("unix", shortDir(t)+"/s")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	s := NewServer(Options{Store: openLog(t, store.Options{}), Live: &stub{}})
	if err := s.Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve = %v, want net.ErrClosed", err)
	}
}

// Prompts are refused with receipts that a consumer can act on.
func TestAdmit(t *testing.T) {
	s := openLog(t, store.Options{})
	s.agents = func() []store.Agent {
		return []store.Agent{
			{ID: agentA, Incarnation: incA, Alive: true, PaneID: 1},
			{ID: agentB, Incarnation: "inc-b", Alive: false, PaneID: 2, ExitedAt: noon},
			{ID: "pending", Alive: true, PaneID: 3},
		}
	}
	d := serve(t, Options{Store: s})
	c := d.dial(t)
	const id = "5c0e6a52-0000-4000-8000-0000000000aa"
	for _, tt := range []struct {
		name   string
		p      wire.AdmitParams
		status string
	}{
		{"known", wire.AdmitParams{RequestID: id, AgentID: agentA, IncarnationID: incA, Prompt: "hi", ReturnFinal: true}, wire.Unsupported},
		{"other incarnation", wire.AdmitParams{RequestID: id, AgentID: agentA, IncarnationID: "inc-b", Prompt: "hi"}, wire.StaleIncarnation},
		{"ended", wire.AdmitParams{RequestID: id, AgentID: agentB, IncarnationID: "inc-b", Prompt: "hi"}, wire.NotAvailable},
		{"ended, other incarnation", wire.AdmitParams{RequestID: id, AgentID: agentB, IncarnationID: "inc-c", Prompt: "hi"}, wire.StaleIncarnation},
		{"not confirmed", wire.AdmitParams{RequestID: id, AgentID: "pending", IncarnationID: "x", Prompt: "hi"}, wire.NotAvailable},
		{"unknown", wire.AdmitParams{RequestID: id, AgentID: "nobody", IncarnationID: incA, Prompt: "hi"}, wire.NotAvailable},
		{"no UUID", wire.AdmitParams{RequestID: "42", AgentID: agentA, IncarnationID: incA, Prompt: "hi"}, wire.Invalid},
		{"nearly a UUID", wire.AdmitParams{RequestID: id[:35] + "g", AgentID: agentA, IncarnationID: incA, Prompt: "hi"}, wire.Invalid},
		{"UUID without dashes", wire.AdmitParams{RequestID: strings.ReplaceAll(id, "-", "0"), AgentID: agentA, IncarnationID: incA, Prompt: "hi"}, wire.Invalid},
		{"empty prompt", wire.AdmitParams{RequestID: id, AgentID: agentA, IncarnationID: incA}, wire.Invalid},
		{"no agent", wire.AdmitParams{RequestID: id, IncarnationID: incA, Prompt: "hi"}, wire.Invalid},
	} {
		r, err := c.Admit(t.Context(), tt.p)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if r.Status != tt.status || !r.Definitive || r.PromptWritten == nil || *r.PromptWritten || r.Detail == nil ||
			r.RequestID != tt.p.RequestID || r.ReturnFinal != tt.p.ReturnFinal || r.Request != nil || r.Schema != wire.SchemaAPI {
			b, _ := json.Marshal(r)
			t.Errorf("%s: %s, want %s", tt.name, b, tt.status)
		}
		for want, got := range map[string]*string{tt.p.AgentID: r.AgentID, tt.p.IncarnationID: r.IncarnationID} {
			if (got != nil) != (want != "") || got != nil && *got != want {
				t.Errorf("%s: echoed %v of %q", tt.name, got, want)
			}
		}
	}
	s.fail = func(string) error { return errors.New("broken") }
	r, err := c.Admit(t.Context(), wire.AdmitParams{RequestID: id, AgentID: agentA, IncarnationID: incA, Prompt: "hi"})
	if err != nil || r.Status != wire.InternalFailure {
		t.Errorf("with a broken log: %s, %v", r.Status, err)
	}
	if got, err := c.Requests(t.Context(), 0); err != nil || len(got) != 0 {
		t.Errorf("Requests = %v, %v", got, err)
	}
}
