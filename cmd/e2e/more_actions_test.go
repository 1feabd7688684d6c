//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// configured writes a file below the home before a program starts.
func configured(path, text string) action {
	return func(a *agent) { a.w.write(path, text) }
}

// reconfigured changes a text in a file below the home, where it has to be.
func reconfigured(path, from, to string) action {
	return func(a *agent) {
		a.w.t.Helper()
		data, err := os.ReadFile(filepath.Join(a.w.dir, "home", path))
		a.w.must(err)
		if !strings.Contains(string(data), from) {
			a.w.t.Fatalf("%s has no %q", path, from)
		}
		a.w.write(path, strings.Replace(string(data), from, to, 1))
	}
}

// created makes an empty file in the agent's directory: a hook waits for it.
func created(name string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.must(os.WriteFile(filepath.Join(a.w.dir, a.dir(), name), nil, 0o600))
	}
}

// outOfSight runs a command in the agent's directory to its end, out of sight of the
// programs.
func outOfSight(name string, args ...string) action {
	return func(a *agent) {
		a.w.t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env, cmd.Dir = a.w.env, filepath.Join(a.w.dir, a.dir())
		if out, err := cmd.CombinedOutput(); err != nil {
			a.w.t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
}

// launch starts a program in the agent's pane and does not wait until it takes a
// prompt: it shows a dialog first.
func launch(name string, args ...string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.program = programNamed(name)
		do(wiped, shell(strings.Join(append([]string{name}, args...), " ")))(a)
	}
}

// ready waits until the program takes a prompt.
func ready(a *agent) {
	a.w.t.Helper()
	for _, text := range a.program.ready {
		see(text)(a)
	}
}

// ctrlD leaves a program by its key, which asks to be pressed twice. On a busy
// machine the program may have forgotten the first before it sees the second:
// then both are pressed again.
func ctrlD(a *agent) {
	a.w.t.Helper()
	const hint = "Press Ctrl-D again to exit"
	over := func() bool { return len(a.programs()) == 0 }
	asks := func() bool { return strings.Contains(squeeze(a.screen()), squeeze(hint)) }
	a.w.eventually("the program ends", func() bool {
		if over() {
			return true
		}
		key("C-d")(a)
		if !within(times(swallowed), func() bool { return asks() || over() }) || over() {
			return over()
		}
		key("C-d")(a)
		within(times(swallowed), func() bool { return over() || !asks() })
		return over()
	})
}

// apart starts a program without a terminal that runs beside others. The agent
// is known by its process: several share a directory and have no panes.
func apart(name string, args ...string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.prompts = append(a.w.prompts, args[len(args)-1])
		cmd := a.w.command(name, args...)
		cmd.Dir = filepath.Join(a.w.dir, a.dir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		a.said = new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = a.said, a.said
		a.w.must(cmd.Start())
		a.apart = cmd
	}
}

// joined waits until a program that runs apart ends, which has to be good.
func joined(a *agent) {
	a.w.t.Helper()
	if err := a.apart.Wait(); err != nil {
		a.w.t.Fatalf("it ended with %v: %s", err, a.said)
	}
}

// owns tells whether a process is one that runs apart, or one of its children:
// npm's names are launchers.
func (a *agent) owns(pid int) bool {
	if a.apart == nil {
		return false
	}
	first := a.apart.Process.Pid
	return pid == first || slices.Contains(children(strconv.Itoa(first)), pid)
}
