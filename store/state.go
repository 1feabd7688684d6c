package store

import (
	"context"
	"database/sql"
	"time"
)

const (
	sqlPutSource = `INSERT OR REPLACE INTO sources
		(path, provider, session, agent, incarnation, mark, state, position, settled, updated)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`
	sqlDropSource = `DELETE FROM sources WHERE path = ?1`
	sqlSources    = `SELECT path, provider, session, agent, incarnation, mark, state, position, settled, updated
		FROM sources ORDER BY path`

	sqlPutAgent = `INSERT OR REPLACE INTO agents
		(id, name, harness, incarnation, pid, start_ticks, boot, place, pane_key, pane_id, tty, cwd, session, path, rank,
		evidence, available, since, generation, alive, status, turn_state, turn, observed_at, created_at, exited_at, launch)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
		?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)`
	sqlDropAgent = `DELETE FROM agents WHERE id = ?1`
	sqlAgents    = `SELECT id, name, harness, incarnation, pid, start_ticks, boot, place, pane_key, pane_id, tty, cwd, session,
		path, rank, evidence, available, since, generation, alive, status, turn_state, turn, observed_at, created_at,
		exited_at, launch
		FROM agents ORDER BY id`

	// Not REPLACE: that would drop another server which has this slot.
	sqlPutServer = `INSERT INTO servers (key, slot) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET slot = excluded.slot`
	sqlServers   = `SELECT key, slot FROM servers ORDER BY slot`
)

// putState stores everything of the batch but its events.
func (s *Store) putState(ctx context.Context, b Batch) error {
	for _, path := range b.DropSources {
		if _, err := s.wstmt.dropSource.ExecContext(ctx, path); err != nil {
			return wrap("drop source", err)
		}
	}
	for _, id := range b.DropAgents {
		if _, err := s.wstmt.dropAgent.ExecContext(ctx, id); err != nil {
			return wrap("drop agent", err)
		}
	}
	for i := range b.Sources {
		r := &b.Sources[i]
		_, err := s.wstmt.putSource.ExecContext(ctx, r.Path, r.Provider, r.Session, r.Agent, r.Incarnation,
			blob(r.Mark), blob(r.State), r.Offset, r.Settled, stamp(r.Updated))
		if err != nil {
			return wrap("store source", err)
		}
	}
	for i := range b.Agents {
		a := &b.Agents[i]
		_, err := s.wstmt.putAgent.ExecContext(ctx, a.ID, a.Name, a.Harness, a.Incarnation, a.PID, int64(a.StartTicks), a.Boot,
			a.Place, a.PaneKey, int64(a.PaneID), a.TTY, a.CWD, a.Session, a.Path, a.Rank, a.Evidence, a.Available,
			stamp(a.Since), a.Generation, a.Alive, a.Status, a.TurnState, a.Turn,
			stamp(a.ObservedAt), stamp(a.CreatedAt), stamp(a.ExitedAt), a.Launch)
		if err != nil {
			return wrap("store agent", err)
		}
	}
	for _, v := range b.Servers {
		if _, err := s.wstmt.putServer.ExecContext(ctx, v.Key, v.Slot); err != nil {
			return wrap("store server", err)
		}
	}
	return nil
}

// Agents returns all agents by id, and the head of the log in the same
// snapshot: reading events after it misses no change of these rows.
func (s *Store) Agents(ctx context.Context) (asOf Seq, agents []Agent, err error) {
	err = s.read(ctx, opRead, "read agents", func(tx *sql.Tx) error {
		m, err := readMeta(ctx, tx.StmtContext(ctx, s.rstmt.meta))
		if err != nil {
			return err
		}
		asOf, agents = m.latest, nil
		return each(ctx, tx, s.rstmt.agents, func(rows *sql.Rows) error {
			var a Agent
			var ticks, pane, since, observed, created, exited int64
			err := rows.Scan(&a.ID, &a.Name, &a.Harness, &a.Incarnation, &a.PID, &ticks, &a.Boot,
				&a.Place, &a.PaneKey, &pane, &a.TTY, &a.CWD, &a.Session, &a.Path, &a.Rank, &a.Evidence, &a.Available,
				&since, &a.Generation, &a.Alive, &a.Status, &a.TurnState, &a.Turn,
				&observed, &created, &exited, &a.Launch)
			a.StartTicks, a.PaneID, a.Since = uint64(ticks), uint64(pane), instant(since)
			a.ObservedAt, a.CreatedAt, a.ExitedAt = instant(observed), instant(created), instant(exited)
			agents = append(agents, a)
			return err
		})
	})
	if err != nil {
		return 0, nil, err
	}
	return asOf, agents, nil
}

// Sources returns all restart points by path.
func (s *Store) Sources(ctx context.Context) ([]Source, error) {
	var sources []Source
	err := s.read(ctx, opRead, "read sources", func(tx *sql.Tx) error {
		sources = nil
		return each(ctx, tx, s.rstmt.sources, func(rows *sql.Rows) error {
			var r Source
			var updated int64
			err := rows.Scan(&r.Path, &r.Provider, &r.Session, &r.Agent, &r.Incarnation, &r.Mark, &r.State,
				&r.Offset, &r.Settled, &updated)
			r.Updated = instant(updated)
			sources = append(sources, r)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return sources, nil
}

// Servers returns all multiplexer servers by slot.
func (s *Store) Servers(ctx context.Context) ([]Server, error) {
	var servers []Server
	err := s.read(ctx, opRead, "read servers", func(tx *sql.Tx) error {
		servers = nil
		return each(ctx, tx, s.rstmt.servers, func(rows *sql.Rows) error {
			var v Server
			err := rows.Scan(&v.Key, &v.Slot)
			servers = append(servers, v)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return servers, nil
}

// Stats are the numbers of the log.
type Stats struct {
	Oldest, Latest Seq // Oldest is Latest+1 when nothing is stored
	Events         uint64
	Bytes          int64 // of event bodies
	RetainEvents   int
	RetainBytes    int64
}

// Stats reads one row.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	st := Stats{RetainEvents: s.opts.RetainEvents, RetainBytes: s.opts.RetainBytes}
	err := s.read(ctx, opRead, "read statistics", func(tx *sql.Tx) error {
		m, err := readMeta(ctx, tx.StmtContext(ctx, s.rstmt.meta))
		st.Oldest, st.Latest, st.Events, st.Bytes = m.pruned+1, m.latest, uint64(m.events()), m.bytes
		return err
	})
	return st, err
}

func each(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, row func(*sql.Rows) error) error {
	rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// blob keeps an empty value from becoming NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// The years that fit Unix nanoseconds.
var (
	firstStamp = time.Unix(0, 1)
	lastStamp  = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)

func stamp(t time.Time) int64 {
	if t.Before(firstStamp) || !t.Before(lastStamp) {
		return 0
	}
	return t.UnixNano()
}

func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
