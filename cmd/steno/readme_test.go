package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the commands that the README tells people to type. A command
// that cannot run here has to be named below with what covers it instead.
func TestReadme(t *testing.T) {
	covered := map[string]string{
		"make run":       "TestTurnsEndToEnd runs the daemon, TestDemo with --follow",
		"make demo":      "TestDemo",
		"make install":   "TestInstall",
		"make uninstall": "TestInstall",
		"systemctl --user enable --now steno.socket steno.service": "TestInstall installs these units, make check verifies them",
		"journalctl --user -u steno":                               "needs a user manager; the unit's name is checked in TestInstall",
	}
	data, err := os.ReadFile(filepath.Join(moduleRoot, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	d := w.serve(nil)
	w.agent("claude", "elm").do("all")
	w.entry("elm")
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			if args := strings.Fields(line); args[0] == "steno" {
				runLine(t, w, args[1:])
				ran++
				continue
			}
			if _, ok := covered[line]; !ok {
				t.Errorf("README: nothing covers %q", line)
			}
			delete(covered, line)
		}
	}
	for line := range covered {
		t.Errorf("README does not have %q any more", line)
	}
	if ran < 10 {
		t.Errorf("only %d commands of steno were found", ran)
	}
	d.stop()
}

// runLine runs one command. A follower is ended after its first line.
func runLine(t *testing.T, w *world, args []string) {
	t.Helper()
	if !strings.Contains(strings.Join(args, " "), "--follow") {
		if out := w.steno(args...); len(out) == 0 {
			t.Errorf("steno %s prints nothing", strings.Join(args, " "))
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := w.command(nil, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if _, err := bufio.NewReaderSize(out, 1<<20).ReadString('\n'); err != nil {
		t.Errorf("steno %s prints no line: %v", strings.Join(args, " "), err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}

// TestMakeHelp: "make" alone prints the targets, each with a word about it.
func TestMakeHelp(t *testing.T) {
	out := runMake(t, nil)
	for _, target := range []string{"run", "demo", "build", "test", "check", "bench", "install", "uninstall"} {
		if !regexp.MustCompile(`(?m)^  make ` + target + ` +\S+`).MatchString(out) {
			t.Errorf("make does not print target %s:\n%s", target, out)
		}
	}
}

// TestInstall installs into a home of its own, twice, and takes it away again.
func TestInstall(t *testing.T) {
	home := t.TempDir()
	bin := filepath.Join(home, ".local/bin")
	units := filepath.Join(home, ".config/systemd/user")
	env := []string{"BINDIR=" + bin, "UNITDIR=" + units, "XDG_RUNTIME_DIR=" + filepath.Join(home, "none"), "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent"}
	want := []string{filepath.Join(bin, "steno"), filepath.Join(units, "steno.service"), filepath.Join(units, "steno.socket")}
	for range 2 {
		out := runMake(t, env, "install", "BINDIR="+bin, "UNITDIR="+units)
		if !strings.Contains(out, "systemctl --user enable --now steno.socket steno.service") {
			t.Errorf("install does not say how to start it: %s", out)
		}
		for _, path := range want {
			if _, err := os.Stat(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	unit, err := os.ReadFile(want[1])
	if err != nil {
		t.Fatal(err)
	}
	// The directory is not that of this user's home, so the unit names it.
	if !strings.Contains(string(unit), `ExecStart="`+bin+`/steno" serve`) {
		t.Errorf("the unit does not start the installed binary:\n%s", unit)
	}
	runMake(t, env, "uninstall", "BINDIR="+bin, "UNITDIR="+units)
	for _, path := range want {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	runMake(t, env, "uninstall", "BINDIR="+bin, "UNITDIR="+units) // nothing there is no failure
}
