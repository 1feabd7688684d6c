package observer

import (
	"slices"
	"time"

	"steno/providers"
)

// find is the artifact of the session that an agent is bound to; nil while it
// does not exist.
func (o *Observer) find(a *agent) *artifact {
	if !a.match.Bound {
		return nil
	}
	if a.match.Path != "" {
		if art := o.artifacts[a.match.Path]; art != nil {
			return art
		}
		if art := o.touchUnseen(a.match.Path); art != nil {
			return art
		}
	}
	if art := a.art; art != nil && art.Session == a.match.Session {
		return art // a copy of it that came up elsewhere is not its place
	}
	return o.transcript(sessionKey{a.row.Harness, a.match.Session})
}

// list makes an artifact known by its session.
func (o *Observer) list(a *artifact) {
	key := sessionKey{a.Provider, a.Session}
	if a.Session != "" && !slices.Contains(o.bySession[key], a) {
		o.bySession[key] = append(o.bySession[key], a)
	}
}

// unlist forgets what list made known.
func (o *Observer) unlist(a *artifact) {
	key := sessionKey{a.Provider, a.Session}
	left := slices.DeleteFunc(o.bySession[key], func(other *artifact) bool { return other == a })
	if len(left) == 0 {
		delete(o.bySession, key)
		return
	}
	o.bySession[key] = left
}

// transcript is the artifact of a session, nil when there is none. Of copies in
// several places it is the one that was written last, as long as no evidence
// names a place.
func (o *Observer) transcript(key sessionKey) *artifact {
	var best *artifact
	for _, a := range o.bySession[key] {
		if best == nil || a.modified.After(best.modified) || a.modified.Equal(best.modified) && a.Path < best.Path {
			best = a
		}
	}
	return best
}

// touchUnseen takes in an artifact that evidence names before any hint or
// sweep did.
func (o *Observer) touchUnseen(path string) *artifact {
	claimed, p, ok := o.claims.claim(path)
	if !ok {
		return nil
	}
	path = claimed.Path
	if a := o.artifacts[path]; a != nil {
		return a
	}
	a := &artifact{Artifact: claimed, provider: p, base: -1, modified: time.Now()}
	o.artifacts[path] = a
	if a.Framing != providers.Rows {
		o.unswept[path] = a.modified // no sweep ever sees rows
	}
	o.list(a)
	return a
}

// bind attaches the artifact of the session that the agent is bound to, and
// lets go of the one it had.
func (o *Observer) bind(a *agent, now time.Time) {
	if !a.row.Available || a.leaving {
		return
	}
	if !a.match.Bound {
		if a.art != nil {
			o.detach(a.art)
		}
		return
	}
	art := o.find(a)
	if art == a.art {
		return
	}
	if a.art != nil {
		o.detach(a.art)
	}
	o.attach(a, art, now)
}

// bindBySession attaches an artifact that came up after its session was
// proved.
func (o *Observer) bindBySession(art *artifact) {
	if art.Session == "" {
		return
	}
	for _, a := range o.byProcess {
		if a.row.Harness == art.Provider && a.art == nil && a.match.Bound && a.match.Session == art.Session && a.row.Available && !a.exiting && !a.leaving {
			o.attach(a, art, time.Now())
			return
		}
	}
}

// attach begins to read an artifact for an agent. One that is still being read
// to its end for an earlier owner is taken over when that is done: release asks
// again.
func (o *Observer) attach(a *agent, art *artifact, now time.Time) {
	if art == nil || art.agent != nil || art.busy {
		return
	}
	art.agent, art.id = a, a.identity()
	art.closing, art.idled = false, false
	art.due = now
	a.art = art
	o.settled(art.Path, art.id, false)
	a.seen, a.errored = false, false
	o.live[art] = true
}

// detach reads what is left of an artifact and then releases it.
func (o *Observer) detach(art *artifact) {
	if art.closing {
		return
	}
	art.closing, art.backoff = true, 0
	art.agent.draining++
	if art.agent.art == art && !art.agent.exiting {
		art.agent.art = nil
	}
	if art.busy {
		art.dirty = true
		return
	}
	art.due = time.Now()
}

// release ends the binding of an artifact that was read to its end.
func (o *Observer) release(art *artifact) {
	a := art.agent
	if art.reader != nil {
		art.base = art.reader.file.Offset()
	}
	o.settled(art.Path, art.id, true)
	art.agent, art.reader, art.closing = nil, nil, false
	o.weigh(art, nil)
	art.settle, art.due = time.Time{}, time.Time{}
	delete(o.live, art)
	if a.art == art {
		a.art = nil
	}
	a.draining--
	if art.lost {
		o.forget(art.Path)
	}
	now := time.Now()
	if a.draining == 0 && (a.leaving || a.exiting) {
		o.probeBy(later(now, o.probedAt.Add(probeGap))) // another may wait for its place
	}
	if a.exiting && a.draining == 0 && o.byProcess[a.process()] == a {
		o.gone(a, a.reason, now)
	}
	for _, other := range o.byProcess {
		if !other.exiting && other.art == nil {
			o.bind(other, now)
		}
	}
}
