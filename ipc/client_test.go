package ipc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

// impostor is a server that answers every method with a fixed result line, in
// which ID stands for the request's id.
func impostor(t *testing.T, answers map[string]string) string {
	t.Helper()
	path := shortDir(t) + "/s"
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				for in := bufio.NewScanner(conn); in.Scan(); {
					var req struct {
						ID     json.RawMessage `json:"id"`
						Method string          `json:"method"`
					}
					if json.Unmarshal(in.Bytes(), &req) != nil {
						return
					}
					answer, ok := answers[req.Method]
					if !ok && req.Method == "Hello" {
						answer = ok1(`{"schema":"wakterm.agent-api.v1","api_major":1,"service":"steno","version":"0"}`)
					}
					if answer == "hang up" {
						return
					}
					if answer != "" {
						fmt.Fprintln(conn, strings.ReplaceAll(answer, "ID", string(req.ID)))
					}
				}
			})
		}
	})
	return path
}

func ok1(result string) string { return `{"jsonrpc":"2.0","id":ID,"result":` + result + `}` }

func TestDialErrors(t *testing.T) {
	caps, err := json.Marshal(fixture[wire.Capabilities](t, "incompatible_capabilities"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, answer string
		want         error
	}{
		{"major 2", ok1(string(caps)), ErrIncompatible},
		{"another schema", ok1(`{"schema":"other","api_major":1}`), ErrIncompatible},
		{"refusal of our major", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32005,"message":"no","data":{"code":"incompatible_major"}}}`, ErrIncompatible},
		{"not JSON", "220 mail.example ESMTP", ErrProtocol},
		{"not JSON-RPC", `{"id":ID}`, ErrProtocol},
		{"result and error", `{"jsonrpc":"2.0","id":ID,"result":1,"error":{"code":1}}`, ErrProtocol},
		{"no id", `{"jsonrpc":"2.0","result":{}}`, ErrProtocol},
		{"wrong type", ok1(`[]`), ErrProtocol},
		{"a line without end", strings.Repeat("x", maxAnswer+1), ErrProtocol},
		{"hang up", "hang up", ErrDisconnected},
	} {
		c, err := Dial(t.Context(), impostor(t, map[string]string{"Hello": tt.answer}))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Dial = %v, want %v", tt.name, err, tt.want)
		}
		if c != nil {
			c.Close()
		}
	}
	if _, err := Dial(t.Context(), shortDir(t)+"/none"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no socket: Dial = %v, want ErrUnreachable", err)
	}
	gone := shortDir(t) + "/s"
	dead(t, gone)
	if _, err := Dial(t.Context(), gone); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a dead socket: Dial = %v, want ErrUnreachable", err)
	}
	// A daemon that says nothing is waited for as long as the context says.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, impostor(t, map[string]string{"Hello": ""})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent daemon: Dial = %v, want DeadlineExceeded", err)
	}
}

func TestClientChecksAnswers(t *testing.T) {
	line := func(name string) string {
		b, err := encode(fixtures(t)[name])
		if err != nil {
			t.Fatal(err)
		}
		var one json.RawMessage = b
		out, err := json.Marshal(one) // without line breaks
		if err != nil {
			t.Fatal(err)
		}
		return ok1(string(out))
	}
	for name, want := range map[string]error{
		"unknown_event_kind_page": ErrUnknownKind,
		"incompatible_page":       ErrIncompatible,
		"unknown_fields_page":     nil,
		"approval_page":           nil,
		"truncated_text_page":     nil,
		"cursor_too_old":          nil,
	} {
		p := fixture[wire.Page](t, name)
		c, err := Dial(t.Context(), impostor(t, map[string]string{"ReadAgentEvents": line(name)}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ReadEvents(t.Context(), wire.ReadParams{After: p.RequestedAfterSequence}); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%s: ReadEvents = %v, want %v", name, err, want)
		}
		if _, err := c.ReadEvents(t.Context(), wire.ReadParams{After: 12345}); err == nil {
			t.Errorf("%s: a page after another cursor is accepted", name)
		}
		c.Close()
	}
	c, err := Dial(t.Context(), impostor(t, map[string]string{
		"Capabilities": line("incompatible_capabilities"),
		"Catalog":      ok1(`{"schema":"wakterm.agent-api.v2","agents":[]}`),
		"ListPanes":    `{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"odd"}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Capabilities(t.Context()); !errors.Is(err, ErrIncompatible) {
		t.Errorf("Capabilities = %v, want ErrIncompatible", err)
	}
	if _, err := c.Catalog(t.Context()); !errors.Is(err, ErrIncompatible) {
		t.Errorf("Catalog = %v, want ErrIncompatible", err)
	}
	var e *Error
	if _, err := c.Panes(t.Context()); !errors.As(err, &e) || e.Code != "rpc_-1" {
		t.Errorf("Panes = %v", err)
	}
}

func TestCheckPage(t *testing.T) {
	good := fixture[wire.Page](t, "event_page")
	event := func(e string) func(*wire.Page) {
		return func(p *wire.Page) { p.Events[1] = json.RawMessage(e) }
	}
	for name, breakIt := range map[string]func(*wire.Page){
		"nothing":           nil,
		"status":            func(p *wire.Page) { p.Status = "fine" },
		"oldest":            func(p *wire.Page) { p.OldestAvailableSequence = p.LatestSequence + 2 },
		"no next":           func(p *wire.Page) { p.NextAfterSequence = nil },
		"next too low":      func(p *wire.Page) { p.NextAfterSequence = ptr(uint64(306)) },
		"next too high":     func(p *wire.Page) { p.NextAfterSequence = ptr(uint64(311)) },
		"order":             func(p *wire.Page) { p.Events[0], p.Events[1] = p.Events[1], p.Events[0] },
		"twice":             func(p *wire.Page) { p.Events[1] = p.Events[0] },
		"beyond the latest": func(p *wire.Page) { p.LatestSequence = 306; p.NextAfterSequence = ptr(uint64(306)) },
		"event as text":     event(`"x"`),
		"no event id":       event(`{"sequence":302,"kind":"plan","agent_id":"a","incarnation_id":"i"}`),
		"no agent":          event(`{"sequence":302,"kind":"plan","event_id":"e","incarnation_id":"i"}`),
		"no incarnation":    event(`{"sequence":302,"kind":"plan","event_id":"e","agent_id":"a"}`),
		"gap with events": func(p *wire.Page) {
			p.Status, p.NextAfterSequence, p.Recovery = wire.CursorTooOld, nil, &wire.Recovery{Kind: "catalog_snapshot"}
		},
		"gap without recovery": func(p *wire.Page) { p.Status, p.NextAfterSequence, p.Events = wire.CursorTooOld, nil, nil },
		"gap with another recovery": func(p *wire.Page) {
			p.Status, p.NextAfterSequence, p.Events, p.Recovery = wire.CursorTooOld, nil, nil, &wire.Recovery{Kind: "prayer"}
		},
	} {
		p := good
		p.Events = append([]json.RawMessage(nil), good.Events...)
		if breakIt != nil {
			breakIt(&p)
		}
		if err := CheckPage(p, 300); (err == nil) != (breakIt == nil) || err != nil && !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: CheckPage = %v", name, err)
		}
	}
}

// Contexts end calls at once and leave the connection usable.
func TestClientContext(t *testing.T) {
	s := openLog(t, store.Options{})
	c := serve(t, Options{Store: s}).dial(t)
	ctx, cancel := contextOf(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.ReadEvents(ctx, wire.ReadParams{Wait: waitLong})
		done <- err
	}()
	eventually(t, "it waits", func() bool { return s.pages.Load() == 1 })
	began := time.Now()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || time.Since(began) > soon {
		t.Errorf("ReadEvents = %v after %v", err, time.Since(began))
	}
	if _, err := c.Catalog(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	// The answer that nobody waits for comes, and disturbs nobody.
	s.add(t, wire.AssistantMessage, agentA, "late")
	if _, err := c.Catalog(t.Context()); err != nil {
		t.Error(err)
	}
}

// Many goroutines share a client, and each gets its own answers.
func TestClientConcurrent(t *testing.T) {
	s := openLog(t, store.Options{})
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprint("text ", i))
	}
	s.add(t, wire.AssistantMessage, agentA, all...)
	before := runtime.NumGoroutine()
	d := serve(t, Options{Store: s})
	c := d.dial(t)
	var wg sync.WaitGroup
	for w := range 12 {
		wg.Go(func() {
			for i := range 40 {
				at := (w*7 + i) % 100
				p, err := c.ReadEvents(t.Context(), wire.ReadParams{After: uint64(at), Limit: 1})
				if err != nil {
					t.Error(err)
					return
				}
				if got := texts(t, p); len(got) != 1 || got[0] != all[at] {
					t.Errorf("after %d: %q", at, got)
				}
			}
		})
	}
	wg.Wait()
	c.Close()
	c.Close()
	if _, err := c.Catalog(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("over a closed client: %v, want net.ErrClosed", err)
	}
	d.stop()
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// A daemon that ends takes its calls with it.
func TestClientLosesDaemon(t *testing.T) {
	c, err := Dial(t.Context(), impostor(t, map[string]string{"Catalog": "hang up"}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Catalog(t.Context()); !errors.Is(err, ErrDisconnected) {
			t.Errorf("Catalog = %v, want ErrDisconnected", err)
		}
	}
	long, err := Dial(t.Context(), impostor(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	var e *Error
	if _, err := long.Explain(t.Context(), strings.Repeat("x", wire.MaxRequest)); !errors.As(err, &e) || e.Code != CodeTooLarge {
		t.Errorf("a request that is too long: %v", err)
	}
}

// A daemon that does not read does not hold a call beyond its context.
func TestClientDaemonDoesNotRead(t *testing.T) {
	path := shortDir(t) + "/s"
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ln.Close()
	defer close(over)
	wg.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		if _, err := r.ReadString('\n'); err != nil {
			t.Error(err)
		}
		fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"result":{"schema":"wakterm.agent-api.v1","api_major":1}}`)
		if _, err := r.Peek(1); err != nil {
			t.Error(err)
		}
		close(begun) // the next request has begun, and nothing more is read
		<-over
	})
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := contextOf(t)
	failed := make(chan error, 1)
	go func() {
		// Longer than the buffers of a socket.
		_, err := c.Explain(ctx, strings.Repeat("x", wire.MaxRequest-1000))
		failed <- err
	}()
	<-begun
	began := time.Now()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || time.Since(began) > sendTimeout-time.Second {
		t.Errorf("Explain = %v after %v, want context.Canceled", err, time.Since(began))
	}
	// The line was broken off, so the connection is of no more use.
	if _, err := c.Catalog(t.Context()); !errors.Is(err, ErrDisconnected) {
		t.Errorf("Catalog = %v, want ErrDisconnected", err)
	}
}
