package observer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"steno/ipc/wire"
	"steno/providers"
)

const replaced = "agent_lifecycle unavailable incarnation_replaced"

// An agent that loses its terminal to another one has its records told before
// its unavailable, and comes back with the foreground.
func TestForegroundHandOver(t *testing.T) {
	r := newRig(t)
	term := r.terminal()
	r.run()
	a := term.run("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)

	unlock := r.lockStore()
	r.write("s1", records("t2")...)
	r.until("the store stopped working", func() bool { return !r.store.Working() })
	r.write("s1", records("t3")...)
	b := term.run("s2")
	r.until("the second is seen", func() bool {
		seen := false
		err := r.obs.ask(context.Background(), func() {
			for _, w := range r.obs.last.owners {
				seen = seen || w.Process.PID == b.pid()
			}
		})
		return err == nil && seen
	})
	unlock()
	want = all(want, turn("t2"), turn("t3"), []string{replaced, available})
	r.want(want...)
	r.alone()
	r.write("s2", records("t4")...)
	want = append(want, turn("t4")...)
	r.want(want...)
	r.write("s1", records("t5")...) // in the background, without the pane
	term.do("quit", b.pid())
	want = append(want, exited)
	r.want(want...)
	term.do("fg", a.pid())
	want = all(want, []string{available}, turn("t5"))
	r.want(want...)
	r.alone()
}

// D13, D14: a second process of the same program in one tmux pane is the same
// agent's next incarnation, and when the first comes back, that is told too.
//
// Field list: F10, F15.
func TestPaneKeepsItsAgent(t *testing.T) {
	r := newRig(t)
	term := r.terminal()
	r.tmux(term)
	r.run()
	a := term.run("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	b := term.run("s2")
	want = append(want, replaced, available)
	r.want(want...)
	r.write("s2", records("t2")...)
	want = append(want, turn("t2")...)
	r.want(want...)
	term.do("quit", b.pid())
	want = append(want, exited)
	r.want(want...)
	term.do("fg", a.pid())
	want = append(want, available)
	r.want(want...)
	r.write("s1", records("t3")...)
	want = append(want, turn("t3")...)
	r.want(want...)
	ev := r.events()
	last := ev[len(ev)-1]
	if ev[0].AgentID != last.AgentID || ev[0].IncarnationID != last.IncarnationID {
		t.Errorf("agent %s %s, then %s %s", ev[0].AgentID, ev[0].IncarnationID, last.AgentID, last.IncarnationID)
	}
	// A third one, while the first stays in the background; it comes back after
	// a restart as well.
	c := term.run("")
	want = append(want, replaced, available)
	r.want(want...)
	r.halt()
	r.run()
	want = append(want, restarted, available)
	r.want(want...)
	term.do("quit", c.pid())
	term.do("fg", a.pid())
	r.want(append(want, exited, available)...)
	r.alone()
}

// A tmux that does not answer says nothing about its panes.
//
// Field list: F17.
func TestTmuxTrouble(t *testing.T) {
	r := newRig(t)
	term := r.terminal()
	r.tmux(term)
	r.trouble(true)
	r.run()
	a := term.run("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	if row := r.row(a.pid()); row.Place != "terminal" {
		t.Fatalf("place %q without tmux", row.Place)
	}
	r.trouble(false)
	r.until("the pane is known", func() bool { return r.row(a.pid()).Place == "tmux" })
	pane := r.row(a.pid())
	r.trouble(true)
	r.start("s2") // somebody new: the panes are listed again
	want = append(want, available)
	r.want(want...)
	r.until("the trouble is told", func() bool {
		for _, m := range r.obs.Status().Mux {
			if m.Error != "" {
				return true
			}
		}
		return false
	})
	r.write("s1", records("t2")...)
	want = append(want, turn("t2")...)
	r.want(want...)
	if row := r.row(a.pid()); row.PaneID != pane.PaneID || row.PaneKey != pane.PaneKey || row.ID != pane.ID {
		t.Errorf("pane %d %s, then %d %s", pane.PaneID, pane.PaneKey, row.PaneID, row.PaneKey)
	}
	list, err := r.obs.Panes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range list {
		found = found || p.PaneID == pane.PaneID && p.AgentPID == a.pid()
	}
	if !found {
		t.Errorf("the agent's pane is not listed: %+v", list)
	}
}

// A restart does not give the terminal to an agent that had lost it.
func TestRestartWithBackgroundAgent(t *testing.T) {
	r := newRig(t)
	term := r.terminal()
	r.run()
	a := term.run("s1")
	r.want(available)
	b := term.run("s2")
	want := []string{available, replaced, available}
	r.want(want...)
	r.halt()
	r.run()
	want = append(want, restarted, available)
	r.want(want...)
	r.write("s2", records("t1")...)
	want = append(want, turn("t1")...)
	r.want(want...)
	r.alone()
	term.do("quit", b.pid())
	want = append(want, exited)
	r.want(want...)
	// It is all that the terminal has now, and stays in the background.
	r.until("the first is all that is seen", func() bool {
		only := false
		err := r.obs.ask(context.Background(), func() {
			owners := r.obs.last.owners
			only = len(owners) == 1 && owners[0].Process.PID == a.pid()
			if only && len(r.obs.byProcess) > 0 {
				t.Error("it is available in the background")
			}
		})
		return err == nil && only
	})
	r.want(want...)
	term.do("fg", a.pid())
	want = append(want, available)
	r.want(want...)
	// Alone in the background, an incarnation goes on after a restart.
	term.do("fg", term.pid)
	r.halt()
	r.run()
	r.want(append(want, restarted, available)...)
}

// other is another program.
type other struct{ fake }

var otherName = fmt.Sprintf("otheragent-%d", os.Getpid())

func (other) ID() string { return "other" }

func (other) Roots(env providers.Env) []providers.Root {
	return []providers.Root{{Provider: "other", Name: "log", Dir: filepath.Join(env.Home, "other"), Depth: 1}}
}

func (other) Recognise(p providers.Process) providers.Part {
	if filepath.Base(p.Exe) == otherName {
		return providers.Worker
	}
	return providers.NotMine
}

func (other) Evidence(_ context.Context, _ providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	return []providers.Evidence{{Rank: providers.Exact, Session: "o1", Source: "always"}}, nil
}

// A process that becomes another program is another agent.
//
// Field list: F15.
func TestProgramChangesInPlace(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{fake{}, other{}} })
	if err := os.MkdirAll(filepath.Join(r.home, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.program(otherName)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	if _, err := io.WriteString(a.in, "x"); err != nil {
		t.Fatal(err)
	}
	want = append(want, replaced, available)
	r.want(want...)
	mustWrite(t, filepath.Join(r.home, "other/o1.jsonl"), encodeRecords(t, records("t2")...))
	want = append(want, turn("t2")...)
	r.want(want...)
	by := map[string]string{}
	for _, e := range r.events() {
		if e.TurnID != nil {
			by[*e.TurnID] = e.AgentID
		} else if e.Lifecycle != nil && *e.Lifecycle == wire.Available {
			by[*e.Lifecycle] = e.AgentID
		}
	}
	if by["t1"] == by["t2"] || by["t2"] != by[wire.Available] {
		t.Errorf("agents of the turns: %v", by)
	}
	a.stop()
	r.want(append(want, exited)...)
}
