package observer

import (
	"context"
	"path/filepath"
	"time"

	"steno/observer/watch"
	"steno/providers"
)

// loop owns all state until everything that was begun is committed.
func (o *Observer) loop(ctx context.Context) error {
	defer close(o.ended)
	defer close(o.jobs)
	defer close(o.commits.in)
	o.addOwnRoots()
	now := time.Now()
	o.sweepAt, o.probeAt = now, now
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	var giveUp <-chan time.Time
	exits := o.exits.C()
	for {
		if o.stopping && o.drained() {
			return nil
		}
		o.startDue(time.Now())
		timer.Reset(time.Until(o.nextDue()))

		var jobs chan *job
		var nextJob *job
		if o.mayRead() {
			jobs, nextJob = o.jobs, o.queue[0]
		}
		var commits chan commit
		var nextCommit commit
		if len(o.out) > 0 {
			commits, nextCommit = o.commits.in, o.out[0]
		}
		select {
		case <-done:
			done = nil
			o.stopping = true
			giveUp = time.After(drainTime)
		case <-giveUp:
			return nil
		case jobs <- nextJob:
			o.queue[0] = nil // a job that is done keeps what it read
			o.queue = o.queue[1:]
		case commits <- nextCommit:
			o.out[0] = commit{}
			o.out = o.out[1:]
		case j := <-o.results:
			o.finish(j)
		case arts, ok := <-o.commits.acks:
			if !ok {
				// The committer has ended with an error; the group says which.
				return nil
			}
			for _, a := range arts {
				o.committed(a)
			}
		case <-o.watcher.Ready():
			o.take(o.watcher.Take())
		case d := <-o.sweeper.out:
			o.onSweep(d)
		case p := <-o.prober.out:
			o.onProbe(p)
		case e, ok := <-exits:
			if !ok {
				exits = nil // it ends with ctx, before the drain does
				continue
			}
			o.onExit(process{e.PID, e.StartTicks})
		case <-o.births:
			o.probeBy(later(time.Now(), o.probedAt.Add(birthGap)))
		case call := <-o.calls:
			call()
		case <-timer.C:
		}
	}
}

// drained says whether nothing is under way.
func (o *Observer) drained() bool {
	if len(o.queue) > 0 || len(o.out) > 0 {
		return false
	}
	for a := range o.live {
		if a.busy {
			return false
		}
	}
	return true
}

// startDue starts whatever its time has come for.
func (o *Observer) startDue(now time.Time) {
	if o.stopping {
		return
	}
	if !o.sweeping && !now.Before(o.sweepAt) {
		o.sweeping = true
		o.watcher.SetRoots(o.watchRoots) // notices a parent that was renamed, a link that was moved
		o.sweepAt = now.Add(o.sweepEvery())
		o.sweepBegan = now
		o.sweeper.in <- o.watchRoots // buffered, and only one is under way
	}
	if !o.probing && o.firstSweepDone && !now.Before(o.probeAt) && len(o.out) < maxQueue {
		o.probing = true
		o.probeAt = now.Add(scanEvery)
		o.prober.in <- o.question()
	}
	o.lookDue(now)
	for a := range o.live {
		if a.busy {
			continue
		}
		switch {
		case !a.due.IsZero() && !now.Before(a.due):
			o.dispatch(a, refresh, now)
		case !a.settle.IsZero() && !now.Before(a.settle):
			o.dispatch(a, settle, now)
		case o.idleDue(a, now):
			a.idled = true
			o.dispatch(a, idle, now)
		}
	}
}

// nextDue is when startDue has to look again.
func (o *Observer) nextDue() time.Time {
	if o.stopping {
		return time.Now().Add(time.Hour)
	}
	next := time.Now().Add(time.Hour)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if !o.sweeping {
		sooner(o.sweepAt)
	}
	if !o.probing && o.firstSweepDone && len(o.out) < maxQueue {
		sooner(o.probeAt)
	}
	for a := range o.live {
		if !a.busy {
			sooner(a.due)
			sooner(a.settle)
			sooner(o.idleAt(a))
		}
		if !o.probing && !o.probeTitles {
			sooner(o.lookAt(a))
		}
	}
	return next
}

func (o *Observer) sweepEvery() time.Duration {
	if o.watcher.Health().Unwatched > 0 {
		return o.opt.SweepDegraded
	}
	return o.opt.Sweep
}

// addOwnRoots watches where the daemon's own environment and the configuration
// say that artifacts appear.
func (o *Observer) addOwnRoots() {
	for _, p := range o.opt.Providers {
		env := o.opt.Env
		env.Extra = o.opt.Extra[p.ID()]
		o.claims.add(p, p.Roots(env), true)
	}
	o.rewatch()
}

// rewatch tells the watcher about the roots. Watch first: the sweep that
// follows sees what was there before.
func (o *Observer) rewatch() {
	o.watchRoots = o.watchRoots[:0:0]
	for _, r := range o.claims.roots {
		o.watchRoots = append(o.watchRoots, watch.Root{Dir: r.Dir, Depth: r.Depth})
	}
	o.watcher.SetRoots(o.watchRoots)
	o.sweepSoon()
}

// take turns hints into work.
func (o *Observer) take(c watch.Changes) {
	now := time.Now()
	if c.Sweep {
		o.sweepSoon()
	}
	for _, path := range c.Paths {
		path = filepath.Clean(path)
		o.heed(path, now)
		o.touch(path, now)
	}
	o.noteWatchMode()
}

// touch is told that a path may have changed.
func (o *Observer) touch(path string, now time.Time) *artifact {
	a := o.artifacts[path]
	if a == nil {
		claimed, p, ok := o.claims.claim(path)
		if !ok {
			return nil
		}
		path = claimed.Path
		a = o.artifacts[path]
		if a != nil {
			o.changed(a, now)
			return a
		}
		if claimed.Role == providers.Registry {
			o.probeSoon(now)
			return nil
		}
		a = &artifact{Artifact: claimed, provider: p, base: -1}
		if o.firstSweepDone && !o.sweeping {
			a.appeared = now
		}
		o.artifacts[path] = a
		o.unswept[path] = now
		o.recheckUntil = now.Add(recheckFor)
		o.list(a)
	}
	o.changed(a, now)
	return a
}

// changed is told that an artifact may have changed.
func (o *Observer) changed(a *artifact, now time.Time) {
	a.modified = now
	o.stir(a, now)
	if a.Role == providers.Carrier {
		o.wake(a, now)
	}
}

// stir refreshes a bound artifact, and asks for the binding of an unbound one.
func (o *Observer) stir(a *artifact, now time.Time) {
	if a.agent == nil {
		o.bindBySession(a)
	}
	if a.agent == nil {
		// An artifact that nobody owns may be written to all the time; asking
		// again has to become rarer, but not for a process that has just begun.
		most := probeGapMax
		if o.awaited(a.Provider, now) {
			most = newcomerGap
		}
		if now.Sub(a.askAt) > probeGapMax {
			a.asked = probeGap
		}
		if limit := now.Add(most); a.askAt.After(limit) {
			a.askAt = limit
		}
		at := a.askAt
		if !now.Before(a.askAt) {
			at = now
			a.askAt = now.Add(min(a.asked, most))
			a.asked = min(2*a.asked, most)
		}
		o.probeUnowned(at, now)
		return
	}
	a.idled = false
	if a.closing {
		return // a last read is under way or due; what follows it is another's
	}
	if a.busy {
		a.dirty = true
		return
	}
	if at := a.last.Add(o.opt.Throttle); a.due.IsZero() || a.due.After(at) {
		a.due = at // a time in the past is due at once
	}
}

// awaited says whether a process of the provider that began a short time ago has
// not shown its session yet. It may do so and end within a second.
func (o *Observer) awaited(provider string, now time.Time) bool {
	if !now.Before(o.recheckUntil) {
		return false // every process that appears moves that
	}
	for _, a := range o.byProcess {
		if a.row.Harness == provider && !a.match.Bound && now.Sub(a.row.Since) < recheckFor {
			return true
		}
	}
	return false
}

// probeSoon asks for a look at the processes as soon as the last one is long
// enough ago.
func (o *Observer) probeSoon(now time.Time) {
	o.probeForced = true
	o.probeBy(later(now, o.probedAt.Add(probeGap)))
}

// probeUnowned asks for a look on behalf of an artifact that nobody owns. There
// may be many of them, and all may be written to at once: together they get
// looksAtOnce, and then one in lookEvery.
func (o *Observer) probeUnowned(at, now time.Time) {
	at = later(at, later(now, o.probedAt.Add(probeGap)))
	if o.probeForced && !o.probeAt.After(at) {
		return // the one that is planned does for this one too
	}
	at = later(at, o.lookedFor.Add(-looksAtOnce*lookEvery))
	o.lookedFor = later(o.lookedFor, at).Add(lookEvery)
	o.probeForced = true
	o.probeBy(at)
}

// probeBy plans a look. While one is under way, which may have passed the place
// already, that is the next.
func (o *Observer) probeBy(at time.Time) {
	if at.Before(o.probeAt) {
		o.probeAt = at
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
