package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// Seq is the position of an event in the log, and the only cursor. The first
// event of a first log has 1.
type Seq uint64

// Defaults of Options.
const (
	DefaultRetainEvents = 100_000
	DefaultRetainBytes  = 2 << 30
	DefaultBusyTimeout  = 2 * time.Second
)

// Options say where the log is and how much of it is kept.
type Options struct {
	// Path of the database. Missing directories are created with mode 0700.
	Path string
	// RetainEvents is how many events are kept; 0 = DefaultRetainEvents.
	RetainEvents int
	// RetainBytes is how many bytes of event bodies are kept; 0 =
	// DefaultRetainBytes. An event that is larger than this alone is given its
	// sequence and pruned in the same commit.
	RetainBytes int64
	// Recover checks the whole database (seconds per GiB) and, only if it is
	// corrupt, renames it and begins a new log above its sequences.
	Recover bool
	// BusyTimeout is how long a lock of another process is waited for; 0 =
	// DefaultBusyTimeout.
	BusyTimeout time.Duration
	// Now gives the time for file names and for the first sequence after a
	// loss of everything; nil = time.Now.
	Now func() time.Time
}

// Store is an open log. Its methods may be called from several goroutines.
type Store struct {
	opts Options

	// The writing side belongs to whoever holds the one slot of write.
	write      chan struct{}
	wdb        *sql.DB
	wconn      *sql.Conn
	wstmt      writeStmts
	ceiling    Seq
	walHigh    int64
	truncateAt time.Time // not before this is a full checkpoint tried again

	rdb   *sql.DB
	rstmt readStmts
	files identity

	// mu guards the fields below.
	mu        sync.Mutex
	changed   chan struct{}
	commitErr error
	readErr   error
	closed    bool
}

// Close waits for a running Commit and closes the database. Waiters on Changed
// are not woken. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.write <- struct{}{}
	defer func() { <-s.write }() // a Commit that waited finds the store closed
	// Readers first, so that closing the writer, the last connection, brings
	// the write-ahead log home and removes it.
	return s.closeAll()
}

func (s *Store) closeAll() error {
	var errs []error
	// SQLite keeps a connection, and its files, as long as a statement of it
	// is left; database/sql does not close those of a single connection.
	for _, p := range append(s.rstmt.all(), s.wstmt.all()...) {
		if *p.stmt != nil {
			errs = append(errs, (*p.stmt).Close())
		}
	}
	if s.rdb != nil {
		errs = append(errs, s.rdb.Close())
	}
	if s.wconn != nil {
		errs = append(errs, s.wconn.Close())
	}
	if s.wdb != nil {
		errs = append(errs, s.wdb.Close())
	}
	return wrap("close database", errors.Join(errs...))
}

// Changed is closed at the next commit that adds events. Take it before Page:
// a commit between the two then closes it.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Working says whether the last commit and the last read succeeded, as far as
// the store is to blame.
func (s *Store) Working() bool { return s.Err() == nil }

// Err is why the store does not work, nil when it does. A failed commit is
// forgotten with the next successful one. A failed read is forgotten with the
// next successful Page, or, when it was Temporary, with any success. A Commit of
// an empty batch is enough to try again.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commitErr != nil {
		return s.commitErr
	}
	return s.readErr
}

type operation int

const (
	opCommit operation = iota
	opPage
	opRead
)

// note keeps the health of the store.
func (s *Store) note(ctx context.Context, op operation, err error) {
	if err != nil && blameless(ctx, err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && op == opCommit:
		s.commitErr = err
	case err != nil:
		s.readErr = err
	default:
		if op == opCommit {
			s.commitErr = nil
		}
		if op == opPage || s.readErr != nil && Temporary(s.readErr) {
			s.readErr = nil
		}
	}
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
