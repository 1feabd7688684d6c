package opencode

import (
	"time"

	"steno/providers"
)

// assistant takes a message of the model: one for each step of the loop.
func (p *projector) assistant(f *fact) {
	r := p.s.reply(f.id)
	if r == nil {
		if r = p.begin(f); r == nil {
			return
		}
	}
	if r.Turn == "" {
		p.summary(r, f)
		return
	}
	p.touch(r.Turn)
	if f.failed && !r.Failed {
		r.Failed = true
		p.failed(r, f)
	}
	if !f.completed.IsZero() && !r.Complete {
		r.Complete, r.Open = true, nil
		if a := p.asked; a != nil && a.reply == r.ID {
			p.asked = nil // the call ended with its message
		}
		if !f.failed {
			p.completed(r, f)
		}
	}
}

// begin takes the first record of a message: whose it is, and what it says
// about older turns.
func (p *projector) begin(f *fact) *reply {
	if f.parent == "" {
		return nil
	}
	// The newest text of another message cannot be a final's any more.
	if p.s.Of != "" && p.s.Of != f.id {
		p.s.Of, p.text = "", ""
	}
	if f.summary || p.copied(f) {
		r := reply{ID: f.id}
		if a := p.s.alias(f.parent); f.summary && a != nil {
			r.Summary = a.Turn
		}
		return p.s.addReply(r)
	}
	id := p.turnOf(f.parent)
	r := p.s.addReply(reply{ID: f.id, Turn: id})
	if id == "" {
		return r
	}
	if p.hold != nil && p.hold.turn == id {
		p.hold = nil // it goes on
	}
	t := p.s.turn(id)
	if t.Phase != open {
		t.Phase = open
		p.emit(providers.Draft{Key: "msg/" + f.id + "/agent", Kind: providers.TurnStateChanged, Turn: id, At: f.created, State: providers.WaitingOnAgent})
	}
	p.touch(id)
	if !p.s.newerOpen(id) {
		p.s.Cur = id
		p.supersede(id, f.created)
	}
	return r
}

// turnOf is the turn of a message that answers the user's message parent; ""
// when that is none. A turn whose text never came begins here.
func (p *projector) turnOf(parent string) string {
	if a := p.s.alias(parent); a != nil {
		return a.Turn
	}
	t := p.s.turn(parent)
	switch {
	case t == nil:
		// Its beginning was not seen. The record itself names it.
		p.s.addTurn(turn{ID: parent, Phase: open})
		return parent
	case t.Phase != pending:
		return parent
	case t.Syn:
		p.continues(parent)
		return p.s.alias(parent).Turn
	}
	p.start(t, "")
	return parent
}

// supersede ends the older turns that the loop has left (D21): it answers the
// newest prompt alone, so that an older one whose messages are all complete
// gets no answer any more. An unfinished message is one of a process that was
// killed, and proves nothing.
func (p *projector) supersede(by string, at time.Time) {
	var over []string
	for _, t := range p.s.Turns {
		if t.ID == by {
			break
		}
		if t.Phase == open && !p.unfinished(t.ID) {
			over = append(over, t.ID)
		}
	}
	for _, id := range over {
		p.s.turn(id).Phase = done
		p.emit(providers.Draft{Key: "turn/" + id + "/superseded", Kind: providers.TurnFinal, Turn: id, At: at, Outcome: providers.Aborted})
	}
}

func (p *projector) unfinished(id string) bool {
	for _, r := range p.s.Replies {
		if r.Turn == id && !r.Complete {
			return true
		}
	}
	return false
}

// failed takes a message's error. An abort ends the turn; of any other the
// program records no end, but it does not go on (1.18.33: the loop breaks).
func (p *projector) failed(r *reply, f *fact) {
	at := f.completed
	if at.IsZero() {
		at = f.created
	}
	if f.aborted {
		p.final(r.ID, r.Turn, at, "", true)
		return
	}
	p.failure(r.ID, r.Turn, f, at)
}

func (p *projector) failure(reply, turn string, f *fact, at time.Time) {
	p.emit(providers.Draft{Key: "msg/" + reply + "/error", Kind: providers.ObserverFailure, Turn: turn, At: at,
		Reason: f.reason, Detail: f.reason.Detail(), Recoverable: true})
	if turn != "" {
		p.stop(turn, "msg/"+reply+"/stopped", at)
	}
}

// summary takes a message that is no answer. What stops an automatic
// compaction stops the turn that it belongs to.
func (p *projector) summary(r *reply, f *fact) {
	if !f.completed.IsZero() {
		r.Complete = true
	}
	if !f.summary || !f.failed || r.Failed {
		return
	}
	r.Failed = true
	at := f.completed
	if at.IsZero() {
		at = f.created
	}
	switch {
	case !f.aborted:
		p.failure(r.ID, r.Summary, f, at)
	case r.Summary != "":
		p.final(r.ID, r.Summary, at, "", true)
	}
}

// completed takes the end of a message without an error. Which words of finish
// let the loop go on is the program's own list (1.18.33: tool-calls, unknown),
// and so does any other beside a tool call, unless nothing follows.
func (p *projector) completed(r *reply, f *fact) {
	text := ""
	if p.s.Of == r.ID && !r.Torn {
		text = p.text
	}
	if p.s.Of == r.ID {
		p.s.Of, p.text = "", ""
	}
	switch f.finish {
	case "content-filter", "error":
		return // the error follows
	case "tool-calls", "unknown":
		if r.Rejected {
			p.wait(&held{reply: r.ID, turn: r.Turn, at: f.completed})
		}
		return
	case "":
		// A wait for a retry was aborted, or the context was too long and a
		// compaction follows.
		p.wait(&held{reply: r.ID, turn: r.Turn, at: f.completed})
		return
	}
	if r.Tools {
		p.wait(&held{reply: r.ID, turn: r.Turn, at: f.completed, final: !r.Rejected})
		return
	}
	p.final(r.ID, r.Turn, f.completed, text, false)
}

// wait holds what silence will mean. Two at a time cannot be: the loop is one.
func (p *projector) wait(h *held) {
	if p.hold != nil {
		p.release()
	}
	p.hold = h
}
