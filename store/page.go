package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
)

// Bounds of a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	// DefaultMaxBytes is what a page has room for unasked; the largest event
	// with its sequence fits.
	DefaultMaxBytes = MaxBody + 100
	// MaxExamined is how many events a page with a filter looks at.
	MaxExamined = 10_000
	// maxFilter bounds the entries of one filter.
	maxFilter = 1000
)

const (
	sqlPage = `SELECT seq, body FROM events WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3`
	// A filter is a JSON array, or NULL for all.
	sqlFiltered = `SELECT seq, body FROM events WHERE seq > ?1 AND seq <= ?2
		AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
		AND (?5 IS NULL OR agent IN (SELECT value FROM json_each(?5)))
		ORDER BY seq LIMIT ?3`
)

type readStmts struct {
	meta, page, filtered, agents, sources, servers *sql.Stmt
}

func (r *readStmts) all() []statement {
	return []statement{
		{&r.meta, sqlMeta}, {&r.page, sqlPage}, {&r.filtered, sqlFiltered},
		{&r.agents, sqlAgents}, {&r.sources, sqlSources}, {&r.servers, sqlServers},
	}
}

// Query asks for the events after a cursor.
type Query struct {
	After Seq
	// Limit is the most events; 0 = DefaultLimit, at most MaxLimit.
	Limit int
	// MaxBytes bounds the events' JSON with the commas between them; 0 =
	// DefaultMaxBytes. One event is given even if it is longer.
	MaxBytes int
	// Kinds and Agents keep events of these kinds and of these agents; empty
	// keeps all. At most 1,000 each.
	Kinds, Agents []string
}

// Page is what a reader gets.
type Page struct {
	// Gap says that events after the cursor are gone, or that the cursor is
	// beyond the head and belongs to another log. There are no events then,
	// and Next is the cursor.
	Gap bool
	// After is the cursor of the query.
	After Seq
	// Oldest is the oldest stored event, Latest+1 when there is none.
	Oldest, Latest Seq
	// Next is the cursor to go on with: the last event of the page, or After
	// when it has none. With a filter it is the last event examined, which may
	// be below Latest on an empty page: ask again at once then.
	Next Seq
	// Events are JSON objects with their sequence.
	Events [][]byte
}

// Page reads events in one snapshot. It examines at most MaxExamined events.
func (s *Store) Page(ctx context.Context, q Query) (Page, error) {
	kinds, err := filter(q.Kinds)
	if err != nil {
		return Page{}, err
	}
	agents, err := filter(q.Agents)
	if err != nil {
		return Page{}, err
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	if q.MaxBytes <= 0 {
		q.MaxBytes = DefaultMaxBytes
	}
	var p Page
	err = s.read(ctx, opPage, "read page", func(tx *sql.Tx) error {
		m, err := readMeta(ctx, tx.StmtContext(ctx, s.rstmt.meta))
		if err != nil {
			return err
		}
		p = Page{After: q.After, Oldest: m.pruned + 1, Latest: m.latest, Next: q.After}
		p.Gap = q.After < m.pruned || q.After > m.latest
		if p.Gap || q.After == m.latest {
			return nil
		}
		if kinds == nil && agents == nil {
			return s.plain(ctx, tx, q, &p)
		}
		return s.filtered(ctx, tx, q, kinds, agents, &p)
	})
	if err != nil {
		return Page{}, err
	}
	return p, nil
}

// plain reads a page without a filter, and proves that it has no hole.
func (s *Store) plain(ctx context.Context, tx *sql.Tx, q Query, p *Page) error {
	rows, err := tx.StmtContext(ctx, s.rstmt.page).QueryContext(ctx, int64(q.After), int64(p.Latest), q.Limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	cut, err := p.fill(rows, q.MaxBytes)
	if err != nil {
		return err
	}
	want := min(p.Latest-q.After, Seq(q.Limit))
	if got := Seq(len(p.Events)); p.Next != q.After+got || !cut && got != want {
		return corrupt("%d of %d events after %d are stored", got, want, q.After)
	}
	return nil
}

// filtered reads a page with a filter. Sequences have no holes, so a range of
// them bounds the events that are examined.
func (s *Store) filtered(ctx context.Context, tx *sql.Tx, q Query, kinds, agents any, p *Page) error {
	through := min(p.Latest, q.After+MaxExamined)
	rows, err := tx.StmtContext(ctx, s.rstmt.filtered).QueryContext(ctx, int64(q.After), int64(through), q.Limit, kinds, agents)
	if err != nil {
		return err
	}
	defer rows.Close()
	cut, err := p.fill(rows, q.MaxBytes)
	if err != nil {
		return err
	}
	if !cut && len(p.Events) < q.Limit {
		p.Next = through
	}
	return nil
}

// fill adds events until the bytes are used up, and says whether they were.
func (p *Page) fill(rows *sql.Rows, room int) (cut bool, err error) {
	for rows.Next() {
		var seq int64
		var body sql.RawBytes
		if err := rows.Scan(&seq, &body); err != nil {
			return false, err
		}
		if len(body) < len(bodyStart) {
			return false, corrupt("event %d has no body", seq)
		}
		e := splice(Seq(seq), body)
		if room -= len(e); len(p.Events) > 0 {
			room--
		}
		if room < 0 && len(p.Events) > 0 {
			return true, nil
		}
		p.Events = append(p.Events, e)
		p.Next = Seq(seq)
	}
	return false, rows.Err()
}

// splice puts the sequence in front of a body's first key.
func splice(seq Seq, body []byte) []byte {
	const key = `{"sequence":`
	e := make([]byte, 0, len(key)+20+len(body))
	e = append(e, key...)
	e = strconv.AppendUint(e, uint64(seq), 10)
	e = append(e, ',')
	return append(e, body[1:]...)
}

// filter returns the JSON array of a filter, nil when there is none.
func filter(names []string) (any, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if len(names) > maxFilter {
		return nil, fmt.Errorf("read page: %w: %d names in a filter, at most %d", ErrInvalid, len(names), maxFilter)
	}
	b, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	return string(b), nil
}

// read runs f in one read transaction, and keeps the health of the store.
func (s *Store) read(ctx context.Context, op operation, doing string, f func(*sql.Tx) error) error {
	if s.isClosed() {
		return ErrClosed
	}
	err := s.snapshot(ctx, f)
	if err == nil {
		// A connection opened late may have met another file.
		_, err = s.files.check()
	}
	if err != nil && s.isClosed() {
		return ErrClosed
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	err = wrap(doing, err)
	s.note(ctx, op, err)
	return err
}

func (s *Store) snapshot(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.rdb.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return f(tx)
}
