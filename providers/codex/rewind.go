package codex

import "steno/providers"

// lookBack is what Rewind knows so far.
type lookBack struct {
	starts   int  // starts of this thread's own turns that were passed
	items    bool // the file writes its messages as items (0.171)
	events   bool // or as events (0.138)
	attr     bool // its turns say what triggered them
	messages int
	worked   bool   // the last kept fact, but for nothings, is work
	work     string // and of this turn
}

// Rewind takes the next older record. It keeps the few facts that decide where
// the session stands and replays them in Rewound, so that looking back and
// reading forward are one piece of code. It is done at the newest start of a
// turn when the file's habits are known by then, else at the fourth: older
// turns change nothing. Its memory is bounded by the number of messages, prompts and
// turns in what it is shown, and never holds their contents.
func (p *projector) Rewind(r providers.Record) bool {
	f := decode(r)
	l := &p.look
	last := func() *fact {
		if len(p.back) == 0 {
			return &fact{what: gapRecord}
		}
		return &p.back[len(p.back)-1]
	}
	switch f.what {
	case nothing:
		if n := last(); n.what == nothing && (f.turn == "" || f.turn == n.turn) {
			return false
		}
	case work:
		if !f.review && l.worked && f.turn == l.work {
			return false
		}
	case turnStart:
		if f.turn != "" && !f.child && !p.older(f.turn) {
			l.starts++
			l.attr = l.attr || f.attributed
		}
	case agentText:
		l.items = l.items || f.source == itemSource
		l.events = l.events || f.source == eventSource
		l.messages++
		switch {
		case l.messages > 2*seenKept && f.turn != "":
			f.what = work // too old to have a twin that is still to come
		case l.messages > 1 && len(f.text) > textKept:
			f.text = ""
		}
	case planText:
		f.text = ""
	case turnComplete:
		f.text = ""
	}
	if f.what == work {
		l.worked, l.work = true, f.turn
	} else if f.what != nothing {
		l.worked = false
	}
	p.back = append(p.back, f)
	return l.starts > 3 || l.starts > 0 && (l.events || l.items && l.attr)
}

// Rewound replays what Rewind kept. The drafts of it are history.
func (p *projector) Rewound() {
	for i := len(p.back) - 1; i >= 0; i-- {
		p.apply(&p.back[i])
		p.out = nil
	}
	p.back, p.look = nil, lookBack{}
	p.long = "" // nothing may be held from records that are not read again
}
