package codex

import (
	"slices"

	"steno/providers"
)

func (p *projector) phase(id string) phase {
	for i := range p.s.Turns {
		if p.s.Turns[i].ID == id {
			return p.s.Turns[i].Phase
		}
	}
	return ""
}

func (p *projector) setPhase(id string, ph phase) {
	for i := range p.s.Turns {
		if p.s.Turns[i].ID == id {
			p.s.Turns[i].Phase = ph
		}
	}
}

func (p *projector) push(id string, ph phase) {
	if p.phase(id) != "" {
		return
	}
	if len(p.s.Turns) == turnsKept {
		// The oldest is forgotten, but not the current turn or one whose start
		// still waits, however many turns of others come in between.
		i := slices.IndexFunc(p.s.Turns, func(t turn) bool { return t.Phase != held && t.ID != p.s.Cur })
		p.s.Turns = slices.Delete(p.s.Turns, max(i, 0), max(i, 0)+1)
	}
	p.s.Turns = append(p.s.Turns, turn{id, ph})
}

// newerOpen says whether a turn that started after t is open.
func (p *projector) newerOpen(t string) bool {
	after := p.phase(t) == "" // not remembered: everything is newer
	for _, o := range p.s.Turns {
		if after && (o.Phase == open || o.Phase == held) {
			return true
		}
		after = after || o.ID == t
	}
	return false
}

// late says whether a turn that is not remembered is older than one that is:
// it was over, or given up, long ago.
func (p *projector) late(id string) bool {
	for _, o := range p.s.Turns {
		if younger(o.ID, id) {
			return true
		}
	}
	return false
}

// older says whether a turn is older than the thread of this file.
func (p *projector) older(id string) bool { return younger(p.s.Thread, id) }

// younger says whether a was made after b; false unless both are UUIDv7, whose
// text sorts by time.
func younger(a, b string) bool { return v7(a) && v7(b) && a > b }

func v7(id string) bool { return len(id) == 36 && id[14] == '7' && providers.IsUUID(id) }
