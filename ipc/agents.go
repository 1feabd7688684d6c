package ipc

import (
	"slices"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

// exitedFor is how long an agent that ended stays in the catalog (D20).
const exitedFor = time.Hour

// listed keeps the agents that the catalog shows: those that live, and those
// that ended less than an hour ago and whose pane nobody has taken since. The
// result has no pane id twice and is ordered by it.
func listed(agents []store.Agent, now time.Time) []store.Agent {
	kept := make([]store.Agent, 0, len(agents))
	for _, a := range agents {
		if a.Alive || now.Sub(a.ExitedAt) < exitedFor {
			kept = append(kept, a)
		}
	}
	slices.SortFunc(kept, func(a, b store.Agent) int {
		switch {
		case a.PaneID != b.PaneID:
			return compare(a.PaneID < b.PaneID)
		case a.Alive != b.Alive:
			return compare(a.Alive)
		case !a.ExitedAt.Equal(b.ExitedAt) && !a.Alive: // the later one held the pane last
			return compare(a.ExitedAt.After(b.ExitedAt))
		case !a.Since.Equal(b.Since):
			return compare(a.Since.After(b.Since))
		case !a.ObservedAt.Equal(b.ObservedAt):
			return compare(a.ObservedAt.After(b.ObservedAt))
		}
		return compare(a.ID < b.ID)
	})
	return slices.CompactFunc(kept, func(a, b store.Agent) bool { return a.PaneID == b.PaneID })
}

func compare(first bool) int {
	if first {
		return -1
	}
	return 1
}

// entryOf is an agent as the catalog shows it.
func entryOf(a store.Agent) wire.CatalogEntry {
	e := wire.CatalogEntry{
		AgentID: a.ID, PaneID: a.PaneID, Name: a.Name,
		Harness:    or(a.Harness, wire.HarnessUnknown),
		Status:     or(a.Status, wire.Starting),
		TurnState:  or(a.TurnState, wire.TurnUnknown),
		Alive:      a.Alive,
		ObservedAt: wire.At(a.ObservedAt),
	}
	if a.Incarnation != "" {
		e.IncarnationID = &a.Incarnation
	}
	if !a.Alive {
		e.Status = wire.Exited
	}
	return e
}

// wideOf is an agent as the wide list shows it; pane is the zero value when the
// pane is not known.
func wideOf(a store.Agent, pane wire.Pane) wire.AgentListEntry {
	e := entryOf(a)
	w := wire.AgentListEntry{
		Metadata: wire.AgentMetadata{
			AgentID: a.ID, Name: a.Name, LaunchCmd: a.Launch, DeclaredCWD: a.CWD,
			CreatedAt: wire.At(a.CreatedAt),
		},
		Runtime: wire.AgentRuntime{
			Harness:    wire.Variant(e.Harness),
			Transport:  wire.TransportPlain,
			Status:     wire.Variant(e.Status),
			TurnState:  wire.Variant(e.TurnState),
			Alive:      e.Alive,
			ObservedAt: e.ObservedAt,
		},
		PaneID: a.PaneID, TabID: pane.TabID, WindowID: pane.WindowID,
		Workspace: pane.Workspace,
		Origin:    wire.Adopted,
		NeedsAttention: e.Alive && (e.Status == wire.Errored ||
			e.TurnState == wire.WaitingOnUser),
	}
	if a.PID != 0 {
		w.Metadata.AdoptedPID = &a.PID
		w.Metadata.AdoptedStartTime = &a.StartTicks
	}
	if a.Session != "" {
		w.Runtime.Transport = wire.TransportObserved
	}
	if a.TTY != "" {
		w.Runtime.TTYName = &a.TTY
	}
	if a.Path != "" {
		w.Runtime.SessionPath = &a.Path
	}
	return w
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
