package opencode

import (
	"context"
	"slices"

	"steno/providers"
)

// backRows is how many rows one look backwards takes.
const backRows = 64

// Back reads the rows before a mark, newest first.
func (Provider) Back(a providers.Artifact, saved []byte, most int64) (providers.Backward, error) {
	db, session, err := split(a)
	if err != nil {
		return nil, err
	}
	m, err := parseMark(saved)
	if err != nil {
		return nil, err
	}
	return &backward{db: db, session: session, at: m, left: most}, nil
}

// backward reads a few rows at a time, each time in a transaction of its own.
type backward struct {
	db, session string
	at          mark
	left        int64 // bytes
	chunk       []providers.Record
	over        bool
}

// Next is the next older record.
func (b *backward) Next() (providers.Record, bool, error) {
	if len(b.chunk) == 0 && !b.over && b.left > 0 {
		err := look(context.Background(), b.db, b.session, func(v *view) (err error) {
			if !v.events {
				b.chunk, err = v.rowsBack(b.at.Off, int(min(b.left, 8<<20)))
				b.over = true
				return err
			}
			b.chunk, _, err = v.readEvents(queryBack, b.at.Off, int(min(b.left, 1<<20)), backRows)
			return err
		})
		if err != nil {
			return providers.Record{}, false, err
		}
		if len(b.chunk) == 0 {
			b.over = true
		}
	}
	if len(b.chunk) == 0 || b.left <= 0 {
		return providers.Record{}, false, nil
	}
	r := b.chunk[0]
	b.chunk = b.chunk[1:]
	b.at.Off = r.Start
	b.left -= max(1, int64(len(r.Data)))
	return r, true, nil
}

// Close frees the records.
func (b *backward) Close() { b.chunk, b.over = nil, true }

// recent are the newest messages of a session, in order.
func (v *view) recent() ([]*message, error) {
	rows, err := v.tx.QueryContext(v.ctx, queryMessagesBack, providers.MaxRecord, v.session, maxWindow)
	if err != nil {
		return nil, classify(v.ctx, "read messages", err)
	}
	defer rows.Close()
	var out []*message
	for rows.Next() {
		m, err := v.scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if err := rows.Err(); err != nil {
		return nil, classify(v.ctx, "read messages", err)
	}
	slices.Reverse(out)
	return out, nil
}

// rowsEnd is the end of a session without events, or the place before limit.
func (v *view) rowsEnd(limit int64) (mark, error) {
	window, err := v.recent()
	if err != nil {
		return mark{}, err
	}
	items, err := v.items(window, place{})
	if err != nil {
		return mark{}, err
	}
	at, off := place{}, int64(0)
	for _, i := range items {
		seq := max(off, i.at*slots)
		if limit >= 0 && seq >= limit {
			break
		}
		at, off = at.after(i), seq+1
	}
	at.Floor = floor(window, key{}, len(window) == maxWindow)
	if off == 0 {
		return mark{}, nil
	}
	return mark{Off: off, Rows: &at}, nil
}

// rowsBack are the newest records of a session without events that begin
// before off, newest first, about most bytes of them.
func (v *view) rowsBack(off int64, most int) ([]providers.Record, error) {
	window, err := v.recent()
	if err != nil {
		return nil, err
	}
	items, err := v.items(window, place{})
	if err != nil {
		return nil, err
	}
	var seqs []int64
	end := int64(0)
	for _, i := range items {
		seq := max(end, i.at*slots)
		seqs, end = append(seqs, seq), seq+1
	}
	var out []providers.Record
	for n, total := len(items)-1, 0; n >= 0 && total < most; n-- {
		if seqs[n] >= off {
			continue
		}
		r, err := v.record(items[n], seqs[n])
		if err != nil {
			if len(out) > 0 {
				break // out of time: what was met has to do
			}
			return nil, err
		}
		total += len(r.Data)
		out = append(out, r)
	}
	return out, nil
}
