package gemini

import (
	"fmt"
	"slices"
	"time"

	"steno/providers"
)

const (
	briefly    = 150 * time.Millisecond // for what follows a message of bare history
	errorQuiet = time.Second            // for the error after a rollback, where no title says that the program works
	errorWait  = 10 * time.Second       // for the same, whatever the title says
	longQuiet  = 3 * time.Second        // of an answer that nothing else proves final
	lookEvery  = 200 * time.Millisecond
	cancelNear = time.Second // between a cancel and the prompt that it was for
	replayGap  = time.Second // longest pause inside history that is written again
)

// projector follows one artifact. All of its memory but what is held is in
// state.
type projector struct {
	state
	path string
	read func(path, session, file string) string // a plan
	out  []providers.Draft

	// Held: the offset stays before them.
	final    *final    // an answer that may be the last
	start    *message  // a prompt that may be history written again
	rollback *rollback // the open turn's prompt was taken back

	idle      time.Time // when the last look saw the program idle; zero when it did not
	idleSince time.Time // what that look said of it

	drift []string
	back  []record // of Rewind, newest first
	more  int      // of back that may decide, since the last try
	size  int      // of back, in bytes of text
}

// final is an answer that may be the last of its turn.
type final struct {
	id, text string
	at       time.Time
}

type rollback struct {
	start int64 // of its record
	at    time.Time
}

var (
	_ providers.Attendant = (*projector)(nil)
	_ providers.Rewinder  = (*projector)(nil)
	_ providers.Surveyor  = (*projector)(nil)
)

func newProjector(a providers.Artifact, saved []byte, read func(path, session, file string) string) *projector {
	p := &projector{path: a.Path, read: read}
	p.load(saved)
	p.Sub = p.Sub || subagent(a.Path)
	return p
}

// Project takes the next record: a line, or a version of a document.
func (p *projector) Project(r providers.Record) []providers.Draft {
	p.out, p.idle = nil, time.Time{}
	switch {
	case r.Gap != providers.Whole:
		p.lose(r.Failure(ID))
	case r.Framing == providers.Document:
		p.document(r)
	default:
		p.take(parse(r), r.End-r.Start)
	}
	return p.give()
}

func (p *projector) give() []providers.Draft {
	out := p.out
	p.out = nil
	return out
}

func (p *projector) emit(d providers.Draft) { p.out = append(p.out, d) }

// take reads one line.
func (p *projector) take(rec record, size int64) {
	p.drifts(rec.drift)
	if p.Sub {
		return
	}
	switch rec.kind {
	case header:
		p.Session, p.Sub = rec.session, rec.sub
	case update:
		if rec.session != "" {
			p.Session = rec.session
		}
		if rec.list != nil {
			p.replaced(rec)
		}
	case cut:
		p.rewound()
	case entry:
		p.message(rec.entry)
	case nameless:
		p.emit(providers.Draft{
			Key: fmt.Sprintf("no-id/%d", rec.start), Kind: providers.ObserverFailure, Recoverable: true,
			Detail: fmt.Sprintf("gemini record at byte %d has no usable id: %d bytes skipped", rec.start, size),
		})
	}
}

// lose is a record that could not be read: nothing is known of the turn any
// more. An answer that is held is not given: what was lost is nearly always its
// tool calls, with megabytes of output.
func (p *projector) lose(d providers.Draft) {
	p.decideStart()
	p.decideRollback()
	p.final = nil
	p.state.Turn, p.Last = turn{Phase: unknown}, ""
	p.Cancel, p.CancelTold = "", false
	p.emit(d)
}

// Held says whether an answer, a prompt or a rollback waits for what follows.
func (p *projector) Held() bool { return p.final != nil || p.start != nil || p.rollback != nil }

// Quiet is zero for an answer: only looks at the process decide it. They decide
// a rollback, too, and mostly sooner.
func (p *projector) Quiet() time.Duration {
	switch {
	case p.rollback != nil:
		return errorWait
	case p.start != nil:
		return briefly
	}
	return 0
}

// Settle decides by silence, or because nothing can follow.
func (p *projector) Settle() []providers.Draft {
	p.out = nil
	p.settle()
	return p.give()
}

func (p *projector) settle() {
	p.decideStart()
	p.decideRollback()
	p.release(providers.CompletionSettled)
}

// Look asks for looks at the process while an answer or a rollback is held.
func (p *projector) Look() time.Duration {
	if p.final == nil && p.rollback == nil {
		return 0
	}
	return lookEvery
}

// See decides a held answer: by the program's own word that it is ready, in two
// looks, because the title may flicker between an answer and its tool calls; or
// by a long silence without a child process that the turn began and without a
// title that says otherwise. The same decides that no error follows a rollback.
func (p *projector) See(w providers.Witness, quiet time.Duration) []providers.Draft {
	p.out = nil
	if p.final == nil && p.rollback == nil {
		return nil
	}
	ready := false
	if w.Activity == providers.Idle {
		ready = !p.idle.IsZero() && w.Since.Equal(p.idleSince) && w.At.After(p.idle)
		if !ready {
			p.idle, p.idleSince = w.At, w.Since
		}
	} else {
		p.idle = time.Time{}
	}
	silent := w.Activity == providers.NoActivity
	switch {
	case p.rollback != nil:
		if ready || silent && quiet >= errorQuiet {
			p.decideRollback()
		}
	case ready:
		p.release(providers.CompletionRecorded)
	case silent && quiet >= longQuiet:
		began := p.state.Turn.At
		if began.IsZero() {
			began = p.final.at
		}
		if !w.Child.After(began) {
			p.settle()
		}
	}
	return p.give()
}

// Turn is the newest turn.
func (p *projector) Turn() providers.Turn {
	return providers.Turn{ID: p.state.Turn.ID, State: p.state.Turn.Phase.state()}
}

// State is what a new projector needs.
func (p *projector) State() []byte { return p.save() }

func (p *projector) drifts(names []string) {
	for _, name := range names {
		if len(p.drift) < 16 && !slices.Contains(p.drift, name) {
			p.drift = append(p.drift, name)
		}
	}
}

// Drift lists names that the provider does not know.
func (p *projector) Drift() []string {
	out := p.drift
	p.drift = nil
	return out
}
