package claude

import (
	"strconv"
	"strings"
	"time"

	"steno/providers"
)

// endTurn is the stop_reason of an API message that ends a turn.
const endTurn = "end_turn"

// maxTexts bounds the texts of one API message that are kept for its final, in bytes.
const maxTexts = 8 << 20

// take reads a record whose place in the order is decided.
func (p *projector) take(rec record) {
	t := p.turnOf(rec)
	if cut := p.cut; cut != nil {
		p.cut = nil
		if rec.class == marker && rec.parent == cut.uuid {
			p.answer(t, *cut)
		}
	}
	switch rec.class {
	case prompt, notification:
		if rec.class == notification && p.joins(rec) {
			t = p.turn(p.Current)
			break
		}
		p.decide()
		t = p.add(turn{ID: rec.uuid, Prompt: rec.promptID, Parent: hash(rec.parent), At: rec.at,
			Notice: rec.class == notification, Input: rec.input})
		p.begin(t, rec)
	case echo:
		t = p.add(turn{ID: rec.uuid, Prompt: rec.promptID, Parent: hash(rec.parent), At: rec.at, Phase: offered})
	case result:
		if p.Lost.ID != "" && rec.promptID != "" && rec.promptID == p.Lost.Prompt {
			t = p.add(p.Lost)
			p.Current, p.Lost = t.Serial, turn{}
		}
	case marker:
		p.interrupted(t, rec)
	case feedback:
		p.goesOn(t, rec)
	case failure:
		p.failed(t, rec)
	case assistant:
		p.answer(t, rec)
	case partial:
		p.decide() // of another message
		p.cut = &rec
	case duration:
		p.ended(t, rec)
	}
	p.see(rec, t.Serial)
}

// turnOf finds the turn that a record belongs to: that of its parent; the
// newest one when the parent is not known any more.
func (p *projector) turnOf(rec record) *turn {
	serial, seen := p.find(rec.parent)
	if !seen {
		serial = p.Current
		if rec.promptID != "" && rec.class == result {
			for i := range p.Turns {
				if p.Turns[i].Prompt == rec.promptID {
					serial = p.Turns[i].Serial
				}
			}
		}
	}
	if t := p.turn(serial); t != nil {
		return t
	}
	return &p.Nobody
}

// joins says whether a notification was dequeued together with the one that
// named the open turn.
func (p *projector) joins(rec record) bool {
	t := p.turn(p.Current)
	return t != nil && t.Phase == open && t.Notice && !t.Answered && t.Prompt != "" && t.Prompt == rec.promptID
}

// begin makes a turn the newest one, because of rec: its prompt, or the first
// answer to its echo. The open turn is over if the new one stands in its
// place: it was taken back before any output, and leaves no other record.
func (p *projector) begin(t *turn, rec record) {
	if old := p.turn(p.Current); old != nil && old.Phase == open && old != t && old.Parent == t.Parent {
		old.Phase = closed
		p.emit(providers.Draft{Key: rec.uuid + "/superseded", Kind: providers.TurnFinal, Turn: old.ID, At: rec.at,
			Outcome: providers.Aborted})
	}
	if p.Current == 0 && !p.Holed {
		p.guess(t.Serial)
	}
	t.Phase = open
	p.Current, p.Lost = t.Serial, turn{}
	p.Nobody.Phase = closed
	p.texts, p.Last = nil, message{}
	p.emit(providers.Draft{Key: t.ID + "/started", Kind: providers.TurnStarted, Turn: t.ID, At: t.At, InputSHA256: t.Input})
	p.emit(providers.Draft{Key: t.ID + "/working", Kind: providers.TurnStateChanged, Turn: t.ID, At: t.At,
		State: providers.WaitingOnAgent})
	t.Input = ""
}

// answer reads one record of an API message.
func (p *projector) answer(t *turn, rec record) {
	if t.Phase == offered {
		p.decide()
		p.begin(t, rec)
	}
	same := p.Last.ID == rec.message && p.Last.Turn == t.Serial
	if !same {
		p.decide()
		p.texts = nil
		p.Last = message{ID: rec.message, Turn: t.Serial}
	}
	if t.Phase == closed && (!same || rec.says()) {
		p.reopen(t, rec)
	}
	t.Answered = true
	p.Last.Stop = rec.stop
	p.Last.Tool = p.Last.Tool || rec.tool
	p.blocks(t, rec)
	if p.Last.Tool || rec.stop == "tool_use" {
		p.Last.Tool, p.texts = true, nil
	}
}

func (rec *record) says() bool {
	for _, b := range rec.blocks {
		if b.kind == providers.AssistantMessage {
			return true
		}
	}
	return rec.tool
}

func (p *projector) blocks(t *turn, rec record) {
	count := map[providers.Kind]int{}
	for _, kind := range [...]providers.Kind{providers.Plan, providers.ApprovalRequested, providers.AssistantMessage} {
		for _, b := range rec.blocks {
			if b.kind != kind {
				continue
			}
			key := rec.uuid + "/" + role[kind]
			if count[kind]++; count[kind] > 1 {
				key += "/" + strconv.Itoa(count[kind])
			}
			d := providers.Draft{Key: key, Kind: kind, Turn: t.ID, At: rec.at, Text: strings.TrimSpace(b.text), Approval: b.approval}
			p.emit(d)
			if kind != providers.AssistantMessage {
				continue
			}
			p.Last.Text, p.Last.Record, p.Last.At = true, rec.uuid, rec.at
			size := len(b.text)
			for _, s := range p.texts {
				size += len(s)
			}
			if size <= maxTexts {
				p.texts = append(p.texts, b.text)
			}
		}
	}
}

var role = map[providers.Kind]string{
	providers.Plan:              "plan",
	providers.ApprovalRequested: "question",
	providers.AssistantMessage:  "text",
}

// decide gives the final that the last message makes, if it is still due.
func (p *projector) decide() {
	if len(p.texts) == 0 || p.Last.Stop != endTurn {
		return
	}
	if t := p.lastTurn(); t.Phase != closed {
		p.complete(t)
	}
	p.texts = nil
}

func (p *projector) lastTurn() *turn {
	if t := p.turn(p.Last.Turn); t != nil {
		return t
	}
	return &p.Nobody
}

// complete ends a turn with the text of the last message.
func (p *projector) complete(t *turn) {
	p.emit(providers.Draft{Key: p.Last.Record + "/final", Kind: providers.TurnFinal, Turn: t.ID, At: p.Last.At,
		Outcome: providers.Completed, Text: strings.TrimSpace(strings.Join(p.texts, "\n"))})
	p.texts = nil
	p.close(t, p.Last.Record+"/waiting", p.Last.At)
}

// abort ends a turn without an answer.
func (p *projector) abort(t *turn, key string, at time.Time, why providers.Reason) {
	p.texts = nil
	p.emit(providers.Draft{Key: key, Kind: providers.TurnFinal, Turn: t.ID, At: at,
		Outcome: providers.Aborted, Reason: why, Detail: why.Detail()})
	p.close(t, key+"/waiting", at)
}

// close says who has to act after a turn's end: the user, unless a newer turn
// is open.
func (p *projector) close(t *turn, key string, at time.Time) {
	t.Phase = closed
	if newest := p.turn(p.Current); newest != nil && newest != t && newest.Phase == open {
		return
	}
	p.emit(providers.Draft{Key: key, Kind: providers.TurnStateChanged, Turn: t.ID, At: at, State: providers.WaitingOnUser})
}

// reopen says that the newest turn goes on although it had ended. What comes
// late for an older turn opens nothing and ends nothing again.
func (p *projector) reopen(t *turn, rec record) {
	if t.Serial != p.Current && t.Serial != 0 {
		return
	}
	t.Phase, t.Resumed = open, hash(rec.uuid)
	if t.Serial == 0 {
		return
	}
	p.emit(providers.Draft{Key: rec.uuid + "/resumed", Kind: providers.TurnStateChanged, Turn: t.ID, At: rec.at,
		State: providers.WaitingOnAgent})
}

// goesOn is a Stop hook that refuses the end of the turn.
func (p *projector) goesOn(t *turn, rec record) {
	if p.Last.Turn == t.Serial {
		p.texts, p.Last = nil, message{}
	}
	if t.Phase == closed && t.Serial != 0 {
		p.reopen(t, rec)
	}
}

// interrupted is the user's Esc.
func (p *projector) interrupted(t *turn, rec record) {
	p.decide()
	if t.Phase == open || t.Phase == unknown {
		p.abort(t, rec.uuid+"/final", rec.at, "")
	}
}

// failed is an API error: the program has given up on the turn and waits.
func (p *projector) failed(t *turn, rec record) {
	if t.Phase == offered {
		p.decide()
		p.begin(t, rec)
	}
	if !rec.cuts || p.Last.Record != rec.parent { // else the answer is not whole, and no final
		p.decide()
	}
	p.texts, p.Last = nil, message{}
	p.emit(providers.Draft{Key: rec.uuid + "/error", Kind: providers.ObserverFailure, Turn: t.ID, At: rec.at,
		Recoverable: true, Reason: rec.reason, Detail: rec.reason.Detail()})
	t.Answered = true
	p.close(t, rec.uuid+"/waiting", rec.at)
}

// ended is system/turn_duration, the program's own word that a turn is over.
func (p *projector) ended(t *turn, rec record) {
	p.decide()
	mine := p.Last.Turn == t.Serial && p.Last.Text && !p.Last.Tool
	switch {
	case t.Phase != open && t.Phase != unknown:
	case mine && p.Last.Stop == "refusal":
		p.abort(t, rec.uuid+"/final", rec.at, providers.PolicyBlocked)
	case mine:
		p.complete(t)
	case t.Serial != 0 && t.Serial == p.Current:
		p.abort(t, rec.uuid+"/final", rec.at, providers.NoReply)
	}
}

func (p *projector) emit(d providers.Draft) { p.out = append(p.out, d) }
