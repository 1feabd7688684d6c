package kimi

import (
	"strconv"
	"strings"
	"time"

	"steno/providers"
)

// stepQuiet is the silence after which a text stands whose step has not said
// how it ended. What decides it is in the same write, unless a hook of the
// user's runs before the step's first tool.
const stepQuiet = 2 * time.Second

// said is a text of a step that may still fail.
type said struct {
	key  string
	turn int64
	at   time.Time
	text string
}

// projector follows one transcript. All of its memory but what is held is in
// state.
type projector struct {
	state
	drift
	session string
	waiting []said // texts of the newest step, not given yet
	out     []providers.Draft
	back    []fact // of Rewind, newest first
	begun   bool   // of Rewind: the newest step's begin was passed
}

var (
	_ providers.Holder   = (*projector)(nil)
	_ providers.Rewinder = (*projector)(nil)
	_ providers.Surveyor = (*projector)(nil)
)

func newProjector(session string, saved []byte) *projector {
	return &projector{session: session, state: loadState(saved)}
}

// Project takes the next record.
func (p *projector) Project(r providers.Record) []providers.Draft {
	f := decode(r)
	p.drift.add(f.unknown)
	if f.what == nothing {
		return nil
	}
	p.apply(&f)
	if f.what == gap {
		p.emit(r.Failure(ID))
	} else if f.ms < p.Copied {
		p.out = nil // another session's, which this one was forked from
	}
	return p.give()
}

func (p *projector) give() []providers.Draft {
	out := p.out
	p.out = nil
	return out
}

// apply moves on by one fact.
func (p *projector) apply(f *fact) {
	if f.what != start && f.what != gap {
		p.follow(f)
	}
	switch f.what {
	case gap:
		p.release()
		p.Phase, p.Number, p.Since = unknown, 0, 0
		p.Step, p.Of, p.Last = "", 0, nil
	case start:
		p.begin(f)
	case begin:
		p.release()
		p.step(f)
	case part:
		p.say(f)
	case call:
		p.release()
	case request:
		p.release()
		p.ask(f)
	case endGood:
		p.release()
	case endError:
		if f.step == "" || f.step == p.Step {
			p.waiting, p.Last = nil, nil
		}
	case ended:
		p.release()
		p.end(f)
	}
}

// follow takes the turn that a record names as the newest one when nothing is
// known of a turn, or when the start of a newer one was lost; and gives a record
// that names none the newest one's number.
func (p *projector) follow(f *fact) {
	switch {
	case f.turn < 0:
		if p.Phase != unknown {
			f.turn = p.Number
		}
	case f.what == ended: // see end
	case p.Phase == unknown || f.turn > p.Number:
		p.Phase, p.Number, p.Since, p.Next = open, f.turn, 0, f.turn+1
	case f.turn == p.Number && p.Phase == closed && f.what == begin:
		p.Phase = open
		p.emit(providers.Draft{Key: p.key(f.turn, "resumed", f), Kind: providers.TurnStateChanged, Turn: p.id(f.turn),
			At: f.at, State: providers.WaitingOnAgent})
	}
}

// begin starts a turn: a prompt, a finished background task, or whatever else
// the program took as one. A newer start supersedes the older turn.
func (p *projector) begin(f *fact) {
	if f.turn < 0 {
		f.turn = p.Next
	}
	if p.Phase != unknown && f.turn == p.Number && f.ms == p.Since {
		return // the same record again
	}
	p.release()
	p.Phase, p.Number, p.Since, p.Next = open, f.turn, f.ms, f.turn+1
	p.Step, p.Of, p.Last = "", f.turn, nil
	p.emit(providers.Draft{Key: p.key(f.turn, "started", f), Kind: providers.TurnStarted, Turn: p.id(f.turn), At: f.at,
		InputSHA256: f.input})
	p.emit(providers.Draft{Key: p.key(f.turn, "working", f), Kind: providers.TurnStateChanged, Turn: p.id(f.turn), At: f.at,
		State: providers.WaitingOnAgent})
}

// step begins a step: what the one before said is no final.
func (p *projector) step(f *fact) {
	p.Step, p.Of, p.Last = f.step, f.turn, nil
}

// say takes a text of a step. It waits until the step cannot fail any more: a
// stream that broke off leaves its part, and is tried again.
func (p *projector) say(f *fact) {
	if f.step != p.Step {
		p.release()
		p.step(f)
	}
	if strings.TrimSpace(f.text) == "" {
		return
	}
	if len(p.Last) > 0 {
		p.Last = append(p.Last, '\n')
	}
	p.Last = append(p.Last, f.text...)
	key := f.id + "/text"
	if f.id == "" {
		key = "text/" + strconv.FormatInt(f.start, 10)
	}
	if f.ms >= p.Copied {
		p.waiting = append(p.waiting, said{key, f.turn, f.at, strings.TrimSpace(f.text)})
	}
}

// release gives the texts that waited.
func (p *projector) release() {
	for _, s := range p.waiting {
		p.emit(providers.Draft{Key: s.key, Kind: providers.AssistantMessage, Turn: p.id(s.turn), At: s.at, Text: s.text})
	}
	p.waiting = nil
}

// ask gives a plan or a question that waits for the user.
func (p *projector) ask(f *fact) {
	id := f.id
	if id == "" {
		id = "request/" + strconv.FormatInt(f.start, 10)
	}
	if f.text != "" {
		p.emit(providers.Draft{Key: id + "/plan", Kind: providers.Plan, Turn: p.id(f.turn), At: f.at, Text: f.text})
	}
	if f.question != nil {
		p.emit(providers.Draft{Key: id + "/question", Kind: providers.ApprovalRequested, Turn: p.id(f.turn), At: f.at,
			Approval: f.question})
	}
}

// end ends a turn. One that was superseded ends without a word on who has to act
// while the newer one is open, unless nobody was told of that one's start.
func (p *projector) end(f *fact) {
	newest := p.Phase == unknown || f.turn < 0 || f.turn >= p.Number
	if newest && p.Phase == closed && f.turn == p.Number {
		return
	}
	d := providers.Draft{Key: p.key(f.turn, "final", f), Kind: providers.TurnFinal, Turn: p.id(f.turn), At: f.at,
		Outcome: f.outcome, Reason: f.reason, Detail: f.reason.Detail()}
	if f.outcome == providers.Completed && f.turn == p.Of {
		d.Text = strings.TrimSpace(string(p.Last))
	}
	p.emit(d)
	if f.turn == p.Of {
		p.Step, p.Last = "", nil
	}
	switch {
	case newest && f.turn >= 0:
		if p.Phase == unknown || f.turn != p.Number {
			p.Since = 0
		}
		p.Phase, p.Number, p.Next = closed, f.turn, f.turn+1
	case !newest && p.Phase == open && p.Since != 0:
		return
	}
	p.emit(providers.Draft{Key: p.key(f.turn, "waiting", f), Kind: providers.TurnStateChanged, Turn: p.id(f.turn), At: f.at,
		State: providers.WaitingOnUser})
}

// Held says whether a text waits for the end of its step, or the newest step's
// text for the end of its turn and is too long for the state.
func (p *projector) Held() bool { return len(p.waiting) > 0 || len(p.Last) > textKept }

// Quiet is stepQuiet while a text waits. The end of a turn is not waited for.
func (p *projector) Quiet() time.Duration {
	if len(p.waiting) > 0 {
		return stepQuiet
	}
	return 0
}

// Settle gives the texts that wait.
func (p *projector) Settle() []providers.Draft {
	p.release()
	if len(p.Last) > textKept {
		p.Last = nil
	}
	return p.give()
}

// Turn is the newest turn.
func (p *projector) Turn() providers.Turn {
	if p.Phase == unknown {
		return providers.Turn{State: providers.Unknown}
	}
	return providers.Turn{ID: p.id(p.Number), State: p.Phase.state()}
}

// id is the turn's id: numbers are only unique within a session.
func (p *projector) id(turn int64) string {
	if turn < 0 {
		return ""
	}
	return p.session + ":" + strconv.FormatInt(turn, 10)
}

// key is the key of a turn's draft. The record's time is part of it: should a
// number ever come twice, its events are still different ones.
func (p *projector) key(turn int64, role string, f *fact) string {
	key := "turn/" + strconv.FormatInt(turn, 10) + "/" + role + "/"
	if f.ms > 0 {
		return key + strconv.FormatInt(f.ms, 10)
	}
	return key + "at" + strconv.FormatInt(f.start, 10)
}

func (p *projector) emit(d providers.Draft) { p.out = append(p.out, d) }
