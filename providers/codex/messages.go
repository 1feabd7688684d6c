package codex

import (
	"fmt"
	"hash/fnv"

	"steno/providers"
)

// message gives an assistant message once, whatever sources it was written to.
func (p *projector) message(f *fact) {
	t := p.turnOf(f)
	if f.source == responseSource {
		if p.s.Source == itemSource || p.s.Source == eventSource {
			return // the twin of an item or event
		}
		if t != "" && (p.phase(t) == held || p.s.Bare && t == p.s.Cur) {
			return // the summary of a compaction: an answer comes after its prompt
		}
	}
	if f.sum == 0 {
		if t != "" {
			p.enter(t, f)
		}
		return
	}
	if t != "" && !p.enter(t, f) {
		return
	}
	key, twin := p.twin(t, f)
	p.s.Source = f.source
	if twin {
		return
	}
	if t == "" {
		p.unnamed(f, "assistant message")
		return
	}
	p.emit(providers.Draft{Key: key, Kind: providers.AssistantMessage, Turn: t, At: f.at, Text: f.text})
	p.keep(t, f.text)
}

// keep remembers the last text of a turn for an end that does not repeat it.
func (p *projector) keep(t, s string) {
	p.s.LastTurn, p.s.Last, p.long = t, nil, ""
	if len(s) <= textKept {
		p.s.Last = []byte(s)
	} else if p.s.Review {
		p.long = s
	}
}

// twin says whether a message was given before from another source (or the
// record is there twice), and else its key, and remembers it. Ids decide where
// both have one; else the same text next to it in the same turn.
func (p *projector) twin(t string, f *fact) (key string, is bool) {
	now := seen{Turn: t, Sum: hex64(f.sum), Source: f.source}
	key = fmt.Sprintf("msg/%s/%d", t, f.start)
	if f.id != "" {
		h := fnv.New64a()
		h.Write([]byte(f.id))
		now.ID = hex64(h.Sum64())
		key = "msg/" + t + "/" + f.id
		for _, s := range p.s.Seen {
			if s.Turn != t || s.ID != now.ID {
				continue
			}
			if s.Source != now.Source || s.Sum == now.Sum {
				return "", true
			}
			// A server that gives each of its messages the same id.
			key = fmt.Sprintf("msg/%s/%s/%d", t, f.id, f.start)
		}
	}
	if n := len(p.s.Seen); n > 0 {
		s := &p.s.Seen[n-1]
		if s.Turn == t && s.Sum == now.Sum && s.Source != now.Source && !s.Twin && (s.ID == "" || now.ID == "") {
			s.Twin = true
			if s.ID == "" {
				s.ID = now.ID
			}
			return "", true
		}
	}
	if len(p.s.Seen) == seenKept {
		p.s.Seen = append(p.s.Seen[:0], p.s.Seen[1:]...)
	}
	p.s.Seen = append(p.s.Seen, now)
	return key, false
}

func (p *projector) given(t string, sum uint64) bool {
	for _, s := range p.s.Seen {
		if s.Turn == t && s.Sum == hex64(sum) {
			return true
		}
	}
	return false
}
