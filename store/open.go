package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

const (
	readers    = 4
	retryEvery = 20 * time.Millisecond
)

// Open opens the log, creates it when it is missing, and brings its schema up
// to date. The file has mode 0600 whatever the umask.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := openRetrying(ctx, o)
	if err == nil || !o.Recover || !errors.Is(err, ErrCorrupt) {
		return s, err
	}
	now := o.Now()
	if err := keepFloor(o.Path, now); err != nil {
		return nil, err
	}
	if err := setAside(o.Path, now); err != nil {
		return nil, err
	}
	return openRetrying(ctx, o)
}

func (o Options) withDefaults() (Options, error) {
	if o.Path == "" {
		return o, errors.New("open store: no path")
	}
	if o.RetainEvents < 0 || o.RetainBytes < 0 || o.BusyTimeout < 0 {
		return o, errors.New("open store: a bound is negative")
	}
	abs, err := filepath.Abs(o.Path)
	if err != nil {
		return o, fmt.Errorf("open store: %w", err)
	}
	o.Path = abs
	if o.RetainEvents == 0 {
		o.RetainEvents = DefaultRetainEvents
	}
	if o.RetainBytes == 0 {
		o.RetainBytes = DefaultRetainBytes
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// openRetrying repeats what other processes disturb. Some steps of opening a
// new database fail with busy at once, whatever the busy timeout: SQLite will
// not wait where two connections could wait for each other.
func openRetrying(ctx context.Context, o Options) (*Store, error) {
	deadline := time.Now().Add(o.BusyTimeout)
	for {
		s, err := open(ctx, o)
		if err == nil || !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

func open(ctx context.Context, o Options) (_ *Store, err error) {
	if err := prepare(o.Path); err != nil {
		return nil, err
	}
	// Nothing may change a stranger's file, not even its journal mode.
	if err := inspect(ctx, o); err != nil {
		return nil, err
	}
	s := &Store{opts: o, write: make(chan struct{}, 1), changed: make(chan struct{}), walHigh: walHigh}
	defer func() {
		if err != nil {
			s.closeAll()
		}
	}()
	if err := s.openWriter(ctx); err != nil {
		return nil, err
	}
	if err := s.openReaders(ctx); err != nil {
		return nil, err
	}
	if err := s.verify(ctx, o.Recover); err != nil {
		return nil, err
	}
	return s, s.settle(ctx)
}

func (s *Store) openWriter(ctx context.Context) error {
	o := s.opts
	db, err := sql.Open("sqlite", dsn(o, "rw", "journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(16777216)", "cache_size(-8192)"))
	if err != nil {
		return wrap("open database", err)
	}
	s.wdb = db
	db.SetMaxOpenConns(1)
	if s.wconn, err = db.Conn(ctx); err != nil {
		return wrap("open database", err)
	}
	// A file system without shared memory keeps the old mode without an error.
	var mode string
	if err := s.wconn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return wrap("read journal mode", err)
	}
	if mode != "wal" {
		return fmt.Errorf("open database: %w: its file system allows no write-ahead log", ErrNotWritable)
	}
	if err := migrate(ctx, s.wconn, o); err != nil {
		return err
	}
	if s.files, err = identify(o.Path); err != nil {
		return err
	}
	return prepareAll(ctx, s.wconn, s.wstmt.all())
}

func (s *Store) openReaders(ctx context.Context) error {
	db, err := sql.Open("sqlite", dsn(s.opts, "ro", "query_only(1)"))
	if err != nil {
		return wrap("open database for reading", err)
	}
	s.rdb = db
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	return prepareAll(ctx, db, s.rstmt.all())
}

// statement is a prepared statement and its SQL.
type statement struct {
	stmt **sql.Stmt
	sql  string
}

func prepareAll(ctx context.Context, on interface {
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}, all []statement) error {
	for _, p := range all {
		var err error
		if *p.stmt, err = on.PrepareContext(ctx, p.sql); err != nil {
			return wrap("prepare statements", broken(err))
		}
	}
	return nil
}

// settle applies what may have changed while the log was closed: lower bounds,
// and a side file that was lost.
func (s *Store) settle(ctx context.Context) error {
	m, err := readMeta(ctx, s.wstmt.meta)
	if err != nil {
		return err
	}
	if s.ceiling, err = reserve(s.opts.Path, m.latest); err != nil {
		return err
	}
	if m.events() <= s.opts.RetainEvents && m.bytes <= s.opts.RetainBytes {
		return nil
	}
	_, err = s.commit(ctx, Batch{})
	return err
}

// dsn has the pragmas, so that each connection of a pool gets them.
func dsn(o Options, mode string, pragmas ...string) string {
	q := make(url.Values)
	q.Set("mode", mode)
	q.Set("_txlock", "immediate")
	q.Set("_dqs", "0")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds()))
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	// SQLite decodes %XX in the path of a URI.
	path := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(o.Path)
	return "file:" + path + "?" + q.Encode()
}
