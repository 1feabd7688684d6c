package gemini

import "steno/providers"

// Bounds of a look back. A turn with more records than this begins unknown.
const (
	backKept = 600     // records
	backText = 8 << 20 // bytes of text in them
)

// Rewind takes the next older record. It knows enough when the records so far,
// read forwards, have two turns, so that how the older one ended decides what is
// between them, or are behind a gap, and begin where no history is being written
// again.
func (p *projector) Rewind(r providers.Record) (done bool) {
	if r.Framing == providers.Document && r.Gap == providers.Whole {
		p.document(r) // it holds everything; Rewound drops what it gave
		return true
	}
	rec := record{kind: lost}
	if r.Gap == providers.Whole {
		rec = parse(r)
	}
	rec.drift, rec.entry.drift = nil, nil
	p.back = append(p.back, rec)
	p.size += len(rec.entry.body) + 256
	if rec.list != nil {
		p.size += 8 * len(rec.list.ids)
	}
	if rec.kind == lost || rec.kind == entry && rec.entry.class == prompt {
		p.more++
	}
	if len(p.back) >= backKept || p.size >= backText {
		return true
	}
	if p.more == 0 || !rec.border() {
		return false
	}
	p.more = 0
	for _, rec := range p.back {
		if rec.kind == lost {
			return true
		}
	}
	_, starts := p.forward()
	return starts > 1
}

// border says whether no history is being written again where the record
// stands.
func (rec *record) border() bool {
	switch rec.kind {
	case header:
		return true
	case update:
		return rec.list != nil
	case entry:
		m := &rec.entry
		return m.class == info || m.class == failure || m.class == answer && (!m.list || m.counted || m.calls > 0)
	}
	return false
}

// forward reads what was collected in the order of the file, and counts the
// turns that start in it.
func (p *projector) forward() (q *projector, starts int) {
	q = newProjector(providers.Artifact{Path: p.path}, nil, nil)
	// Whether the history begins with the context is not known before its first
	// list: so every prompt waits for what follows it.
	q.Bare = true
	listed := false
	for i := len(p.back) - 1; i >= 0; i-- {
		listed = listed || p.back[i].list != nil
		if rec := p.back[i]; rec.kind == lost {
			q.lose(providers.Draft{})
		} else {
			q.take(rec, 0)
		}
		for _, d := range q.out {
			if d.Kind == providers.TurnStarted {
				starts++
			}
		}
		q.out, q.drift = nil, nil
	}
	q.Bare = q.Bare && listed
	return q, starts
}

// Rewound ends the rewinding. What is open is decided as by silence.
func (p *projector) Rewound() {
	if p.back != nil {
		q, _ := p.forward()
		p.state = q.settledState()
	} else {
		p.state = p.settledState()
	}
	p.final, p.start, p.rollback = nil, nil, nil
	p.back, p.more, p.size, p.out, p.drift = nil, 0, 0, nil, nil
}

func (p *projector) settledState() state {
	p.settle()
	return p.state
}
