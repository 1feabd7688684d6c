package opencode

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"steno/providers"
)

// The event table (1.18.33) has one row for each durable change, in order of
// seq within its session. Both of its indexes begin with the session and lead
// to the sequence: what was read before costs nothing.
//
// The length of a row is asked for before its bytes: octet_length reads the
// head of the row alone.
const (
	queryProof  = `SELECT id FROM event WHERE aggregate_id = ? AND seq = ?`
	queryNewest = `SELECT seq, id FROM event WHERE aggregate_id = ? ORDER BY seq DESC LIMIT 1`
	queryBelow  = `SELECT seq, id FROM event WHERE aggregate_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1`
	queryEvents = `SELECT seq, id, substr(type, 1, 128), octet_length(data),
		CASE WHEN octet_length(data) <= ? THEN data END
		FROM event WHERE aggregate_id = ? AND seq >= ? ORDER BY seq LIMIT ?`
	queryBack = `SELECT seq, id, substr(type, 1, 128), octet_length(data),
		CASE WHEN octet_length(data) <= ? THEN data END
		FROM event WHERE aggregate_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?`
)

// last is the event id as a mark keeps it.
func last(id string) string { return ident(id) }

func (v *view) eventsEnd(limit int64) (mark, error) {
	seq, id, err := v.newest(limit)
	if err != nil || seq < 0 {
		return mark{}, err
	}
	return mark{Off: seq + 1, Last: last(id)}, nil
}

// newest is the newest event, or the newest below limit; -1 when there is none.
func (v *view) newest(limit int64) (seq int64, id string, err error) {
	row := v.tx.QueryRowContext(v.ctx, queryNewest, v.session)
	if limit >= 0 {
		row = v.tx.QueryRowContext(v.ctx, queryBelow, v.session, limit)
	}
	switch err := row.Scan(&seq, &id); {
	case errors.Is(err, sql.ErrNoRows):
		return -1, "", nil
	case err != nil:
		return 0, "", classify(v.ctx, "read newest row", err)
	}
	return seq, id, nil
}

// verify says whether what stands before a mark is what was read there: the
// event before it is the same one. The file's identity only explains.
func (v *view) verify(m mark, file identity) (providers.Reset, error) {
	moved := m.Dev != file.dev || m.Ino != file.ino
	if m.Rows != nil {
		return providers.Rewritten, nil // an update of the program made the table
	}
	if m.Off == 0 {
		return providers.Same, nil
	}
	var id string
	err := v.tx.QueryRowContext(v.ctx, queryProof, v.session, m.Off-1).Scan(&id)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return "", classify(v.ctx, "verify place", err)
	case err == nil && (m.Last == "" || last(id) == m.Last):
		return providers.Same, nil
	case moved:
		return providers.Replaced, nil
	case err != nil:
		return providers.Truncated, nil
	}
	return providers.Rewritten, nil
}

func (v *view) nextEvents(m mark, file identity, max, most int) (batch, error) {
	seq, id, err := v.newest(-1)
	if err != nil {
		return batch{}, err
	}
	b := batch{size: seq + 1}
	if b.reset, err = v.verify(m, file); err != nil {
		return batch{}, err
	}
	if b.reset != providers.Same {
		if seq >= 0 {
			b.end = mark{Off: seq + 1, Last: last(id)}
		}
		return b, nil
	}
	var ids []string
	b.records, ids, err = v.readEvents(queryEvents, m.Off, max, most)
	if err != nil {
		return batch{}, err
	}
	b.marks = func(n int) mark {
		if n == 0 {
			return m
		}
		return mark{Off: b.records[n-1].End, Last: last(ids[n-1])}
	}
	n := len(b.records)
	b.more = n > 0 && b.records[n-1].End <= seq
	return b, nil
}

// readEvents reads rows in the order of the query, about max bytes, until the time
// is over; at least one.
func (v *view) readEvents(query string, from int64, max, most int) (recs []providers.Record, ids []string, err error) {
	rows, err := v.tx.QueryContext(v.ctx, query, providers.MaxRecord, v.session, from, most)
	if err != nil {
		return nil, nil, classify(v.ctx, "read rows", err)
	}
	defer rows.Close()
	for total := 0; total < max || len(recs) == 0; {
		if !rows.Next() {
			break
		}
		var r row
		if err := rows.Scan(&r.seq, &r.id, &r.kind, &r.size, &r.data); err != nil {
			if len(recs) > 0 {
				break
			}
			return nil, nil, classify(v.ctx, "read rows", err)
		}
		rec := r.record()
		total += len(rec.Data)
		recs, ids = append(recs, rec), append(ids, r.id)
	}
	if err := rows.Err(); err != nil && len(recs) == 0 {
		return nil, nil, classify(v.ctx, "read rows", err)
	}
	return recs, ids, nil
}

// row is one row as it becomes a record.
type row struct {
	seq  int64
	id   string
	kind sql.NullString
	size sql.NullInt64
	data []byte // nil when it is too long
}

// record composes {"seq":…,"type":…,"data":…}.
func (r *row) record() providers.Record {
	rec := providers.Record{Start: r.seq, End: r.seq + 1, Framing: providers.Rows}
	if rec.Gap = gapOf(r.data, r.size.Int64); rec.Gap != providers.Whole {
		rec.Size = r.size.Int64
		return rec
	}
	kind, err := json.Marshal(r.kind.String)
	if err != nil {
		kind = []byte(`""`)
	}
	buf := make([]byte, 0, len(r.data)+len(kind)+64)
	buf = append(buf, `{"seq":`...)
	buf = strconv.AppendInt(buf, r.seq, 10)
	buf = append(buf, `,"type":`...)
	buf = append(buf, kind...)
	buf = append(buf, `,"data":`...)
	buf = append(buf, r.data...)
	rec.Data = append(buf, '}')
	return rec
}

// gapOf says why a row is no record.
func gapOf(data []byte, size int64) providers.Gap {
	switch {
	case size > providers.MaxRecord:
		return providers.Oversized
	case len(bytes.Trim(data, "\x00")) == 0 && len(data) > 0:
		return providers.Padding
	case tooDeep(data):
		return providers.TooDeep
	}
	if b := bytes.TrimLeft(data, " \t\r\n"); len(b) == 0 || b[0] != '{' || !json.Valid(data) {
		return providers.Malformed
	}
	return providers.Whole
}

// tooDeep says whether JSON is nested deeper than 512 levels, the record that
// it will be a part of included.
func tooDeep(b []byte) bool {
	deep, inside := 1, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			if deep++; deep > 512 {
				return true
			}
		case c == '}' || c == ']':
			deep--
		}
	}
	return false
}
