package opencode

import (
	"database/sql"
	"slices"

	"steno/providers"
)

// Databases without the event table (before its migration of 2026-03-23) hold
// the newest state of each message and part alone, and no order of changes but
// time_updated. They are read as the events that must have led there: a message
// is announced as it began, then its parts as they are, then itself if it has
// ended.
//
// Each look goes over the messages from a floor on: the prompt before the
// newest one, or the first message before that which has not ended. So it costs
// what two turns hold, not what the session does. These are given in the order
// of time; what is before them and was not given yet, in the order of messages.
//
// What is changed in a message that has ended (the program empties old tool
// output) says nothing of turns and is not given again. A message that is added
// before the floor is history: an import. Where a clock that was set back makes
// new messages look like that, the session's own time tells, and the place is
// given up (verifyRows). A version of a part that has the millisecond and the
// length of the one before cannot be told from it.

// maxItems bounds the parts of one look, and those of a message. Tests lower it.
var maxItems = 4096

const (
	maxWindow = 64 // messages of one look
	// perRow is how many parts are looked over for each record that is asked
	// for: a look that took too long is followed by one over fewer.
	perRow = 16
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

// snapshot is what a look found, in the order in which it is given.
type snapshot struct {
	history []item // of the messages before the floor that is to come
	news    []item // of those behind it
	floor   key
	whole   bool // the window reaches to the newest message; else there are no news
}

// snapshot reads the messages from the floor of a place on, with about most parts.
func (v *view) snapshot(at *place, most int) (snapshot, error) {
	window, err := v.window(at.Floor)
	if err != nil {
		return snapshot{}, err
	}
	whole, floor := len(window) <= maxWindow, key{}
	if whole {
		floor = v.floor(window, at.Floor)
	} else {
		window = window[:maxWindow]
		floor = window[maxWindow-maxWindow/4].key
	}
	parts, n, err := v.parts(window, most)
	if err != nil {
		return snapshot{}, err
	}
	if n < len(window) {
		floor, window, whole = window[n].key, window[:n], false
	}
	return arrange(window, parts, floor, whole), nil
}

func arrange(window []*message, parts map[string][]item, floor key, whole bool) snapshot {
	s := snapshot{floor: floor, whole: whole}
	for _, m := range window {
		switch items := m.items(parts[m.ID]); {
		case m.compare(floor) < 0:
			slices.SortFunc(items, func(a, b item) int { return a.byMessage(b.spot) })
			s.history = append(s.history, items...)
		case whole:
			s.news = append(s.news, items...)
		}
	}
	slices.SortFunc(s.news, func(a, b item) int { return a.byTime(b.spot) })
	return s
}

// nextRows is the batch after a place: history first, then news.
func (v *view) nextRows(m mark, file identity, max, most int) (batch, error) {
	at := place{}
	if m.Rows != nil {
		at = *m.Rows
	}
	if reset, err := v.verifyRows(m, file); err != nil {
		return batch{}, err
	} else if reset != providers.Same {
		end, err := v.rowsEnd(-1)
		return batch{reset: reset, end: end, size: end.Off}, err
	}
	s, err := v.snapshot(&at, min(most*perRow, maxItems))
	if err != nil {
		return batch{}, err
	}
	old, news, had := s.split(&at)
	at.Updated = v.updated
	if len(old) == 0 {
		at.Floor, at.Walk = s.floor, nil
	}
	b := batch{more: !s.whole}
	places := []mark{m}
	for n, total := 0, 0; n < len(old)+len(news); n++ {
		if n > 0 && (total >= max || n >= most) {
			b.more = true
			break
		}
		i := item{}
		if n < len(old) {
			i = old[n]
		} else {
			i = news[n-len(old)]
		}
		rec, err := v.record(i, places[n].Off)
		if err != nil && n > 0 {
			b.more = true
			break
		}
		if err != nil {
			return batch{}, err
		}
		if i.Class == begins {
			at.Newest = i.Msg.ID
		}
		switch {
		case n < len(old)-1:
			at.Walk = &i.spot
		case n == len(old)-1:
			at.Floor, at.Walk = s.floor, nil
		default:
			had = had.add(i, &at)
		}
		given := at
		b.records = append(b.records, rec)
		places = append(places, mark{Off: rec.End, Rows: &given})
		total += len(rec.Data)
	}
	if len(b.records) == 0 && (m.Rows != nil || b.more) {
		b.advance = &mark{Off: m.Off, Rows: &at}
	}
	b.marks = func(n int) mark { return places[n] }
	b.size = places[len(places)-1].Off
	return b, nil
}

// split takes away what was given. The items that Seen stands for are kept
// apart; what it has of older versions is of no use any more.
func (s *snapshot) split(at *place) (old, news []item, had kept) {
	over := map[string]bool{}
	fresh := func(i *item) bool {
		if i.Class == begins {
			over[i.Msg.ID] = at.over(i.msg)
		}
		return !at.given(i) && (i.Class == ends || !over[i.Msg.ID])
	}
	for _, i := range s.history {
		if fresh(&i) {
			old = append(old, i)
		}
	}
	for _, i := range s.news {
		switch {
		case fresh(&i):
			news = append(news, i)
		case slices.Contains(at.Seen, i.slot):
			had = append(had, i)
		}
	}
	return old, news, had
}

// verifyRows says whether the rows are those that were read. A message that is
// gone alone is none: /undo takes them away. A session whose own time has gone
// back with it is an older copy; one whose time is before the floor may have
// got messages that will never be looked at.
func (v *view) verifyRows(m mark, file identity) (providers.Reset, error) {
	switch {
	case m.Rows == nil && m.Off > 0:
		return providers.Replaced, nil // its table of events is gone: another, older database
	case m.Rows == nil || m.Rows.Newest == "":
		return providers.Same, nil
	}
	moved, back, lost := m.Dev != file.dev || m.Ino != file.ino, v.updated < m.Rows.Updated, v.updated < m.Rows.Floor.At
	if m.Rows.Low != nil {
		lost = lost || v.updated < m.Rows.Low.At
	}
	if !moved && !back {
		return providers.Same, nil
	}
	found, err := v.hasMessage(m.Rows.Newest)
	switch {
	case err != nil:
		return "", err
	case moved && (back || !found):
		return providers.Replaced, nil
	case back && (!found || lost):
		return providers.Rewritten, nil
	}
	return providers.Same, nil
}

func (v *view) hasMessage(id string) (bool, error) {
	var n int
	err := v.tx.QueryRowContext(v.ctx, queryMessage, id).Scan(&n)
	if err != nil {
		return false, classify(v.ctx, "verify place", err)
	}
	return n > 0, nil
}

// window are the messages from the floor on, in order; one more than a window
// when there are more.
func (v *view) window(floor key) (out []*message, err error) {
	return v.messages(queryMessages, providers.MaxRecord, v.session, floor.At, floor.ID, maxWindow+1)
}

func (v *view) messages(query string, args ...any) (out []*message, err error) {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return nil, classify(v.ctx, "read messages", err)
	}
	defer rows.Close()
	for rows.Next() {
		m := &message{}
		var size sql.NullInt64
		if err := rows.Scan(&m.ID, &m.At, &m.updated, &size, &m.data); err != nil {
			return nil, classify(v.ctx, "read messages", err)
		}
		m.size = size.Int64
		if gapOf(m.data, m.size) == providers.Whole {
			m.info = infoOf(m.data)
		}
		out = append(out, m)
	}
	if err := rows.Err(); err != nil {
		return nil, classify(v.ctx, "read messages", err)
	}
	return out, nil
}

// parts are those of the messages of a window, without their data, and the number
// of its messages, one at least, that have all of theirs in about most parts. A
// message with more than maxItems has one in their place, which is no record and
// so a gap.
func (v *view) parts(window []*message, most int) (out map[string][]item, n int, err error) {
	if len(window) == 0 {
		return nil, 0, nil
	}
	out, cut, err := v.listParts(window, most)
	if err != nil || cut < 0 {
		return out, len(window), err
	}
	if cut > 0 {
		return out, cut, nil
	}
	if most < maxItems {
		if out, cut, err = v.listParts(window[:1], maxItems); err != nil {
			return nil, 0, err
		}
	}
	if cut == 0 {
		out = map[string][]item{window[0].ID: {{spot: spot{Class: holds}, slot: slotOf(holds, window[0].ID, "too many")}}}
	}
	return out, 1, nil
}

// listParts reads most parts of a window; cut is the place of the message whose
// next part there was no room for, -1 when there is none.
func (v *view) listParts(window []*message, most int) (out map[string][]item, cut int, err error) {
	first, end := window[0].key, window[len(window)-1].key
	rows, err := v.tx.QueryContext(v.ctx, queryParts, v.session, first.At, first.ID, end.At, end.ID, most+1)
	if err != nil {
		return nil, 0, classify(v.ctx, "read parts", err)
	}
	defer rows.Close()
	out, cut = map[string][]item{}, -1
	for n := 0; rows.Next(); n++ {
		of := ""
		var size sql.NullInt64
		i := item{spot: spot{Class: holds}}
		if err := rows.Scan(&of, &i.Part, &i.At, &size); err != nil {
			return nil, 0, classify(v.ctx, "read parts", err)
		}
		if n == most {
			cut = slices.IndexFunc(window, func(m *message) bool { return m.ID == of })
			break
		}
		i.size = size.Int64
		i.slot = slotOf(holds, i.Part, i.At, i.size)
		out[of] = append(out[of], i)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, classify(v.ctx, "read parts", err)
	}
	return out, cut, nil
}

// floor is where the next look begins.
func (v *view) floor(window []*message, old key) key {
	at, prompts := old, 0
	for _, m := range slices.Backward(window) {
		if m.info.Role == "user" {
			if prompts++; prompts == 2 {
				at = m.key
				break
			}
		}
	}
	for _, m := range window {
		if m.info.Role == "assistant" && !m.ending().final() {
			at = m.min(at)
			break
		}
	}
	// The session is touched by each prompt. If its time is before them, their
	// clock was set back, and the next ones are dated like it.
	at = key{At: v.updated}.min(at)
	if at.compare(old) < 0 {
		return old
	}
	return at
}
