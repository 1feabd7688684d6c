package gemini

import (
	"fmt"
	"strings"
	"time"

	"steno/providers"
)

// message takes the next message of the list.
func (p *projector) message(m message) {
	if p.replays(m) {
		return
	}
	switch m.class {
	case prompt, continuation, history, result:
		p.user(m)
	case answer:
		p.decideRollback()
		p.answered(m)
	case info:
		if strings.TrimSpace(m.body) == cancelText && p.note(asMessage, m.id) {
			p.cancelled(m)
		}
	case failure:
		if p.note(asMessage, m.id) {
			p.failed(m)
		}
	}
}

// replays says whether a message belongs to history that the program writes
// again, with new ids: after a cancel, or when it shortens tool output. Such a
// history begins with the session's context, has no answer with a text or tokens
// of its own, and ends with the list of its ids (0.61.0, setHistory).
func (p *projector) replays(m message) bool {
	old := m.class == answer && m.list && !m.counted && m.calls == 0
	if p.start != nil {
		near := m.class == result && m.at.Sub(p.start.at) < 50*time.Millisecond
		if old || near {
			p.start, p.Replay = nil, true
		} else {
			p.decideStart()
		}
	}
	if !p.Replay {
		return false
	}
	late := m.at.Sub(p.ReplayAt) > replayGap
	if m.class == answer && !old || m.class == info || m.class == failure || late {
		p.Replay = false
		return false
	}
	p.ReplayAt = m.at
	return true
}

func (p *projector) user(m message) {
	if m.class == prompt && p.goesOn(m) {
		m.class = continuation
	}
	switch m.class {
	case history:
		p.Replay, p.ReplayAt = true, m.at
	case result:
		p.decideRollback()
		if p.note(asMessage, m.id) {
			p.final = nil
			p.reopen(m.id+"/resumed", m.at, settled, done)
		}
	case continuation:
		if p.note(asMessage, m.id) {
			p.rollback, p.final = nil, nil
			p.reopen(m.id+"/resumed", m.at, settled, done, failed)
		}
	case prompt:
		if !p.note(asMessage, m.id) {
			return
		}
		if p.Bare {
			p.start = &m
			return
		}
		p.begin(m)
	}
}

// goesOn says whether a message of the program's own continues the open turn:
// it shows what the person typed for that turn, and sends one other text.
func (p *projector) goesOn(m message) bool {
	return p.state.Turn.Phase == open && m.single && m.display != "" && m.display != m.input && m.display == p.state.Turn.Input
}

// decideStart takes a held prompt for what it seems.
func (p *projector) decideStart() {
	if m := p.start; m != nil {
		p.start = nil
		p.begin(*m)
	}
}

// begin starts a turn. It proves the answer before it final.
func (p *projector) begin(m message) {
	p.decideRollback()
	p.release(providers.CompletionRecorded)
	input := m.display
	if input == "" {
		input = m.input
	}
	p.state.Turn = turn{ID: m.id, At: m.at, Input: input, Phase: open}
	p.Last, p.CancelTold, p.Cut = "", false, false
	p.emit(providers.Draft{Key: m.id + "/started", Kind: providers.TurnStarted, Turn: m.id, At: m.at, InputSHA256: input})
	p.emit(providers.Draft{Key: m.id + "/working", Kind: providers.TurnStateChanged, Turn: m.id, At: m.at,
		State: providers.WaitingOnAgent})
	if c := p.Cancel; c != "" {
		p.Cancel = ""
		if d := m.at.Sub(p.CancelAt); !p.CancelAt.IsZero() && d.Abs() <= cancelNear {
			p.abort(c+"/final", p.CancelAt)
		}
	}
}

// answered reads a message of the model, or a later form of one.
func (p *projector) answered(m message) {
	t := &p.state.Turn
	fresh := !p.knows(asMessage, m.id)
	if m.list && m.calls == 0 || fresh && t.ID != "" && !m.at.IsZero() && m.at.Before(t.At) {
		return // history, or a late form of a message that is not remembered any more
	}
	p.note(asMessage, m.id)
	says := strings.TrimSpace(m.body)
	news := says != "" && p.note(asText, m.id)
	tools := m.calls > 0 && p.note(asTools, fmt.Sprintf("%s/%d/%d", m.id, m.calls, m.cancelled)) &&
		(fresh || news || m.id == p.Last)
	cancelled := tools && m.calls == m.cancelled
	if f := p.final; f != nil && f.id == m.id && m.calls == 0 {
		if says != "" {
			f.text = says
		}
		return
	}
	if fresh || news || tools {
		p.final, p.Last = nil, m.id
		switch {
		case cancelled:
			p.reopen(m.id+"/tools", m.at, settled, done)
		case tools:
			p.reopen(m.id+"/tools", m.at, settled, done, failed)
		default:
			p.reopen(m.id+"/resumed", m.at, settled, done, failed)
		}
	}
	if news {
		p.emit(providers.Draft{Key: m.id + "/text", Kind: providers.AssistantMessage, Turn: t.ID, At: m.at, Text: says})
		if m.calls == 0 && t.Phase != aborted {
			p.final = &final{id: m.id, text: says, at: m.at}
		}
	}
	p.presented(m)
	if cancelled && (t.Phase == open || t.Phase == unknown) {
		p.abort(m.id+"/cancelled", m.at)
		p.CancelTold = true
	}
}

// presented gives the plans that a message's calls name.
func (p *projector) presented(m message) {
	for i, c := range m.plans {
		if c.id == "" {
			c.id = fmt.Sprintf("%s/%d", m.id, i)
		}
		if !p.note(asCall, c.id) || p.read == nil {
			continue
		}
		if plan := strings.TrimSpace(p.read(p.path, p.Session, c.file)); plan != "" {
			p.emit(providers.Draft{Key: c.id + "/plan", Kind: providers.Plan, Turn: p.state.Turn.ID, At: m.at, Text: plan})
		}
	}
}

// cancelled is the program's own word that the person cancelled a request.
func (p *projector) cancelled(m message) {
	t := &p.state.Turn
	told := p.CancelTold
	p.rollback, p.CancelTold = nil, false
	p.reopen(m.id+"/resumed", m.at, settled)
	switch {
	case t.Phase == open || t.Phase == unknown:
		p.abort(m.id+"/final", m.at)
	case !told:
		p.Cancel, p.CancelAt = m.id, m.at
	}
}

// failed is an error that the program shows. While an answer is held only one of
// the API speaks of the turn; others may come from anything the person does.
func (p *projector) failed(m message) {
	t := &p.state.Turn
	if p.rollback == nil && (t.Phase != open || p.final != nil && !strings.HasPrefix(m.body, apiErrorMark)) {
		return
	}
	p.rollback = nil
	p.fail(m.id+"/error", m.id+"/waiting", m.at, reason(m.body))
}

// fail gives an error that ended the work on the open turn.
func (p *projector) fail(key, waiting string, at time.Time, why providers.Reason) {
	t := &p.state.Turn
	p.final = nil
	p.emit(providers.Draft{Key: key, Kind: providers.ObserverFailure, Turn: t.ID, At: at, Recoverable: true,
		Reason: why, Detail: why.Detail()})
	p.close(failed, waiting, at)
}

// replaced is a new list of messages. Without the open turn's prompt, and with
// nothing newer, it is a rollback: the request failed or was cancelled.
func (p *projector) replaced(rec record) {
	l, t := rec.list, p.state.Turn
	burst := p.Replay
	if p.start != nil {
		if l.has(p.start.id) {
			p.start, burst = nil, true
		} else {
			p.decideStart()
			t = p.state.Turn
		}
	}
	rewound := p.Cut
	p.Replay, p.Cut = false, false
	p.Bare = l.bare || len(l.ids) == 0
	if burst || rewound || t.Phase != open || t.ID == "" || l.has(t.ID) || l.newest.After(t.At) {
		return
	}
	p.final = nil
	p.rollback = &rollback{start: rec.start, at: rec.at}
}

// decideRollback gives the failure of a rollback whose error is not recorded.
func (p *projector) decideRollback() {
	r := p.rollback
	if r == nil {
		return
	}
	p.rollback = nil
	key := fmt.Sprintf("%s/rollback/%d", p.state.Turn.ID, r.start)
	p.fail(key, key+"/waiting", r.at, providers.ProviderError)
}

// rewound is /rewind: a person used it, so the program was ready.
func (p *projector) rewound() {
	p.decideStart()
	p.decideRollback()
	p.release(providers.CompletionRecorded)
	p.Cut = true
}

// release gives the final that a held answer is.
func (p *projector) release(completion string) {
	f := p.final
	if f == nil {
		return
	}
	p.final = nil
	p.emit(providers.Draft{Key: f.id + "/final", Kind: providers.TurnFinal, Turn: p.state.Turn.ID, At: f.at,
		Outcome: providers.Completed, Completion: completion, Text: f.text})
	end := done
	if completion == providers.CompletionSettled {
		end = settled
	}
	p.close(end, f.id+"/waiting", f.at)
}

// abort ends the turn without an answer.
func (p *projector) abort(key string, at time.Time) {
	p.final = nil
	p.emit(providers.Draft{Key: key, Kind: providers.TurnFinal, Turn: p.state.Turn.ID, At: at,
		Outcome: providers.Aborted, Completion: providers.CompletionRecorded})
	p.close(aborted, key+"/waiting", at)
}

func (p *projector) close(end phase, key string, at time.Time) {
	p.state.Turn.Phase = end
	p.emit(providers.Draft{Key: key, Kind: providers.TurnStateChanged, Turn: p.state.Turn.ID, At: at,
		State: providers.WaitingOnUser})
}

// reopen says that the turn goes on although it had ended in one of these ways.
func (p *projector) reopen(key string, at time.Time, ends ...phase) {
	t := &p.state.Turn
	for _, end := range ends {
		if t.Phase != end {
			continue
		}
		t.Phase = open
		if t.ID == "" {
			t.Phase = unknown
			return
		}
		p.emit(providers.Draft{Key: key, Kind: providers.TurnStateChanged, Turn: t.ID, At: at, State: providers.WaitingOnAgent})
		return
	}
}
