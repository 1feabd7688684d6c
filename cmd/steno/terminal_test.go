package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// startOnTerminal starts a command with a pseudo-terminal as its standard
// output and gives the other end.
func startOnTerminal(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return bufio.NewReader(master)
}

// lineWith reads lines until one has what.
func lineWith(t *testing.T, r *bufio.Reader, what string) string {
	t.Helper()
	for range 1000 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("no line with %q: %v", what, err)
		}
		if strings.Contains(line, what) {
			return line
		}
	}
	t.Fatalf("no line with %q", what)
	return ""
}

// TestTerminal: a person gets coloured lines and tables, and no escape that an
// agent wrote.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	a := w.agent("claude", "larch")
	w.entry("larch")
	a.do("all")
	follow := []string{"agent", "events", "--after", "0", "--follow"}
	line := lineWith(t, startOnTerminal(t, w.command([]string{"TERM=xterm"}, follow...)), "ASK-FINAL: thanks.")
	if !strings.Contains(line, "\x1b[") || !strings.Contains(line, "claude-larch") {
		t.Errorf("line on a terminal = %q, want colours and a name", line)
	}
	for _, env := range [][]string{{"TERM=xterm", "NO_COLOR=1"}, {"TERM=dumb"}} {
		line = lineWith(t, startOnTerminal(t, w.command(env, follow...)), "ASK-FINAL: thanks.")
		if strings.Contains(line, "\x1b") {
			t.Errorf("%v: line = %q, want no colours", env, line)
		}
	}
	lineWith(t, startOnTerminal(t, w.command(nil, "agent", "catalog")), "PANE")
	line = lineWith(t, startOnTerminal(t, w.command(nil, "--json", "agent", "catalog")), "schema")
	if !strings.HasPrefix(line, "{") {
		t.Errorf("--json on a terminal = %.80q", line)
	}
	d.stop()
}
