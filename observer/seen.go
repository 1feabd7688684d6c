package observer

import (
	"maps"
	"time"

	"steno/ipc/wire"
	"steno/observer/bind"
	"steno/providers"
)

// question is what the prober has to know.
func (o *Observer) question() probe {
	q := probe{remembered: map[claimant]providers.Evidence{}, forced: o.probeForced || time.Now().Before(o.recheckUntil)}
	q.titles, q.namings = o.probeTitles, maps.Clone(o.namings)
	o.probeForced, o.probeTitles = false, false
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
	o.probeAt = later(o.probeAt, now.Add(probeGap))
	o.logProbe(p)
	if p.err != nil {
		o.probeForced = true // what asked for this look is owed still
		return               // unknown is not dead
	}
	o.last = p
	for id, at := range o.dead {
		if p.at.After(at) {
			delete(o.dead, id) // this look cannot have seen it alive
		}
	}
	o.adoptRoots(p)
	for key, n := range o.namings {
		if _, alive := p.procs.Get(key.pid); !alive && p.at.After(n.at) {
			delete(o.namings, key)
		}
	}
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
		a := o.artifacts[path]
		if a == nil {
			a = o.touchUnseen(path)
		}
		if a != nil && (a.agent == nil || !a.agent.match.Bound) {
			was := a.refused
			r.several = r.several || was.rank > 0 && (was.several || was.by != r.by)
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
			o.pay(a, now)
			o.bind(a, now)
			o.readTitle(a, p.listed)
			o.saveRow(a, now)
		}
	}
	o.looks(p)
}

// logProbe reports trouble of the prober when it begins, and while it lasts once
// a minute: which process could not be looked at may change with every look.
func (o *Observer) logProbe(p probed) {
	err := p.err
	if err == nil && len(p.errs) > 0 {
		err = p.errs[0]
	}
	if err == nil || time.Since(o.probeWarned) < time.Minute {
		return
	}
	o.probeWarned = time.Now()
	o.opt.Log.Warn().Err(err).Msg("processes cannot be looked at fully")
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
	if _, dead := o.dead[id]; dead {
		return // it ended after it was looked at
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
	if !w.Foreground && (a == nil || a.process() != id || !a.halted) {
		return // in the background, an incarnation goes on but none begins or comes back
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
