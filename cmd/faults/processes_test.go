package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/ipc"
	"steno/ipc/wire"
)

// idler is a process that is named like Claude Code and does nothing. The test
// writes its session.
type idler struct {
	*claude
	name   string
	folder string // of its session, when it is not the program's own choice
	cmd    *exec.Cmd
	told   []string // tokens that have to be told, in order
}

// file is where its session is.
func (p *idler) file() string {
	if p.folder != "" {
		return filepath.Join(p.folder, p.session+".jsonl")
	}
	return p.path()
}

// crowd starts n idlers, each in a directory of its own and with a session.
func (w *world) crowd(n int) []*idler {
	w.t.Helper()
	all := w.idle(n)
	for _, p := range all {
		if err := p.register(); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// idlers counts them, for names.
var idlers int

// idle is crowd without the record that names the session.
func (w *world) idle(n int) []*idler {
	w.t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		missing(w.t, "no sleep")
	}
	bin := w.path("idle", "claude")
	if _, err := os.Stat(bin); err != nil {
		program, err := os.ReadFile(sleep)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(bin), 0o700), os.WriteFile(bin, program, 0o700)); err != nil {
			w.t.Fatal(err)
		}
	}
	var all []*idler
	for range n {
		idlers++
		all = append(all, w.idler(bin, fmt.Sprint("c", idlers)))
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
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.path()), 0o700), os.MkdirAll(filepath.Join(p.root, "sessions"), 0o700)); err != nil {
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
	return os.WriteFile(path, line(object{"pid": pid, "sessionId": p.session, "cwd": p.cwd, "procStart": start,
		"version": "2.1.197", "status": "idle", "updatedAt": now, "statusUpdatedAt": now}), 0o600)
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
	appendBytes(t, p.file(), data)
	p.told = append(p.told, "start "+turn, "text "+first, "text "+last, "final "+turn)
}

// heard waits until all that the idlers have written was told, and adds what was
// lost or repeated to the figures.
func (s *story) heard(f *figures, all []*idler) {
	s.w.t.Helper()
	truths, want := map[string][]truth{}, 0
	for _, p := range all {
		want += len(p.told)
		truths[p.name] = []truth{{session: p.session, tokens: p.told}}
	}
	var lines []string
	told := func() bool {
		if s.count() < want {
			return false // to compare costs what the story holds
		}
		var lost int
		lost, lines = difference(truths, s.recordTokens(), nil)
		return lost == 0
	}
	// What still grows is not lost.
	for before := -1; s.count() > before; {
		before = s.count()
		if eventually(patience, told) {
			break
		}
	}
	lost, lines := difference(truths, s.recordTokens(), f)
	f.Lost += lost
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Repeated += s.repeated
	f.Reused += s.reused
	for _, line := range slices.Concat(s.wrong, lines) {
		s.w.t.Error(line)
	}
}

// count is how many events told a record of a file.
func (s *story) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tellings
}

// recordTokens are the tokens of this world's agents without those of failures.
func (s *story) recordTokens() map[string][]string {
	all := s.tokens(s.w.agents())
	for name, tokens := range all {
		all[name] = slices.DeleteFunc(tokens, func(token string) bool { return strings.HasPrefix(token, "failure ") })
	}
	return all
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

// Fault 8: a process that is killed right after its last record. The record
// counts, and comes before its end.
func TestLastRecord(t *testing.T) {
	w := newWorld(t)
	n := pick(20, 300)
	f := &figures{Fault: "8 processes: last record", Unit: "processes", Tried: n,
		How: "SIGKILL right after a turn was written, or in the middle of its last record; the process stays a zombie"}
	d := w.serve()
	s := w.read(0)
	crowd := w.crowd(n)
	w.until("every agent", func() bool { return len(w.agents()) == n })
	for i, p := range crowd {
		p.turn(t, 100)
		if i%2 == 1 { // and half a record, which never counts
			half := p.text(p.turnID(), "[m:half:1]")[0]
			if err := p.write(half[:len(half)/2]); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		p.kill()
		w.until("its end", func() bool { return s.ends()[p.name] != 0 })
		f.recovered(time.Since(began))
	}
	s.heard(f, crowd)
	ends, names := s.ends(), w.agents()
	s.mu.Lock()
	for _, e := range s.events {
		if end := ends[names[e.agent]]; e.token != "" && end != 0 && e.sequence > end {
			t.Errorf("%s: %q was told after the end of the process", names[e.agent], e.token)
		}
	}
	s.mu.Unlock()
	d.stop()
	f.report(t)
}

// ends are the sequences at which the agents of this world became unavailable.
func (s *story) ends() map[string]uint64 {
	names := s.w.agents()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]uint64{}
	for _, e := range s.events {
		if name := names[e.agent]; name != "" && strings.HasPrefix(e.kind, "unavailable") {
			out[name] = e.sequence
		}
	}
	return out
}

// Fault 8: processes that are stopped live on, and what their session holds is
// told.
func TestStopped(t *testing.T) {
	w := newWorld(t)
	f := &figures{Fault: "8 processes: stopped", Unit: "turns", Tried: 0, How: "SIGSTOP, a turn of the session, SIGCONT, a turn"}
	d := w.serve()
	s := w.read(0)
	crowd := w.crowd(3)
	w.until("every agent", func() bool { return len(w.agents()) == len(crowd) })
	for range pick(2, 10) {
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			for _, p := range crowd {
				if err := p.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				p.turn(t, 100)
				f.Tried++
			}
			began := time.Now()
			s.heard(f, crowd)
			f.recovered(time.Since(began))
		}
	}
	if ends := s.ends(); len(ends) > 0 {
		t.Errorf("ended by a stop: %v", ends)
	}
	d.stop()
	f.report(t)
}

// Fault 8: a tmux that never answers, and one that answers with rubbish. Agents
// outside of it are served as if it were not there, and the status says so.
func TestBadTmux(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"hangs deaf", "trap '' TERM INT HUP; sleep 1000; sleep 1000"},
		{"lies", "head -c 100000 /dev/urandom"},
		{"floods", "exec cat /dev/zero"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			f := &figures{Fault: "8 processes: tmux " + tt.name, Unit: "turns", Tried: pick(1, 20), How: "a program in place of tmux, with a socket that somebody listens on"}
			dir := w.path("run", fmt.Sprintf("tmux-%d", os.Getuid()))
			script := w.path("tmux.sh")
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(script, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700)); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("unix", filepath.Join(dir, "default"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			d := w.serve("--tmux", script)
			s := w.read(0)
			began := time.Now()
			p := w.crowd(1)[0]
			w.until("the agent", func() bool { return len(w.agents()) == 1 })
			f.recovered(time.Since(began))
			for range f.Tried {
				began := time.Now()
				p.turn(t, 100)
				s.heard(f, []*idler{p})
				f.recovered(time.Since(began))
			}
			w.until("a word about it", func() bool {
				return slices.ContainsFunc(w.status().Mux, func(m wire.MuxStatus) bool { return m.Error != "" })
			})
			p.kill()
			w.until("its end", func() bool { return s.ends()[p.name] != 0 })
			d.stop()
			f.report(t)
		})
	}
}

// Fault 8: the record of an earlier process with the same pid proves nothing.
func TestPidUsedAgain(t *testing.T) {
	w := newWorld(t)
	f := &figures{Fault: "8 processes: pid used again", Unit: "processes", Tried: pick(5, 50),
		How: "a registry record with the start of another process, as an earlier one with this pid left it; then its own"}
	d := w.serve()
	s := w.read(0)
	crowd := w.idle(f.Tried)
	for _, p := range crowd {
		left := line(object{"pid": p.cmd.Process.Pid, "sessionId": p.session, "cwd": p.cwd, "procStart": "12345", "status": "idle"})
		if err := os.WriteFile(filepath.Join(p.root, "sessions", fmt.Sprintf("%d.json", p.cmd.Process.Pid)), left, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.until("every agent", func() bool { return len(w.agents()) == len(crowd) })
	for _, p := range crowd {
		reason := ""
		w.until("why it is not bound", func() bool {
			err := w.ask(func(ctx context.Context, c *ipc.Client) error {
				e, err := c.Explain(ctx, itoa(p.cmd.Process.Pid))
				for _, row := range e.Evidence {
					reason = row.Reason
				}
				if e.Bound {
					return errors.New("bound")
				}
				return err
			})
			return err == nil && strings.Contains(reason, "earlier process")
		})
		if err := p.register(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p.turn(t, 100)
		s.heard(f, []*idler{p})
		f.recovered(time.Since(began))
	}
	d.stop()
	f.report(t)
}
