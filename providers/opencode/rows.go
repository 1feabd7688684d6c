package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"steno/providers"
)

// Rows of one batch: at most, and after one that failed.
const (
	maxRows   = 256
	leastRows = 8
)

// Cursor goes on at a mark, or before the first row.
func (Provider) Cursor(a providers.Artifact, saved []byte) (providers.Cursor, error) {
	db, session, err := split(a)
	if err != nil {
		return nil, err
	}
	m := mark{}
	if saved != nil {
		if m, err = parseMark(saved); err != nil {
			return nil, err
		}
		if m.Session != session {
			return nil, errors.New("read mark: it is of another session")
		}
	}
	return &cursor{db: db, session: session, at: m, most: maxRows}, nil
}

// AtEnd is the mark after the newest row, or after the last row below limit.
func (Provider) AtEnd(a providers.Artifact, limit int64) ([]byte, error) {
	db, session, err := split(a)
	if err != nil {
		return nil, err
	}
	file, err := identify(db)
	if err != nil {
		return nil, err
	}
	var m mark
	err = look(context.Background(), db, session, func(v *view) error {
		m, err = v.atEnd(limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m.in(session, file).encode()
}

// Born is when the session was made.
func (Provider) Born(a providers.Artifact) (time.Time, error) {
	db, session, err := split(a)
	if err != nil {
		return time.Time{}, err
	}
	if _, err := identify(db); err != nil {
		return time.Time{}, err
	}
	var born int64
	err = look(context.Background(), db, session, func(v *view) error {
		born = v.born
		return nil
	})
	return millis(born), err
}

// mark is a place in a session, with what proves that it is still the same.
type mark struct {
	Session string `json:"s"`
	Dev     uint64 `json:"d"`
	Ino     uint64 `json:"i"`
	Off     int64  `json:"o"`           // rows of the event table: the next sequence
	Last    string `json:"l,omitempty"` // id of the event before it
	// What stands for the event table in databases without one; nil where
	// there is one, and before the first row.
	Rows *place `json:"r,omitempty"`
}

func (m mark) in(session string, file identity) mark {
	m.Session, m.Dev, m.Ino = session, file.dev, file.ino
	return m
}

// maxMark is what a mark may take, in bytes.
const maxMark = 1 << 10

func (m mark) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err == nil && len(b) > maxMark {
		err = fmt.Errorf("%d bytes", len(b))
	}
	if err != nil {
		return nil, fmt.Errorf("encode mark: %w", err)
	}
	return b, nil
}

func parseMark(b []byte) (mark, error) {
	var m mark
	if err := json.Unmarshal(b, &m); err != nil {
		return mark{}, errors.New("read mark: it is not one of this provider")
	}
	if m.Off < 0 || !sessionID.MatchString(m.Session) || m.Rows != nil && !m.Rows.sound() {
		return mark{}, errors.New("read mark: it is not one of this provider")
	}
	return m, nil
}

// cursor is a place in the rows of a session.
type cursor struct {
	db, session string
	at          mark // after the last record that was read
	most        int  // rows of a batch; fewer after one that took too long
	batch       batch
}

// batch is what one look found.
type batch struct {
	base    mark // before the first record
	records []providers.Record
	marks   func(n int) mark // after n records; MarkAt wants few of them
	reset   providers.Reset
	end     mark // after a reset
	more    bool
	size    int64
	advance *mark // the place moved without a record
}

// Read gives the next rows. What it could not read in time, or because of a
// lock, is an error that the next call need not meet.
func (c *cursor) Read(max int) (providers.Batch, error) {
	c.Release()
	file, err := identify(c.db)
	if err != nil {
		return providers.Batch{}, err
	}
	var b batch
	err = look(context.Background(), c.db, c.session, func(v *view) error {
		b, err = v.next(c.at, file, max, c.most)
		return err
	})
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.most = min(c.most, leastRows) // a slow disk: what is read at least gets smaller
		}
		return providers.Batch{}, err
	}
	c.most = min(2*c.most, maxRows)
	if b.reset != providers.Same {
		c.at = b.end.in(c.session, file)
		b.base = c.at
		b.marks = func(int) mark { return c.at }
	} else {
		b.base = c.at.in(c.session, file)
		if len(b.records) > 0 {
			c.at = b.marks(len(b.records)).in(c.session, file)
		} else {
			c.at = b.base
			if b.advance != nil {
				c.at = b.advance.in(c.session, file)
				b.base = c.at
			}
		}
	}
	c.batch = b
	return providers.Batch{Records: b.records, Reset: b.reset, More: b.more, Size: b.size}, nil
}

// Offset is the sequence of the next row.
func (c *cursor) Offset() int64 { return c.at.Off }

// MarkAt is the mark at the offset, or at a border of the last batch.
func (c *cursor) MarkAt(off int64) ([]byte, error) {
	if off == c.at.Off {
		return c.at.encode()
	}
	for i := range c.batch.records {
		switch r := &c.batch.records[i]; off {
		case r.Start:
			// Nothing lies between this and the end of the record before.
			if i == 0 {
				return c.batch.base.encode()
			}
			return c.batch.marks(i).in(c.session, identity{c.batch.base.Dev, c.batch.base.Ino}).encode()
		case r.End:
			return c.batch.marks(i+1).in(c.session, identity{c.batch.base.Dev, c.batch.base.Ino}).encode()
		}
	}
	if off == c.batch.base.Off && c.batch.base.Session != "" {
		return c.batch.base.encode()
	}
	return nil, fmt.Errorf("mark at %d: no border of the last batch", off)
}

// Release frees the last batch but for its borders.
func (c *cursor) Release() {
	for i := range c.batch.records {
		c.batch.records[i].Data = nil
	}
}

// next is the batch after a mark.
func (v *view) next(m mark, file identity, max, most int) (batch, error) {
	if v.events {
		return v.nextEvents(m, file, max, most)
	}
	return v.nextRows(m, file, max, most)
}

func (v *view) atEnd(limit int64) (mark, error) {
	if v.events {
		return v.eventsEnd(limit)
	}
	return v.rowsEnd(limit)
}
