package mux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deadline bounds every wait for a condition.
const deadline = 20 * time.Second

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", deadline, what)
		}
	}
}

// server is a private tmux server that ends with the test.
type server struct {
	t      *testing.T
	socket string
}

func startServer(t *testing.T, dir, name string, command ...string) server {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux program: listing real servers is not tested")
	}
	s := server{t, filepath.Join(dir, name)}
	s.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-s", name, "-x", "80", "-y", "24"}, command...)...)
	t.Cleanup(func() {
		cmd := exec.Command("tmux", "-S", s.socket, "kill-server")
		_ = cmd.Run() // it may have ended with its last pane
	})
	return s
}

func (s server) tmux(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// shortDir is a directory whose sockets stay below the 108 bytes of a path.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mux")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func one(t *testing.T, tm *Tmux) Listing {
	t.Helper()
	got, err := tm.Panes(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("Panes = %+v, %v, want one listing", got, err)
	}
	return got[0]
}

func TestRealServer(t *testing.T) {
	dir := shortDir(t)
	odd := filepath.Join(t.TempDir(), "d\ttab\nline\x1fé")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "a", "-c", odd, "exec sleep 1000")
	// A title through the terminal, one through a command, and a window name.
	s.tmux("new-window", "-d", `printf '\033]0;#{pid} %%7 %s\tx \302\251 | ;\007' "$(printf '%%1')"; exec sleep 1000`)
	s.tmux("select-pane", "-t", "%0", "-T", "✳ #{l:#{pid}} \\t ; x")
	s.tmux("rename-window", "-t", "%0", "w\tin\nline")
	// The environment of the daemon must not lead to another server, and its
	// locale must not spoil the text.
	t.Setenv("TMUX", "/nowhere,1,0")
	t.Setenv("TMUX_PANE", "%99")
	t.Setenv("LC_ALL", "C")
	tm := &Tmux{Dirs: []string{dir}}
	var l Listing
	until(t, "titles and commands", func() bool {
		l = one(t, tm)
		return l.Err == nil && len(l.Panes) == 2 && strings.Contains(l.Panes[1].Title, "©") &&
			l.Panes[0].Command == "sleep" && l.Panes[1].Command == "sleep"
	})
	pid, started := s.tmux("display-message", "-p", "#{pid}"), s.tmux("display-message", "-p", "#{start_time}")
	if strconv.Itoa(l.Server.PID) != pid || strconv.FormatInt(l.Server.Started, 10) != started || l.Server.Socket != s.socket {
		t.Errorf("Server = %+v, want pid %s, start %s, socket %s", l.Server, pid, started, s.socket)
	}
	p := l.Panes[0]
	if p.Title != "✳ #{pid} \\t ; x" || p.CWD != odd || p.Session != "a" || !p.Active || p.Dead || p.InMode || p.AutoName {
		t.Errorf("pane 0 = %+v", p)
	}
	if p.WindowName != `w\tin\nline` || p.Window != "@0" {
		t.Errorf("window name %q, id %q", p.WindowName, p.Window)
	}
	if got := l.Panes[1]; got.Number != 1 || got.Active || !got.AutoName || got.WindowIndex != 1 ||
		!strings.HasPrefix(got.Title, "#{pid} %7 %1") {
		t.Errorf("pane 1 = %+v", got)
	}
	if fmt.Sprint(l.Panes[1].PID) != s.tmux("display-message", "-p", "-t", "%1", "#{pane_pid}") ||
		l.Panes[1].TTY != s.tmux("display-message", "-p", "-t", "%1", "#{pane_tty}") {
		t.Errorf("pane 1: pid %d, tty %s", l.Panes[1].PID, l.Panes[1].TTY)
	}
}

func TestRealPaneStates(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := startServer(t, dir, "b", "exec sleep 1000")
	s.tmux("set-option", "-g", "remain-on-exit", "on")
	s.tmux("split-window", "-d", "exec true")
	s.tmux("copy-mode", "-t", "%0")
	s.tmux("new-session", "-d", "-t", "b", "-s", "second") // the same windows once more
	tm := &Tmux{Dirs: []string{dir}}
	until(t, "a dead pane", func() bool {
		l := one(t, tm)
		return l.Err == nil && len(l.Panes) == 2 && l.Panes[1].Dead && !l.Panes[0].Dead &&
			l.Panes[0].InMode && !l.Panes[1].InMode && l.Panes[1].PaneIndex == 1
	})
}

// Field list: F10.
func TestServerEndsAndStartsAgain(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := startServer(t, dir, "c", "exec sleep 1000")
	tm := &Tmux{Dirs: []string{dir}}
	before := one(t, tm)
	if before.Err != nil {
		t.Fatal(before.Err)
	}
	// kill -9 leaves the socket file behind.
	if err := syscall.Kill(before.Server.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "a refused connection", func() bool { return errors.Is(one(t, tm).Err, ErrNoServer) })
	if _, err := os.Lstat(s.socket); err != nil {
		t.Fatalf("the leftover socket was touched: %v", err)
	}
	s.tmux("-f", "/dev/null", "new-session", "-d", "exec sleep 1000")
	after := one(t, tm)
	if after.Err != nil || after.Server == before.Server || after.Server.PID == before.Server.PID {
		t.Errorf("Server = %+v, before %+v, %v", after.Server, before.Server, after.Err)
	}
}

// A stopped server is unknown, not gone, and the others are still listed.
//
// Field list: F17.
func TestHungServer(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	startServer(t, dir, "good", "exec sleep 1000")
	startServer(t, dir, "hung", "exec sleep 1000")
	tm := &Tmux{Dirs: []string{dir}}
	both, err := tm.Panes(t.Context())
	if err != nil || len(both) != 2 || both[1].Err != nil {
		t.Fatalf("Panes = %+v, %v", both, err)
	}
	pid := both[1].Server.PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	tm.Timeout = 300 * time.Millisecond
	got, err := tm.Panes(t.Context())
	if err != nil || len(got) != 2 || got[0].Err != nil || len(got[0].Panes) != 1 || !errors.Is(got[1].Err, ErrTimeout) || got[1].Panes != nil {
		t.Fatalf("Panes = %+v, %v", got, err)
	}
}

// fake writes a tmux program that is a shell script, and opens a socket for it.
func fake(t *testing.T, script string) *Tmux {
	t.Helper()
	dir := shortDir(t)
	path := filepath.Join(dir, "tmux")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return &Tmux{Path: path, Sockets: []string{socket}, Dirs: []string{}, Timeout: 15 * time.Second}
}

func TestFakeProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		timeout      time.Duration
		want         error
	}{
		{"hangs", "sleep 1000", 300 * time.Millisecond, ErrTimeout},
		{"hangs deaf", "trap '' TERM INT HUP PIPE; sleep 1000; sleep 1000", 300 * time.Millisecond, ErrTimeout},
		{"leaves a child with the pipe", "sleep 1000 & sleep 1000", 300 * time.Millisecond, ErrTimeout},
		{"garbage", "head -c 5000 /dev/urandom", 0, ErrFormat},
		{"prose", "echo 'no server running on /x'", 0, ErrFormat},
		{"lies: the wrong number of fields", `eval "f=\$7"; printf '%s\n' "$f"`, 0, ErrFormat},
		{"100 MB", "exec head -c 100000000 /dev/zero", 0, ErrTooMuch},
		{"without end", "exec cat /dev/zero", 0, ErrTooMuch},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tm := fake(t, c.script)
			if c.timeout > 0 {
				tm.Timeout = c.timeout
			}
			start := time.Now()
			l := one(t, tm)
			if !errors.Is(l.Err, c.want) || l.Panes != nil || l.Server.PID != 0 {
				t.Fatalf("listing = %+v, want %v", l, c.want)
			}
			if took := time.Since(start); took > deadline {
				t.Errorf("took %v", took)
			}
		})
	}
	for _, script := range []string{"exit 1", "echo secret >&2; exit 3", "kill -9 $$"} {
		l := one(t, fake(t, script))
		if l.Err == nil || strings.Contains(l.Err.Error(), "secret") {
			t.Errorf("%s: %v", script, l.Err)
		}
	}
	if l := one(t, fake(t, "exit 0")); l.Err != nil || l.Panes != nil {
		t.Errorf("a server without panes: %+v", l)
	}
	// It is called as it should be: -u -S SOCKET list-panes -a -F FORMAT.
	tm := fake(t, `[ "$#" = 7 ] && [ "$1 $2 $4 $5 $6" = "-u -S list-panes -a -F" ] && [ -z "$TMUX$TMUX_PANE" ] && exit 0; exit 9`)
	if l := one(t, tm); l.Err != nil {
		t.Errorf("arguments: %v", l.Err)
	}
}

func TestKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note := filepath.Join(dir, "pid")
	tm := fake(t, "sleep 1000 & echo $! > "+note+"; wait")
	tm.Timeout = 5 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := tm.Panes(ctx); done <- err }() // joined by the receive below
	var pid int
	until(t, "the child's pid", func() bool {
		data, _ := os.ReadFile(note)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Panes = %v, want canceled", err)
	}
	until(t, "the end of the child", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestNoProgram(t *testing.T) {
	t.Parallel()
	tm := &Tmux{Path: filepath.Join(t.TempDir(), "tmux"), Dirs: []string{t.TempDir()}}
	if got, err := tm.Panes(t.Context()); got != nil || !errors.Is(err, ErrNoTmux) {
		t.Fatalf("Panes = %v, %v", got, err)
	}
}

// Field list: F18.
func TestSockets(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	listen := func(name string) string {
		path := filepath.Join(dir, name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return path
	}
	real := listen("real")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(real, filepath.Join(dir, "link")))
	must(os.Link(real, filepath.Join(dir, "same")))
	must(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	must(syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	away := filepath.Join(t.TempDir(), "linked")
	must(os.Symlink(dir, away))

	tm := &Tmux{Dirs: []string{dir, dir, away, filepath.Join(dir, "none")}, Sockets: []string{
		filepath.Join(dir, "link"), filepath.Join(dir, "file"), filepath.Join(dir, "none"), real,
	}}
	want := []struct {
		name string
		err  error
	}{{"file", ErrSocket}, {"link", ErrSocket}, {"none", ErrNoServer}, {"real", nil}}
	got := tm.sockets()
	if len(got) != len(want) {
		t.Fatalf("sockets = %+v", got)
	}
	for i, w := range want {
		if filepath.Base(got[i].Server.Socket) != w.name || !errors.Is(got[i].Err, w.err) {
			t.Errorf("socket %d = %+v, want %s, %v", i, got[i], w.name, w.err)
		}
	}
	if os.Getuid() == 0 { // only root can make a socket of another user
		must(os.Chown(real, 65534, 65534))
		if got := tm.sockets(); len(got) != 4 || !errors.Is(got[3].Err, ErrSocket) {
			t.Errorf("sockets with one of another user = %+v", got)
		}
	}
	for i := range maxSockets + 5 {
		listen(fmt.Sprintf("s%02d", i))
	}
	if n := len((&Tmux{Dirs: []string{dir}}).sockets()); n != maxSockets {
		t.Errorf("%d sockets, want %d", n, maxSockets)
	}
}

func TestDefaultDir(t *testing.T) {
	base := shortDir(t)
	t.Setenv("TMUX_TMPDIR", base)
	dir := filepath.Join(base, "tmux-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "default"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := (&Tmux{}).sockets(); len(got) != 1 || got[0].Server.Socket != filepath.Join(dir, "default") {
		t.Errorf("sockets = %+v", got)
	}
}

func TestGoroutines(t *testing.T) {
	tm := fake(t, "sleep 1000")
	tm.Timeout = 100 * time.Millisecond
	before := runtime.NumGoroutine()
	for range 3 {
		if l := one(t, tm); !errors.Is(l.Err, ErrTimeout) {
			t.Fatalf("listing = %+v", l)
		}
	}
	until(t, "goroutines are joined", func() bool { return runtime.NumGoroutine() <= before })
}
