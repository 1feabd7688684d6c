package kimi

import "steno/providers"

// maxBack bounds the facts that a look-back keeps.
const maxBack = 256

// Rewind takes the next older record. It keeps what decides where the session
// stands: the newest step, the ends and starts of turns, gaps; of all other
// records only that they prove their turn. It is done at the newest start that
// names its turn.
func (p *projector) Rewind(r providers.Record) (done bool) {
	f := decode(r)
	switch f.what {
	case nothing:
		return false
	case start:
		p.begun = true
		p.back = append(p.back, f)
		return f.turn >= 0 || len(p.back) >= maxBack
	case gap, ended:
		p.begun = true
		p.back = append(p.back, f)
	case begin:
		p.keep(f)
		p.begun = true
	case part:
		if len(f.text) > textKept {
			f.text = ""
		}
		p.keep(f)
	default:
		f.text, f.question = "", nil
		p.keep(f)
	}
	return len(p.back) >= maxBack
}

// keep adds a fact within a turn. Beyond the newest step one stands for all that
// name the same turn: a step's begin where there is one, since it opens a turn
// again.
func (p *projector) keep(f fact) {
	if !p.begun {
		p.back = append(p.back, f)
		return
	}
	if f.what != begin {
		f.what = touch
	}
	if n := len(p.back); n > 0 && p.back[n-1].turn == f.turn {
		switch last := &p.back[n-1]; {
		case last.what == begin:
			return
		case last.what == touch:
			*last = f
			return
		}
	}
	p.back = append(p.back, f)
}

// Rewound projects what was kept, in file order, and gives nothing.
func (p *projector) Rewound() {
	for i := len(p.back) - 1; i >= 0; i-- {
		p.apply(&p.back[i])
	}
	p.waiting, p.out, p.back, p.begun = nil, nil, nil, false
	if len(p.Last) > textKept {
		p.Last = nil
	}
}
