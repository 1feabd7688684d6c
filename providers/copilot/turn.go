package copilot

import (
	"time"

	"steno/providers"
)

// take reads one event of the main agent, or a gap.
func (p *projector) take(rec record) {
	if rec.named && p.repeats(rec.id) {
		return
	}
	if !p.Born.IsZero() && !rec.at.Before(p.Born) {
		p.copied()
	}
	switch rec.class {
	case gap:
		p.finish()
		p.forget()
	case began:
		p.Born = rec.at
	case userMessage:
		p.prompted(rec)
	case loopStart, message:
		p.working(rec)
	case loopEnd:
		p.show()
		p.Ended = true
		if p.last != nil {
			p.last.ended = true
		}
	case toolStart:
		p.called(rec)
	case toolEnd, response:
		p.answered(rec)
	case aborted:
		p.show()
		p.last = nil
		if p.Phase == open || p.Phase == unknown {
			p.final(providers.Draft{Key: rec.id + "/final", At: rec.at, Outcome: providers.Aborted}, rec.id)
		}
	case failure:
		p.failed(rec)
	case notification:
		p.finish()
		if p.Notice == "" && (p.Phase == closed || p.Phase == none) {
			p.Notice = rec.id
		}
	case complete:
		p.completed(rec)
	case border:
		p.finish()
		p.Notice = ""
	case modeChange:
		p.Autopilot = rec.autopilot
	}
}

// copied ends what /fork copied into a new file after session.start, with ids
// and times of the session that it was forked from: it is told there. The copy is
// written at once, so what comes later is new whatever its time is.
func (p *projector) copied() {
	p.finish()
	p.Born = time.Time{}
}

// prompted reads a user.message. Only one that somebody typed or sent starts a
// turn. Steering joins the running one; autopilot's own prompts, each with an
// interactionId of its own, go on with it; what a skill or an extension
// injects starts one when the agent takes it up (working).
func (p *projector) prompted(rec record) {
	joins := rec.interaction != "" && rec.interaction == p.Interaction
	switch {
	case rec.steering || joins:
		if p.Phase == closed && joins {
			p.reopen(rec)
		}
	case rec.continuation && p.state.Turn != "":
		p.show()
		p.last = nil
		p.Interaction, p.Autopilot = rec.interaction, true
		if p.Phase == closed {
			p.reopen(rec)
		}
	case rec.injected:
		p.finish()
		p.Notice = ""
	default:
		p.finish()
		p.begin(rec.id, or(rec.interaction, rec.id), rec)
		p.Autopilot = rec.autopilot
	}
}

// or is a, or b where a is empty.
func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// begin makes a turn the newest. Of an older one that is still open no record
// says how it ended.
func (p *projector) begin(key, turn string, rec record) {
	p.state.Turn, p.Interaction, p.Phase = turn, rec.interaction, open
	p.Ended, p.Notice = false, ""
	p.Lost, p.LostInteraction, p.LostOpen = "", "", false
	p.emit(providers.Draft{Key: key + "/started", Kind: providers.TurnStarted, Turn: turn, At: rec.at, InputSHA256: rec.input})
	p.emit(providers.Draft{Key: key + "/working", Kind: providers.TurnStateChanged, Turn: turn, At: rec.at,
		State: providers.WaitingOnAgent})
}

// working reads assistant.turn_start and assistant.message: the agent works,
// so an answer before it did not end the turn.
func (p *projector) working(rec record) {
	p.show()
	if p.elsewhere(rec) {
		p.finish()
	} else if rec.class == loopStart {
		p.last = nil
	}
	p.attribute(rec)
	p.Ended = false
	if rec.class != message {
		return
	}
	if rec.text != "" {
		p.emit(providers.Draft{Key: rec.id + "/text", Kind: providers.AssistantMessage, Turn: p.state.Turn, At: rec.at, Text: rec.text})
	}
	switch {
	case rec.tools:
		p.last = nil
	case rec.text != "":
		p.last = &answer{id: rec.id, text: rec.text, call: rec.call, at: rec.at}
	case p.last != nil && (rec.call == "" || rec.call != p.last.call):
		p.last = nil // an empty message that is no chunk of the same answer
	}
}

// elsewhere says that the event belongs to a turn that begins with it.
func (p *projector) elsewhere(rec record) bool {
	return rec.interaction != "" && p.Interaction != "" && rec.interaction != p.Interaction
}

// attribute finds the turn of an event by which the agent works. After a
// notification that is a turn of its own, although it goes on under the old
// interactionId (1.0.102, bg).
func (p *projector) attribute(rec record) {
	if p.Notice != "" && p.Phase != open {
		notice := p.Notice
		rec.interaction = or(rec.interaction, p.Interaction)
		p.begin(notice, notice, rec)
		return
	}
	switch {
	case p.Phase == unknown:
		switch {
		case rec.interaction == "":
		case rec.interaction != p.LostInteraction:
			p.begin(rec.id, rec.interaction, rec)
		case p.LostOpen:
			p.state.Turn, p.Interaction, p.Phase = p.Lost, p.LostInteraction, open
			p.Lost, p.LostInteraction, p.LostOpen = "", "", false
		}
	case p.Phase == none && rec.interaction != "", p.elsewhere(rec):
		p.begin(rec.id, rec.interaction, rec)
	case p.Phase == closed:
		p.reopen(rec)
	}
	if p.Phase == open && p.Interaction == "" {
		p.Interaction = rec.interaction
	}
}

// reopen says that the turn goes on although its end was told.
func (p *projector) reopen(rec record) {
	p.Phase = open
	p.emit(providers.Draft{Key: rec.id + "/resumed", Kind: providers.TurnStateChanged, Turn: p.state.Turn, At: rec.at,
		State: providers.WaitingOnAgent})
}

// called reads a tool's start: that of a plan or a question waits.
func (p *projector) called(rec record) {
	if p.last != nil && !p.last.ended {
		p.last = nil
	}
	d := providers.Draft{Turn: p.state.Turn, At: rec.at}
	switch {
	case rec.plan != "":
		d.Key, d.Kind, d.Text = rec.id+"/plan", providers.Plan, rec.plan
	case rec.approval != nil:
		d.Key, d.Kind, d.Approval = rec.id+"/question", providers.ApprovalRequested, rec.approval
	default:
		return
	}
	if len(p.calls) >= maxCalls {
		p.show()
	}
	p.calls = append(p.calls, pending{rec.item, d})
}

// answered reads what follows a tool's start. A call that failed at once, as
// one of a tool that is not there does, was never shown.
func (p *projector) answered(rec record) {
	for i, c := range p.calls {
		if rec.item != "" && c.item != rec.item {
			continue
		}
		if !rec.failed {
			p.show()
			return
		}
		if rec.item != "" {
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
			return
		}
	}
}

// show gives the plans and questions that wait.
func (p *projector) show() {
	for _, c := range p.calls {
		p.emit(c.draft)
	}
	p.calls = nil
}

// finish gives all that waits. An answer is final if its turn ended with it.
func (p *projector) finish() {
	p.show()
	a := p.last
	if p.last = nil; a == nil || !a.ended || p.Phase == closed {
		return
	}
	p.final(providers.Draft{Key: a.id + "/final", At: a.at, Outcome: providers.Completed, Text: a.text}, a.id)
}

// final ends the turn. What is said to end a turn that is not known has none.
func (p *projector) final(d providers.Draft, key string) {
	d.Kind, d.Turn = providers.TurnFinal, p.state.Turn
	p.emit(d)
	p.close(key, d.At)
}

func (p *projector) close(key string, at time.Time) {
	p.Phase = closed
	p.emit(providers.Draft{Key: key + "/waiting", Kind: providers.TurnStateChanged, Turn: p.state.Turn, At: at,
		State: providers.WaitingOnUser})
}

// failed reads session.error. The program stopped working on the turn if the
// error names the prompt whose request failed, or stands after the model call.
func (p *projector) failed(rec record) {
	p.show()
	p.last = nil
	d := providers.Draft{Key: rec.id + "/error", Kind: providers.ObserverFailure, At: rec.at, Recoverable: true,
		Reason: rec.reason, Detail: rec.reason.Detail()}
	if p.Phase == open {
		d.Turn = p.state.Turn
	}
	p.emit(d)
	if (p.Phase == open || p.Phase == unknown) && (p.Ended || rec.request) {
		p.close(rec.id, rec.at)
	}
}

// completed reads autopilot's word that the task is done: it is the final,
// whatever else the agent said before.
func (p *projector) completed(rec record) {
	p.show()
	p.last = nil
	if p.Phase == closed {
		return
	}
	if rec.text != "" {
		p.emit(providers.Draft{Key: rec.id + "/text", Kind: providers.AssistantMessage, Turn: p.state.Turn, At: rec.at, Text: rec.text})
	}
	p.final(providers.Draft{Key: rec.id + "/final", At: rec.at, Outcome: providers.Completed, Text: rec.text}, rec.id)
}

// forget is what a gap does. Only an event with the open turn's interactionId
// brings it back.
func (p *projector) forget() {
	if p.state.Turn != "" {
		p.Lost, p.LostInteraction, p.LostOpen = p.state.Turn, p.Interaction, p.Phase == open
	}
	p.state.Turn, p.Interaction, p.Notice = "", "", ""
	p.Phase, p.Ended = unknown, false
}

// Reverted ends the turn that the program took back: after Esc Esc before any
// output it replaces its file by one without that turn (1.0.102), and the abort
// may never have been read.
func (p *projector) Reverted(now providers.Turn) []providers.Draft {
	if p.Phase != open || p.state.Turn == "" || p.state.Turn == now.ID {
		return nil
	}
	p.out, p.last, p.calls = nil, nil, nil
	key := p.state.Turn + "/reverted"
	p.final(providers.Draft{Key: key, Outcome: providers.Aborted}, key)
	return p.give()
}
