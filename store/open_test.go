package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// raw opens the database behind the store's back.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// alter does the same and leaves nothing open.
func alter(t testing.TB, path string, statements ...string) {
	t.Helper()
	db := raw(t, path)
	execute(t, db, statements...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPragmas(t *testing.T) {
	s := openTest(t, Options{Path: filepath.Join(t.TempDir(), "odd ?%20#&name", "a b.db")})
	var mode string
	var synchronous, busy, limit, app, user int
	err := s.wconn.QueryRowContext(t.Context(), `SELECT * FROM pragma_journal_mode, pragma_synchronous, pragma_busy_timeout,
		pragma_journal_size_limit, pragma_application_id, pragma_user_version`).Scan(&mode, &synchronous, &busy, &limit, &app, &user)
	if err != nil || mode != "wal" || synchronous != 2 || busy != 2000 || limit != 16<<20 || app != applicationID || user != 1 {
		t.Errorf("pragmas = %s %d %d %d %x %d, %v", mode, synchronous, busy, limit, app, user, err)
	}
	if n := s.rdb.Stats().MaxOpenConnections; n != readers {
		t.Errorf("%d read connections at most, want %d", n, readers)
	}
	if _, err := s.rdb.Exec("DELETE FROM events"); !errors.Is(wrap("", err), ErrNotWritable) {
		t.Errorf("a reader's write: %v, want ErrNotWritable", err)
	}
	if _, err := os.Stat(s.opts.Path); err != nil {
		t.Errorf("database is not where it was asked for: %v", err)
	}
}

// Databases that are not ours to touch are refused, with Recover too, and not
// one byte of them changes.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, path string)
		want  error
	}{
		{"foreign application", func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE TABLE theirs (x)", "PRAGMA application_id = 7")
		}, ErrForeign},
		{"unmarked database", func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE TABLE theirs (x)")
		}, ErrForeign},
		{"versioned and empty", func(t *testing.T, path string) {
			execute(t, raw(t, path), "PRAGMA user_version = 3")
		}, ErrForeign},
		{"newer schema", func(t *testing.T, path string) {
			openTest(t, Options{Path: path}).Close()
			execute(t, raw(t, path), "PRAGMA user_version = 2")
		}, ErrNewer},
		{"foreign application with a log", func(t *testing.T, path string) {
			withLog(t, path, "CREATE TABLE theirs (x)", "PRAGMA application_id = 7")
		}, ErrForeign},
		{"newer schema with a log", func(t *testing.T, path string) {
			openTest(t, Options{Path: path}).Close()
			withLog(t, path, "PRAGMA user_version = 2")
		}, ErrNewer},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, ErrForeign},
		{"symbolic link", func(t *testing.T, path string) {
			openTest(t, Options{Path: path + "2"}).Close()
			if err := os.Symlink(path+"2", path); err != nil {
				t.Fatal(err)
			}
		}, ErrForeign},
		{"dangling link", func(t *testing.T, path string) {
			if err := os.Symlink(path+"2", path); err != nil {
				t.Fatal(err)
			}
		}, ErrForeign},
		{"open directory", func(t *testing.T, path string) {
			if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
		}, ErrForeign},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			tt.setup(t, path)
			before, _ := os.ReadFile(path)
			log, _ := os.ReadFile(path + "-wal")
			for _, recover := range []bool{false, true} {
				s, err := Open(t.Context(), Options{Path: path, Recover: recover})
				if s != nil || !errors.Is(err, tt.want) || Temporary(err) {
					t.Errorf("Open, recover %v: %v, want %v", recover, err, tt.want)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if after, _ := os.ReadFile(path + "-wal"); !bytes.Equal(log, after) {
				t.Error("its write-ahead log was changed")
			}
		})
	}
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("Open without a path succeeded")
	}
	if _, err := Open(t.Context(), Options{Path: "/x", RetainEvents: -1}); err == nil {
		t.Error("Open with a negative bound succeeded")
	}
}

// withLog leaves what the statements do in a write-ahead log, as a program that was
// killed does.
func withLog(t *testing.T, path string, statements ...string) {
	t.Helper()
	live := filepath.Join(t.TempDir(), "live")
	if b, err := os.ReadFile(path); err == nil {
		if err := os.WriteFile(live, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, raw(t, live), append([]string{"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0"}, statements...)...)
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(live + suffix)
		if err == nil {
			err = os.WriteFile(path+suffix, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// damageIndex changes an event's id where it is looked up, and nowhere else: the
// event could come twice.
func damageIndex(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const leafOfIndex, size = 10, 4096
	for page := range slices.Chunk(b, size) {
		if page[0] == leafOfIndex { // also where it only was before
			copy(page, bytes.ReplaceAll(page, []byte("e400"), []byte("f400")))
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite damages bytes of a closed store's file.
func overwrite(t *testing.T, path string, from, to int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(to-from)), from); err != nil {
		t.Fatal(err)
	}
}

// bulk is as many events, of about 120 pages when they are 800.
func bulk(n int) []Event {
	all := make([]Event, n)
	for i := range all {
		all[i] = sized(fmt.Sprint("e", i+1), 500)
	}
	return all
}

func TestRecover(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, path string)
		opens  bool // whether Open without Recover does not notice
	}{
		{"header", func(t *testing.T, path string) { overwrite(t, path, 0, 8*4096) }, false},
		{"pages", func(t *testing.T, path string) { overwrite(t, path, 60*4096, 70*4096) }, true},
		{"schema", func(t *testing.T, path string) { alter(t, path, "DROP TABLE sources") }, false},
		{"head row", func(t *testing.T, path string) { alter(t, path, "DELETE FROM meta") }, false},
		{"last event", func(t *testing.T, path string) { alter(t, path, "DELETE FROM events WHERE seq = 800") }, false},
		{"first event", func(t *testing.T, path string) { alter(t, path, "DELETE FROM events WHERE seq = 1") }, false},
		{"event", func(t *testing.T, path string) { alter(t, path, "DELETE FROM events WHERE seq = 400") }, true},
		{"totals", func(t *testing.T, path string) { alter(t, path, "UPDATE meta SET bytes = bytes + 1") }, true},
		{"sequence", func(t *testing.T, path string) { alter(t, path, "UPDATE sqlite_sequence SET seq = 9000") }, false},
		{"low sequence", func(t *testing.T, path string) { alter(t, path, "UPDATE sqlite_sequence SET seq = 700") }, false},
		{"all events", func(t *testing.T, path string) { alter(t, path, "DELETE FROM events") }, false},
		{"head beside events", func(t *testing.T, path string) { alter(t, path, "UPDATE meta SET pruned_through = latest, bytes = 0") }, false},
		{"event and its bytes", func(t *testing.T, path string) {
			alter(t, path, "DELETE FROM events WHERE seq = 400", "UPDATE meta SET bytes = (SELECT sum(size) FROM events)")
		}, true},
		{"size", func(t *testing.T, path string) {
			alter(t, path, "UPDATE events SET size = size + 1 WHERE seq = 400", "UPDATE meta SET bytes = bytes + 1")
		}, true},
		{"index", damageIndex, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			s := openTest(t, Options{Path: path})
			commit(t, s, Batch{Events: bulk(800), Sources: []Source{{Path: "p", Offset: 5}}})
			s.Close()
			tt.damage(t, path)
			damaged, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := Open(t.Context(), Options{Path: path}); (err == nil) != tt.opens || err != nil && (!errors.Is(err, ErrCorrupt) || Temporary(err)) {
				t.Fatalf("Open: %v, want success %v", err, tt.opens)
			} else if err == nil {
				if err := s.Check(t.Context()); !errors.Is(err, ErrCorrupt) {
					t.Errorf("Check: %v, want ErrCorrupt", err)
				}
				s.Close()
			}
			if left := descriptors(t, path); len(left) != 0 {
				t.Errorf("still open: %v", left)
			}
			now := time.Date(2026, 7, 1, 2, 3, 4, 0, time.UTC)
			s = openTest(t, Options{Path: path, Recover: true, Now: func() time.Time { return now }})
			aside, err := os.ReadFile(path + ".corrupt-20260701T020304Z")
			if err != nil || !bytes.Equal(aside, damaged) {
				t.Errorf("damaged file was not kept as it was: %v", err)
			}
			// Every cursor of the old log is too old, and no sequence repeats.
			for _, after := range []Seq{0, 400, 800} {
				if p := page(t, s, Query{After: after}); !p.Gap || p.Latest < 800 {
					t.Errorf("Page(%d) = %+v, want a gap", after, p)
				}
			}
			c := commit(t, s, Batch{Events: events(1, 1)})
			if c.Inserted != 1 || c.Latest <= 801 {
				t.Errorf("Commit = %+v, want above 801", c)
			}
			if p := page(t, s, Query{After: c.Latest - 1}); p.Gap || len(p.Events) != 1 {
				t.Errorf("Page of the new log = %+v", p)
			}
			if sources, err := s.Sources(t.Context()); err != nil || len(sources) != 0 {
				t.Errorf("Sources = %v, %v, want none", sources, err)
			}
		})
	}
}

// A file with our mark and without our tables is corrupt, never the beginning of a
// new log.
func TestMarkedAndEmpty(t *testing.T) {
	for name, statements := range map[string][]string{
		"nothing":   nil,
		"version":   {"PRAGMA user_version = 1"},
		"no tables": {"PRAGMA user_version = 1", "CREATE TABLE x (y)", "DROP TABLE x"},
		"a table":   {"CREATE TABLE x (y)"},
		"other":     {"PRAGMA user_version = 1", "CREATE TABLE x (y)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			alter(t, path, append(statements, fmt.Sprintf("PRAGMA application_id = %d", applicationID))...)
			if s, err := Open(t.Context(), Options{Path: path}); s != nil || !errors.Is(err, ErrCorrupt) {
				t.Errorf("Open: %v, want ErrCorrupt", err)
			}
		})
	}
}

// What was set aside is never overwritten, and nothing new begins before all of a
// database is aside.
func TestSetAside(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "db"), Recover: true, Now: func() time.Time { return time.Unix(2e9, 0) }}
	aside := o.Path + ".corrupt-20330518T033320Z"
	var damaged [][]byte
	for range 2 {
		s := openTest(t, o)
		commit(t, s, Batch{Events: events(1, 2)})
		s.Close()
		overwrite(t, o.Path, 0, 4096)
		b, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		damaged = append(damaged, b)
	}
	openTest(t, o).Close()
	for i, name := range []string{aside, aside + "-2"} {
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, damaged[i]) {
			t.Errorf("%s was not kept: %v", name, err)
		}
	}
	overwrite(t, o.Path, 0, 4096)
	if err := errors.Join(os.WriteFile(o.Path+"-wal", nil, 0o600), os.Mkdir(aside+"-3-wal", 0o700)); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), o); s != nil || err == nil {
		t.Error("Open succeeded beside the log of a corrupt database")
	}
}

// descriptors are the files of the database that this process has open.
func descriptors(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, path) {
			open = append(open, to)
		}
	}
	return open
}

// A page over damaged rows fails, and the store says that it does not work.
func TestCorruptPage(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"pages": func(t *testing.T, path string) { overwrite(t, path, 60*4096, 70*4096) },
		"hole":  func(t *testing.T, path string) { execute(t, raw(t, path), "DELETE FROM events WHERE seq = 700") },
		"body": func(t *testing.T, path string) {
			execute(t, raw(t, path), "UPDATE events SET body = x'' WHERE seq = 700")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			s := openTest(t, Options{Path: path})
			commit(t, s, Batch{Events: bulk(800)})
			s.Close()
			damage(t, path)
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Page(t.Context(), Query{Limit: 800, MaxBytes: 1 << 20}); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("Page: %v, want ErrCorrupt", err)
			}
			if name == "hole" { // as many as asked for, and one of them is not the next
				if _, err := s.Page(t.Context(), Query{After: 695, Limit: 10}); !errors.Is(err, ErrCorrupt) {
					t.Errorf("Page of ten: %v, want ErrCorrupt", err)
				}
			}
			// Neither a commit nor another kind of read makes it sound.
			commit(t, s, Batch{Sources: []Source{{Path: "p"}}})
			if _, err := s.Stats(t.Context()); err != nil {
				t.Errorf("Stats: %v", err)
			}
			if s.Working() || !errors.Is(s.Err(), ErrCorrupt) {
				t.Errorf("Err = %v, want ErrCorrupt", s.Err())
			}
		})
	}
}

// Sequences survive the loss of the database, of the side file, and of both.
func TestSequenceFloor(t *testing.T) {
	now := time.Date(2026, 7, 1, 2, 3, 4, 0, time.UTC)
	unknown := Seq(now.UnixMilli())
	remove := func(t *testing.T, path string, suffixes ...string) {
		for _, x := range suffixes {
			if err := os.Remove(path + x); err != nil {
				t.Fatal(err)
			}
		}
	}
	side := func(t *testing.T, path, content string) {
		if err := os.WriteFile(path+ceilingSuffix, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		lose func(t *testing.T, path string)
		low  Seq // the next sequence is between these
		high Seq
	}{
		{"nothing", func(t *testing.T, path string) {}, 3, 3},
		{"side file", func(t *testing.T, path string) { remove(t, path, ceilingSuffix) }, 3, 3},
		{"database", func(t *testing.T, path string) { remove(t, path, "") }, 4, 2*ceilingBlock + 10},
		{"header", func(t *testing.T, path string) { overwrite(t, path, 0, 8*4096) }, 4, 2*ceilingBlock + 10},
		{"header and side file", func(t *testing.T, path string) {
			remove(t, path, ceilingSuffix)
			overwrite(t, path, 0, 8*4096)
		}, unknown, unknown + 2*ceilingBlock},
		{"database, side file cut", func(t *testing.T, path string) {
			remove(t, path, "")
			side(t, path, ceilingPrefix+"10")
		}, unknown, unknown + 1},
		{"database, side file without a name", func(t *testing.T, path string) {
			remove(t, path, "")
			side(t, path, "10\n")
		}, unknown, unknown + 1},
		{"database, side file beyond all numbers", func(t *testing.T, path string) {
			remove(t, path, "")
			side(t, path, fmt.Sprintf("%s%d\n", ceilingPrefix, uint64(maxSequence)))
		}, unknown, unknown + 1},
		{"header, side file cut", func(t *testing.T, path string) {
			overwrite(t, path, 0, 8*4096)
			side(t, path, ceilingPrefix+"10")
		}, unknown, unknown + 2*ceilingBlock},
		{"both", func(t *testing.T, path string) { remove(t, path, "", ceilingSuffix) }, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Path: filepath.Join(t.TempDir(), "db"), Recover: true, Now: func() time.Time { return now }}
			s := openTest(t, o)
			commit(t, s, Batch{Events: events(1, 2)})
			s.Close()
			tt.lose(t, o.Path)
			s = openTest(t, o)
			if c := commit(t, s, Batch{Events: events(3, 3)}); c.Latest < tt.low || c.Latest > tt.high {
				t.Errorf("Latest = %d, want %d to %d", c.Latest, tt.low, tt.high)
			}
		})
	}
}

// A side file that is there and cannot be read is no reason to begin at 1, nor to
// set a database aside.
func TestUnreadableSideFile(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, path string){
		"lost":    func(t *testing.T, path string) { os.Remove(path) },
		"corrupt": func(t *testing.T, path string) { overwrite(t, path, 0, 8*4096) },
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Path: filepath.Join(t.TempDir(), "db"), Recover: true}
			s := openTest(t, o)
			commit(t, s, Batch{Events: events(1, 2)})
			s.Close()
			lose(t, o.Path)
			if err := errors.Join(os.Remove(o.Path+ceilingSuffix), os.Mkdir(o.Path+ceilingSuffix, 0o700)); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(t.Context(), o); err == nil {
				s.Close()
				t.Error("Open without a readable side file succeeded")
			}
			if aside, err := filepath.Glob(o.Path + ".corrupt*"); err != nil || len(aside) != 0 {
				t.Errorf("set aside: %v, %v", aside, err)
			}
		})
	}
}

// A clock that was never set does not lead below an older log.
func TestUnknownFloor(t *testing.T) {
	if n := unknownFloor(time.Unix(0, 0)); n < 1<<40 {
		t.Errorf("floor = %d in 1970", n)
	}
}

// The ceiling is durable before a sequence passes it.
func TestCeiling(t *testing.T) {
	if n, err := reserve(filepath.Join(t.TempDir(), "missing", "db"), 5); n != 0 || !errors.Is(err, ErrIO) {
		t.Fatalf("reserve without a directory = %d, %v", n, err)
	}
	o := Options{Path: filepath.Join(t.TempDir(), "db"), RetainEvents: 5}
	if err := writeCeiling(o.Path, 1000); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, o)
	if c := commit(t, s, Batch{Events: events(1, 3)}); c.Latest != 1004 {
		t.Fatalf("Latest = %d, want 1004", c.Latest)
	}
	s.Close()
	execute(t, raw(t, o.Path), fmt.Sprintf("UPDATE sqlite_sequence SET seq = %d", 5*ceilingBlock),
		"DELETE FROM events", fmt.Sprintf("UPDATE meta SET bytes = 0, latest = %d, pruned_through = latest", 5*ceilingBlock),
		"UPDATE meta SET pruned_through = latest")
	s = openTest(t, o)
	c := commit(t, s, Batch{Events: events(1, 3)})
	ceiling, err := readCeiling(o.Path)
	if err != nil || ceiling < c.Latest || c.Latest != 5*ceilingBlock+3 {
		t.Fatalf("ceiling = %d, %v, latest = %d", ceiling, err, c.Latest)
	}
	// No ceiling, no commit.
	if err := os.Remove(o.Path + ceilingSuffix); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(o.Path+ceilingSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	s.ceiling = c.Latest
	if _, err := s.Commit(t.Context(), Batch{Events: events(4, 4)}); err == nil || s.Working() {
		t.Fatalf("Commit without a side file: %v, working %v", err, s.Working())
	}
	if err := writeCeiling(o.Path, 1); err == nil {
		t.Error("a side file took the place of a directory")
	}
	if left, err := filepath.Glob(o.Path + "*.tmp*"); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.Remove(o.Path + ceilingSuffix); err != nil {
		t.Fatal(err)
	}
	if got := commit(t, s, Batch{Events: events(4, 4)}); got.Latest != c.Latest+1 || !s.Working() {
		t.Fatalf("Commit = %+v, want latest %d", got, c.Latest+1)
	}
	// It is read and written once in a block, not with each commit.
	if s.ceiling <= c.Latest+1 {
		t.Errorf("the ceiling is known as %d, the head is %d", s.ceiling, c.Latest+1)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	s := openTest(t, Options{})
	commit(t, s, Batch{Events: events(1, 3)})
	page(t, s, Query{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	_, err := s.Commit(t.Context(), Batch{Events: events(4, 4)})
	_, err2 := s.Page(t.Context(), Query{})
	_, _, err3 := s.Agents(t.Context())
	for _, err := range []error{err, err2, err3, s.Check(t.Context())} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call after Close: %v, want ErrClosed", err)
		}
	}
	if !s.Working() {
		t.Errorf("Err after Close = %v", s.Err())
	}
	left, err := filepath.Glob(s.opts.Path + "*")
	if err != nil || strings.Join(left, " ") != s.opts.Path+" "+s.opts.Path+ceilingSuffix {
		t.Errorf("files after Close: %v, %v", left, err)
	}
	// database/sql ends its goroutines on their own time.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > before && ctx.Err() == nil {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}
