package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"steno/ipc/wire"
)

// patience bounds every wait for a condition.
const patience = 30 * time.Second

// TestMain makes this test binary run as steno where a test or a script starts
// a program of that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"steno": main})
}

// standinBinary builds the stand-in once.
var standinBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "steno-standin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "standin")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "steno/cmd/standin").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build stand-in: %w: %s", err, out)
	}
	return path, nil
})

// world is a home of its own with a daemon and agents.
type world struct {
	t     *testing.T
	dir   string
	env   []string
	panes int // tmux panes so far

	prepare func(*exec.Cmd) // changes how a daemon is started; nil is allowed
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// Short: the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "st")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"TMUX_TMPDIR=" + filepath.Join(dir, "run"), raceQuick(),
	}}
}

func (w *world) socket() string { return filepath.Join(w.dir, "run", "steno", "steno.sock") }

// command prepares steno with the world's environment and more.
func (w *world) command(more []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), "steno", args...)
	cmd.Env = append(append([]string{}, w.env...), more...)
	cmd.Dir = w.dir
	return cmd
}

// steno runs one command, which has to succeed, and gives its output.
func (w *world) steno(args ...string) []byte {
	w.t.Helper()
	out, err := w.command(nil, args...).Output()
	if err != nil {
		var stderr []byte
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			stderr = e.Stderr
		}
		w.t.Fatalf("steno %s: %v: %s", strings.Join(args, " "), err, stderr)
	}
	return out
}

// code runs one command and gives its exit code and error output.
func (w *world) code(args ...string) (int, string) {
	w.t.Helper()
	cmd := w.command(nil, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// server is a running "steno serve".
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	done   chan struct{}

	mu   sync.Mutex // guards said
	said []string   // what it told the service manager
	news chan struct{}
}

// serve starts the daemon and waits until it is ready.
func (w *world) serve(more []string, args ...string) *server {
	w.t.Helper()
	return w.serveTo(nil, more, args...)
}

// serveTo is serve with a standard output.
func (w *world) serveTo(out *os.File, more []string, args ...string) *server {
	w.t.Helper()
	path := filepath.Join(w.dir, "run", fmt.Sprintf("notify%d", time.Now().UnixNano()))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		w.t.Fatal(err)
	}
	d := &server{t: w.t, stderr: &bytes.Buffer{}, done: make(chan struct{}), news: make(chan struct{}, 1)}
	d.cmd = w.command(append(more, "NOTIFY_SOCKET="+path), append([]string{"serve"}, args...)...)
	d.cmd.Stderr = d.stderr
	if out != nil {
		d.cmd.Stdout = out
	}
	heard := make(chan struct{})
	go func() { // ends when conn is closed
		defer close(heard)
		for buf := make([]byte, 4096); ; {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			d.mu.Lock()
			d.said = append(d.said, string(buf[:n]))
			d.mu.Unlock()
			select {
			case d.news <- struct{}{}:
			default:
			}
		}
	}()
	if w.prepare != nil {
		w.prepare(d.cmd)
	}
	if err := d.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { // joined in the cleanup
		_ = d.cmd.Wait() // the state is looked at
		close(d.done)
	}()
	w.t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it may have ended
		<-d.done
		conn.Close()
		<-heard
	})
	d.await("READY=1")
	return d
}

// await waits until the daemon told the service manager what.
func (d *server) await(what string) string {
	d.t.Helper()
	deadline := time.After(patience)
	for {
		d.mu.Lock()
		for _, s := range d.said {
			if strings.Contains(s, what) {
				d.mu.Unlock()
				return s
			}
		}
		d.mu.Unlock()
		select {
		case <-d.news:
		case <-d.done:
			d.t.Fatalf("the daemon ended (%v) without saying %s: %s", d.cmd.ProcessState, what, d.stderr)
		case <-deadline:
			d.t.Fatalf("the daemon did not say %s in %s", what, patience)
		}
	}
}

// stop ends the daemon in order and checks that it did.
func (d *server) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	d.wait()
	if !d.cmd.ProcessState.Success() {
		d.t.Fatalf("the daemon ended with %v: %s", d.cmd.ProcessState, d.stderr)
	}
}

// kill ends the daemon the way a crash does.
func (d *server) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	d.wait()
}

func (d *server) wait() {
	d.t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		d.t.Fatalf("the daemon did not end in %s", patience)
	}
}

// standin is a running stand-in for an agent.
type standin struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	file    string // its session file
}

// agent starts a stand-in in its own directory. It has no terminal.
func (w *world) agent(harness, name string, more ...string) *standin {
	w.t.Helper()
	return w.agentWith(nil, harness, name, more...)
}

// agentWith is agent with arguments, which the stand-in does not read.
func (w *world) agentWith(args []string, harness, name string, more ...string) *standin {
	w.t.Helper()
	source, err := standinBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	// Copilot's program is known by the package that it lies in.
	bin := filepath.Join(w.dir, "bin-"+name, harness+"-linux-x64", harness)
	cwd := filepath.Join(w.dir, name)
	for _, d := range []string{filepath.Dir(bin), cwd} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	data, err := os.ReadFile(source)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		if err := os.WriteFile(bin, data, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	record, err := filepath.Abs(filepath.Join(moduleRoot, "testdata/demo", harness+".jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	a := &standin{t: w.t, cmd: exec.CommandContext(w.t.Context(), bin, args...)}
	a.cmd.Dir = cwd
	a.cmd.Env = append(append([]string{"STANDIN_RECORD=" + record}, w.env...), more...)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	a.answers = bufio.NewReader(out)
	if err := a.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { a.in.Close(); _ = a.cmd.Wait() })
	ready := strings.Fields(a.answer())
	if len(ready) != 4 || ready[0] != "ready" {
		w.t.Fatalf("stand-in said %q", ready)
	}
	a.file = ready[3]
	return a
}

func (a *standin) answer() string {
	a.t.Helper()
	line, err := a.answers.ReadString('\n')
	if err != nil {
		a.t.Fatalf("stand-in: %v", err)
	}
	return strings.TrimSpace(line)
}

// do gives the stand-in a command, which has to succeed.
func (a *standin) do(command string) string {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.in, command); err != nil {
		a.t.Fatal(err)
	}
	answer := a.answer()
	if strings.HasPrefix(answer, "error") {
		a.t.Fatalf("stand-in: %s: %s", command, answer)
	}
	return answer
}

// ours maps the ids of the agents of this world to the names of their
// directories. Other agents of the same user are seen too and do not count.
func (w *world) ours() map[string]string {
	w.t.Helper()
	var agents []wire.AgentListEntry
	w.decode(w.steno("agent", "list", "--format", "json"), &agents)
	out := map[string]string{}
	for _, e := range agents {
		if rel, err := filepath.Rel(w.dir, e.Metadata.DeclaredCWD); err == nil && filepath.IsLocal(rel) {
			out[e.Metadata.AgentID] = rel
		}
	}
	return out
}

func (w *world) decode(data []byte, into any) {
	w.t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		w.t.Fatalf("decode %.200q: %v", data, err)
	}
}

// entry waits until the agent in a directory is in the catalog, alive, and
// gives its entry.
func (w *world) entry(dir string) wire.CatalogEntry {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var catalog wire.Catalog
		w.decode(w.steno("agent", "catalog"), &catalog)
		ours := w.ours()
		for _, e := range catalog.Agents {
			if ours[e.AgentID] == dir && e.Alive && e.IncarnationID != nil {
				return e
			}
		}
	}
	w.t.Fatalf("no live agent in %s was seen in %s", dir, patience)
	return wire.CatalogEntry{}
}

// follower is a running "steno agent events --follow".
type follower struct {
	t      *testing.T
	cmd    *exec.Cmd
	pages  chan wire.Page
	events []wire.Event
	ids    map[string]uint64
}

func (w *world) follow(after uint64) *follower {
	w.t.Helper()
	f := &follower{t: w.t, pages: make(chan wire.Page), ids: map[string]uint64{}}
	f.cmd = w.command(nil, "agent", "events", "--after", fmt.Sprint(after), "--limit", "100", "--follow", "--wait-ms", "1000")
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(f.pages)
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, wire.MaxLine)
		for scan.Scan() {
			var page wire.Page
			if json.Unmarshal(scan.Bytes(), &page) != nil {
				return
			}
			select {
			case f.pages <- page:
			case <-w.t.Context().Done():
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		_ = f.cmd.Process.Kill() // it may have ended
		for range f.pages {
		}
		_ = f.cmd.Wait()
	})
	return f
}

// until reads pages until the events so far satisfy done. It checks what every
// consumer relies on: growing sequences and no event twice.
func (f *follower) until(what string, done func([]wire.Event) bool) {
	f.t.Helper()
	for deadline := time.After(patience); !done(f.events); {
		select {
		case page, ok := <-f.pages:
			if !ok {
				f.t.Fatalf("the follower ended before %s", what)
			}
			for _, raw := range page.Events {
				var e wire.Event
				if err := json.Unmarshal(raw, &e); err != nil {
					f.t.Fatal(err)
				}
				if n := len(f.events); n > 0 && e.Sequence <= f.events[n-1].Sequence {
					f.t.Fatalf("event %d came after %d", e.Sequence, f.events[n-1].Sequence)
				}
				if first, twice := f.ids[e.EventID]; twice {
					f.t.Fatalf("event %d is event %d again", e.Sequence, first)
				}
				f.ids[e.EventID] = e.Sequence
				f.events = append(f.events, e)
			}
		case <-deadline:
			f.t.Fatalf("%s was not seen in %s; events: %s", what, patience, f.kinds(""))
		}
	}
}

// kinds spells the events of one agent, or of all, in a line.
func (f *follower) kinds(agent string) string {
	var out []string
	for _, e := range f.events {
		if agent == "" || e.AgentID == agent {
			out = append(out, strings.ReplaceAll(kindWord(e), " ", "_"))
		}
	}
	return strings.Join(out, " ")
}

// count counts the events of one agent that satisfy is.
func count(events []wire.Event, agent string, is func(wire.Event) bool) int {
	n := 0
	for _, e := range events {
		if e.AgentID == agent && is(e) {
			n++
		}
	}
	return n
}

func isFinal(e wire.Event) bool { return e.Kind == wire.TurnFinal }
func isGone(e wire.Event) bool {
	return e.Kind == wire.AgentLifecycle && value(e.Lifecycle) == wire.Unavailable
}
