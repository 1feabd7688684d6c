package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"steno/ipc/wire"
)

// tmuxAgent is a stand-in in a pane of the world's own tmux server. Commands
// are typed, as a person would.
type tmuxAgent struct {
	w    *world
	pane string
	file string // its session file; it may not exist yet
}

func (w *world) tmux(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-f", "/dev/null"}, args...)...)
	cmd.Env = append(append([]string{}, w.env...), "TERM=xterm")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// pane starts a stand-in in a new pane, by way of a shell, as people do.
func (w *world) pane(harness, name string) *tmuxAgent {
	w.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		w.t.Skip("tmux is not installed")
	}
	source, err := standinBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(source)
	if err != nil {
		w.t.Fatal(err)
	}
	record, err := filepath.Abs(filepath.Join(moduleRoot, "testdata/demo", harness+".jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	bin := filepath.Join(w.dir, "bin-"+name, harness)
	for _, d := range []string{filepath.Dir(bin), filepath.Join(w.dir, name)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.WriteFile(bin, data, 0o700); err != nil {
		w.t.Fatal(err)
	}
	a := &tmuxAgent{w: w}
	if w.panes == 0 {
		a.pane = w.tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "w", "-c", filepath.Join(w.dir, name), "sh")
		w.t.Cleanup(func() { w.tmux("kill-server") })
	} else {
		a.pane = w.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "w", "-c", filepath.Join(w.dir, name), "sh")
	}
	w.panes++
	a.say("STANDIN_RECORD=" + record + " " + bin)
	waitFor(w.t, "the stand-in's first word", func() bool {
		_, rest, ok := strings.Cut(w.tmux("capture-pane", "-J", "-p", "-t", a.pane), "ready ")
		if words := strings.Fields(rest); ok && len(words) >= 3 {
			a.file = words[2]
		}
		return a.file != ""
	})
	return a
}

func (a *tmuxAgent) say(text string) {
	a.w.t.Helper()
	a.w.tmux("send-keys", "-t", a.pane, "-l", text)
	a.w.tmux("send-keys", "-t", a.pane, "Enter")
}

func (a *tmuxAgent) size() int64 {
	info, err := os.Stat(a.file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// next makes the agent write its next record and waits until it is there.
func (a *tmuxAgent) next() {
	a.w.t.Helper()
	before := a.size()
	a.say("next")
	waitFor(a.w.t, "the next record", func() bool { return a.size() > before })
}

// turns drops lifecycle words.
func turns(kinds string) string {
	var out []string
	for _, k := range strings.Fields(kinds) {
		if k != "available" && k != "unavailable" {
			out = append(out, k)
		}
	}
	return strings.Join(out, " ")
}

// TestKillBetweenAnyTwoRecords kills the daemon between any two records of two
// agents in tmux panes: before one is written, while it is read, and right
// after. One follower that lives through it all sees every event once, in
// order.
func TestKillBetweenAnyTwoRecords(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	f := w.follow(0)
	for _, c := range []struct {
		harness, want string
		records       int
	}{
		{"claude", claudeTurns, 23},
		{"codex", codexTurns, 19},
	} {
		a := w.pane(c.harness, c.harness+"-pane")
		e := w.entry(c.harness + "-pane")
		if e.PaneID>>32 != 0 {
			t.Fatalf("pane id %d is not in the slot of the first tmux server", e.PaneID)
		}
		for i := range c.records {
			switch i % 3 {
			case 0: // written while nobody watches
				d.kill()
				a.next()
				d = w.serve(nil)
			case 1: // killed while it is read
				a.next()
				d.kill()
				d = w.serve(nil)
			case 2: // killed before it is written
				d.kill()
				d = w.serve(nil)
				a.next()
			}
		}
		f.until(c.harness+"'s turns", func([]wire.Event) bool { return turns(f.kinds(e.AgentID)) == turns(c.want) })
		a.say("exit")
		f.until(c.harness+"'s end", func(events []wire.Event) bool {
			return len(events) > 0 && count(events, e.AgentID, func(e wire.Event) bool { return isGone(e) && value(e.Reason) == wire.ProcessExited }) == 1
		})
		if got := turns(f.kinds(e.AgentID)); got != turns(c.want) {
			t.Errorf("events = %s, want %s", got, turns(c.want))
		}
	}
	d.stop()
}

// TestPaneKeepsItsAgent: an agent that is started again in its pane is the same
// agent with another incarnation.
func TestPaneKeepsItsAgent(t *testing.T) {
	w := newWorld(t)
	d := w.serve(nil)
	f := w.follow(0)
	a := w.pane("claude", "elm")
	first := w.entry("elm")
	a.say("exit")
	f.until("the end", func(events []wire.Event) bool { return count(events, first.AgentID, isGone) == 1 })
	a.say("STANDIN_RECORD=" + filepath.Join(mustAbs(t, moduleRoot), "testdata/demo/claude.jsonl") + " " + filepath.Join(w.dir, "bin-elm", "claude"))
	second := w.entry("elm")
	if second.AgentID != first.AgentID || *second.IncarnationID == *first.IncarnationID || second.PaneID != first.PaneID {
		t.Errorf("agent %s %s, want %s with another incarnation than %s", second.AgentID, *second.IncarnationID, first.AgentID, *first.IncarnationID)
	}
	d.stop()
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
