package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"steno/ipc/wire"
)

// The turns of testdata/demo/claude.jsonl, read from the recording: a question
// that is answered, one that is declined, and a form that stays open.
const claudeTurns = "available turn_started waiting_on_agent assistant_message approval_requested assistant_message turn_completed waiting_on_user " +
	"turn_started waiting_on_agent assistant_message approval_requested turn_aborted waiting_on_user turn_started waiting_on_agent"

// The turn of testdata/demo/codex.jsonl: a patch and one answer.
const codexTurns = "available turn_started waiting_on_agent assistant_message turn_completed waiting_on_user"

func TestTurnsEndToEnd(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	f := w.follow(0)
	for harness, want := range map[string]string{"claude": claudeTurns, "codex": codexTurns} {
		a := w.agent(harness, harness+"-dir")
		e := w.entry(harness + "-dir")
		if e.Harness != harness {
			t.Errorf("harness = %s, want %s", e.Harness, harness)
		}
		a.do("all")
		f.until(harness+"'s turns", func(events []wire.Event) bool { return f.kinds(e.AgentID) == want })
		a.do("exit")
		f.until(harness+"'s end", func(events []wire.Event) bool { return count(events, e.AgentID, isGone) == 1 })
		if got := f.kinds(e.AgentID); got != want+" unavailable" {
			t.Errorf("events = %s, want %s unavailable", got, want)
		}
		for _, ev := range f.events {
			if ev.AgentID == e.AgentID && isGone(ev) && value(ev.Reason) != wire.ProcessExited {
				t.Errorf("reason = %s, want %s", value(ev.Reason), wire.ProcessExited)
			}
		}
	}
	d.stop()
}

// TestRestartWithFollower: what an agent writes while the daemon is dead comes
// once, in order, to a follower that lived through it.
func TestRestartWithFollower(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	a := w.agent("claude", "maple")
	e := w.entry("maple")
	f := w.follow(0)
	a.do("write 6") // the prompt and what belongs to it
	f.until("the first turn", func(events []wire.Event) bool {
		return count(events, e.AgentID, func(e wire.Event) bool { return e.Kind == wire.TurnStarted }) == 1
	})
	d.kill()
	a.do("all")
	d = w.serve(nil)
	f.until("all turns", func(events []wire.Event) bool { return count(events, e.AgentID, isFinal) == 2 })
	a.do("again")
	a.do("all")
	f.until("the turns of the second pass", func(events []wire.Event) bool { return count(events, e.AgentID, isFinal) == 4 })
	restarts := count(f.events, e.AgentID, func(e wire.Event) bool { return isGone(e) && value(e.Reason) == wire.MuxRestarted })
	if restarts != 1 {
		t.Errorf("%d unavailable events of reason %s, want 1", restarts, wire.MuxRestarted)
	}
	starts := count(f.events, e.AgentID, func(e wire.Event) bool { return e.Kind == wire.TurnStarted })
	if starts != 6 {
		t.Errorf("%d turns started, want 6: %s", starts, f.kinds(e.AgentID))
	}
	d.stop()
}

func TestSecondDaemonIsRefused(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	code, said := w.code("serve")
	if code != exitFailed || !strings.Contains(said, "another steno (pid ") || !strings.Contains(said, "steno: hint: ") {
		t.Errorf("same state directory: code %d, %q", code, said)
	}
	code, said = w.code("serve", "--state-dir", filepath.Join(w.dir, "other"))
	if code != exitFailed || !strings.Contains(said, "another daemon serves this socket") {
		t.Errorf("same socket: code %d, %q", code, said)
	}
	w.steno("agent", "capabilities") // the first is untouched
	d.kill()                         // leaves its socket file behind
	if _, err := os.Stat(w.socket()); err != nil {
		t.Fatalf("no leftover to replace: %v", err)
	}
	w.serve(nil).stop()
}

func TestNotifyProtocol(t *testing.T) {
	w := newWorld(t)
	d := w.serve([]string{"WATCHDOG_USEC=2000000"})
	if s := d.await("STATUS="); !strings.Contains(s, " agents, ") || !strings.Contains(s, " events up to ") {
		t.Errorf("status %q has no counts", s)
	}
	d.await("WATCHDOG=1")
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !strings.Contains(strings.Join(d.said, "\n"), "STOPPING=1") {
		t.Errorf("the daemon did not say that it stops: %q", d.said)
	}
}

func TestInheritedSocket(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.dir, "run", "given.sock")
	l := listenUnix(t, path)
	w.env = append(w.env, "STENO_SOCKET="+path)
	// The shell gives its own process id to the program that it becomes.
	steno, err := exec.LookPath("steno")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, steno)
	cmd.Env = w.env
	cmd.ExtraFiles = []*os.File{l}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	// The connection waits in the socket until the daemon takes it.
	var status wire.Status
	w.decode(w.steno("status"), &status)
	if status.Socket != path || status.PID != cmd.Process.Pid {
		t.Errorf("status says socket %s and pid %d, want %s and %d", status.Socket, status.PID, path, cmd.Process.Pid)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the service manager's socket was removed: %v", err)
	}
}

func TestSocketActivate(t *testing.T) {
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("systemd-socket-activate is not installed")
	}
	w := newWorld(t)
	path := filepath.Join(w.dir, "run", "act.sock")
	w.env = append(w.env, "STENO_SOCKET="+path)
	steno, err := exec.LookPath("steno")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-l", path}
	for _, kv := range w.env {
		args = append(args, "-E", kv)
	}
	cmd := exec.CommandContext(t.Context(), activate, append(args, steno, "serve")...)
	cmd.Env = w.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the socket", func() bool { _, err := os.Stat(path); return err == nil })
	var status wire.Status
	w.decode(w.steno("status"), &status) // connecting starts the daemon
	if status.Socket != path {
		t.Errorf("socket = %s, want %s", status.Socket, path)
	}
	if err := syscall.Kill(status.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil { // it became the daemon
		t.Fatal(err)
	}
}

func TestCorruptLogIsKept(t *testing.T) {
	w := newWorld(t)
	w.serve(nil).stop()
	state := filepath.Join(w.dir, ".local/state/steno")
	path := filepath.Join(state, logFile)
	garbage := []byte(strings.Repeat("not a database ", 1000))
	if err := os.WriteFile(path, garbage, 0o600); err != nil {
		t.Fatal(err)
	}
	code, said := w.code("serve")
	if code != exitFailed || !strings.Contains(said, "steno: hint: steno serve --recover") {
		t.Fatalf("code %d, %q", code, said)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(garbage) {
		t.Fatal("the refused log was changed")
	}
	w.serve(nil, "--recover").stop()
	kept := false
	names, err := filepath.Glob(filepath.Join(state, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		kept = kept || err == nil && string(data) == string(garbage)
	}
	if !kept {
		t.Errorf("the corrupt log is gone; files: %v", names)
	}
}

// TestConsumer makes the calls of the best-known consumer, argument by argument.
func TestConsumer(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	w.agent("claude", "oak").do("write 6")
	entry := w.entry("oak")
	socket := w.socket()
	for i, kv := range w.env {
		if strings.HasPrefix(kv, "XDG_RUNTIME_DIR=") {
			w.env[i] = muxSocketEnv + "=" + socket
		}
	}
	if got := string(w.steno("--skip-config", "--version")); !strings.HasPrefix(got, "steno ") || strings.Count(got, "\n") != 1 {
		t.Errorf("version = %q", got)
	}
	prefix := []string{"--skip-config", "cli", "--prefer-mux", "--no-auto-start"}
	call := func(args ...string) []byte { return w.steno(append(append([]string{}, prefix...), args...)...) }
	var caps wire.Capabilities
	w.decode(call("agent", "capabilities"), &caps)
	want := []string{wire.CapCatalog, wire.CapAdmission, wire.CapReturnStream, wire.CapEventStream}
	if caps.APIMajor != 1 || strings.Join(caps.Capabilities, " ") != strings.Join(want, " ") {
		t.Errorf("capabilities = %+v, want %v", caps, want)
	}
	var panes []struct {
		PaneID *uint64 `json:"pane_id"`
		Title  *string `json:"effective_title"`
		CWD    string  `json:"cwd"`
	}
	w.decode(call("list", "--format", "json"), &panes)
	listed := false
	for _, p := range panes {
		if p.PaneID == nil || p.Title == nil {
			t.Fatalf("pane without id or title: %+v", p)
		}
		listed = listed || *p.PaneID == entry.PaneID && strings.HasPrefix(p.CWD, "file://")
	}
	if !listed {
		t.Errorf("pane %d of the agent is not in the list", entry.PaneID)
	}
	var wide []map[string]json.RawMessage
	w.decode(call("agent", "list", "--format", "json"), &wide)
	if len(wide) == 0 || wide[0]["pane_id"] == nil || wide[0]["origin"] == nil {
		t.Errorf("agent list = %v", wide)
	}
	if got := call("agent", "request", "watch", "--after", "0", "--once"); len(got) != 0 {
		t.Errorf("return stream = %q, want nothing", got)
	}
	cmd := w.command(nil, append(append([]string{}, prefix...), "agent", "admit", entry.AgentID, "--exact-agent-id",
		"--incarnation", *entry.IncarnationID, "--request-id", "5c0e6a52-0000-4000-8000-0000000000aa")...)
	cmd.Stdin = strings.NewReader("hello")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var receipt wire.Receipt
	w.decode(out, &receipt)
	if receipt.Status != wire.Unsupported || !receipt.Definitive || receipt.PromptWritten == nil || *receipt.PromptWritten {
		t.Errorf("receipt = %s", out)
	}
	var caller wire.Caller
	w.decode(call("agent", "caller", "--pane", itoa(entry.PaneID)), &caller)
	if caller.ResolvedBy != wire.ByPane || caller.Agent.AgentID != entry.AgentID {
		t.Errorf("caller = %+v", caller)
	}
	code, _ := w.code("agent", "caller", "--pane", "18446744073709551615")
	if code != exitFailed {
		t.Errorf("caller of a pane that is not there: code %d", code)
	}
	var page wire.Page
	w.decode(call("agent", "events", "--after", "0", "--limit", "1000"), &page)
	if page.Status != wire.OK || len(page.Events) == 0 {
		t.Errorf("page = %+v", page)
	}
	w.decode(call("agent", "events", "--after", "99999999"), &page)
	if page.Status != wire.CursorTooOld || page.Recovery == nil {
		t.Errorf("page beyond the head = %+v", page)
	}
	// A follower with such a cursor prints the gap and ends well.
	if code, said := w.code(append(append([]string{}, prefix...), "agent", "events", "--after", "99999999", "--follow", "--wait-ms", "5000")...); code != exitOK {
		t.Errorf("follow of a gap: code %d, %s", code, said)
	}
	d.stop()
}

// TestCallerInTmux resolves the caller by the variables that tmux sets.
func TestCallerInTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed")
	}
	w := newWorld(t)
	d := w.serve(nil)
	source, err := standinBinary()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(w.dir, "claude")
	if err := os.WriteFile(bin, data, 0o700); err != nil {
		t.Fatal(err)
	}
	cwd := filepath.Join(w.dir, "pine")
	if err := os.Mkdir(cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	record, err := filepath.Abs(filepath.Join(moduleRoot, "testdata/demo/claude.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	tmuxCommand := func(args ...string) *exec.Cmd {
		cmd := exec.Command(tmux, append([]string{"-f", "/dev/null"}, args...)...)
		cmd.Env = append(append([]string{}, w.env...), "STANDIN_RECORD="+record, "TERM=xterm")
		return cmd
	}
	if out, err := tmuxCommand("new-session", "-d", "-s", "s", "-c", cwd, bin).CombinedOutput(); err != nil {
		t.Fatalf("start tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = tmuxCommand("kill-server").Run() })
	e := w.entry("pine")
	out, err := tmuxCommand("display-message", "-p", "-t", "s", "#{socket_path} #{pane_id}").Output()
	if err != nil {
		t.Fatal(err)
	}
	socket, pane, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	got, err := w.command([]string{"TMUX=" + socket + ",1,0", "TMUX_PANE=" + pane, "CODEX_THREAD_ID=unknown"}, "agent", "caller").Output()
	if err != nil {
		t.Fatal(err)
	}
	var caller wire.Caller
	w.decode(got, &caller)
	if caller.Agent.AgentID != e.AgentID {
		t.Errorf("caller = %s, want %s", caller.Agent.AgentID, e.AgentID)
	}
	cmd := w.command([]string{"TMUX=" + socket + ",1,0", "TMUX_PANE=%99"}, "agent", "caller")
	if out, err := cmd.Output(); err == nil || len(out) > 0 {
		t.Errorf("caller of an unknown pane: %v, %q", err, out)
	}
	d.stop()
}

// TestDemo runs what "make demo" runs.
func TestDemo(t *testing.T) {
	source, err := standinBinary()
	if err != nil {
		t.Fatal(err)
	}
	steno, err := exec.LookPath("steno")
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Abs(filepath.Join(moduleRoot, "testdata/demo"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), source, "demo", "--steno", steno, "--records", records, "--pace", "20ms")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("demo: %v: %s", err, out)
	}
	for _, want := range []string{
		"claude-maple ", "codex-birch ", "gemini-cedar ", "opencode-hazel ", "kimi-rowan ", "copilot-alder ",
		"PATCH-FINAL: file added.", "replayed 6 recorded sessions",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("demo does not print %q: %s", want, out)
		}
	}
	if strings.Contains(string(out), "\x1b") {
		t.Error("demo prints escapes to something that is no terminal")
	}
}

// TestSecondSignalEndsAtOnce: a reader that takes nothing holds up the orderly
// end; a second signal does not wait for it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	w := newWorld(t)
	pipe := fullPipe(t)
	d := w.serveTo(pipe, nil, "--follow")
	w.agent("claude", "yew").do("write 6")
	w.entry("yew")
	waitFor(t, "a writer that waits", func() bool { return waitsForPipe(t, d.cmd.Process.Pid) })
	w.steno("agent", "catalog") // only the printer waits
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.await("STOPPING=1")
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.wait()
	if code := d.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("the daemon ended with %d after the second signal, want %d", code, exitFailed)
	}
}

// fullPipe is the writing end of a pipe that takes no more bytes.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]) })
	var err error
	for zeros := make([]byte, 4096); err == nil; {
		_, err = unix.Write(fds[1], zeros)
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	pipe := os.NewFile(uintptr(fds[1]), "pipe")
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

// waitsForPipe says whether a thread of the process waits until a pipe can be
// written to, by the kernel's own word for it.
func waitsForPipe(t *testing.T, pid int) bool {
	t.Helper()
	places, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/wchan"))
	if err != nil {
		t.Fatal(err)
	}
	known := false
	for _, p := range places {
		where, err := os.ReadFile(p)
		if err != nil {
			continue // the thread has ended
		}
		if strings.Contains(string(where), "pipe_write") {
			return true
		}
		known = known || len(where) > 1
	}
	if len(places) > 0 && !known {
		t.Skip("this kernel does not say what a process waits for")
	}
	return false
}
