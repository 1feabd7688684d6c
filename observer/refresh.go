package observer

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"steno/observer/tail"
	"steno/providers"
	"steno/store"
)

// task says what a job does with an artifact.
type task uint8

const (
	refresh task = iota // read and project what is new
	settle              // the same, and decide what waited for silence
	idle                // the program says it is idle: ask what became of the open turn
	look                // read what is new; if that is nothing, decide by what the process shows
)

// job is one piece of work on one artifact. It goes to a worker and comes back.
type job struct {
	art  *artifact
	task task
	id   identity
	// For the first refresh of a binding.
	attach *attachment
	reader *reader
	// For a look: what was seen, and since when the artifact is silent.
	witness providers.Witness
	silent  time.Time

	result result
	events []store.Event
	err    error
}

// birthSlack makes up for the kernel's coarse clock: the birth time of a file
// may be a tick (10 ms at the most) before the instant it was made at.
const birthSlack = 10 * time.Millisecond

// attachment is what the decision where to begin needs (D11, D12).
type attachment struct {
	artifact  providers.Artifact
	provider  providers.Provider
	source    *store.Source // restart point of the same agent, nil when there is none
	stats     *tail.Stats
	base      int64
	appeared  time.Time
	refused   bool      // by evidence as strong as what binds now
	others    bool      // another agent's observation stood at base
	process   time.Time // start of the process
	available time.Time // first durable available of this incarnation
	began     time.Time // when this daemon began to watch
}

// open makes the reader. An artifact that came up under observation is read
// from byte 0; any other one from its tail, or from where this agent's
// observation stood.
func (t attachment) open() (*reader, error) {
	if t.source != nil && !(t.refused && t.source.Offset < t.base) {
		if r, err := resume(t.artifact, t.provider, *t.source, t.process, t.stats); err == nil {
			return r, nil
		}
		// A restart point that cannot be read counts as none.
	}
	born, err := bornAt(t.artifact, t.provider)
	if err != nil {
		return nil, err
	}
	if born.IsZero() {
		born = t.appeared
	}
	known := !born.IsZero() && !t.refused && !t.others
	born = born.Add(birthSlack)
	fresh := known && !born.Before(t.process) && (!born.Before(t.available) || !born.Before(t.began))
	return attach(t.artifact, t.provider, fresh, t.base, t.process, t.stats)
}

// dispatch sends the artifact to the workers.
func (o *Observer) dispatch(a *artifact, what task, now time.Time) {
	a.busy, a.dirty, a.more = true, false, false
	a.due = time.Time{}
	a.last = now
	a.refreshes++
	j := &job{art: a, task: what, id: a.id, reader: a.reader, witness: a.witness, silent: a.changed}
	if a.reader == nil {
		j.attach = o.attachment(a)
	}
	if a.weight > 0 {
		// What is in memory goes first, and out of it.
		o.queue = slices.Insert(o.queue, 0, j)
		return
	}
	o.queue = append(o.queue, j)
}

// weigh keeps account of what an artifact has in memory.
func (o *Observer) weigh(a *artifact, events []store.Event) {
	n := a.reader.kept()
	for _, e := range events {
		n += len(e.Body)
	}
	o.pending += n - a.weight
	a.weight = n
}

// mayRead says whether the oldest job may go to a worker.
func (o *Observer) mayRead() bool {
	return len(o.queue) > 0 && (o.stopping || o.pending < maxPending || o.queue[0].art.weight > 0)
}

func (o *Observer) attachment(a *artifact) *attachment {
	t := &attachment{
		artifact: a.ofSession(a.agent.match.Session), provider: a.provider, stats: o.opt.Stats,
		base: a.base, appeared: a.appeared,
		process: a.agent.owner.Process.Started,
	}
	// Births are by the clock of now. A scan corrects the start of a process.
	back := o.back(time.Now())
	t.available, t.began = a.agent.row.Since.Add(-back), o.began.Add(-back)
	switch src, ok := o.sources[a.Path]; {
	case ok && src.Agent == a.agent.row.ID:
		t.source = &src
	case ok:
		// What was told as another agent's is not told again.
		t.base, t.others = max(t.base, src.Offset), true
	}
	// A process that could not tell which of two sessions is its own, and that
	// nobody else claimed, wrote what stands there.
	r := a.refused
	rivals := r.several || r.by != a.agent.process()
	if r.rank > 0 && rivals && a.agent.match.Rank >= r.rank {
		t.base, t.refused = max(t.base, r.size), true
	}
	return t
}

// work runs jobs until the loop closes the queue.
func (o *Observer) work() error {
	for j := range o.jobs {
		j.run()
		select {
		case o.results <- j:
		case <-o.ended: // given up: nothing moved, it is read again
		}
	}
	return nil
}

func (j *job) run() {
	if j.reader == nil {
		j.reader, j.err = j.attach.open()
		if j.err != nil {
			return
		}
	}
	now := time.Now()
	switch j.task {
	case idle:
		j.result = j.reader.idle(now)
	case look:
		j.result = j.reader.see(j.witness, now.Sub(j.silent), now)
	default:
		j.result = j.reader.refresh(j.task == settle, now)
	}
	a := j.reader.artifact
	for _, d := range j.result.drafts {
		e, err := j.id.seal(a.Provider, a.Session, d, now)
		if err != nil {
			j.err = err
			return
		}
		j.events = append(j.events, e)
	}
	if j.result.source != nil {
		j.result.source.Agent, j.result.source.Incarnation = j.id.agent, j.id.incarnation
		j.result.source.Updated = now
	}
	j.err = j.result.err
}

// finish takes a job's result into the state and sends what it proved to the
// committer.
func (o *Observer) finish(j *job) {
	now := time.Now()
	a := j.art
	a.reader = j.reader
	a.missed = false
	o.weigh(a, j.events)
	if j.err != nil {
		o.failed(a, j, now)
	} else if a.errText != "" {
		o.opt.Log.Info().Str("provider", a.Provider).Str("path", a.Path).Msg("artifact can be read again")
		a.errText, a.backoff = "", 0
		a.agent.errored = false
	}
	if j.reader == nil {
		o.committed(a)
		return
	}
	if j.attach != nil && a.agent.match.Bound {
		a.refused = refusal{} // the reader begins behind it
	}
	r := j.result
	a.more = r.more
	if r.read || len(j.events) > 0 {
		a.changed = now
		a.agent.seen = true
	}
	a.settle, a.look = time.Time{}, r.look
	if r.quiet > 0 {
		a.settle = later(now, a.changed.Add(r.quiet))
	}
	if a.agent.art == a {
		a.agent.turn = r.turn
	}
	o.drifted(a.Provider, r.drift)
	for _, d := range r.drafts {
		if d.Kind == providers.ObserverFailure {
			o.failures[a.Provider]++
		}
	}
	c := commit{art: a}
	c.batch.Events = j.events
	if r.source != nil {
		c.batch.Sources = []store.Source{*r.source}
		o.sources[a.Path] = *r.source
	}
	if a.agent.refreshRow(now) {
		c.batch.Agents = []store.Agent{a.agent.row}
	}
	if len(c.batch.Events) == 0 && len(c.batch.Sources) == 0 && len(c.batch.Agents) == 0 {
		o.committed(a) // nothing to write: an unchanged observation costs no transaction
		return
	}
	o.send(c)
}

// failed notes an I/O error and puts the next try off.
func (o *Observer) failed(a *artifact, j *job, now time.Time) {
	if j.result.gone || errors.Is(j.err, fs.ErrNotExist) {
		// Moved to an archive or deleted: no failure. A hint will tell when it
		// comes back; if it does not, the next sweep has it looked at.
		a.missed = true
		return
	}
	a.backoff = min(max(2*a.backoff, 100*time.Millisecond), 10*time.Second)
	if !a.closing || a.backoff < closeTime {
		a.due = now.Add(a.backoff)
	}
	if text := j.err.Error(); text != a.errText {
		a.errText = text
		o.opt.Log.Warn().Err(j.err).Str("provider", a.Provider).Msg("artifact cannot be read; trying again")
	}
	a.agent.errored = true
}

// committed is told that the artifact's last result is durable. What was owed
// meanwhile is done now.
func (o *Observer) committed(a *artifact) {
	now := time.Now()
	a.busy = false
	o.weigh(a, nil)
	switch {
	case o.stopping:
	case a.more:
		o.dispatch(a, refresh, now)
	case a.dirty:
		a.due = a.last.Add(o.opt.Throttle)
	case a.closing && a.due.IsZero():
		if (!a.settle.IsZero() || a.look > 0) && a.errText == "" {
			// Nothing will follow: what waits for silence is decided now.
			o.dispatch(a, settle, now)
			return
		}
		o.release(a)
	}
}

// send puts a commit into the queue of the committer.
func (o *Observer) send(c commit) {
	o.out = append(o.out, c)
	o.sent++
}

// idleAt is when an agent that reports itself idle counts as having given up
// its open turn; zero when it does not.
func (o *Observer) idleAt(a *artifact) time.Time {
	g := a.agent
	if g == nil || a.idled || a.closing || a.reader == nil || g.art != a ||
		g.match.Activity != providers.Idle || g.turn.State != providers.WaitingOnAgent || g.match.Since.IsZero() {
		return time.Time{}
	}
	if _, ok := a.reader.proj.(providers.Idler); !ok {
		return time.Time{}
	}
	return later(later(g.match.Since, a.changed), a.modified).Add(idleAfter)
}

func (o *Observer) idleDue(a *artifact, now time.Time) bool {
	at := o.idleAt(a)
	return !at.IsZero() && !now.Before(at)
}

func dropSource(path string) store.Batch {
	return store.Batch{DropSources: []string{path}}
}

func serverBatch(s []store.Server) store.Batch { return store.Batch{Servers: s} }
