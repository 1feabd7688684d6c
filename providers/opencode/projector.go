package opencode

import (
	"time"

	"steno/providers"
)

// quiet is how long silence has to last before it says that the loop has
// stopped: the next step begins within some 10 ms (1.18.33).
const quiet = time.Second

// projector makes drafts of the records of one session.
type projector struct {
	surveyor
	s   state
	out []providers.Draft
	// text is Text of the state when that is too long for it.
	text string
	// hold waits for what follows a message that ended without an answer.
	hold *held
	// asked waits for the texts that began before the question.
	asked *asked
	back  []fact
	seen  []string        // prompts that the rewinding met, by message
	calls map[string]bool // tool parts that it met
}

// held is what silence after a completed message means.
type held struct {
	reply, turn string
	at          time.Time
	final       bool // it ended the turn; otherwise the loop just stopped
}

// asked is a question with the texts before it.
type asked struct {
	reply    string
	draft    providers.Draft
	waitsFor []string
}

var (
	_ providers.Holder   = (*projector)(nil)
	_ providers.Rewinder = (*projector)(nil)
	_ providers.Surveyor = (*projector)(nil)
)

func newProjector(saved []byte) *projector {
	p := &projector{s: loadState(saved)}
	p.text, p.s.Text = p.s.Text, ""
	return p
}

// Project takes the next record.
func (p *projector) Project(r providers.Record) []providers.Draft {
	f := decode(r)
	p.note(f.drift)
	p.out = nil
	p.apply(&f)
	if f.what == gapRecord {
		p.emit(f.record.Failure(ID))
	}
	return p.out
}

// Turn is the newest turn.
func (p *projector) Turn() providers.Turn {
	t := p.s.turn(p.s.Cur)
	switch {
	case t == nil || p.s.Child:
		return providers.Turn{State: providers.Unknown}
	case t.Phase == open:
		return providers.Turn{ID: t.ID, State: providers.WaitingOnAgent}
	}
	return providers.Turn{ID: t.ID, State: providers.WaitingOnUser}
}

// State is at most StateMax bytes, see type state.
func (p *projector) State() []byte {
	s := p.s
	if small(p.text) {
		s.Text = p.text
	} else {
		s.Of = ""
	}
	return s.save()
}

// Held is true while silence or an earlier text decides something, and while
// a message that is not finished has said more than the state can hold.
func (p *projector) Held() bool {
	return p.hold != nil || p.asked != nil || p.s.Of != "" && !small(p.text)
}

// Quiet is one second while something waits for silence.
func (p *projector) Quiet() time.Duration {
	if p.hold != nil || p.asked != nil {
		return quiet
	}
	return 0
}

// Settle decides what waited for silence. A long text of a message that was
// not finished is given up: a final that comes after all has none.
func (p *projector) Settle() []providers.Draft {
	p.out = nil
	p.release()
	if !small(p.text) {
		p.tear()
	}
	return p.out
}

func (p *projector) emit(d providers.Draft) { p.out = append(p.out, d) }

func (p *projector) apply(f *fact) {
	switch f.what {
	case sessionInfo:
		if ms := f.created.UnixMilli(); p.s.Born == 0 && ms > 0 {
			p.s.Born = ms
		}
		p.s.Child = p.s.Child || f.child
		return
	case gapRecord:
		p.gap()
		return
	}
	if p.s.Child {
		return
	}
	switch f.what {
	case userRow:
		p.user(f)
	case assistantRow:
		p.assistant(f)
	case textPart:
		p.textOf(f)
	case toolPart:
		p.toolOf(f)
	case compactionPart:
		p.compaction(f)
	case stepStart:
		if r := p.s.reply(f.id); r != nil {
			r.Open = nil // the texts of an attempt that was dropped never end
		}
	case removed:
		p.remove(f)
	}
}

// gap forgets where the session stands. Whose a later record is, its own ids
// tell: turns, messages and what they belong to stay known.
func (p *projector) gap() {
	if p.asked != nil {
		p.releaseAsked()
	}
	p.hold = nil
	p.s.Cur, p.s.Replay = "", false
	p.tear()
	for i := range p.s.Replies {
		if r := &p.s.Replies[i]; !r.Complete {
			r.Torn, r.Open = true, nil
		}
	}
}

// tear gives up the text of the message that is being written.
func (p *projector) tear() {
	if r := p.s.reply(p.s.Of); r != nil {
		r.Torn = true
	}
	p.s.Of, p.text = "", ""
}

// remove forgets a message that /undo took away. A turn that had not ended is
// gone with it.
func (p *projector) remove(f *fact) {
	t := p.s.turn(f.id)
	if t == nil {
		return
	}
	if t.Phase == open && p.s.Cur == t.ID {
		p.s.Cur = ""
	}
	if t.Phase == open || t.Phase == pending {
		p.s.dropTurn(f.id)
	}
	if p.hold != nil && p.hold.turn == f.id {
		p.hold = nil
	}
}

// Rewinding. Few records say anything of turns; their facts are kept, and
// projected in order as if the session began there. Of a tool call, which may
// have thousands of versions, the newest one counts.
const (
	backFacts   = 600
	backPrompts = 3
)

// Rewind takes the next older record.
func (p *projector) Rewind(r providers.Record) bool {
	f := decode(r)
	switch f.what {
	case nothing, otherPart, stepStart:
		return false
	case textPart:
		if !f.ended && !f.synthetic && f.text != "" && !f.began && len(p.seen) < backPrompts {
			p.seen = append(p.seen, f.id)
		}
	case toolPart:
		if p.calls[f.part] {
			return false
		}
		if p.calls == nil {
			p.calls = map[string]bool{}
		}
		p.calls[f.part] = true // at most backFacts
	}
	f.drift, f.approval = nil, nil
	if len(f.text) > maxText {
		f.text, f.cut = "cut", true
	}
	p.back = append(p.back, f)
	if len(p.back) >= backFacts {
		return true
	}
	return f.what == userRow && len(p.seen) == backPrompts && f.id == p.seen[backPrompts-1]
}

// Rewound projects what was met.
func (p *projector) Rewound() {
	for i := range p.back {
		if f := &p.back[i]; f.what == sessionInfo {
			p.apply(f)
		}
	}
	for i := len(p.back) - 1; i >= 0; i-- {
		p.apply(&p.back[i])
	}
	p.asked = nil // it was asked before
	p.Settle()
	p.back, p.seen, p.calls, p.out = nil, nil, nil, nil
}
