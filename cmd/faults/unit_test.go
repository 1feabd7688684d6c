package faults

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The systemd unit lets the daemon make certain system calls only, no namespace
// and no memory that is both writable and executable. The daemon and the tmux
// that it starts need no others.
func TestUnitFilter(t *testing.T) {
	t.Parallel()
	strace := tracer(t)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		missing(t, "systemd-analyze is not installed")
	}
	allowed := unitFilter(t)
	if os.Getuid() == 0 {
		allowed["fchown"] = true // SQLite keeps a database's owner, as root only
	}
	w := newWorld(t)
	plain := plain(t)
	trace := w.path("trace")
	d := w.startWith(func(cmd *exec.Cmd) {
		plain(cmd)
		// As a grandchild, strace is out of the way of signals.
		cmd.Args = append([]string{strace, "-D", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o", trace}, cmd.Args...)
		cmd.Path = strace
	})
	d.ready()
	s := w.read(0)
	a := w.agent("claude", "one")
	a.do("turn 2 2000")
	f := &figures{}
	s.verdict(f, a)
	for _, command := range []string{"status", "doctor", "list"} {
		w.steno(command)
	}
	d.stop()
	var calls []byte
	w.until("the whole trace", func() bool {
		var err error
		calls, err = os.ReadFile(trace)
		return err == nil && bytes.Contains(calls, []byte("exit_group("))
	})
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\d+ +([a-z0-9_]+)\(.*$`).FindAllSubmatch(calls, -1) {
		name := string(m[1])
		if !allowed[name] && !used[name] {
			t.Errorf("the unit forbids %s", name)
		}
		used[name] = true
		if bytes.Contains(m[0], []byte("CLONE_NEW")) {
			t.Errorf("the unit forbids new namespaces: %s", m[0])
		}
		if bytes.Contains(m[0], []byte("PROT_WRITE|PROT_EXEC")) || bytes.Contains(m[0], []byte("PROT_READ|PROT_WRITE|PROT_EXEC")) {
			t.Errorf("the unit forbids writable and executable memory: %s", m[0])
		}
	}
	if !used["execve"] || !used["pwrite64"] {
		t.Errorf("the trace has no execve or no pwrite64: %d kinds of calls", len(used))
	}
}

// unitFilter is the set of system calls that the unit allows, as this system's
// systemd knows its groups, by the order of its lines.
func unitFilter(t *testing.T) map[string]bool {
	t.Helper()
	unit, err := os.ReadFile("../../packaging/systemd/steno.service")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for line := range strings.Lines(string(unit)) {
		list, ok := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		if !ok {
			continue
		}
		list, denied := strings.CutPrefix(list, "~")
		for _, group := range strings.Fields(list) {
			for _, call := range callGroup(t, group) {
				allowed[call] = !denied
			}
		}
	}
	if len(allowed) == 0 {
		t.Fatal("the unit has no SystemCallFilter")
	}
	return allowed
}

// callGroup is a group of system calls with the groups within it.
func callGroup(t *testing.T, name string) []string {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", "--no-pager", "syscall-filter", name)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Clean(t.TempDir()))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("systemd-analyze syscall-filter %s: %v", name, err)
	}
	var calls []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && line != name && !strings.HasPrefix(line, "#") {
			calls = append(calls, callGroup(t, line)...)
		}
	}
	return calls
}
