package claude

import (
	"fmt"
	"strconv"
	"time"

	"steno/providers"
)

// Bounds of what waits for its parent, in records and bytes of text. Beyond
// them the waiting records are taken in file order.
const (
	maxWaiting     = 256
	maxWaitingText = 8 << 20
)

// Silences after which Settle is due.
const (
	finalQuiet  = 150 * time.Millisecond // a final answer may get another block
	parentQuiet = 300 * time.Millisecond // a parent may be in the next write
	promptQuiet = 10 * time.Second       // the first prompt must come; under load 2.1.197 took over 300 ms after what hangs off it
	textQuiet   = 2 * time.Second        // turn_duration follows a message without end within 0.1 s, a marker its text
)

// projector follows one transcript. All of its memory but what is held
// (waiting, cut, and the texts of last) is in state.
type projector struct {
	state
	waiting     []record // parents unseen, in file order
	waitingText int
	texts       []string // of last, while they may become a final
	cut         *record  // partial text of which the next record decides
	out         []providers.Draft
	back        []record // of Rewind, newest first
	rewound     backwards
}

var (
	_ providers.Holder   = (*projector)(nil)
	_ providers.Rewinder = (*projector)(nil)
	_ providers.Idler    = (*projector)(nil)
)

func newProjector(saved []byte) *projector {
	p := &projector{}
	if !p.load(saved) {
		p.state = state{}
	}
	return p
}

// Project takes the next record.
func (p *projector) Project(r providers.Record) []providers.Draft {
	p.out = nil
	if r.Gap != providers.Whole {
		p.settle()
		p.forget()
		p.out = append(p.out, r.Failure(ID))
		return p.give()
	}
	rec, ok, broken := parse(r)
	switch {
	case broken:
		p.out = append(p.out, providers.Draft{
			Key: fmt.Sprintf("no-uuid/%d", r.Start), Kind: providers.ObserverFailure, Recoverable: true,
			Detail: fmt.Sprintf("claude record at byte %d has no usable uuid: %d bytes skipped", r.Start, r.End-r.Start),
		})
	case ok:
		p.read(rec)
	}
	return p.give()
}

func (p *projector) give() []providers.Draft {
	out := p.out
	p.out = nil
	return out
}

// read takes a record if its parent is known, and whatever waited for it.
func (p *projector) read(rec record) {
	if _, dup := p.find(rec.uuid); dup || p.waits(rec.uuid) {
		return
	}
	if rec.parent != "" {
		if _, seen := p.find(rec.parent); !seen {
			p.waiting = append(p.waiting, rec)
			p.waitingText += rec.size
			if len(p.waiting) > maxWaiting || p.waitingText > maxWaitingText {
				p.takeWaiting()
			}
			return
		}
	}
	p.take(rec)
	p.release()
}

func (p *projector) waits(uuid string) bool {
	for i := range p.waiting {
		if p.waiting[i].uuid == uuid {
			return true
		}
	}
	return false
}

// release takes the waiting records whose parent is known now.
func (p *projector) release() {
	for i := 0; i < len(p.waiting); {
		if _, seen := p.find(p.waiting[i].parent); !seen {
			i++
			continue
		}
		p.take(p.drop(i))
		i = 0
	}
}

// takeWaiting takes all waiting records: the first in file order without its
// parent, then those that hang off it, and so on. Should the parent still
// come, they join its turn (see adopt).
func (p *projector) takeWaiting() {
	for len(p.waiting) > 0 {
		rec := p.drop(0)
		rec.missing = hash(rec.parent)
		p.take(rec)
		p.release()
	}
}

func (p *projector) drop(i int) record {
	rec := p.waiting[i]
	p.waitingText -= rec.size
	p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
	if len(p.waiting) == 0 {
		p.waiting, p.waitingText = nil, 0
	}
	return rec
}

// Held says whether a record waits for its parent, a text for its end, or a
// partial text for its marker.
func (p *projector) Held() bool { return len(p.waiting) > 0 || len(p.texts) > 0 || p.cut != nil }

// Quiet is the longest of the silences that something waits for.
func (p *projector) Quiet() time.Duration {
	var d time.Duration
	if len(p.texts) > 0 {
		d = textQuiet
		if p.Last.Stop == endTurn {
			d = finalQuiet
		}
	}
	if p.cut != nil {
		d = textQuiet
	}
	if len(p.waiting) > 0 {
		d = max(d, p.patience())
	}
	return d
}

// patience is how long a record waits for its parent. In a file that has been
// read from its beginning and has no start yet, the start must come.
func (p *projector) patience() time.Duration {
	if p.Current != 0 || p.Holed {
		return parentQuiet
	}
	for i := range p.waiting {
		if c := p.waiting[i].class; c == prompt || c == notification {
			return parentQuiet
		}
	}
	return promptQuiet
}

// Settle takes what waits in file order, gives a final that is complete and
// drops a partial text.
func (p *projector) Settle() []providers.Draft {
	p.out = nil
	p.settle()
	return p.give()
}

func (p *projector) settle() {
	p.takeWaiting()
	p.decide()
	p.texts, p.cut = nil, nil
}

// Idle closes the newest started turn when the program says that it is idle
// and nothing answered: the prompt was taken back before any output, or the
// answer was empty.
func (p *projector) Idle(at time.Time) []providers.Draft {
	p.out = nil
	p.settle()
	if t := p.turn(p.Current); t != nil && t.Phase == open {
		key := t.ID + "/no_reply"
		if t.Resumed != 0 { // it was closed before and went on
			key += "/" + strconv.FormatUint(t.Resumed, 16)
		}
		p.abort(t, key, at.UTC(), providers.NoReply)
	}
	return p.give()
}

// Turn is the newest started turn.
func (p *projector) Turn() providers.Turn {
	t := p.turn(p.Current)
	if t == nil {
		t = &p.Nobody
	}
	return providers.Turn{ID: t.ID, State: t.Phase.state()}
}
