package observer

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/store"
)

// The agents that are gone the longest are forgotten, and none that lives.
func TestAgentsAreForgotten(t *testing.T) {
	r := newRig(t)
	long := time.Now().Add(-time.Hour).UTC()
	var b store.Batch
	for i := range maxAgents {
		b.Agents = append(b.Agents, store.Agent{
			ID: fmt.Sprintf("agent-%04d", i), Name: fmt.Sprintf("fake-%04d", i), Harness: "fake", Status: "exited",
			CreatedAt: long, ObservedAt: long, ExitedAt: long.Add(time.Duration(i) * time.Second),
		})
	}
	if _, err := r.store.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	r.run()
	a, _ := r.start("s1"), r.start("s2")
	r.want(available, available)
	a.stop()
	r.want(available, available, exited)
	var agents []store.Agent
	r.until("two are forgotten", func() bool {
		var err error
		_, agents, err = r.store.Agents(t.Context())
		return err == nil && len(agents) == maxAgents
	})
	alive, exited := 0, 0
	for _, row := range agents {
		switch {
		case row.ID == "agent-0000" || row.ID == "agent-0001":
			t.Errorf("%s, gone the longest, is there", row.ID)
		case row.Alive:
			alive++
		case row.Session == "s1":
			exited++
		}
	}
	if alive != 1 || exited != 1 {
		t.Errorf("%d live agents and %d that ended now, want one of each", alive, exited)
	}
}

// The restart points of the sessions that were quiet the longest are dropped at a
// start, a batch of them at most.
func TestSourcesAreForgotten(t *testing.T) {
	r := newRig(t)
	long := time.Now().Add(-time.Hour).UTC()
	const more = 5
	for from := 0; from < maxSources+more; from += maxSources {
		var b store.Batch
		for i := from; i < min(from+maxSources, maxSources+more); i++ {
			b.Sources = append(b.Sources, store.Source{
				Path: filepath.Join(r.home, fmt.Sprintf("s%05d", i)), Agent: "agent", Session: "s", Provider: "fake", Mark: []byte("{}"),
				Updated: long.Add(time.Duration(i) * time.Millisecond),
			})
		}
		if _, err := r.store.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	r.run()
	rows, err := r.store.Sources(t.Context())
	if err != nil || len(rows) != maxSources {
		t.Errorf("%d restart points, %v", len(rows), err)
	}
	for _, row := range rows {
		if filepath.Base(row.Path) < fmt.Sprintf("s%05d", more) {
			t.Errorf("%s, quiet the longest, is there", row.Path)
		}
	}
}

// inside runs f in the goroutine that owns the observer's state.
func (r *rig) inside(f func()) {
	r.t.Helper()
	if err := r.obs.ask(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

// What names of files tell of processes is bounded; the oldest of it is forgotten.
func TestNamingsAreForgotten(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{nameFake{}} })
	r.run()
	r.inside(func() {
		o, now := r.obs, time.Now()
		name := func(pid int, at time.Time) {
			o.heed(filepath.Join(r.home, "fake/log", fmt.Sprintf(`{"PID":%d,"Session":"s"}.naming`, pid)), at)
		}
		for i := range maxNamings + 3 { // the later, the older
			name(i+1, now.Add(-time.Duration(i)*time.Second))
		}
		name(1, now.Add(time.Second)) // one that is known takes nobody's place
		if len(o.namings) != maxNamings {
			t.Errorf("%d namings, want %d", len(o.namings), maxNamings)
		}
		for _, pid := range []int{1, 2, maxNamings - 1, maxNamings, maxNamings + 2, maxNamings + 3} {
			kept := pid < maxNamings || pid == maxNamings+3
			if _, ok := o.namings[named{"fake", pid}]; ok != kept {
				t.Errorf("that of %d: remembered %v, want %v", pid, ok, kept)
			}
		}
	})
}

// Of record types that nobody knows only some are remembered, and none that could
// be content.
func TestDriftIsBounded(t *testing.T) {
	r := newRig(t)
	r.run()
	r.inside(func() {
		var types []string
		for i := range maxDrift + 5 {
			types = append(types, fmt.Sprintf("type-%02d", i), fmt.Sprintf("type-%02d", i))
		}
		bad := []string{"", "please fix it", "a\nb", "a\x1b[2J", "größe", strings.Repeat("a", 65)}
		r.obs.drifted("fake", append(bad, types...))
		r.obs.drifted("other", []string{"a/b.c:$d_e", strings.Repeat("a", 64)})
		got := r.obs.driftOf("fake")
		if len(got) != maxDrift || got[0] != "type-00" || got[maxDrift-1] != fmt.Sprintf("type-%02d", maxDrift-1) {
			t.Errorf("%d types: %q", len(got), got)
		}
		if got := r.obs.driftOf("other"); len(got) != 2 {
			t.Errorf("of another provider: %q", got)
		}
		if got := r.obs.driftOf("none"); got == nil || len(got) != 0 {
			t.Errorf("of a provider without any: %q", got)
		}
	})
}
