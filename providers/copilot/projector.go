package copilot

import (
	"time"

	"steno/providers"
)

// Silences after which Settle is due.
const (
	quiet = 500 * time.Millisecond
	// autopilot goes on by itself 0.3 to 0.8 s after an answer (1.0.102).
	autopilotQuiet = 2 * time.Second
)

// maxCalls bounds the tool calls that wait for a sign that they were shown.
const maxCalls = 8

// answer is an assistant.message without tool calls: the final, if the turn
// ends with it.
type answer struct {
	id, text, call string
	at             time.Time
	ended          bool // assistant.turn_end followed
}

// projector follows one events.jsonl. All of its memory but what is held
// (last and calls) is in state.
type projector struct {
	state
	last  *answer
	calls []pending
	drift drift
	out   []providers.Draft
	back  lookBack
}

// pending is a plan or question that the program may still refuse to show.
type pending struct {
	item  string
	draft providers.Draft
}

var (
	_ providers.Holder   = (*projector)(nil)
	_ providers.Rewinder = (*projector)(nil)
	_ providers.Surveyor = (*projector)(nil)
)

func newProjector(saved []byte) *projector {
	p := &projector{}
	if !p.load(saved) {
		p.state = state{}
	}
	return p
}

// Project takes the next event.
func (p *projector) Project(r providers.Record) []providers.Draft {
	p.out = nil
	if r.Gap != providers.Whole {
		p.take(record{class: gap})
		p.emit(r.Failure(ID))
		return p.give()
	}
	rec, ok, strange := parse(r)
	p.drift.add(strange)
	if ok {
		p.take(rec)
	}
	return p.give()
}

// emit gives a draft, unless it is of an event that was copied (see copied).
func (p *projector) emit(d providers.Draft) {
	if p.Born.IsZero() || d.At.IsZero() || !d.At.Before(p.Born) {
		p.out = append(p.out, d)
	}
}

func (p *projector) give() []providers.Draft {
	out := p.out
	p.out = nil
	return out
}

// Turn is the newest turn.
func (p *projector) Turn() providers.Turn {
	return providers.Turn{ID: p.state.Turn, State: p.Phase.state()}
}

// Held says whether an answer waits for what follows it, or a plan or question
// for a sign that it was shown.
func (p *projector) Held() bool { return p.last != nil || len(p.calls) > 0 }

// Quiet is zero for an answer whose assistant.turn_end is still to come: it is
// no final before.
func (p *projector) Quiet() time.Duration {
	var d time.Duration
	if len(p.calls) > 0 {
		d = quiet
	}
	if p.last != nil && p.last.ended {
		d = quiet
		if p.Autopilot {
			d = autopilotQuiet
		}
	}
	return d
}

// Settle gives what the silence decides: plans and questions were shown, and
// an answer that its turn ended with is final.
func (p *projector) Settle() []providers.Draft {
	p.out = nil
	p.finish()
	return p.give()
}

// drift collects types that the provider does not know.
type drift []string

// maxDrift is what Surveyor allows.
const maxDrift = 16

func (d *drift) add(name string) {
	if name == "" || len(*d) >= maxDrift {
		return
	}
	for _, known := range *d {
		if known == name {
			return
		}
	}
	*d = append(*d, name)
}

// Drift lists types of events, and kinds within them, that 1.0.102 does not
// have.
func (p *projector) Drift() []string {
	out := p.drift
	p.drift = nil
	return out
}
