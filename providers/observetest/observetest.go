// Package observetest runs a provider under a real observer, with the test binary
// in the place of the program. It is for the tests of providers whose files are
// read in an order, or replaced in a way, that only a running observer meets.
package observetest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"steno/ipc/wire"
	"steno/observer"
	"steno/providers"
	"steno/store"
)

// patience bounds every wait for a condition.
const patience = 30 * time.Second

// Observed is a running observer, of one provider, and one program that it knows.
type Observed struct {
	t      testing.TB
	home   string
	id     string // of the provider
	store  *store.Store
	agent  string // what the observer calls the program
	fields func(wire.Event) []*string
}

// Run starts an observer in a home directory and waits for its first sweep. The
// fields are what Seen spells of an event beside its kind; it leaves out those
// that are nil or empty. The observer ends with the test.
func Run(t testing.TB, p providers.Provider, home string, sweep time.Duration, fields func(wire.Event) []*string) *Observed {
	t.Helper()
	r := &Observed{t: t, home: home, id: p.ID(), fields: fields}
	var err error
	r.store, err = store.Open(t.Context(), store.Options{Path: filepath.Join(home, "state", "events.db")})
	r.must(err)
	o, err := observer.New(observer.Options{
		Store: r.store, Providers: []providers.Provider{p},
		Env:      providers.Env{Home: home, Getenv: func(string) string { return "" }},
		TmuxPath: filepath.Join(home, "no-tmux"), Sweep: sweep, Log: zerolog.Nop(),
	})
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-o.Swept():
	case <-time.After(patience):
		t.Fatal("no first sweep")
	}
	return r
}

// Command is the program, a copy of the test binary under the name of the
// provider, in a directory of the home. It has a session of its own.
func (r *Observed) Command(dir string, env ...string) *exec.Cmd {
	r.t.Helper()
	self, err := os.Executable()
	r.must(err)
	b, err := os.ReadFile(self)
	r.must(err)
	program := filepath.Join(r.home, "bin", r.id)
	r.must(os.MkdirAll(filepath.Dir(program), 0o700))
	r.must(os.WriteFile(program, b, 0o700))
	cmd := exec.Command(program)
	cmd.Env, cmd.Dir, cmd.Stderr = append([]string{"HOME=" + r.home}, env...), dir, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// Known waits until the program is known. What is written then is dated after its
// start, however slow this machine is. Other programs of this name are known, too.
func (r *Observed) Known(pid int) {
	r.t.Helper()
	r.Until("the program is known", func() bool {
		_, agents, err := r.store.Agents(r.t.Context())
		r.must(err)
		for _, a := range agents {
			if a.PID == pid && a.Available {
				r.agent = a.ID
			}
		}
		return r.agent != ""
	})
}

// Until waits for a commit after which ok is true.
func (r *Observed) Until(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.After(patience); ; {
		changed := r.store.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			r.t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// Events are those of the program so far but its lifecycle.
func (r *Observed) Events() (out []wire.Event) {
	r.t.Helper()
	for after := store.Seq(0); ; {
		p, err := r.store.Page(r.t.Context(), store.Query{After: after, Limit: 1000})
		r.must(err)
		if len(p.Events) == 0 {
			return out
		}
		after = p.Next
		for _, b := range p.Events {
			var e wire.Event
			r.must(json.Unmarshal(b, &e))
			if e.AgentID == r.agent && e.Kind != wire.AgentLifecycle {
				out = append(out, e)
			}
		}
	}
}

// Seen spells the events, one a line.
func (r *Observed) Seen() (out []string) {
	r.t.Helper()
	for _, e := range r.Events() {
		line := e.Kind
		for _, s := range r.fields(e) {
			if s != nil && *s != "" {
				line += " " + *s
			}
		}
		out = append(out, line)
	}
	return out
}

// Want waits until the events are exactly these.
func (r *Observed) Want(want ...string) {
	r.t.Helper()
	var got []string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("events:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}()
	r.Until("the events", func() bool { got = r.Seen(); return slices.Equal(got, want) })
}

func (r *Observed) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
