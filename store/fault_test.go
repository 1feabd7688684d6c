package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// failing commits a batch that must be refused, and proves that nothing of it,
// its restart point least of all, was stored.
func failing(t *testing.T, s *Store, want error, temporary bool) {
	t.Helper()
	before := page(t, s, Query{})
	changed := s.Changed()
	_, err := s.Commit(t.Context(), Batch{Events: []Event{sized("lost", 500_000)}, Sources: []Source{{Path: "p", Offset: 99}}})
	if !errors.Is(err, want) || Temporary(err) != temporary {
		t.Fatalf("Commit: %v, want %v, temporary %v", err, want, temporary)
	}
	if s.Working() || !errors.Is(s.Err(), want) {
		t.Errorf("Err = %v, want %v", s.Err(), want)
	}
	if p := page(t, s, Query{}); p.Latest != before.Latest {
		t.Errorf("latest = %d, was %d", p.Latest, before.Latest)
	}
	sources, err := s.Sources(t.Context())
	if err != nil || len(sources) != 1 || sources[0].Offset != 1 {
		t.Errorf("Sources = %+v, %v, want the old offset", sources, err)
	}
	if s.Working() {
		t.Error("reads made the store work again")
	}
	select {
	case <-changed:
		t.Error("a failed commit woke the readers")
	default:
	}
}

// working commits again, and proves that no sequence was burnt.
func working(t *testing.T, s *Store) {
	t.Helper()
	before := page(t, s, Query{})
	if c := commit(t, s, Batch{Events: []Event{sized("lost", 500_000)}, Sources: []Source{{Path: "p", Offset: 99}}}); c.Latest != before.Latest+1 {
		t.Errorf("Commit = %+v, want latest %d", c, before.Latest+1)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
}

func started(t *testing.T, o Options) *Store {
	t.Helper()
	s := openTest(t, o)
	commit(t, s, Batch{Events: events(1, 3), Sources: []Source{{Path: "p", Offset: 1}}})
	return s
}

func TestFull(t *testing.T) {
	s := started(t, Options{})
	pragma := func(q string) {
		if _, err := s.wconn.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	pragma("PRAGMA max_page_count = 1") // as low as it goes: what is in use now
	failing(t, s, ErrFull, true)
	pragma("PRAGMA max_page_count = 1000000")
	working(t, s)
}

func TestReadOnly(t *testing.T) {
	s := started(t, Options{})
	pragma := func(q string) {
		if _, err := s.wconn.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	pragma("PRAGMA query_only = 1")
	failing(t, s, ErrNotWritable, true)
	// An empty batch is a trial after a failure.
	if _, err := s.Commit(t.Context(), Batch{}); !errors.Is(err, ErrNotWritable) {
		t.Errorf("empty Commit: %v, want ErrNotWritable", err)
	}
	pragma("PRAGMA query_only = 0")
	if _, err := s.Commit(t.Context(), Batch{}); err != nil || !s.Working() {
		t.Errorf("empty Commit: %v, working %v", err, s.Working())
	}
	working(t, s)
}

func TestBusy(t *testing.T) {
	s := started(t, Options{BusyTimeout: 30 * time.Millisecond})
	db := raw(t, s.opts.Path)
	execute(t, db, "BEGIN IMMEDIATE")
	failing(t, s, ErrBusy, true)
	// A caller that gives up is not the store's fault.
	s.note(t.Context(), opCommit, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Commit(ctx, Batch{Events: events(4, 4)}); !errors.Is(err, context.Canceled) || !s.Working() {
		t.Errorf("cancelled Commit: %v, working %v", err, s.Working())
	}
	execute(t, db, "ROLLBACK")
	working(t, s)
	// A read that failed for a time is forgotten with a commit.
	s.note(t.Context(), opRead, ErrBusy)
	if commit(t, s, Batch{Events: events(9, 9)}); !s.Working() {
		t.Errorf("Err = %v after a commit", s.Err())
	}
}

// A commit that is cancelled at any moment is stored wholly or not at all, and
// the next one works.
func TestCancel(t *testing.T) {
	s := started(t, Options{})
	for i := range 60 {
		before := page(t, s, Query{}).Latest
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		c, err := s.Commit(ctx, Batch{Events: []Event{event(fmt.Sprint("x", i)), event(fmt.Sprint("y", i))}})
		_, perr := s.Page(ctx, Query{})
		cancel()
		if perr != nil && !errors.Is(perr, context.DeadlineExceeded) {
			t.Fatalf("Page: %v", perr)
		}
		after := page(t, s, Query{}).Latest
		switch {
		case err == nil && c.Latest == before+2 && after == c.Latest:
		case errors.Is(err, context.DeadlineExceeded) && after == before:
		default:
			t.Fatalf("Commit = %+v, %v; latest %d, was %d", c, err, after, before)
		}
		if !s.Working() {
			t.Fatalf("Err = %v", s.Err())
		}
	}
}

// A BEGIN that was interrupted may have begun; the next commit works all the same.
// Who gives up while another commit runs is let go.
func TestCancelledBegin(t *testing.T) {
	s := started(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.wconn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.commit(ctx, Batch{Events: events(4, 4)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("commit: %v, want canceled", err)
	}
	if c := commit(t, s, Batch{Events: events(4, 4)}); c.Latest != 4 {
		t.Errorf("Commit = %+v, want latest 4", c)
	}
	s.write <- struct{}{}
	if _, err := s.Commit(ctx, Batch{Events: events(5, 5)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit beside another: %v, want canceled", err)
	}
	<-s.write
}

// What another hand did to the rows is found by the commit that depends on it, and
// nothing of that is stored.
func TestDamagedWhileOpen(t *testing.T) {
	for name, damage := range map[string]string{
		"sequence":   "UPDATE sqlite_sequence SET seq = 9000",
		"first":      "DELETE FROM events WHERE seq = 1",
		"middle":     "DELETE FROM events WHERE seq = 2",
		"many bytes": "UPDATE meta SET bytes = 1000000",
		"few bytes":  "UPDATE meta SET bytes = 0",
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, Options{RetainEvents: 3, RetainBytes: 900_000})
			defer s.Close()
			execute(t, raw(t, s.opts.Path), damage)
			small := func(id string) Event {
				return Event{ID: id, Kind: "plan", Body: fmt.Appendf(nil, `{"event_id":%q}`, id)}
			}
			c, err := s.Commit(t.Context(), Batch{Events: []Event{small("e4"), small("e5")}, Sources: []Source{{Path: "p", Offset: 99}}})
			if !errors.Is(err, ErrCorrupt) || Temporary(err) || s.Working() {
				t.Fatalf("Commit = %+v, %v, want ErrCorrupt", c, err)
			}
			sources, err := s.Sources(t.Context())
			if err != nil || len(sources) != 1 || sources[0].Offset != 1 {
				t.Errorf("Sources = %+v, %v, want the old offset", sources, err)
			}
		})
	}
}

// Events that are gone at the end of the log make no short page. Check finds more
// than retention allows, and a side file that is behind or cut.
func TestShortLogWhileOpen(t *testing.T) {
	s := started(t, Options{})
	defer s.Close()
	s.opts.RetainEvents = 2
	if err := s.Check(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Check of three events where two are allowed: %v, want ErrCorrupt", err)
	}
	s.opts.RetainEvents = 3
	for _, side := range []string{ceilingPrefix + "2\n", ceilingPrefix + "9000"} {
		if err := os.WriteFile(s.opts.Path+ceilingSuffix, []byte(side), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Check with the side file %q: %v, want ErrCorrupt", side, err)
		}
	}
	execute(t, raw(t, s.opts.Path), "DELETE FROM events WHERE seq = 3")
	if p, err := s.Page(t.Context(), Query{}); !errors.Is(err, ErrCorrupt) || s.Working() {
		t.Errorf("Page = %+v, %v, working %v, want ErrCorrupt", p, err, s.Working())
	}
}

// Whatever a read fails with, a caller that gave up is told so, and so is one whose
// store was closed. Neither is the store's fault.
func TestReadGivenUp(t *testing.T) {
	s := started(t, Options{})
	fault := errors.New("interrupted")
	ctx, cancel := context.WithCancel(t.Context())
	err := s.read(ctx, opPage, "read", func(*sql.Tx) error { cancel(); return fault })
	if !errors.Is(err, context.Canceled) || !s.Working() {
		t.Errorf("cancelled read: %v, working %v", err, s.Working())
	}
	err = s.read(t.Context(), opPage, "read", func(*sql.Tx) error { return errors.Join(s.Close(), fault) })
	if err != ErrClosed || !s.Working() {
		t.Errorf("read of a closed store: %v, working %v", err, s.Working())
	}
}

// A reader of another program that never leaves does not make a commit fail.
func TestStuckReader(t *testing.T) {
	s := started(t, Options{})
	s.walHigh = 1 << 20
	db := raw(t, s.opts.Path)
	execute(t, db, "BEGIN")
	var n int
	if err := db.QueryRow("SELECT count(*) FROM events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		commit(t, s, Batch{Events: []Event{sized(fmt.Sprint("x", i), 400_000)}})
	}
	if s.truncateAt.IsZero() {
		t.Error("the write-ahead log was not tried to be emptied")
	}
	// It was waited for once, and a caller that gave up meanwhile changes nothing.
	tried := s.truncateAt
	commit(t, s, Batch{Events: []Event{sized("more", 400_000)}})
	if s.truncateAt != tried {
		t.Error("the reader was waited for again at once")
	}
	s.truncateAt = time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), walWait/4)
	defer cancel()
	s.truncateWAL(ctx)
	var timeout int64
	if err := s.wconn.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&timeout); err != nil || timeout != DefaultBusyTimeout.Milliseconds() {
		t.Errorf("busy timeout = %d, %v", timeout, err)
	}
	execute(t, db, "ROLLBACK")
	s.truncateAt = time.Time{}
	commit(t, s, Batch{Events: []Event{sized("last", 1000)}})
	if size, err := s.files.check(); err != nil || size > 1<<20 {
		t.Errorf("write-ahead log has %d bytes, %v", size, err)
	}
	if err := s.wconn.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&timeout); err != nil || timeout != DefaultBusyTimeout.Milliseconds() {
		t.Errorf("busy timeout = %d, %v", timeout, err)
	}
}

// Nothing is acknowledged into a file that no name leads to.
func TestReplaced(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"moved":   func(path string) error { return os.Rename(path, path+"2") },
		"removed": os.Remove,
		"no log":  func(path string) error { return os.Remove(path + "-wal") },
		"other log": func(path string) error {
			return errors.Join(os.Rename(path+"-wal", path+"-wal2"), os.WriteFile(path+"-wal", nil, 0o600))
		},
		"other": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, Options{})
			defer s.Close()
			if err := replace(s.opts.Path); err != nil {
				t.Fatal(err)
			}
			for _, b := range []Batch{{}, {Events: events(4, 4)}} {
				if c, err := s.Commit(t.Context(), b); !errors.Is(err, ErrReplaced) || Temporary(err) || c != (Committed{}) {
					t.Errorf("Commit = %+v, %v, want ErrReplaced", c, err)
				}
			}
			if _, err := s.Page(t.Context(), Query{}); !errors.Is(err, ErrReplaced) {
				t.Errorf("Page: %v, want ErrReplaced", err)
			}
			if err := s.Check(t.Context()); !errors.Is(err, ErrReplaced) {
				t.Errorf("Check: %v, want ErrReplaced", err)
			}
			if s.Working() {
				t.Error("the store says that it works")
			}
			// Nothing was written to where it went.
			var n int
			if err := s.wconn.QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil || n != 3 {
				t.Errorf("the lost file has %d events, %v, want 3", n, err)
			}
		})
	}
}

func TestClasses(t *testing.T) {
	for code, want := range map[int]error{
		5: ErrBusy, 6: ErrBusy, 261: ErrBusy, 517: ErrBusy, 15: ErrBusy,
		13: ErrFull,
		8:  ErrNotWritable, 264: ErrNotWritable, 3: ErrNotWritable, 14: ErrNotWritable, 1038: ErrNotWritable,
		1032: ErrReplaced,
		10:   ErrIO, 266: ErrIO, 1034: ErrIO, 7: ErrIO,
		11: ErrCorrupt, 267: ErrCorrupt, 26: ErrCorrupt, 8458: ErrCorrupt,
		19: ErrInvalid, 2067: ErrInvalid,
		1: nil, 21: nil,
	} {
		got := classOfCode(code)
		if got != want {
			t.Errorf("code %d: %v, want %v", code, got, want)
		}
		temporary := want == ErrBusy || want == ErrFull || want == ErrNotWritable || want == ErrIO
		if got != nil && Temporary(fmt.Errorf("x: %w", got)) != temporary {
			t.Errorf("code %d: temporary %v, want %v", code, !temporary, temporary)
		}
	}
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOSPC: ErrFull, syscall.EDQUOT: ErrFull,
		syscall.EROFS: ErrNotWritable, syscall.EACCES: ErrNotWritable, syscall.EPERM: ErrNotWritable,
		syscall.EIO: ErrIO, syscall.EMFILE: ErrIO,
	} {
		if err := wrap("x", &os.PathError{Op: "open", Err: errno}); !errors.Is(err, want) || !Temporary(err) {
			t.Errorf("%v: %v, temporary %v, want %v", errno, err, Temporary(err), want)
		}
	}
	for _, lasting := range []error{ErrCorrupt, ErrReplaced, ErrForeign} {
		if Temporary(fmt.Errorf("%w: %w", lasting, ErrIO)) {
			t.Errorf("%v counts as temporary because of its cause", lasting)
		}
	}
	if Temporary(nil) || Temporary(sql.ErrNoRows) || Temporary(context.Canceled) {
		t.Error("an unknown error counts as temporary")
	}
}
