package copilot

import "steno/providers"

// maxBack bounds the events that a look-back keeps. They are some ten to a
// model call, of which three are kept.
const maxBack = 3000

// lookBack is what Rewind kept, newest first, without texts.
type lookBack struct {
	recs    []record
	partial bool // something was read, but neither the first byte of the file nor the start of a turn
}

// Rewind knows enough when it has seen a prompt that starts a turn.
func (p *projector) Rewind(r providers.Record) (done bool) {
	p.back.partial = r.Start != 0
	rec := record{class: gap}
	if r.Gap == providers.Whole {
		var ok bool
		if rec, ok, _ = parse(r); !ok {
			return false
		}
		if rec.text != "" {
			rec.text = "x"
		}
		rec.plan, rec.approval = "", nil
	}
	p.back.recs = append(p.back.recs, rec)
	if rec.class == userMessage && !rec.steering && !rec.continuation && !rec.injected {
		p.back.partial = false
		return true
	}
	return len(p.back.recs) >= maxBack
}

// Rewound projects what Rewind kept, in file order, and gives nothing. Where
// the start of the turn was not found, there may be one as after a gap.
func (p *projector) Rewound() {
	if p.back.partial {
		p.forget()
	}
	for i := len(p.back.recs) - 1; i >= 0; i-- {
		p.take(p.back.recs[i])
	}
	p.finish()
	p.out, p.back, p.last, p.calls = nil, lookBack{}, nil, nil
}
