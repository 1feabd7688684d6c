package ipc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"steno/ipc/wire"
	"steno/store"
)

const (
	agentA = "8f0b6a1e-51c4-4d0b-9c2a-0e6f7d3b1a01"
	agentB = "8f0b6a1e-51c4-4d0b-9c2a-0e6f7d3b1a02"
	incA   = "inc-a"
	// soon is how long a thing may take that should take no time at all. It is
	// far below the 30 s of a long poll.
	soon = 10 * time.Second
)

var noon = time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC)

// spy is a real log whose page reads are counted and can be interfered with.
type spy struct {
	*store.Store
	pages     atomic.Int64
	afterPage func(n int64)         // called after the nth page was read
	fail      func(op string) error // an error instead of an answer
	agents    func() []store.Agent  // instead of the stored ones
	mu        sync.Mutex            // guards batch numbers
	made      int
}

func (s *spy) Page(ctx context.Context, q store.Query) (store.Page, error) {
	if s.fail != nil {
		if err := s.fail("page"); err != nil {
			return store.Page{}, err
		}
	}
	p, err := s.Store.Page(ctx, q)
	n := s.pages.Add(1)
	if s.afterPage != nil {
		s.afterPage(n)
	}
	return p, err
}

func (s *spy) Agents(ctx context.Context) (store.Seq, []store.Agent, error) {
	if s.fail != nil {
		if err := s.fail("agents"); err != nil {
			return 0, nil, err
		}
	}
	seq, agents, err := s.Store.Agents(ctx)
	if s.agents != nil {
		agents = s.agents()
	}
	return seq, agents, err
}

// openLog opens an empty log that is checked and closed at the end.
func openLog(t testing.TB, o store.Options) *spy {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "state", "log.db")
	}
	st, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Check(context.Background()); err != nil {
			t.Errorf("Check = %v", err)
		}
		if err := st.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return &spy{Store: st}
}

// add commits one event of each text.
func (s *spy) add(t testing.TB, kind, agent string, texts ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var b store.Batch
	for _, text := range texts {
		s.made++
		ev := wire.Event{
			EventID: fmt.Sprintf("event-%04d", s.made), Kind: kind, AgentID: agent, IncarnationID: incA,
			ObservedAt: wire.At(noon), TurnID: ptr("turn-1"),
		}
		if kind == wire.AssistantMessage {
			ev.Text = &text
		}
		line, err := encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		body, ok := strings.CutPrefix(strings.TrimSpace(string(line)), `{"sequence":0,`)
		if !ok {
			t.Fatalf("event begins with %.40s", line)
		}
		b.Events = append(b.Events, store.Event{
			ID: ev.EventID, Kind: kind, Agent: agent, Incarnation: incA, Body: []byte("{" + body),
		})
	}
	if _, err := s.Commit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

// stub is an observer with fixed answers.
type stub struct {
	panes []wire.Pane
	err   error
	block chan struct{} // when set, Explain waits for it or its context
	began chan struct{}
}

func (s *stub) Status() wire.Status                        { return wire.Status{Socket: "steno.sock"} }
func (s *stub) Panes(context.Context) ([]wire.Pane, error) { return s.panes, s.err }
func (s *stub) Explain(ctx context.Context, target string) (wire.Explanation, error) {
	if s.block != nil {
		s.began <- struct{}{}
		select {
		case <-s.block:
		case <-ctx.Done():
			return wire.Explanation{}, ctx.Err()
		}
	}
	if target != "maple" {
		return wire.Explanation{}, fmt.Errorf("explain: %w", wire.ErrNotFound)
	}
	return wire.Explanation{Name: target, Evidence: []wire.EvidenceRow{}}, s.err
}

// daemon is a running server.
type daemon struct {
	*Server
	path string
	stop func() // ends it and waits; may be called again
}

// serve runs a server until the test ends and makes sure that it leaves no
// goroutine behind.
func serve(t testing.TB, o Options) *daemon {
	t.Helper()
	return serveAt(t, filepath.Join(shortDir(t), "steno.sock"), o)
}

func serveAt(t testing.TB, path string, o Options) *daemon {
	t.Helper()
	if o.Live == nil {
		o.Live = &stub{}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	if o.Version == "" {
		o.Version = "0.0.1"
	}
	before := runtime.NumGoroutine()
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Serve = %v", err)
				}
			case <-time.After(soon):
				t.Error("Serve does not end")
			}
			if n := s.clients(); n != 0 {
				t.Errorf("%d connections after Serve", n)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
	return &daemon{Server: s, path: path, stop: stop}
}

// shortDir is a directory whose sockets have short names, however long the
// test's name is.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "steno")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(soon)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			buf := make([]byte, 1<<16)
			t.Fatalf("never: %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// raw is a connection without a client.
type raw struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (d *daemon) raw(t testing.TB) *raw {
	t.Helper()
	conn, err := net.Dial("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	return &raw{Conn: conn, t: t, r: bufio.NewReader(conn)}
}

func (r *raw) send(lines ...string) {
	r.t.Helper()
	if _, err := r.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		r.t.Fatalf("send: %v", err)
	}
}

func (r *raw) line() string {
	r.t.Helper()
	line, err := r.r.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read line: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// reply reads one answer.
func (r *raw) reply() (id string, code Code, result json.RawMessage) {
	r.t.Helper()
	line := r.line()
	var in response
	if err := json.Unmarshal([]byte(line), &in); err != nil {
		r.t.Fatalf("%.100q: %v", line, err)
	}
	if in.JSONRPC != "2.0" || (in.Error == nil) == (in.Result == nil) {
		r.t.Fatalf("not a response: %.200s", line)
	}
	if in.Error != nil {
		if numbers[in.Error.Data.Code] != in.Error.Code {
			r.t.Errorf("%s has number %d, want %d", in.Error.Data.Code, in.Error.Code, numbers[in.Error.Data.Code])
		}
		return string(in.ID), in.Error.Data.Code, nil
	}
	return string(in.ID), "", in.Result
}

// alive makes sure that the connection still works.
func (r *raw) alive() {
	r.t.Helper()
	r.send(`{"jsonrpc":"2.0","id":"alive","method":"Hello"}`)
	if id, code, _ := r.reply(); id != `"alive"` || code != "" {
		r.t.Fatalf("after it: id %s, error %s", id, code)
	}
}

func (d *daemon) dial(t testing.TB) *Client {
	t.Helper()
	c, err := Dial(context.Background(), d.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// texts are the texts of a page's events.
func texts(t testing.TB, p wire.Page) []string {
	t.Helper()
	out := []string{}
	for _, raw := range p.Events {
		var e wire.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Text != nil {
			out = append(out, *e.Text)
		}
	}
	return out
}

// notes is a log that tests can read.
type notes struct {
	mu sync.Mutex
	b  strings.Builder
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

func (n *notes) logger() zerolog.Logger { return zerolog.New(n) }

// contextOf is a context that the test ends itself.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}

func unmarshal(line string, v any) error { return json.Unmarshal([]byte(line), v) }

// newChunked reads data in pieces through the smallest buffer there is.
func newChunked(data []byte, chunk int) *bufio.Reader {
	return bufio.NewReaderSize(&chunked{data, chunk}, 16)
}

type chunked struct {
	data  []byte
	chunk int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.chunk)], c.data)
	c.data = c.data[n:]
	return n, nil
}
