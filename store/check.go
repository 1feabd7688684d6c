package store

import (
	"context"
	"database/sql"
	"errors"
)

// verify compares the ends of the log with its head, and with full also every
// page and every event. It returns ErrCorrupt when they disagree.
func (s *Store) verify(ctx context.Context, full bool) error {
	return wrap("verify database", s.snapshot(ctx, func(tx *sql.Tx) error {
		m, err := readMeta(ctx, tx.StmtContext(ctx, s.rstmt.meta))
		if err != nil {
			return err
		}
		var oldest, newest, handed sql.NullInt64
		err = tx.QueryRowContext(ctx, `SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events),
			(SELECT seq FROM sqlite_sequence WHERE name = 'events')`).Scan(&oldest, &newest, &handed)
		if err != nil {
			return err
		}
		switch {
		case Seq(handed.Int64) != m.latest:
			return corrupt("sequence %d was handed out, the head is %d", handed.Int64, m.latest)
		case m.events() == 0 && !oldest.Valid:
		case !oldest.Valid || Seq(oldest.Int64) != m.pruned+1 || Seq(newest.Int64) != m.latest:
			return corrupt("events %d to %d are stored, the head says %d to %d", oldest.Int64, newest.Int64, m.pruned+1, m.latest)
		}
		if !full {
			return nil
		}
		return verifyAll(ctx, tx, m)
	}))
}

func verifyAll(ctx context.Context, tx *sql.Tx, m meta) error {
	var found string
	if err := tx.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return corrupt("the integrity check failed")
	}
	var events, bytes, wrong int64
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(size), 0), coalesce(sum(size <> length(body)), 0) FROM events`).
		Scan(&events, &bytes, &wrong)
	if err != nil {
		return err
	}
	if events != int64(m.events()) || bytes != m.bytes || wrong != 0 {
		return corrupt("%d events of %d bytes are stored, the totals say %d of %d; %d have another size than noted",
			events, bytes, m.events(), m.bytes, wrong)
	}
	return nil
}

// Check proves the package's invariants: SQLite's own integrity check, the
// order and number of sequences, the totals, the bounds of retention, and the
// side file. It reads the whole database.
func (s *Store) Check(ctx context.Context) error {
	if s.isClosed() {
		return ErrClosed
	}
	if _, err := s.files.check(); err != nil {
		return err
	}
	if err := s.verify(ctx, true); err != nil {
		return err
	}
	st, err := s.Stats(ctx)
	if err != nil {
		return err
	}
	if st.Events > uint64(st.RetainEvents) || st.Bytes > st.RetainBytes {
		return corrupt("%d events and %d bytes are beyond retention", st.Events, st.Bytes)
	}
	ceiling, err := readCeiling(s.opts.Path)
	if errors.Is(err, errNoCeiling) || err == nil && ceiling < st.Latest {
		return corrupt("the sequence file says %d, the head is %d", ceiling, st.Latest)
	}
	return err
}
