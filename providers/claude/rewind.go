package claude

import "steno/providers"

// Bounds of a look-back, in records that have a place in the chain.
const (
	maxBack  = 400 // kept; the newest start is kept beside them
	pastBack = 32  // read beyond the newest start, in case it was written after its answer
)

// backwards counts while a transcript is read from its end.
type backwards struct {
	starts int
	past   int
	whole  bool // the first byte of the file was read
}

// Rewind keeps what records are, without their texts. It knows enough at the
// second newest start, or some records before the newest.
func (p *projector) Rewind(r providers.Record) (done bool) {
	rec := record{start: r.Start}
	p.rewound.whole = p.rewound.whole || r.Start == 0
	if r.Gap == providers.Whole {
		var ok bool
		if rec, ok, _ = parse(r); !ok {
			return false
		}
		for i := range rec.blocks {
			rec.blocks[i].text, rec.blocks[i].approval = "x", nil
		}
		rec.size = 0
	}
	if p.rewound.starts > 0 {
		p.rewound.past++
	}
	if rec.class == prompt || rec.class == notification {
		p.rewound.starts++
	}
	if len(p.back) >= maxBack {
		p.back = p.back[:maxBack-1] // what lies between the newest records and the start only links them
	}
	p.back = append(p.back, rec)
	return p.rewound.starts > 1 || p.rewound.past >= pastBack || p.rewound.starts > 0 && len(p.back) >= maxBack
}

// Rewound projects what Rewind kept, in file order, and gives nothing. Unless
// it is the whole file, a parent that is not there is taken as an older one
// and not waited for.
func (p *projector) Rewound() {
	inside := make(map[string]bool, len(p.back))
	for _, rec := range p.back {
		inside[rec.uuid] = rec.uuid != ""
	}
	for i := len(p.back) - 1; i >= 0; i-- {
		rec := p.back[i]
		_, dup := p.find(rec.uuid)
		switch {
		case rec.uuid == "": // a gap
			p.settle()
			p.forget()
		case dup:
		case !p.rewound.whole && !inside[rec.parent]:
			p.take(rec)
			p.release()
		default:
			p.read(rec)
		}
	}
	p.settle()
	p.out, p.back, p.rewound = nil, nil, backwards{}
}
