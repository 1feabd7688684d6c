package gemini

import (
	"fmt"

	"steno/providers"
	"steno/providers/scan"
)

// late bounds the known messages of a document that are looked at for changes:
// only the newest ones change.
const late = 32

// document takes a version of a legacy session: its header, and a list that
// replaces the one before. What stands behind the newest message that is
// remembered is new. A list without any of those that are remembered is history
// that was written anew: it gives one failure, because it may hold news.
func (p *projector) document(r providers.Record) {
	var list []byte
	scan.Members(r.Data, func(key, value []byte) bool {
		switch string(key) {
		case "sessionId":
			p.Session = sessionID(value)
		case "kind":
			p.Sub = scan.Text(value) == "subagent"
		case "messages":
			list = value
		}
		return true
	})
	if p.Sub || !scan.IsArray(list) {
		return
	}
	var raws [][]byte
	var ids []string
	scan.Elements(list, func(v []byte) bool {
		raws, ids = append(raws, v), append(ids, messageID(v))
		return true
	})
	from := len(ids)
	for from > 0 && (ids[from-1] == "" || !p.knows(asMessage, ids[from-1])) {
		from--
	}
	if from == 0 && len(p.seen) > 0 {
		if len(ids) > 0 {
			p.settle() // nothing follows the one before
			p.lose(providers.Draft{Key: "anew/" + ids[len(ids)-1], Kind: providers.ObserverFailure, Recoverable: true,
				Detail: fmt.Sprintf("gemini document was written anew: its %d messages are history", len(ids))})
		}
		for _, id := range ids[max(0, len(ids)-late):] {
			p.note(asMessage, id)
			p.note(asText, id)
		}
	} else {
		for i := max(0, from-late); i < len(ids); i++ {
			if i >= from || p.knows(asMessage, ids[i]) {
				p.element(r, i, ids[i], raws[i])
			}
		}
	}
	p.lacks(r, parseList(list))
}

// element takes one message of a document.
func (p *projector) element(r providers.Record, i int, id string, raw []byte) {
	if len(raw) > providers.MaxRecord || id == "" {
		key, what := "long/"+id, fmt.Sprintf("is longer than %d bytes", providers.MaxRecord)
		if id == "" {
			key, what = fmt.Sprintf("no-id/%d/%d", r.Start, i), "has no usable id"
		} else if !p.note(asMessage, id) {
			return
		}
		p.lose(providers.Draft{Key: key, Kind: providers.ObserverFailure, Recoverable: true,
			Detail: fmt.Sprintf("gemini message %d of a document %s: %d bytes skipped", i, what, len(raw))})
		return
	}
	m := parseMessage(raw)
	p.drifts(m.drift)
	p.message(m)
	p.Replay = false // a document is never a record of its own history
}

// lacks looks whether a version took the open turn's prompt back.
func (p *projector) lacks(r providers.Record, l *list) {
	t := p.state.Turn
	if t.Phase != open || t.ID == "" || l.has(t.ID) || l.newest.After(t.At) {
		return
	}
	p.final = nil
	p.rollback = &rollback{start: r.Start}
}

func messageID(v []byte) string {
	id := ""
	scan.Members(v, func(key, value []byte) bool {
		if string(key) == "id" {
			id = ident(value)
			return false
		}
		return true
	})
	return id
}
