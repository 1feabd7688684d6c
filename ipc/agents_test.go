package ipc

import (
	"slices"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

// Which agents the catalog lists (D20).
func TestListed(t *testing.T) {
	live := func(id string, pane uint64) store.Agent {
		return store.Agent{ID: id, PaneID: pane, Alive: true, Since: noon}
	}
	dead := func(id string, pane uint64, ago time.Duration) store.Agent {
		return store.Agent{ID: id, PaneID: pane, ExitedAt: noon.Add(-ago), Since: noon.Add(-ago - time.Hour)}
	}
	for _, tt := range []struct {
		name   string
		agents []store.Agent
		want   []string
	}{
		{"none", nil, []string{}},
		{"by pane", []store.Agent{live("b", 9), live("a", 3)}, []string{"a", "b"}},
		{"pane 0 is a pane", []store.Agent{live("b", 0), live("a", 1)}, []string{"b", "a"}},
		{"dead for less than an hour", []store.Agent{dead("a", 1, 59*time.Minute), live("b", 2)}, []string{"a", "b"}},
		{"dead for an hour", []store.Agent{dead("a", 1, time.Hour), live("b", 2)}, []string{"b"}},
		{"dead, time unknown", []store.Agent{{ID: "a", PaneID: 1}}, []string{}},
		{"its pane is taken", []store.Agent{dead("a", 1, time.Minute), live("b", 1)}, []string{"b"}},
		{"two dead of one pane", []store.Agent{dead("a", 1, 30*time.Minute), dead("b", 1, time.Minute)}, []string{"b"}},
		{"two dead of one pane, the later one never available", []store.Agent{
			dead("a", 1, 30*time.Minute), {ID: "b", PaneID: 1, ExitedAt: noon.Add(-time.Minute)},
		}, []string{"b"}},
		{"never two living of one pane", []store.Agent{
			{ID: "a", PaneID: 1, Alive: true, Since: noon}, {ID: "b", PaneID: 1, Alive: true, Since: noon.Add(time.Second)},
		}, []string{"b"}},
		{"the same at the same time", []store.Agent{live("b", 1), live("a", 1)}, []string{"a"}},
	} {
		for range 2 {
			got := []string{}
			for _, a := range listed(tt.agents, noon) {
				got = append(got, a.ID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
			slices.Reverse(tt.agents) // the order of the store says nothing
		}
	}
}

// The catalog and the wide list say the same about an agent.
func TestAgentViews(t *testing.T) {
	maple := store.Agent{
		ID: agentA, Name: "maple", Harness: "claude", Incarnation: incA, PID: 4141, StartTicks: 912345,
		PaneID: 3, TTY: "/dev/pts/4", CWD: "/srv/maple", Session: "session-1", Path: "/srv/maple/session.jsonl",
		Alive: true, Status: wire.Idle, TurnState: wire.WaitingOnUser, Launch: "claude",
		ObservedAt: noon.Add(120 * time.Millisecond), CreatedAt: noon,
	}
	bare := store.Agent{ID: agentB, PaneID: 5, Alive: true, ObservedAt: noon}
	gone := store.Agent{ID: "gone", Incarnation: "inc-g", PaneID: 4, Harness: "kimi", Status: wire.Busy, TurnState: wire.WaitingOnUser, ExitedAt: noon, ObservedAt: noon}
	s := openLog(t, store.Options{})
	s.agents = func() []store.Agent { return []store.Agent{bare, maple, gone} }
	live := &stub{panes: []wire.Pane{{PaneID: 3, TabID: 1, WindowID: 2, Workspace: "trees"}}}
	c := serve(t, Options{Store: s, Live: live}).dial(t)

	cat, err := c.Catalog(t.Context())
	if err != nil || len(cat.Agents) != 3 {
		t.Fatalf("Catalog = %+v, %v", cat, err)
	}
	wantMaple := wire.CatalogEntry{
		AgentID: agentA, PaneID: 3, Name: "maple", Harness: "claude", Status: "idle", TurnState: "waiting_on_user",
		Alive: true, ObservedAt: wire.At(maple.ObservedAt),
	}
	got := cat.Agents[0]
	if got.IncarnationID == nil || *got.IncarnationID != incA {
		t.Errorf("incarnation = %v", got.IncarnationID)
	}
	got.IncarnationID = nil
	if got != wantMaple {
		t.Errorf("maple = %+v, want %+v", got, wantMaple)
	}
	if g := cat.Agents[1]; g.Alive || g.Status != wire.Exited || g.Harness != "kimi" {
		t.Errorf("gone = %+v", g)
	}
	if b := cat.Agents[2]; b.IncarnationID != nil || b.Harness != wire.HarnessUnknown || b.Status != wire.Starting || b.TurnState != wire.TurnUnknown {
		t.Errorf("bare = %+v", b)
	}

	list, err := c.ListAgents(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("ListAgents = %+v, %v", list, err)
	}
	m := list[0]
	if m.Metadata.AgentID != agentA || m.Metadata.DeclaredCWD != "/srv/maple" || m.Metadata.LaunchCmd != "claude" ||
		*m.Metadata.AdoptedPID != 4141 || *m.Metadata.AdoptedStartTime != 912345 || *m.Runtime.SessionPath != maple.Path ||
		m.Runtime.Harness != "Claude" || m.Runtime.Transport != wire.TransportObserved || m.Runtime.Status != "Idle" ||
		m.Runtime.TurnState != "WaitingOnUser" || *m.Runtime.TTYName != "/dev/pts/4" || !m.Runtime.Alive || !m.NeedsAttention ||
		m.TabID != 1 || m.WindowID != 2 || m.Workspace != "trees" || m.Origin != wire.Adopted {
		t.Errorf("maple = %+v", m)
	}
	if g := list[1]; g.Runtime.Status != "Exited" || g.Runtime.Harness != "Kimi" || g.NeedsAttention {
		t.Errorf("gone = %+v", g)
	}
	if b := list[2]; b.Runtime.Harness != "Unknown" || b.Runtime.Transport != wire.TransportPlain || b.Metadata.AdoptedPID != nil ||
		b.Runtime.TTYName != nil || b.Runtime.SessionPath != nil || b.Runtime.TurnState != "Unknown" {
		t.Errorf("bare = %+v", b)
	}
	for _, k := range []string{wire.HarnessGemini, wire.HarnessOpenCode, wire.HarnessCopilot, wire.HarnessCodex, wire.Errored, wire.WaitingOnAgent} {
		if wire.Variant(k) == "Unknown" {
			t.Errorf("no variant name of %s", k)
		}
	}
}
