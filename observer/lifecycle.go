package observer

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"steno/ipc/wire"
	"steno/observer/bind"
	"steno/providers"
	"steno/store"
)

// maxAgents bounds how many agents are remembered; the longest gone are
// forgotten first.
const maxAgents = 1000

// appear makes a process the live incarnation of an agent.
func (o *Observer) appear(row store.Agent, w *bind.Owner, m bind.Match, now time.Time) {
	a := o.agents[row.ID]
	if a == nil {
		a = &agent{row: row}
		o.agents[row.ID] = a
	}
	a.row.Name = o.name(w, a, now)
	incarnation := incarnationID(row.ID, o.boot, w.Process.PID, w.Process.StartTicks)
	if a.row.Incarnation != incarnation {
		o.replace(a, now)
		a.row.Incarnation = incarnation // the generation goes on: this one may come back
		a.row.Since = time.Time{}
		a.row.Session, a.row.Path, a.row.Rank, a.row.Evidence = "", "", 0, ""
		a.row.Turn = ""
		a.turn, a.seen, a.errored = providers.Turn{}, false, false
		a.owed = nil
	}
	a.row.PID, a.row.StartTicks, a.row.Boot = w.Process.PID, w.Process.StartTicks, o.boot
	a.row.Launch = filepath.Base(w.Process.Exe)
	a.owner, a.match, a.exiting, a.sought = *w, m, false, time.Time{}
	o.byProcess[a.process()] = a
	o.recheckUntil = now.Add(recheckFor)
	o.enter(a, now)
	if err := o.exits.Watch(w.Process.PID, w.Process.StartTicks); err != nil {
		// The scan notices the exit, only later.
		o.opt.Log.Debug().Err(err).Int("pid", w.Process.PID).Msg("exit is noticed by the scan only")
	}
}

// enter commits that the agent's incarnation is available.
func (o *Observer) enter(a *agent, now time.Time) {
	var c commit
	paneID, server := o.paneID(a.owner.Place)
	c.batch.Servers = server
	for _, other := range o.agents {
		if other != a && other.row.Alive && other.row.PaneID == paneID {
			o.displace(other, now)
		}
	}
	a.row.PaneID = paneID
	a.row.Available, a.row.Alive, a.halted = true, true, false
	a.row.ExitedAt = time.Time{}
	if a.row.Since.IsZero() {
		a.row.Since = now
	}
	a.row.Generation++
	e, err := a.identity().lifecycle(wire.Available, "", a.row.Generation, now)
	if err != nil {
		o.opt.Log.Error().Err(err).Msg("lifecycle event cannot be encoded")
		return
	}
	a.refreshRow(now)
	a.row.ObservedAt = now
	c.batch.Events = []store.Event{e}
	c.batch.Agents = []store.Agent{a.row}
	o.send(c)
	o.opt.Log.Info().Str("agent", a.row.ID).Str("harness", a.row.Harness).Int("pid", a.row.PID).
		Str("place", a.row.PaneKey).Msg("agent available")
}

// leave adds the unavailable event of an available incarnation to b.
func (a *agent) leave(b *store.Batch, reason string, now time.Time) error {
	e, err := a.identity().lifecycle(wire.Unavailable, reason, a.row.Generation, now)
	if err != nil {
		return err
	}
	a.row.Available = false
	a.row.ObservedAt = now
	b.Events = append(b.Events, e)
	return nil
}

// gone ends an incarnation: its process exited, or another took its place.
func (o *Observer) gone(a *agent, reason string, now time.Time) {
	delete(o.byProcess, a.process())
	a.row.Alive = false
	a.row.ExitedAt = now
	a.match = bind.Match{}
	a.row.Status = "exited"
	var c commit
	if a.row.Available {
		if err := a.leave(&c.batch, reason, now); err != nil {
			o.opt.Log.Error().Err(err).Msg("lifecycle event cannot be encoded")
		}
	}
	c.batch.Agents = []store.Agent{a.row}
	o.send(c)
	o.opt.Log.Info().Str("agent", a.row.ID).Str("harness", a.row.Harness).Int("pid", a.row.PID).
		Str("reason", reason).Msg("agent unavailable")
	o.trim()
}

// replace ends the incarnation that the agent had before; nothing of it is
// being read any more.
func (o *Observer) replace(a *agent, now time.Time) {
	if a.row.Incarnation == "" || !a.row.Available {
		delete(o.byProcess, a.process())
		return
	}
	o.gone(a, wire.IncarnationReplaced, now)
}

// displace takes the pane from an agent whose process still lives but left the
// foreground to another harness.
func (o *Observer) displace(a *agent, now time.Time) {
	if !a.row.Available {
		a.row.Alive = false
		o.send(commit{batch: store.Batch{Agents: []store.Agent{a.row}}})
		return
	}
	var c commit
	if err := a.leave(&c.batch, wire.IncarnationReplaced, now); err != nil {
		return
	}
	a.row.Alive, a.row.Status, a.row.ExitedAt = false, "exited", now
	c.batch.Agents = []store.Agent{a.row}
	if a.art != nil {
		o.detach(a.art)
	}
	o.send(c)
}

// onExit is told that a process ended. What it wrote before is read first.
func (o *Observer) onExit(id process) {
	o.dead[id] = time.Now()
	if a := o.byProcess[id]; a != nil {
		o.end(a, wire.ProcessExited, time.Now())
	}
}

// end ends an incarnation once its last records are committed.
func (o *Observer) end(a *agent, reason string, now time.Time) {
	if a.exiting {
		return
	}
	a.exiting, a.reason = true, reason
	if a.art == nil && a.match.Bound && a.row.Available {
		art := o.find(a)
		if art == nil {
			// Its only records may be so young that no hint has told of their
			// file yet. A sweep will.
			a.sought = now
			o.sweepSoon()
			return
		}
		o.attach(a, art, now)
	}
	o.drain(a, now)
}

// drain reads what is left for an incarnation that ends, and ends it if that is
// nothing.
func (o *Observer) drain(a *agent, now time.Time) {
	if a.art != nil {
		o.detach(a.art)
	}
	if a.draining == 0 {
		o.gone(a, a.reason, now)
	}
}

// found goes on with the ends that waited for a sweep.
func (o *Observer) found(now time.Time) {
	for _, a := range o.byProcess {
		if a.sought.IsZero() || o.sweepBegan.Before(a.sought) {
			continue
		}
		a.sought = time.Time{}
		o.attach(a, o.find(a), now)
		o.drain(a, now)
		o.probeBy(later(now, o.probedAt.Add(probeGap))) // another may wait for its place
	}
}

// trim forgets the agents that are gone the longest.
func (o *Observer) trim() {
	if len(o.agents) <= maxAgents {
		return
	}
	var dead []*agent
	for _, a := range o.agents {
		if !a.row.Alive && o.byProcess[a.process()] != a {
			dead = append(dead, a)
		}
	}
	slices.SortFunc(dead, func(x, y *agent) int { return x.row.ExitedAt.Compare(y.row.ExitedAt) })
	var b store.Batch
	for _, a := range dead[:min(len(dead), len(o.agents)-maxAgents)] {
		delete(o.agents, a.row.ID)
		b.DropAgents = append(b.DropAgents, a.row.ID)
	}
	if len(b.DropAgents) > 0 {
		o.send(commit{batch: b})
	}
}

// saveRow commits the agent's row if it changed.
func (o *Observer) saveRow(a *agent, now time.Time) {
	paneID, server := o.paneID(a.owner.Place)
	moved := a.row.PaneID != paneID && a.row.Available
	if moved {
		a.row.PaneID = paneID
	}
	if a.refreshRow(now) || moved || len(server) > 0 {
		o.send(commit{batch: store.Batch{Agents: []store.Agent{a.row}, Servers: server}})
	}
}

// sorted agents, for answers that should not change their order.
func (o *Observer) sorted() []*agent {
	var out []*agent
	for _, a := range o.agents {
		out = append(out, a)
	}
	slices.SortFunc(out, func(x, y *agent) int {
		return cmp.Or(x.row.CreatedAt.Compare(y.row.CreatedAt), cmp.Compare(x.row.ID, y.row.ID))
	})
	return out
}
