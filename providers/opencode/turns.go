package opencode

import (
	"time"

	"steno/providers"
)

// user takes a user's message. It says nothing before its parts are there:
// those tell whether a person wrote it.
func (p *projector) user(f *fact) {
	if p.s.turn(f.id) != nil || p.s.alias(f.id) != nil {
		return // an update: the program adds a summary of changes
	}
	if p.copied(f) {
		p.s.addAlias(alias{ID: f.id})
		return
	}
	p.s.addTurn(turn{ID: f.id, Phase: pending, At: max(0, f.created.UnixMilli())})
}

// copied says whether a message is older than its session: a fork copies them.
func (p *projector) copied(f *fact) bool {
	return p.s.Born > 0 && !f.created.IsZero() && f.created.UnixMilli() < p.s.Born
}

// start begins a turn. The turns before it stay as they are: a prompt that is
// queued begins while an older turn is still being worked on.
func (p *projector) start(t *turn, input string) {
	p.release()
	id, at := t.ID, millis(t.At)
	t.Phase, t.Input, t.At, t.Syn, t.Task = open, input, 0, false, false
	// It began now, whenever its message came.
	moved := *t
	p.s.dropTurn(id)
	p.s.addTurn(moved)
	p.s.Cur, p.s.Replay = id, false
	p.emit(providers.Draft{Key: "turn/" + id + "/started", Kind: providers.TurnStarted, Turn: id, At: at, InputSHA256: input})
	p.emit(providers.Draft{Key: "turn/" + id + "/agent", Kind: providers.TurnStateChanged, Turn: id, At: at, State: providers.WaitingOnAgent})
}

// continues makes a user's message a part of the turn that is open. The report
// of a subagent in the background goes on with the last turn, which its final had
// ended (D23).
func (p *projector) continues(id string) {
	task := p.s.turn(id) != nil && p.s.turn(id).Task
	p.s.dropTurn(id)
	turn := p.s.newest()
	if turn == "" && task {
		turn = p.s.last()
	}
	p.s.addAlias(alias{ID: id, Turn: turn})
}

// textOf takes a text: of a prompt, or of an answer.
func (p *projector) textOf(f *fact) {
	if t := p.s.turn(f.id); t != nil {
		p.promptText(t, f)
		return
	}
	if p.s.alias(f.id) != nil {
		return
	}
	r := p.s.reply(f.id)
	if r == nil {
		// The record of its message was lost. A prompt's text has no time.
		if f.ended && !f.synthetic && f.text != "" && p.s.give(f.part) {
			p.say(f, "")
		}
		return
	}
	if r.Turn == "" {
		return
	}
	p.touch(r.Turn)
	h := short(f.part)
	if !f.ended {
		if f.began && len(r.Open) < maxOpen && !contains(r.Open, h) {
			r.Open = append(r.Open, h)
		}
		return
	}
	r.Open = without(r.Open, h)
	if f.text != "" && !f.synthetic && p.s.give(f.part) {
		p.say(f, r.Turn)
		r.Torn = r.Torn || f.cut
		if !r.Tools && !r.Complete && !r.Torn {
			p.keep(r.ID, f.text)
		}
	}
	if a := p.asked; a != nil && a.reply == r.ID {
		if a.waitsFor = without(a.waitsFor, h); len(a.waitsFor) == 0 {
			p.releaseAsked()
		}
	}
}

func (p *projector) promptText(t *turn, f *fact) {
	switch {
	case t.Phase != pending:
	case f.synthetic:
		t.Syn, t.Task = true, t.Task || f.task
	case f.text == "":
	case p.s.Replay && f.input == p.inputOf(p.s.newest()):
		// The context was too long: the program compacts it and then repeats
		// the prompt in a message of its own.
		p.s.Replay = false
		p.continues(t.ID)
	default:
		p.start(t, f.input)
	}
}

func (p *projector) inputOf(id string) string {
	if t := p.s.turn(id); t != nil {
		return t.Input
	}
	return ""
}

func (p *projector) say(f *fact, turn string) {
	p.emit(providers.Draft{Key: "part/" + f.part, Kind: providers.AssistantMessage, Turn: turn, At: f.at, Text: f.text})
}

// keep adds a text to what its message has said.
func (p *projector) keep(reply, text string) {
	if p.s.Of != reply {
		p.s.Of, p.text = reply, ""
	}
	if p.text != "" {
		p.text += "\n"
	}
	p.text += text
	if len(p.text) > 2*providers.MaxRecord {
		p.tear()
	}
}

// touch makes a turn current again that a record names after a gap.
func (p *projector) touch(id string) {
	if p.s.Cur == "" && p.s.turn(id) != nil {
		p.s.Cur = id
	}
}

// compaction takes the mark of a user's message that asks for a summary. An
// automatic one belongs to the open turn, which goes on after it.
func (p *projector) compaction(f *fact) {
	if t := p.s.turn(f.id); t == nil || t.Phase != pending {
		return
	}
	if !f.auto {
		p.s.dropTurn(f.id)
		p.s.addAlias(alias{ID: f.id})
		return
	}
	p.hold = nil
	p.s.Replay = true
	p.continues(f.id)
}

// toolOf takes a tool call.
func (p *projector) toolOf(f *fact) {
	r := p.s.reply(f.id)
	if r == nil || r.Turn == "" {
		return
	}
	p.touch(r.Turn)
	if a := p.asked; a != nil && a.draft.Approval.Item == f.call && f.over {
		p.asked = nil // answered or dismissed already
	}
	r.Rejected = r.Rejected || f.rejected
	if !f.interrupted && !f.byItsServer {
		r.Tools = true
		if p.s.Of == r.ID {
			p.s.Of, p.text = "", "" // a message with a call is no answer
		}
	}
	if f.approval == nil || !p.s.give("question/"+f.call) {
		return
	}
	if p.asked != nil {
		p.releaseAsked()
	}
	p.asked = &asked{reply: r.ID, waitsFor: append([]string(nil), r.Open...), draft: providers.Draft{
		Key: "tool/" + f.call + "/question", Kind: providers.ApprovalRequested, Turn: r.Turn, At: f.at, Approval: f.approval}}
	if len(r.Open) == 0 {
		p.releaseAsked()
	}
}

func (p *projector) releaseAsked() {
	a := p.asked
	p.asked = nil
	p.emit(a.draft)
}

// release gives what waits: what comes now, or silence, says that nothing else
// will follow it.
func (p *projector) release() {
	if p.asked != nil {
		p.releaseAsked()
	}
	h := p.hold
	p.hold = nil
	if h == nil {
		return
	}
	if h.final {
		p.final(h.reply, h.turn, h.at, "", false)
	} else {
		p.stop(h.turn, "msg/"+h.reply+"/stopped", h.at)
	}
}

// stop says that the agent does not work on a turn any more, which has no end.
func (p *projector) stop(id, key string, at time.Time) {
	t := p.s.turn(id)
	if t == nil || t.Phase != open {
		return
	}
	t.Phase = stopped
	if !p.s.newerOpen(id) {
		p.s.Cur = id
		p.emit(providers.Draft{Key: key, Kind: providers.TurnStateChanged, Turn: id, At: at, State: providers.WaitingOnUser})
	}
}

// final ends a turn. Its key has the message that ended it: a turn that goes
// on after all gets another one.
func (p *projector) final(reply, id string, at time.Time, text string, aborted bool) {
	t := p.s.turn(id)
	if t == nil || t.Phase == done {
		return
	}
	d := providers.Draft{Key: "msg/" + reply + "/final", Kind: providers.TurnFinal, Turn: id, At: at, Outcome: providers.Completed, Text: text}
	if aborted {
		d.Outcome, d.Text = providers.Aborted, ""
	}
	t.Phase = done
	p.emit(d)
	if !p.s.newerOpen(id) {
		p.s.Cur = id
		p.emit(providers.Draft{Key: "msg/" + reply + "/user", Kind: providers.TurnStateChanged, Turn: id, At: at, State: providers.WaitingOnUser})
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func without(list []string, s string) []string {
	var out []string
	for _, x := range list {
		if x != s {
			out = append(out, x)
		}
	}
	return out
}
