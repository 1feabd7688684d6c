package observer

import (
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
