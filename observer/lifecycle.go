package observer

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"steno/ipc/wire"
	"steno/observer/bind"
	"steno/providers"
	"steno/store"
)

// maxAgents bounds how many agents are remembered; the longest gone are
// forgotten first.
const maxAgents = 1000

// question is what the prober has to know.
func (o *Observer) question() probe {
	q := probe{remembered: map[claimant]providers.Evidence{}, forced: o.probeForced || time.Now().Before(o.recheckUntil)}
	o.probeForced = false
	oldest := time.Now()
	for _, a := range o.byProcess {
		if a.owner.Process.Started.Before(oldest) {
			oldest = a.owner.Process.Started
		}
		if !a.match.Bound || a.match.Rank > providers.Young {
			q.unbound = true // better evidence may come
		}
	}
	for _, a := range o.agents {
		if a.row.Session != "" && a.row.Rank > 0 && a.row.Boot == o.boot {
			q.remembered[claimant{a.process(), a.row.Harness}] = providers.Evidence{
				Rank: providers.Rank(a.row.Rank), Session: a.row.Session, Path: a.row.Path,
				Source: a.row.Evidence, // no time: what is proved now wins
			}
		}
	}
	for _, a := range o.artifacts {
		// Only what was written since the oldest live agent started can be its.
		if a.agent != nil || !a.modified.Before(oldest.Add(-time.Second)) {
			q.recent = append(q.recent, a.Artifact)
		}
	}
	return q
}

// onProbe takes in who is alive and who owns what.
func (o *Observer) onProbe(p probed) {
	now := time.Now()
	o.probing = false
	o.probedAt = now
	if o.probeAgain {
		o.probeAgain = false
		o.probeAt = now.Add(probeGap)
	}
	o.logProbe(p)
	if p.err != nil {
		o.probeForced = true // what asked for this look is owed still
		return               // unknown is not dead
	}
	o.last = p
	o.adoptRoots(p)
	for id, a := range o.byProcess {
		if !p.procs.Is(id.pid, id.start) {
			o.onExit(id)
			continue
		}
		a.leaving = false
		if m, ok := p.matches[id]; ok && m.Provider == a.row.Harness {
			a.match = m
		}
	}
	for path, r := range p.refused {
		if a := o.artifacts[path]; a != nil && (a.agent == nil || !a.agent.match.Bound) {
			a.refused = r
		}
	}
	front := map[string]bool{}
	for _, w := range p.owners {
		front[w.Place.Key] = front[w.Place.Key] || w.Foreground
	}
	for i, w := range p.owners {
		if w.Foreground || !front[w.Place.Key] || o.byProcess[process{w.Process.PID, w.Process.StartTicks}] != nil {
			o.see(&p.owners[i], now)
		}
	}
	for _, a := range o.byProcess {
		if !a.exiting {
			o.bind(a, now)
			o.saveRow(a, now)
		}
	}
}

// logProbe reports trouble of the prober once, and its end.
func (o *Observer) logProbe(p probed) {
	text := ""
	err := p.err
	if err == nil && len(p.errs) > 0 {
		err = p.errs[0]
	}
	if err != nil {
		text = err.Error()
	}
	if text != o.probeErr && text != "" {
		o.opt.Log.Warn().Err(err).Msg("processes cannot be looked at fully")
	}
	o.probeErr = text
}

// adoptRoots watches the directories that running agents use by their own
// environment.
func (o *Observer) adoptRoots(p probed) {
	added := false
	for _, pv := range o.opt.Providers {
		added = o.claims.add(pv, p.roots[pv.ID()], false) || added
	}
	if added {
		o.rewatch()
	}
}

// see is told of a harness that owns a place.
func (o *Observer) see(w *bind.Owner, now time.Time) {
	if w.Process.PID == 0 {
		return
	}
	id := process{w.Process.PID, w.Process.StartTicks}
	if a := o.byProcess[id]; a != nil {
		o.keep(a, w, now)
		return
	}
	m := o.last.matches[id]
	if m.Provider != w.Provider {
		m = bind.Match{} // of the program that this process was before
	}
	row, wait := o.identify(w, m, now)
	if wait {
		o.probeBy(now.Add(resumeLook))
		return
	}
	a := o.agents[row.ID]
	if !w.Foreground && (a == nil || a.process() != id) {
		return // in the background, an incarnation goes on but none begins
	}
	earlier := a != nil && o.byProcess[a.process()] == a
	if earlier && !o.yield(a) || !o.vacate(w.Place, a) {
		return // release asks again
	}
	o.appear(row, w, m, now)
}

// yield lets go of what an agent reads, because another takes its place, and
// says whether all of it is committed: it comes before the unavailable event.
func (o *Observer) yield(a *agent) bool {
	a.leaving = true
	if a.art != nil {
		o.detach(a.art)
	}
	return !a.exiting && a.draining == 0
}

// vacate says whether a place can be entered by the agent, which may be nil.
func (o *Observer) vacate(p bind.Place, by *agent) bool {
	if _, known := o.slots[p.Server]; p.Kind == bind.InTmux && !known {
		return true
	}
	id, _ := o.paneID(p)
	free := true
	for _, a := range o.byProcess {
		if a != by && a.row.Alive && a.row.PaneID == id && !o.yield(a) {
			free = false
		}
	}
	return free
}

// keep brings a known process up to date. One that lost its pane to another
// harness and comes back to the foreground is available again.
func (o *Observer) keep(a *agent, w *bind.Owner, now time.Time) {
	if a.exiting {
		return
	}
	if w.Provider != a.row.Harness {
		// The process has become another program, which is another agent.
		o.end(a, wire.IncarnationReplaced, now)
		o.probeBy(now.Add(probeGap))
		return
	}
	started := a.owner.Process.Started
	a.owner = *w
	if started.Before(w.Process.Started) {
		// A clock that was set makes the start seem later; keep the earlier,
		// so that no record of this process becomes history.
		a.owner.Process.Started = started
	}
	if a.row.Available || !w.Foreground {
		return
	}
	if o.vacate(w.Place, a) {
		o.enter(a, now) // otherwise release asks again
	}
}

// identify finds the agent that a new process is (D14), or says that the
// process may still show it.
func (o *Observer) identify(w *bind.Owner, m bind.Match, now time.Time) (row store.Agent, wait bool) {
	var same, pane, session *agent // the newest of each
	var resumable bool
	for _, a := range o.agents {
		r := a.row
		if r.Harness != w.Provider {
			continue
		}
		if r.PID == w.Process.PID && r.StartTicks == w.Process.StartTicks && r.Boot == o.boot {
			same = newer(same, a) // the same incarnation, seen again
		}
		if w.Place.Kind == bind.InTmux && r.PaneKey == w.Place.Key {
			pane = newer(pane, a)
		}
		if r.Available || r.Session == "" || o.byProcess[a.process()] != nil {
			continue
		}
		resumable = true
		if m.Bound && m.Session == r.Session {
			session = newer(session, a)
		}
	}
	for _, a := range []*agent{same, pane, session} {
		if a != nil {
			return a.row, false
		}
	}
	// An age below zero is a clock that was set back: no reason to wait.
	if age := now.Sub(w.Process.Started); resumable && !m.Bound && age >= 0 && age < resumeGrace {
		return store.Agent{}, true
	}
	return store.Agent{ID: newUUID(), Harness: w.Provider, CreatedAt: now}, false
}

// newer is the agent that lived last; a may be nil.
func newer(a, b *agent) *agent {
	if a == nil {
		return b
	}
	order := cmp.Or(compareBool(a.row.Alive, b.row.Alive), a.row.ExitedAt.Compare(b.row.ExitedAt),
		a.row.CreatedAt.Compare(b.row.CreatedAt), cmp.Compare(a.row.ID, b.row.ID))
	if order < 0 {
		return b
	}
	return a
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// appear makes a process the live incarnation of an agent.
func (o *Observer) appear(row store.Agent, w *bind.Owner, m bind.Match, now time.Time) {
	a := o.agents[row.ID]
	if a == nil {
		a = &agent{row: row}
		a.row.Name = o.name(w)
		o.agents[row.ID] = a
	}
	incarnation := incarnationID(row.ID, o.boot, w.Process.PID, w.Process.StartTicks)
	if a.row.Incarnation != incarnation {
		o.replace(a, now)
		a.row.Incarnation = incarnation // the generation goes on: this one may come back
		a.row.Since = time.Time{}
		a.row.Session, a.row.Path, a.row.Rank, a.row.Evidence = "", "", 0, ""
		a.row.Turn = ""
		a.turn, a.seen, a.errored = providers.Turn{}, false, false
	}
	a.row.PID, a.row.StartTicks, a.row.Boot = w.Process.PID, w.Process.StartTicks, o.boot
	a.row.Launch = filepath.Base(w.Process.Exe)
	a.owner, a.match, a.exiting = *w, m, false
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
	a.row.Available, a.row.Alive = true, true
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
		o.attach(a, o.find(a), now)
	}
	if a.art != nil {
		o.detach(a.art)
	}
	if a.draining == 0 {
		o.gone(a, reason, now)
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

// Slots of the places that no multiplexer server has. They keep pane ids below
// 2^53, so that every JSON reader holds them exactly.
const (
	slotTerminal = 1<<20 - 2
	slotHeadless = 1<<20 - 1
)

// paneID is the number of a place in the catalog: server slot << 32 | number.
// A server that is new gets the next slot, which has to be committed.
func (o *Observer) paneID(p bind.Place) (uint64, []store.Server) {
	switch p.Kind {
	case bind.InTerminal:
		return slotTerminal<<32 | uint64(p.Number), nil
	case bind.Headless:
		return slotHeadless<<32 | uint64(p.Number), nil
	}
	slot, ok := o.slots[p.Server]
	if ok {
		return uint64(slot)<<32 | uint64(p.Number), nil
	}
	slot = uint32(len(o.slots)) % slotTerminal
	o.slots[p.Server] = slot
	return uint64(slot)<<32 | uint64(p.Number), []store.Server{{Key: p.Server, Slot: slot}}
}

// name is what people call an agent: the harness and the directory it works
// in, with a number where that is taken.
func (o *Observer) name(w *bind.Owner) string {
	base := w.Provider
	if dir := filepath.Base(w.Process.CWD); dir != "." && dir != "/" && dir != "" {
		base += "-" + cutTo(dir, 64)
	}
	taken := map[string]bool{}
	for _, a := range o.agents {
		taken[a.row.Name] = true
	}
	name := base
	for i := 2; taken[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

// newUUID is a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
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
