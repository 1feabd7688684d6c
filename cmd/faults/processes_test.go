package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// idler is a process that is named like Claude Code and does nothing. The test
// writes its session.
type idler struct {
	*claude
	name string
	cmd  *exec.Cmd
	told []string // tokens that have to be told, in order
}

// crowd starts n idlers, each in a directory of its own.
func (w *world) crowd(n int) []*idler {
	w.t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		missing(w.t, "no sleep")
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		w.t.Fatal(err)
	}
	bin := w.path("idle", "claude")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bin), 0o700), os.WriteFile(bin, program, 0o700)); err != nil {
		w.t.Fatal(err)
	}
	var all []*idler
	for i := range n {
		all = append(all, w.idler(bin, fmt.Sprint("c", i)))
	}
	return all
}

func (w *world) idler(bin, name string) *idler {
	w.t.Helper()
	p := &idler{name: name, cmd: exec.Command(bin, "100000")}
	p.cmd.Dir, p.cmd.Env = w.path(name), w.env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := os.MkdirAll(p.cmd.Dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.kill(); _ = p.cmd.Wait() })
	p.claude = &claude{root: w.path(".claude"), cwd: p.cmd.Dir, session: newUUID()}
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.path()), 0o700), p.register()); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (p *idler) kill() { _ = p.cmd.Process.Kill() } // it may have ended

// register names the session of the process, as Claude Code does.
func (p *idler) register() error {
	pid := p.cmd.Process.Pid
	start, err := startTicks(pid)
	if err != nil {
		return err
	}
	path := filepath.Join(p.root, "sessions", fmt.Sprintf("%d.json", pid))
	now := time.Now().UnixMilli()
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, line(object{
		"pid": pid, "sessionId": p.session, "cwd": p.cwd, "procStart": start,
		"version": "2.1.197", "status": "idle", "updatedAt": now, "statusUpdatedAt": now}), 0o600))
}

// turn writes a turn with one answer of about size bytes and a last one.
func (p *idler) turn(t *testing.T, size int) {
	t.Helper()
	p.turnWith(t, size, func(record []byte) []byte { return record })
}

// turnWith is turn with a change of each record.
func (p *idler) turnWith(t *testing.T, size int, change func([]byte) []byte) {
	t.Helper()
	turn := p.turnID()
	mark := func() string { marks++; return fmt.Sprintf("[m:%s:%d]", p.session[:8], marks) }
	first, last := mark(), mark()
	var data []byte
	for _, r := range slices.Concat(p.prompt(turn), p.text(turn, first+strings.Repeat(" word", size/5)), p.final(turn, last+" end")) {
		data = append(append(data, change(r)...), '\n')
	}
	if err := p.write(data); err != nil {
		t.Fatal(err)
	}
	p.told = append(p.told, "start "+turn, "text "+first, "text "+last, "final "+turn)
}

// heard waits until all that the idlers have written was told, and adds what was
// lost or repeated to the figures.
func (s *story) heard(f *figures, all []*idler) {
	s.w.t.Helper()
	truths := map[string][]truth{}
	for _, p := range all {
		truths[p.name] = []truth{{session: p.session, tokens: p.told}}
	}
	var lines []string
	eventually(patience, func() bool {
		var lost int
		lost, lines = difference(truths, s.tokens(s.w.agents()), nil)
		return lost == 0
	})
	lost, lines := difference(truths, s.tokens(s.w.agents()), f)
	f.Lost += lost
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Repeated += s.repeated
	f.Reused += s.reused
	for _, line := range slices.Concat(s.wrong, lines) {
		s.w.t.Error(line)
	}
}

// startTicks is when a process began.
func startTicks(pid int) (string, error) {
	fields, err := statOf(pid)
	if err != nil {
		return "", err
	}
	return fields[19], nil
}

// statOf are the fields of /proc/<pid>/stat from the third on.
func statOf(pid int) ([]string, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])), nil
}
