package opencode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

// files is what a directory holds, byte for byte.
func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %x %v\n", e.Name(), len(data), hash(data), info.ModTime())
	}
	return b.String()
}

func hash(b []byte) (h uint64) {
	for _, c := range b {
		h = h*1099511628211 ^ uint64(c)
	}
	return h
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// leftBehind is a database as a process leaves it that ended without closing
// it: the 16 rows of plain are in -wal, and no writer lives.
func leftBehind(t *testing.T) (path string) {
	t.Helper()
	from, _ := live(t, "plain")
	dir := t.TempDir()
	copyFiles(t, filepath.Dir(from), dir)
	return filepath.Join(dir, "opencode.db")
}

// closedCleanly is a database whose last writer has closed it: SQLite folds the
// log of writes and takes -wal and -shm away.
func closedCleanly(t *testing.T) (path string) {
	t.Helper()
	path, db := live(t, "plain")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := files(t, filepath.Dir(path)); strings.Contains(got, "-shm") || strings.Contains(got, "-wal") {
		t.Fatalf("not closed cleanly\n%s", got)
	}
	return path
}

// count reads a session until the first error that is not the machine's.
func count(path string) (int, error) {
	c, err := Provider{}.Cursor(rowsOf(path, plainSession), nil)
	if err != nil {
		return 0, err
	}
	n := 0
	for {
		b, err := c.Read(1 << 20)
		if n += len(b.Records); errors.Is(err, errSlow) {
			continue
		}
		if err != nil || !b.More {
			return n, err
		}
	}
}

// unwritable runs f as somebody who may read a database and change nothing: the
// directory and its files are read-only, and root gives up its rights over
// files for that.
func unwritable(t *testing.T, path string, f func()) {
	t.Helper()
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	chmod := func(file, directory os.FileMode) {
		for _, e := range entries {
			if err := os.Chmod(filepath.Join(dir, e.Name()), file); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, directory); err != nil {
			t.Fatal(err)
		}
	}
	chmod(0o444, 0o555)
	defer chmod(0o600, 0o700)
	if os.Getuid() == 0 {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // the rights are those of this thread
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	if err := os.WriteFile(path+"-probe", nil, 0o600); err == nil {
		t.Fatal("the directory can be written")
	}
	f()
}

// No file of the program is created or changed, with rights to do so or
// without. Field list: E2, the rows are in the log of writes alone.
func TestNothingIsWritten(t *testing.T) {
	check := func(path string) {
		before := files(t, filepath.Dir(path))
		if n, err := count(path); n != 16 || err != nil {
			t.Errorf("%d records, %v", n, err)
		}
		if after := files(t, filepath.Dir(path)); after != before {
			t.Errorf("files changed\n%s\n%s", before, after)
		}
	}
	path := leftBehind(t)
	check(path)
	unwritable(t, path, func() { check(path) })
}

// Field list: E1. A database without -wal and -shm is read, in a directory that
// can be written and in one that cannot, and observation goes on when a writer
// comes back.
func TestClosedByItsLastWriter(t *testing.T) {
	for name, as := range map[string]func(*testing.T, string, func()){
		"writable": func(_ *testing.T, _ string, f func()) { f() }, "read-only": unwritable,
	} {
		t.Run(name, func(t *testing.T) {
			path := closedCleanly(t)
			c := cursorAt(t, rowsOf(path, plainSession), nil)
			as(t, path, func() {
				before, n := files(t, filepath.Dir(path)), 0
				for more := true; more; {
					b := read(t, c, 1<<20)
					n, more = n+len(b.Records), b.More
				}
				if after := files(t, filepath.Dir(path)); n != 16 || after != before {
					t.Errorf("%d records, files\n%s\n%s", n, before, after)
				}
			})
			addEvent(t, writer(t, path), plainSession, 16, "x", `{}`)
			if b := read(t, c, 1<<20); len(b.Records) != 1 || b.Reset != providers.Same {
				t.Errorf("after the next writer: %d records, reset %q", len(b.Records), b.Reset)
			}
		})
	}
}

// Field list: E1, E2. When the file is all of the database: not beside shared
// memory, a journal or a log with rows, and not within the tick of its last
// change, after which the next one would not show.
func TestWhatIsClosed(t *testing.T) {
	none := func(string) error { return nil }
	beside := func(suffix, data string) func(string) error {
		return func(path string) error { return os.WriteFile(path+suffix, []byte(data), 0o600) }
	}
	for name, tt := range map[string]struct {
		do   func(path string) error
		ago  time.Duration
		want bool
	}{
		"as it was left": {none, time.Minute, true}, "changed now": {none, 0, false}, "just changed": {none, settled - 1, false}, "settled": {none, settled, true},
		"shared memory": {beside("-shm", ""), time.Minute, false}, "journal": {beside("-journal", ""), time.Minute, false},
		"rows in the log": {beside("-wal", "x"), time.Minute, false}, "no rows in the log": {beside("-wal", ""), time.Minute, true},
		"no log": {func(path string) error { return os.Mkdir(path+"-wal", 0o700) }, time.Minute, false},
	} {
		path := closedCleanly(t)
		must(t, tt.do(path))
		var st syscall.Stat_t
		must(t, syscall.Stat(path, &st))
		if _, ok := closed(path, time.Unix(st.Ctim.Unix()).Add(tt.ago)); ok != tt.want {
			t.Errorf("%s: closed %v", name, ok)
		}
	}
}

// Field list: E2. What is read of such a file does not count when somebody
// wrote meanwhile.
func TestOpenedWhileItIsRead(t *testing.T) {
	path := closedCleanly(t)
	var err error
	for try := 0; try < 50; try++ { // until the file's time is old enough
		looked := false
		err = look(t.Context(), path, plainSession, func(*view) error {
			looked = true
			addEvent(t, writer(t, path), plainSession, 16, "x", `{}`)
			return nil
		})
		if looked {
			break
		}
		time.Sleep(settled / 2)
	}
	if !errors.Is(err, errBusy) {
		t.Errorf("error %v, want busy: a row was written that the look did not see", err)
	}
}

// Field list: E2. The same for what leaves no trace but in the file's time of
// change: another copy of its size was written over it, with its time.
func TestCopiedOverWhileItIsRead(t *testing.T) {
	path := closedCleanly(t)
	info, err := os.Stat(path)
	must(t, err)
	copied, err := os.ReadFile(path)
	must(t, err)
	for try := 0; try < 50; try++ { // until the file's time is old enough
		looked := false
		err = look(t.Context(), path, plainSession, func(*view) error {
			looked = true
			return errors.Join(os.WriteFile(path, copied, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
		})
		if looked {
			break
		}
		time.Sleep(settled / 2)
	}
	if !errors.Is(err, errBusy) {
		t.Errorf("error %v, want busy", err)
	}
}

// Field list: E2. A database behind a link is as live as its file: its log of
// writes lies beside that.
func TestDatabaseBehindALink(t *testing.T) {
	path, db := live(t, "plain")
	link := filepath.Join(t.TempDir(), "opencode.db")
	must(t, os.Symlink(path, link))
	execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
	addEvent(t, db, plainSession, 16, "x", `{}`)
	then := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(path, then, then))
	if n, err := count(link); n != 17 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
}

// Field list: E1, E2. With rows in its -wal but without -shm a database is not
// read, least of all without those rows, until a writer opens it.
func TestNoSharedMemory(t *testing.T) {
	path := leftBehind(t)
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	before := files(t, filepath.Dir(path))
	if n, err := count(path); !errors.Is(err, errBusy) || n != 0 {
		t.Errorf("%d records, error %v, want busy", n, err)
	}
	if after := files(t, filepath.Dir(path)); after != before {
		t.Errorf("files changed\n%s\n%s", before, after)
	}
	execute(t, writer(t, path), "UPDATE project SET time_updated = 2") // the program comes back
	if n, err := count(path); n != 16 || err != nil {
		t.Errorf("with a writer again: %d records, %v", n, err)
	}
}

// Field list: E4. Shared memory that no process keeps is worth nothing: SQLite
// reads the log of writes in its place.
func TestStaleSharedMemory(t *testing.T) {
	for name, shm := range map[string]string{"zeros": strings.Repeat("\x00", 32768), "noise": strings.Repeat("wal?", 8192), "empty": ""} {
		path := leftBehind(t)
		if err := os.WriteFile(path+"-shm", []byte(shm), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := count(path); n != 16 || err != nil {
			t.Errorf("%s: %d records, %v", name, n, err)
		}
	}
	// One of an older log: the rows of the newer one count.
	path, db := live(t, "plain")
	dir := t.TempDir()
	old, err := os.ReadFile(path + "-shm")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
	addEvent(t, db, plainSession, 16, "x", `{}`)
	copyFiles(t, filepath.Dir(path), dir)
	path = filepath.Join(dir, "opencode.db")
	if err := os.WriteFile(path+"-shm", old, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := count(path); n != 17 || err != nil {
		t.Errorf("of an older log: %d records, %v", n, err)
	}
}

// A log of writes that is deleted beside its writer: an error or a reset, never
// a wrong row.
func TestLogOfWritesDeleted(t *testing.T) {
	path, db := live(t, "plain")
	execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
	c := cursorAt(t, rowsOf(path, plainSession), nil)
	read(t, c, 1<<20)
	execute(t, db, `INSERT INTO event VALUES('evt_lost', ?, 16, 'x', '{}')`, plainSession)
	read(t, c, 1<<20)
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	b, err := c.Read(1 << 20)
	if err == nil && (b.Reset == providers.Same || len(b.Records) > 0) {
		t.Errorf("%d records from nowhere", len(b.Records))
	}
}
