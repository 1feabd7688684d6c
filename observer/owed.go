package observer

import (
	"time"

	"steno/store"
)

// debt is an artifact that an incarnation was reading when Steno ended.
type debt struct {
	session, path string
}

// Source.Settled says that an artifact was read to its end and let go, so that
// what is written to it later is not this incarnation's. While it is read, or
// has still to be read to its end, the row says otherwise.

// owe notes, after a restart, what each incarnation was reading.
func (o *Observer) owe() {
	of := map[string]*agent{}
	for _, a := range o.agents {
		if a.row.Boot == o.boot && a.row.Incarnation != "" {
			of[a.row.Incarnation] = a
		}
	}
	for path, src := range o.sources {
		if a := of[src.Incarnation]; a != nil && !src.Settled {
			a.owed = append(a.owed, debt{src.Session, path})
		}
	}
	for _, a := range of {
		// One that was bound and not read yet has no row of its own.
		if src, known := o.sources[a.row.Path]; a.row.Session != "" && (!known || src.Agent != a.row.ID) {
			a.owed = append(a.owed, debt{a.row.Session, a.row.Path})
		}
	}
}

// pay reads to its end what the incarnation was reading when Steno ended and
// has left for another session since (D12): it was proved to be its own. What
// another process owns by now is read for that one.
func (o *Observer) pay(a *agent, now time.Time) {
	if len(a.owed) == 0 || !a.match.Bound || !a.row.Available || a.leaving || a.exiting {
		return
	}
	owed, bound := a.owed, a.art
	a.owed = nil
	mine := o.find(a)
	for _, d := range owed {
		art := o.artifacts[d.path]
		if art == nil && d.path != "" {
			art = o.touchUnseen(d.path)
		}
		if art == nil {
			art = o.transcript(sessionKey{a.row.Harness, d.session})
		}
		if art == nil || art == mine || art.agent != nil || art.busy || o.claimed(art, a) {
			continue
		}
		o.attach(a, art, now)
		o.detach(art)
	}
	a.art = bound
}

// claimed says whether another live process is bound to the artifact's session.
func (o *Observer) claimed(art *artifact, by *agent) bool {
	for _, other := range o.byProcess {
		if other != by && other.row.Harness == art.Provider && other.match.Bound && other.match.Session == art.Session {
			return true
		}
	}
	return false
}

// settled commits whether an artifact is read for an incarnation, where its row
// says otherwise.
func (o *Observer) settled(path string, id identity, settled bool) {
	src, ok := o.sources[path]
	if !ok || src.Agent != id.agent || src.Settled == settled && src.Incarnation == id.incarnation {
		return
	}
	src.Settled, src.Incarnation = settled, id.incarnation
	o.sources[path] = src
	o.send(commit{batch: store.Batch{Sources: []store.Source{src}}})
}
