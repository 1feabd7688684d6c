package codex

import (
	"encoding/json"
	"fmt"
	"time"

	"steno/providers"
)

// projector is the state machine of one rollout.
type projector struct {
	s    state
	long string // the last text of LastTurn when the state cannot hold it: see Held
	back []fact // records seen by Rewind, newest first
	look lookBack
	out  []providers.Draft
	drift
}

var (
	_ providers.Projector = (*projector)(nil)
	_ providers.Rewinder  = (*projector)(nil)
	_ providers.Holder    = (*projector)(nil)
)

func newProjector(a providers.Artifact, saved []byte) *projector {
	p := &projector{s: loadState(saved)}
	if p.s.Thread == "" && len(a.Session) <= 64 {
		p.s.Thread = a.Session
	}
	return p
}

// Project takes the next record.
func (p *projector) Project(r providers.Record) []providers.Draft {
	f := decode(r)
	p.drift.add(f.unknown)
	p.out = nil
	p.apply(&f)
	if f.what == gapRecord {
		p.emit(r.Failure(ID))
	}
	return p.out
}

// Turn is the newest turn; a held start counts as running.
func (p *projector) Turn() providers.Turn {
	if p.s.Cur == "" || p.s.Internal {
		return providers.Turn{State: providers.Unknown}
	}
	t := providers.Turn{ID: p.s.Cur, State: providers.WaitingOnAgent}
	if p.phase(p.s.Cur) == done {
		t.State = providers.WaitingOnUser
	}
	return t
}

// State is at most StateMax bytes, see type state.
func (p *projector) State() []byte {
	b, err := json.Marshal(p.s)
	if err != nil || len(b) > providers.StateMax {
		return nil // not reachable: every part is bounded. A new start is the safe answer
	}
	return b
}

// Held is true between a review's answer and its end when the answer is longer
// than the state can hold. 0.171.0 ends a review with a null
// last_agent_message some 50 ms after the answer, so the text has to be kept.
func (p *projector) Held() bool { return p.s.Review && p.long != "" }

// Quiet is zero: nothing here is decided by silence.
func (p *projector) Quiet() time.Duration { return 0 }

// Settle gives up the held text; the review's end will say null.
func (p *projector) Settle() []providers.Draft {
	if p.Held() {
		p.long = ""
	}
	return nil
}

func (p *projector) emit(d providers.Draft) { p.out = append(p.out, d) }

func (p *projector) apply(f *fact) {
	if f.what == metaRecord {
		p.meta(f)
		return
	}
	if p.s.Internal {
		return
	}
	if f.what == gapRecord {
		p.release(p.s.Cand)
		p.s.Cur = ""
		p.forgetText()
		return
	}
	if p.s.Skip && f.what != turnStart {
		return
	}
	if p.older(f.turn) && f.what != turnStart {
		return // copied from the thread that this one was forked from
	}
	// A prompt that only a response_item gave is the prompt as soon as the next
	// record is not the item or event that says it better.
	if p.s.Cand != "" && f.what != userInput && f.what != userItem {
		p.release(p.s.Cand)
	}
	switch f.what {
	case nothing:
		p.restore(f.turn)
	case turnStart:
		p.start(f)
	case turnComplete, turnAborted:
		p.end(f)
	case userInput:
		p.input(f)
	case userItem:
		p.candidate(f)
	case agentText:
		p.message(f)
	case planText:
		p.plan(f)
	case work:
		if t := p.turnOf(f); t != "" && p.enter(t, f) && f.review {
			p.s.Review = p.s.Review || t == p.s.Cur
		}
	}
}

// meta reads a header. The first one is the thread's own; one with another id
// is the first line of history that an old build copied into a fork.
func (p *projector) meta(f *fact) {
	switch id := f.header.thread; {
	case f.start == 0 || p.s.Thread == "":
		if id != "" {
			p.s.Thread = id
		}
		p.s.Internal = f.header.internal != ""
		p.s.Inputs = p.s.Inputs || f.paginated
	case id != "" && id != p.s.Thread && !p.s.Internal:
		p.s.Skip = true
	}
}

func (p *projector) start(f *fact) {
	switch {
	case f.turn == "":
		if p.s.Skip {
			return
		}
		p.release("")
		p.s.Cur = ""
		p.forgetText()
		p.unnamed(f, "start of a turn")
		return
	case p.older(f.turn):
		p.s.Skip, p.s.Cur = true, ""
		return
	case f.child:
		p.push(f.turn, leak)
		return
	case p.s.Skip:
		if !younger(f.turn, p.s.Thread) {
			return
		}
		p.s.Skip = false
	}
	if p.phase(f.turn) != "" {
		return
	}
	p.release("")
	p.push(f.turn, held)
	p.begin(f.turn)
	p.s.HeldAt = f.at
	if f.attributed {
		p.s.Attr = true
	} else if p.s.Attr {
		// Seen for manual compactions of 0.171.0 alone: no prompt will come.
		p.s.Bare = true
		p.release("")
	}
}

// begin makes id the current turn.
func (p *projector) begin(id string) {
	p.s.Cur, p.s.Bare, p.s.Review, p.s.Cand = id, false, false, ""
	p.forgetText()
}

func (p *projector) forgetText() { p.s.LastTurn, p.s.Last, p.long = "", nil, "" }

// release gives the held start, with the hash of its prompt if there is one.
func (p *projector) release(input string) {
	p.s.Cand = ""
	for i := range p.s.Turns {
		if t := &p.s.Turns[i]; t.Phase == held {
			t.Phase = open
			p.started(t.ID, p.s.HeldAt, input)
		}
	}
	p.s.HeldAt = time.Time{}
}

func (p *projector) started(id string, at time.Time, input string) {
	p.emit(providers.Draft{Key: "turn/" + id + "/started", Kind: providers.TurnStarted, Turn: id, At: at, InputSHA256: input})
	p.emit(providers.Draft{Key: "turn/" + id + "/agent", Kind: providers.TurnStateChanged, Turn: id, At: at, State: providers.WaitingOnAgent})
}

// turnOf is the turn of a record: its own word, else the current turn.
func (p *projector) turnOf(f *fact) string {
	if f.turn != "" {
		return f.turn
	}
	return p.s.Cur
}

// enter notes that a record of turn id was seen and says whether the record
// counts. A turn nobody started (a review, or its start was lost) starts here.
func (p *projector) enter(id string, f *fact) bool { return p.enterWith(id, f, "") }

func (p *projector) enterWith(id string, f *fact, input string) bool {
	if f.thread != "" && p.s.Thread != "" && f.thread != p.s.Thread {
		p.leaked(id)
		return false
	}
	switch p.phase(id) {
	case leak:
		return false
	case held:
		p.release(input)
	case "":
		if p.late(id) {
			return true
		}
		p.release("")
		p.push(id, open)
		p.begin(id)
		p.started(id, f.at, input)
	}
	p.restore(id)
	return true
}

// restore makes a turn current again that a record names after a gap.
func (p *projector) restore(id string) {
	if p.s.Cur == "" && id != "" {
		if ph := p.phase(id); ph == open || ph == held {
			p.begin(id)
		}
	}
}

// leaked takes back a turn that proves to be of another thread.
func (p *projector) leaked(id string) {
	switch p.phase(id) {
	case held:
		p.setPhase(id, leak)
		p.s.HeldAt, p.s.Cand = time.Time{}, ""
	case "":
		p.push(id, leak)
	default:
		return
	}
	if p.s.Cur != id {
		return
	}
	p.begin("")
	for _, t := range p.s.Turns {
		if t.Phase == open {
			p.s.Cur = t.ID
		}
	}
}

func (p *projector) input(f *fact) {
	p.s.Inputs = true
	if t := p.turnOf(f); t != "" {
		p.enterWith(t, f, f.input)
		p.s.Bare = p.s.Bare && t != p.s.Cur
	}
}

// candidate keeps the hash of a prompt for the held start. Where prompts have
// items or events of their own, those are waited for: they hold the text alone.
func (p *projector) candidate(f *fact) {
	t := p.turnOf(f)
	if f.injected || t == "" || p.phase(t) != held {
		return
	}
	if p.s.Cand = f.input; !p.s.Inputs && p.s.Source == responseSource {
		p.release(p.s.Cand)
	}
}

func (p *projector) plan(f *fact) {
	t := p.turnOf(f)
	if t == "" {
		p.unnamed(f, "plan")
		return
	}
	if !p.enter(t, f) || f.text == "" {
		return
	}
	key := fmt.Sprintf("plan/%s/%d", t, f.start)
	if f.id != "" {
		key = "plan/" + t + "/" + f.id
	}
	p.emit(providers.Draft{Key: key, Kind: providers.Plan, Turn: t, At: f.at, Text: f.text})
}

// end gives the one final of a turn.
func (p *projector) end(f *fact) {
	t := p.turnOf(f)
	if t == "" {
		p.unnamed(f, "end of a turn")
		return
	}
	if ph := p.phase(t); ph == done || ph == leak {
		return
	}
	if !p.enter(t, f) {
		return
	}
	d := providers.Draft{Key: "turn/" + t + "/final", Kind: providers.TurnFinal, Turn: t, At: f.at, Outcome: providers.Aborted}
	switch {
	case f.what == turnAborted:
	case f.failed:
		d.Reason, d.Detail = f.reason, f.reason.Detail()
	default:
		d.Outcome, d.Text = providers.Completed, f.text
		if d.Text == "" && p.s.LastTurn == t {
			if d.Text = p.long; d.Text == "" {
				d.Text = string(p.s.Last)
			}
		}
		if f.sum != 0 && !p.given(t, f.sum) {
			// Every final text is also a message. This build did not write it
			// where it used to, so response_items count again.
			p.s.Source = noSource
			p.emit(providers.Draft{Key: "turn/" + t + "/answer", Kind: providers.AssistantMessage, Turn: t, At: f.at, Text: f.text})
		}
	}
	p.emit(d)
	newer := p.newerOpen(t)
	p.setPhase(t, done)
	if p.s.LastTurn == t {
		p.forgetText()
	}
	if newer {
		return
	}
	p.emit(providers.Draft{Key: "turn/" + t + "/user", Kind: providers.TurnStateChanged, Turn: t, At: f.at, State: providers.WaitingOnUser})
	if p.phase(t) == done {
		p.s.Cur = t
	}
}

// unnamed reports a record that names no turn where none is known.
func (p *projector) unnamed(f *fact, what string) {
	p.emit(providers.Draft{
		Key: fmt.Sprintf("unnamed/%d", f.start), Kind: providers.ObserverFailure, At: f.at, Recoverable: true,
		Detail: fmt.Sprintf("%s record at byte %d (%s) names no turn", ID, f.start, what),
	})
}
