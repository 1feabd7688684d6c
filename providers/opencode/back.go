package opencode

import (
	"context"
	"slices"

	"steno/providers"
)

// backRows is how many rows one look backwards takes.
const backRows = maxRows

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

// latest is a snapshot of the newest messages of a session, with the number of
// each item.
func (v *view) latest() (s snapshot, start key, err error) {
	window, err := v.messages(queryMessagesBack, providers.MaxRecord, v.session, maxWindow)
	if err != nil {
		return snapshot{}, key{}, err
	}
	slices.Reverse(window)
	full := len(window) == maxWindow
	for {
		parts, n, err := v.parts(window, maxItems)
		if err != nil {
			return snapshot{}, key{}, err
		}
		if n < len(window) { // too many: the newest ones matter
			window, full = window[len(window)/2:], true
			continue
		}
		if full {
			start = window[0].key
		}
		return arrange(window, parts, v.floor(window, start), true), start, nil
	}
}

// number gives each item its place in the numbering of records.
func number(items []item) []int64 {
	var out []int64
	end := int64(0)
	for _, i := range items {
		out = append(out, max(end, i.At*slots))
		end = out[len(out)-1] + 1
	}
	return out
}

// rowsEnd is the end of a session without events, or the place before limit.
func (v *view) rowsEnd(limit int64) (mark, error) {
	s, start, err := v.latest()
	if err != nil {
		return mark{}, err
	}
	items := append(s.history, s.news...)
	at, off := place{Floor: start, Updated: v.updated}, int64(0)
	var had kept
	for n, seq := range number(items) {
		i := items[n]
		if limit >= 0 && seq >= limit {
			break
		}
		if i.Class == begins {
			at.Newest = i.Msg.ID
		}
		if n < len(s.history) {
			at.Walk = &i.spot
		} else {
			had = had.add(i, &at)
		}
		if n >= len(s.history)-1 {
			at.Floor, at.Walk = s.floor, nil
		}
		off = seq + 1
	}
	if off == 0 {
		return mark{}, nil
	}
	return mark{Off: off, Rows: &at}, nil
}

// rowsBack are the newest records of a session without events that begin
// before off, newest first, about most bytes of them.
func (v *view) rowsBack(off int64, most int) ([]providers.Record, error) {
	s, _, err := v.latest()
	if err != nil {
		return nil, err
	}
	items := append(s.history, s.news...)
	seqs := number(items)
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
