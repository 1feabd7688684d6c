package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Committed tells what a commit did.
type Committed struct {
	Latest   Seq // head of the log, durable
	Inserted int // events that were new
	Pruned   int // events that retention removed
}

const (
	// A write-ahead log above this is brought home in full, which waits for
	// readers. Below it SQLite does so step by step, as far as readers allow.
	walHigh = 64 << 20
	// walWait is how long that may take, walPause how long a reader that would
	// not leave by then (another program's) is left alone.
	walWait  = 250 * time.Millisecond
	walPause = 10 * time.Second
)

// SQL of a commit. Each touches rows by key only.
const (
	sqlMeta    = `SELECT pruned_through, latest, bytes FROM meta WHERE id = 1`
	sqlSetMeta = `UPDATE meta SET pruned_through = ?1, latest = ?2, bytes = ?3 WHERE id = 1`
	// AUTOINCREMENT counts an insert that a conflict then drops, so a known id
	// must not get as far.
	sqlInsert = `INSERT INTO events (event_id, kind, agent, incarnation, size, body)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS (SELECT 1 FROM events WHERE event_id = ?1)`
	sqlOldest = `SELECT seq, size FROM events WHERE seq > ?1 ORDER BY seq`
	sqlPrune  = `DELETE FROM events WHERE seq > ?1 AND seq <= ?2`
)

type writeStmts struct {
	meta, setMeta, insert, oldest, prune                  *sql.Stmt
	putSource, dropSource, putAgent, dropAgent, putServer *sql.Stmt
}

// all pairs every statement with its SQL.
func (w *writeStmts) all() []statement {
	return []statement{
		{&w.meta, sqlMeta}, {&w.setMeta, sqlSetMeta}, {&w.insert, sqlInsert}, {&w.oldest, sqlOldest}, {&w.prune, sqlPrune},
		{&w.putSource, sqlPutSource}, {&w.dropSource, sqlDropSource},
		{&w.putAgent, sqlPutAgent}, {&w.dropAgent, sqlDropAgent}, {&w.putServer, sqlPutServer},
	}
}

// meta is the head of the log and its totals.
type meta struct {
	pruned, latest Seq
	bytes          int64
}

func (m meta) events() int { return int(m.latest - m.pruned) }

func readMeta(ctx context.Context, stmt *sql.Stmt) (meta, error) {
	var pruned, latest int64
	var m meta
	err := stmt.QueryRowContext(ctx).Scan(&pruned, &latest, &m.bytes)
	if err == sql.ErrNoRows {
		return m, corrupt("the head of the log is missing")
	}
	m.pruned, m.latest = Seq(pruned), Seq(latest)
	return m, wrap("read head of log", err)
}

// Commit stores the batch in one transaction and, when that added events,
// closes the channel that Changed gave. On an error nothing was stored, with
// one exception that event ids make harmless: after a disk error or
// ErrReplaced the transaction may still appear after the next start.
//
// Once the lock is taken, ctx no longer interrupts it. An empty batch does
// nothing while the store works; after a failure it tries a small write.
func (s *Store) Commit(ctx context.Context, b Batch) (Committed, error) {
	if err := b.validate(); err != nil {
		return Committed{}, err
	}
	select {
	case s.write <- struct{}{}:
		defer func() { <-s.write }()
	case <-ctx.Done():
		return Committed{}, ctx.Err()
	}
	if s.isClosed() {
		return Committed{}, ErrClosed
	}
	var c Committed
	var err error
	if b.empty() && s.Working() {
		c, err = s.head(ctx)
	} else {
		c, err = s.commit(ctx, b)
	}
	err = wrap("commit batch", err)
	s.note(ctx, opCommit, err)
	if err != nil {
		return Committed{}, err
	}
	if c.Inserted > 0 {
		s.wake()
	}
	return c, nil
}

// head is a commit of nothing.
func (s *Store) head(ctx context.Context) (Committed, error) {
	if _, err := s.files.check(); err != nil {
		return Committed{}, err
	}
	m, err := readMeta(ctx, s.wstmt.meta)
	return Committed{Latest: m.latest}, err
}

// commit is one transaction. The caller holds the slot of write.
func (s *Store) commit(ctx context.Context, b Batch) (_ Committed, err error) {
	size, err := s.files.check()
	if err != nil {
		return Committed{}, err
	}
	if size > s.walHigh {
		s.truncateWAL(ctx)
	}
	done := false
	defer func() {
		if !done {
			// Also after a BEGIN that failed: it may have begun and been
			// interrupted then. Where there is no transaction this fails, and
			// nothing depends on it.
			s.wconn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	if _, err := s.wconn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return Committed{}, wrap("begin", err)
	}
	// An interrupted statement or COMMIT would leave its outcome open.
	ctx = context.WithoutCancel(ctx)
	c, err := s.apply(ctx, b)
	if err != nil {
		return Committed{}, err
	}
	if _, err := s.wconn.ExecContext(ctx, "COMMIT"); err != nil {
		return Committed{}, wrap("commit", err)
	}
	done = true
	if _, err := s.files.check(); err != nil {
		return Committed{}, err
	}
	return c, nil
}

// apply does the work of a commit inside its transaction.
func (s *Store) apply(ctx context.Context, b Batch) (Committed, error) {
	m, err := readMeta(ctx, s.wstmt.meta)
	if err != nil {
		return Committed{}, err
	}
	if top := m.latest + Seq(len(b.Events)); top > s.ceiling {
		ceiling, err := reserve(s.opts.Path, top)
		if err != nil {
			return Committed{}, err
		}
		s.ceiling = ceiling
	}
	before := m.latest
	if err := s.insertEvents(ctx, b.Events, &m); err != nil {
		return Committed{}, err
	}
	if err := s.putState(ctx, b); err != nil {
		return Committed{}, err
	}
	pruned, err := s.prune(ctx, &m)
	if err != nil {
		return Committed{}, err
	}
	c := Committed{Latest: m.latest, Inserted: int(m.latest - before), Pruned: pruned}
	// An empty batch is a trial: it has to write something.
	if c.Inserted > 0 || pruned > 0 || b.empty() {
		if _, err := s.wstmt.setMeta.ExecContext(ctx, int64(m.pruned), int64(m.latest), m.bytes); err != nil {
			return Committed{}, wrap("store head of log", err)
		}
	}
	return c, nil
}

func (s *Store) insertEvents(ctx context.Context, events []Event, m *meta) error {
	for i := range events {
		e := &events[i]
		r, err := s.wstmt.insert.ExecContext(ctx, e.ID, e.Kind, e.Agent, e.Incarnation, len(e.Body), e.Body)
		if err != nil {
			return wrap("insert event", err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return wrap("insert event", err)
		}
		if n == 0 {
			continue
		}
		seq, err := r.LastInsertId()
		if err != nil {
			return wrap("insert event", err)
		}
		if Seq(seq) != m.latest+1 {
			return corrupt("event got sequence %d after %d", seq, m.latest)
		}
		m.latest++
		m.bytes += int64(len(e.Body))
	}
	return nil
}

// prune removes the oldest events until both bounds hold. It walks over those
// that go, and no others.
func (s *Store) prune(ctx context.Context, m *meta) (int, error) {
	over := func(m meta) bool { return m.events() > s.opts.RetainEvents || m.bytes > s.opts.RetainBytes }
	if !over(*m) {
		return 0, nil
	}
	to, err := s.pruneTo(ctx, *m, over)
	if err != nil {
		return 0, err
	}
	r, err := s.wstmt.prune.ExecContext(ctx, int64(m.pruned), int64(to.pruned))
	if err != nil {
		return 0, wrap("prune", err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		return 0, wrap("prune", err)
	}
	if Seq(n) != to.pruned-m.pruned {
		return 0, corrupt("pruned %d events of %d", n, to.pruned-m.pruned)
	}
	*m = to
	return int(n), nil
}

func (s *Store) pruneTo(ctx context.Context, m meta, over func(meta) bool) (meta, error) {
	rows, err := s.wstmt.oldest.QueryContext(ctx, int64(m.pruned))
	if err != nil {
		return m, wrap("find events to prune", err)
	}
	defer rows.Close()
	for over(m) && rows.Next() {
		var seq, size int64
		if err := rows.Scan(&seq, &size); err != nil {
			return m, wrap("find events to prune", err)
		}
		if Seq(seq) != m.pruned+1 {
			return m, corrupt("event %d is missing", m.pruned+1)
		}
		m.pruned, m.bytes = Seq(seq), m.bytes-size
	}
	if err := rows.Err(); err != nil {
		return m, wrap("find events to prune", err)
	}
	if over(m) || m.bytes < 0 {
		return m, corrupt("the totals do not match the events")
	}
	return m, nil
}

// truncateWAL waits a little for readers and empties the write-ahead log.
// Readers that never pause at once would otherwise let it grow.
func (s *Store) truncateWAL(ctx context.Context) {
	if time.Now().Before(s.truncateAt) {
		return
	}
	// Failures are not reported: the commit that follows meets the same one.
	s.wconn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", walWait.Milliseconds()))
	var busy, pages, moved int
	err := s.wconn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	if err != nil || busy != 0 {
		s.truncateAt = time.Now().Add(walPause)
	}
	s.wconn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", s.opts.BusyTimeout.Milliseconds()))
}
