package opencode

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"steno/providers"
)

// Databases without the event table (before its migration of 2026-03-23) hold
// the newest state of each message and part alone, and no order of changes but
// time_updated. They are read as the events that must have led there: a message
// is announced as it began, then its parts as they are, then itself if it has
// ended.
//
// Each look goes over the messages from a floor on: the prompt before the
// newest one. So it costs what two turns hold, not what the session does. A part
// that is changed later than that (the program empties old tool output) is not
// seen, and says nothing of turns.

const (
	maxWindow = 64   // messages of one look
	maxItems  = 4096 // parts of one look
	maxTies   = 48   // items of one millisecond that a mark can tell apart
	// slots is how many items of one millisecond have a position of their own.
	slots = 1 << 10
)

const (
	queryMessages = `SELECT id, time_created, time_updated, octet_length(data),
		CASE WHEN octet_length(data) <= ? THEN data END
		FROM message WHERE session_id = ? AND (time_created, id) >= (?, ?) ORDER BY time_created, id LIMIT ?`
	queryMessagesBack = `SELECT id, time_created, time_updated, octet_length(data),
		CASE WHEN octet_length(data) <= ? THEN data END
		FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT ?`
	queryParts = `SELECT m.id, p.id, p.time_updated, octet_length(p.data)
		FROM message m JOIN part p ON p.message_id = m.id
		WHERE m.session_id = ? AND (m.time_created, m.id) >= (?, ?) AND (m.time_created, m.id) <= (?, ?)
		ORDER BY m.time_created, m.id LIMIT ?`
	queryPart    = `SELECT data FROM part WHERE id = ?`
	queryMessage = `SELECT count(*) FROM message WHERE id = ?`
)

// place is a mark's part for these databases.
type place struct {
	At   int64    `json:"t"`           // time of the newest item that was given, ms
	Ties []string `json:"h,omitempty"` // items of that time that were given
	// Last stands for Ties when those are too many (an import gives all rows
	// one time): what sorts behind it was not given.
	Last  *tie `json:"l,omitempty"`
	Begun key  `json:"b"` // the newest message that was announced
	Floor key  `json:"f"` // the first message that is looked at again
}

// tie is the place of an item among those of its time.
type tie struct {
	Class uint8  `json:"c"`
	Msg   key    `json:"m"`
	Part  string `json:"p,omitempty"`
}

// key orders messages.
type key struct {
	At int64  `json:"t"`
	ID string `json:"i,omitempty"`
}

func (k key) compare(o key) int { return cmp.Or(cmp.Compare(k.At, o.At), cmp.Compare(k.ID, o.ID)) }

func (p *place) sound() bool {
	ok := len(p.Ties) <= maxTies && len(p.Begun.ID) <= 64 && len(p.Floor.ID) <= 64 &&
		(p.Last == nil || len(p.Last.Msg.ID) <= 64 && len(p.Last.Part) <= 64)
	for _, h := range p.Ties {
		ok = ok && len(h) <= 8
	}
	return ok
}

// message is a row of that table.
type message struct {
	key
	updated int64
	size    int64
	data    []byte
	info    info
}

// item is one record to come.
type item struct {
	at    int64
	class uint8 // of one time: beginnings, parts, ends
	msg   *message
	part  string
	size  int64
	slot  string // tells it apart among those of its time
}

const (
	begins uint8 = iota
	holds
	ends
)

func compareItems(a, b item) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.class, b.class), a.msg.compare(b.msg.key), cmp.Compare(a.part, b.part))
}

func (v *view) nextRows(m mark, file identity, max, most int) (batch, error) {
	at := place{}
	switch {
	case m.Rows != nil:
		at = *m.Rows
	case m.Off > 0:
		// Its table of events is gone: another, older database.
		end, err := v.rowsEnd(-1)
		return batch{reset: providers.Replaced, end: end, size: end.Off}, err
	}
	if (m.Dev != file.dev || m.Ino != file.ino) && m.Rows != nil && at.Begun.ID != "" {
		if found, err := v.hasMessage(at.Begun.ID); err != nil {
			return batch{}, err
		} else if !found {
			end, err := v.rowsEnd(-1)
			return batch{reset: providers.Replaced, end: end, size: end.Off}, err
		}
	}
	window, full, err := v.window(at.Floor)
	if err != nil {
		return batch{}, err
	}
	items, err := v.items(window, at)
	if err != nil {
		return batch{}, err
	}
	b := batch{}
	places := []mark{m}
	cut := false
	for total := 0; len(items) > 0; items = items[1:] {
		if len(b.records) > 0 && (total >= max || len(b.records) >= most) {
			cut = true
			break
		}
		rec, err := v.record(items[0], places[len(places)-1].Off)
		if err != nil {
			if len(b.records) > 0 {
				cut = true
				break
			}
			return batch{}, err
		}
		at = at.after(items[0])
		b.records = append(b.records, rec)
		given := at
		places = append(places, mark{Off: rec.End, Rows: &given})
		total += len(rec.Data)
	}
	if !cut {
		at.Floor = floor(window, at.Floor, full)
		if n := len(places) - 1; n > 0 {
			places[n].Rows.Floor = at.Floor
		}
	}
	// A full window without a record would be asked for again and again; its
	// floor moves with the first record behind it.
	b.more = cut || full
	if b.more && len(b.records) == 0 {
		next := m
		next.Rows = &at
		places[0] = next
		b.advance = &next
	}
	b.marks = func(n int) mark { return places[n] }
	b.size = places[len(places)-1].Off
	return b, nil
}

func (v *view) hasMessage(id string) (bool, error) {
	var n int
	err := v.tx.QueryRowContext(v.ctx, queryMessage, id).Scan(&n)
	if err != nil {
		return false, classify(v.ctx, "verify place", err)
	}
	return n > 0, nil
}

// window are the messages from the floor on, in order.
func (v *view) window(floor key) (out []*message, full bool, err error) {
	rows, err := v.tx.QueryContext(v.ctx, queryMessages, providers.MaxRecord, v.session, floor.At, floor.ID, maxWindow+1)
	if err != nil {
		return nil, false, classify(v.ctx, "read messages", err)
	}
	defer rows.Close()
	for rows.Next() {
		m, err := v.scan(rows)
		if err != nil {
			return nil, false, err
		}
		if len(out) == maxWindow {
			return out, true, nil
		}
		out = append(out, m)
	}
	if err := rows.Err(); err != nil {
		return nil, false, classify(v.ctx, "read messages", err)
	}
	return out, false, nil
}

func (v *view) scan(rows *sql.Rows) (*message, error) {
	m := &message{}
	var size sql.NullInt64
	if err := rows.Scan(&m.ID, &m.At, &m.updated, &size, &m.data); err != nil {
		return nil, classify(v.ctx, "read messages", err)
	}
	m.size = size.Int64
	if gapOf(m.data, m.size) == providers.Whole {
		m.info = infoOf(m.data)
	}
	return m, nil
}

// items are what the window has that is behind the place, in order.
func (v *view) items(window []*message, at place) ([]item, error) {
	if len(window) == 0 {
		return nil, nil
	}
	parts, err := v.parts(window)
	if err != nil {
		return nil, err
	}
	var out []item
	for _, m := range window {
		if len(m.ID) > 64 {
			continue // no id of the program; a mark could not hold it
		}
		if m.compare(at.Begun) > 0 {
			out = append(out, item{at: m.At, class: begins, msg: m, slot: short("b" + m.ID)})
		}
		mine, newest := parts[m.ID], max(m.At, m.updated)
		for i := range mine {
			mine[i].msg, mine[i].at = m, max(mine[i].at, m.At)
			newest = max(newest, mine[i].at)
		}
		if i := m.info; i.Role == "assistant" && (i.Time.Completed > 0 || i.Finish != "" || i.Error != nil) {
			mine = append(mine, item{at: newest, class: ends, msg: m, slot: short("e" + m.ID)})
		}
		for _, i := range mine {
			if at.before(i) {
				out = append(out, i)
			}
		}
	}
	slices.SortFunc(out, compareItems)
	return out, nil
}

// parts are those of the messages of a window, without their data.
func (v *view) parts(window []*message) (map[string][]item, error) {
	first, last := window[0].key, window[len(window)-1].key
	rows, err := v.tx.QueryContext(v.ctx, queryParts, v.session, first.At, first.ID, last.At, last.ID, maxItems)
	if err != nil {
		return nil, classify(v.ctx, "read parts", err)
	}
	defer rows.Close()
	out := map[string][]item{}
	for rows.Next() {
		var of string
		var size sql.NullInt64
		i := item{class: holds}
		if err := rows.Scan(&of, &i.part, &i.at, &size); err != nil {
			return nil, classify(v.ctx, "read parts", err)
		}
		if len(i.part) > 64 {
			continue // no id of the program; a mark could not hold it
		}
		i.size, i.slot = size.Int64, short("p"+i.part)
		out[of] = append(out[of], i)
	}
	if err := rows.Err(); err != nil {
		return nil, classify(v.ctx, "read parts", err)
	}
	return out, nil
}

// after is the place behind an item.
func (p place) after(i item) place {
	if i.class == begins {
		// Beginnings have a place of their own.
		if p.Begun = i.msg.key; i.at > p.At {
			p.At, p.Ties, p.Last = i.at, nil, nil
		}
		return p
	}
	switch {
	case i.at > p.At:
		p.At, p.Ties, p.Last = i.at, []string{i.slot}, nil
	case i.at < p.At:
	case p.Last == nil && len(p.Ties) < maxTies:
		p.Ties = append(slices.Clone(p.Ties), i.slot)
	case p.Last == nil || p.before(i):
		p.Ties, p.Last = nil, i.tie()
	}
	return p
}

// before says whether an item is behind the place.
func (p place) before(i item) bool {
	switch {
	case i.at != p.At:
		return i.at > p.At
	case p.Last != nil:
		l := item{at: p.At, class: p.Last.Class, msg: &message{key: p.Last.Msg}, part: p.Last.Part}
		return compareItems(i, l) > 0
	}
	return !slices.Contains(p.Ties, i.slot)
}

func (i item) tie() *tie { return &tie{i.class, i.msg.key, i.part} }

// floor is where the next look begins: at the prompt before the newest one, or
// near the end of a full window.
func floor(window []*message, old key, full bool) key {
	if full {
		return window[len(window)-maxWindow/4].key
	}
	prompts := 0
	for _, m := range slices.Backward(window) {
		if m.info.Role == "user" {
			if prompts++; prompts == 2 {
				return m.key
			}
		}
	}
	return old
}

// record composes the event that an item stands for.
func (v *view) record(i item, off int64) (providers.Record, error) {
	seq := max(off, i.at*slots)
	r := row{seq: seq}
	switch i.class {
	case begins:
		r.kind.String = "message.updated.1"
		r.data, r.size.Int64 = i.msg.event(v.session, true)
	case ends:
		r.kind.String = "message.updated.1"
		r.data, r.size.Int64 = i.msg.event(v.session, false)
	case holds:
		r.kind.String = "message.part.updated.1"
		var data []byte
		r.size.Int64 = i.size
		if i.size <= providers.MaxRecord {
			err := v.tx.QueryRowContext(v.ctx, queryPart, i.part).Scan(&data)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return providers.Record{}, classify(v.ctx, "read part", err)
			}
		}
		if g := gapOf(data, i.size); g == providers.Whole {
			data = join(quoted("id", i.part)+quoted("messageID", i.msg.ID), data)
			r.data = fmt.Appendf(nil, `{"sessionID":%q,"part":%s,"time":%d}`, v.session, data, i.at)
		} else {
			r.data = data
		}
	}
	return r.record(), nil
}

func quoted(name, value string) string {
	return `"` + name + `":` + strconv.QuoteToASCII(value) + `,`
}

// join puts members before those of an object.
func join(members string, object []byte) []byte {
	at := slices.Index(object, '{') + 1
	rest := object[at:]
	if empty(rest) {
		members = members[:len(members)-1]
	}
	return append([]byte("{"+members), rest...)
}

func empty(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '}'
		}
	}
	return true
}
