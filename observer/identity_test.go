package observer

import (
	"slices"
	"testing"
	"time"

	"steno/observer/bind"
	"steno/providers"
	"steno/store"
)

func TestName(t *testing.T) {
	t.Parallel()
	at := time.Now()
	agents := func(rows ...store.Agent) map[string]*agent {
		out := map[string]*agent{}
		for _, r := range rows {
			out[r.ID] = &agent{row: r}
		}
		return out
	}
	live := store.Agent{ID: "live", Name: "fake-proj", Alive: true}
	late := store.Agent{ID: "late", Name: "fake-proj-2", ExitedAt: at.Add(-time.Minute)}
	past := store.Agent{ID: "past", Name: "fake-proj-3", ExitedAt: at.Add(-2 * time.Hour)}
	for _, c := range []struct {
		name string
		cwd  string
		self store.Agent
		want string
	}{
		{"the first free number", "/x/proj", store.Agent{}, "fake-proj-3"},
		{"another directory", "/x/other", store.Agent{}, "fake-other"},
		{"no directory", "/", store.Agent{}, "fake"},
		{"an agent keeps its name", "/x/proj", store.Agent{Name: "fake-mine"}, "fake-mine"},
		{"unless another has it by now", "/x/proj", store.Agent{Name: "fake-proj"}, "fake-proj-3"},
		{"and one from the past is free", "/x/proj", store.Agent{Name: "fake-proj-3"}, "fake-proj-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &Observer{agents: agents(live, late, past)}
			w := &bind.Owner{Provider: "fake", Process: providers.Process{CWD: c.cwd}}
			if got := o.name(w, &agent{row: c.self}, at); got != c.want {
				t.Errorf("name = %s, want %s", got, c.want)
			}
		})
	}
}

// continuing is a fake program whose command line can ask for an earlier
// session.
type continuing struct{ fake }

func (continuing) Resumes(p providers.Process) bool { return slices.Contains(p.Args, "--continue") }

// D14: a program that continues an earlier session may register under a new
// one first. It is the agent of the session that it continues.
//
// Field list: D4.
func TestContinuedSessionIsTheSameAgent(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{continuing{}} })
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	a.stop()
	want = append(want, exited)
	r.want(want...)
	first := r.events()[0].AgentID

	r.args = []string{"--continue"}
	b := r.start("fresh")
	r.until("the process is looked at", func() bool {
		bound := false
		err := r.obs.ask(t.Context(), func() {
			for _, m := range r.obs.last.matches {
				bound = bound || m.Session == "fresh"
			}
		})
		return err == nil && bound
	})
	b.register(fakeRegistry{Session: "s1"})
	r.write("s1", records("t2")...)
	want = all(want, []string{available}, turn("t2"))
	r.want(want...)
	if e := r.events()[len(want)-1]; e.AgentID != first {
		t.Errorf("agent %s, want %s again", e.AgentID, first)
	}

	// One that asks for nothing is not kept waiting.
	r.args = nil
	began := time.Now()
	r.start("s2")
	r.want(append(want, available)...)
	if took := time.Since(began); took > resumeGrace/2 {
		t.Errorf("a new agent was seen after %v", took)
	}
}

// One process with two sessions is bound to neither. When it is proved which is
// its own, what it wrote there meanwhile is told: nobody else could have.
//
// Field list: F1.
func TestOneProcessTwoSessions(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	a.register(fakeRegistry{Session: "s1", Also: "s2"})
	r.write("s2", records("t2")...)
	r.until("the new session is refused", func() bool {
		refused := false
		err := r.obs.ask(t.Context(), func() {
			s := r.obs.artifacts[r.path("s2")]
			refused = s != nil && s.refused.rank > 0 && s.refused.size > 100
		})
		return err == nil && refused
	})
	r.want(want...)
	a.register(fakeRegistry{Session: "s2"})
	r.want(append(want, turn("t2")...)...)
}
