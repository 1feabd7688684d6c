package observer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	_ "modernc.org/sqlite"

	"steno/ipc/wire"
	"steno/providers"
	"steno/store"
)

// agentName is how this run's agents are called: several runs may share the
// machine, and each sees all processes.
var agentName = fmt.Sprintf("fakeagent-%d", os.Getpid())

// raceExit: otherwise a program with the race detector takes a second to end.
const raceExit = "GORACE=atexit_sleep_ms=0"

// TestMain lets the test binary be an agent: a copy of it named "fakeagent-N"
// lives until its standard input ends.
func TestMain(m *testing.M) {
	switch name, of, _ := strings.Cut(filepath.Base(os.Args[0]), "-"); name {
	case "fakeagent", "otheragent":
		if n, _ := os.Stdin.Read(make([]byte, 1)); n > 0 { // become another program
			next := filepath.Join(filepath.Dir(os.Args[0]), "otheragent-"+of)
			_ = syscall.Exec(next, []string{next}, os.Environ())
		}
		return
	case "fakeshell":
		playShell()
		return
	case "faketmux":
		playTmux()
		return
	}
	os.Exit(m.Run())
}

// rig is an observer on a made-up home with real processes.
type rig struct {
	t     testing.TB
	home  string
	args  []string // of the agents that are started
	store *store.Store
	opt   Options
	obs   *Observer
	stop  func()
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	r := &rig{t: t, home: t.TempDir()}
	for _, d := range []string{"fake/log", "fake/reg"} {
		if err := os.MkdirAll(filepath.Join(r.home, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(r.home, "state", "events.db")})
	if err != nil {
		t.Fatal(err)
	}
	r.store = s
	t.Cleanup(func() {
		r.halt()
		if err := s.Check(context.Background()); err != nil {
			t.Errorf("store: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		noLeak(t, before)
	})
	r.opt = Options{
		Store: s, Providers: []providers.Provider{fake{}},
		Env:      providers.Env{Home: r.home, Getenv: func(string) string { return "" }},
		TmuxPath: filepath.Join(r.home, "no-tmux"), Log: zerolog.New(zerolog.NewTestWriter(t)),
		Sweep: time.Hour, // what the tests see, hints have brought
	}
	for _, c := range change {
		c(&r.opt)
	}
	return r
}

// noLeak waits until as many goroutines run as before.
func noLeak(t testing.TB, before int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// run starts the observer and waits for its first sweep.
func (r *rig) run() {
	r.t.Helper()
	o, err := New(r.opt)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	r.obs = o
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	}
	select {
	case <-o.Swept():
	case <-time.After(10 * time.Second):
		r.t.Fatal("no first sweep")
	}
}

func (r *rig) halt() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// agentProcess is a running fakeagent.
type agentProcess struct {
	r    *rig
	cmd  *exec.Cmd
	home string
	in   io.Writer // a byte makes it become otheragent
	stop func()
}

// start runs an agent and, with a session, writes its registry record.
func (r *rig) start(session string) *agentProcess { return r.startIn(r.home, session) }

// startIn runs an agent with a home of its own.
func (r *rig) startIn(home, session string) *agentProcess {
	r.t.Helper()
	exe := r.program(agentName)
	cmd := exec.Command(exe, r.args...)
	cmd.Env = []string{"HOME=" + home, raceExit}
	cmd.Dir = r.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal: headless
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	a := &agentProcess{r: r, cmd: cmd, home: home, in: in}
	once := false
	a.stop = func() {
		if !once {
			once = true
			in.Close()
			_ = cmd.Wait()
		}
	}
	r.t.Cleanup(a.stop)
	if session != "" {
		a.register(fakeRegistry{Session: session})
	}
	return a
}

func (a *agentProcess) register(reg fakeRegistry) {
	a.r.t.Helper()
	reg.PID = a.cmd.Process.Pid
	b, err := json.Marshal(reg)
	if err != nil {
		a.r.t.Fatal(err)
	}
	path := filepath.Join(a.home, "fake/reg", fmt.Sprintf("%d.json", reg.PID))
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		a.r.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		a.r.t.Fatal(err)
	}
}

func (r *rig) path(session string) string {
	return filepath.Join(r.home, "fake/log", session+".jsonl")
}

// write appends records to a session's transcript in one write.
func (r *rig) write(session string, recs ...fakeRecord) {
	r.t.Helper()
	f, err := os.OpenFile(r.path(session), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(encodeRecords(r.t, recs...)); err != nil {
		r.t.Fatal(err)
	}
}

// age waits until what was written so far is older than all that begins now, as
// far as the kernel's coarse clock and the ticks of a process's start tell.
func (r *rig) age() {
	r.t.Helper()
	written := time.Now()
	r.until("what was written is old", func() bool { return time.Since(written) > 3*birthSlack })
}

func encodeRecords(t testing.TB, recs ...fakeRecord) []byte {
	t.Helper()
	var all []byte
	for _, rec := range recs {
		b, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
		all = append(all, '\n')
	}
	return all
}

// events is the whole log.
func (r *rig) events() []wire.Event {
	r.t.Helper()
	var out []wire.Event
	var after store.Seq
	for {
		p, err := r.store.Page(r.t.Context(), store.Query{After: after, Limit: 1000})
		if err != nil {
			r.t.Fatal(err)
		}
		if len(p.Events) == 0 {
			return out
		}
		for _, b := range p.Events {
			var e wire.Event
			if err := json.Unmarshal(b, &e); err != nil {
				r.t.Fatalf("event %s: %v", b, err)
			}
			out = append(out, e)
		}
		after = p.Next
	}
}

// line says in one line what an event is.
func line(e wire.Event) string {
	str := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	parts := []string{e.Kind}
	for _, p := range []*string{e.Lifecycle, e.TurnID, e.TurnState, e.Outcome, e.Reason, e.Text} {
		if s := str(p); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

func (r *rig) lines() []string {
	var out []string
	for _, e := range r.events() {
		out = append(out, line(e))
	}
	return out
}

// want waits until the log is exactly this.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		changed := r.store.Changed()
		got := r.lines()
		if strings.Join(got, "\n") == strings.Join(lines, "\n") {
			return
		}
		if len(got) > len(lines) || time.Now().After(deadline) {
			r.dump()
			r.t.Fatalf("events:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(lines, "\n  "))
		}
		select {
		case <-changed:
		case <-time.After(time.Until(deadline)):
		}
	}
}

// dump logs how the observer sees things.
func (r *rig) dump() {
	if r.obs == nil {
		return
	}
	r.t.Logf("status %+v", r.obs.Status())
	_ = r.obs.ask(context.Background(), func() {
		for _, a := range r.obs.agents {
			r.t.Logf("agent %+v art %v match %+v exiting %v draining %d", a.row, a.art != nil, a.match, a.exiting, a.draining)
		}
		for _, a := range r.obs.artifacts {
			r.t.Logf("artifact %s agent %v busy %v dirty %v due %v reader %v", a.Path, a.agent != nil, a.busy, a.dirty, a.due, a.reader != nil)
		}
	})
}

// lockStore takes the database away from the committer, as another process
// could, and gives a function that gives it back.
func (r *rig) lockStore() (unlock func()) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.home, "state", "events.db")+"?_txlock=exclusive&_pragma=busy_timeout(10000)")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { db.Close() })
	tx, err := db.Begin()
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if err := tx.Rollback(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// until waits for a condition on the observer.
func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func now() time.Time { return time.Now().UTC() }
