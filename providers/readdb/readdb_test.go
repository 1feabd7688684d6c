package readdb

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The program is another process: its locks and its shared memory are not ours. The
// test binary plays it: it writes, says so, and ends when its input does.
const programEnv = "READDB_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if path := os.Getenv(programEnv); path != "" {
		os.Exit(program(path))
	}
	os.Exit(m.Run())
}

const rows = 1000

func program(path string) int {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		return 1
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE t (i INTEGER PRIMARY KEY, s TEXT);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT ` + strconv.Itoa(rows) + `)
		INSERT INTO t SELECT i, hex(randomblob(16)) FROM n`); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		_, err := db.Exec(in.Text())
		fmt.Println("done", err)
	}
	return 0 // without closing, so that -wal and -shm stay
}

// start is a database with its rows in -wal alone and with a program that has it
// open. say gives the program a statement.
func start(t *testing.T) (path string, say func(string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "its.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the program: %q, %v", line, err)
	}
	return path, func(statement string) {
		t.Helper()
		_, err := fmt.Fprintln(in, statement)
		must(t, err)
		if line, err := out.ReadString('\n'); line != "done <nil>\n" {
			t.Fatalf("the program: %q, %v", line, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, path string, how How) *sql.DB {
	t.Helper()
	db, err := Open(path, how)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func count(ctx context.Context, db *sql.DB) (n int, err error) {
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM t").Scan(&n)
	return n, err
}

// held are the files in a directory that this process has open, with their flags.
func held(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	out := map[string]int64{}
	for _, fd := range fds {
		name, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err != nil || filepath.Dir(name) != dir {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		must(t, err)
		_, rest, _ := strings.Cut(string(info), "flags:")
		flags, err := strconv.ParseInt(strings.Fields(rest)[0], 8, 64)
		must(t, err)
		out[filepath.Base(name)] = flags
	}
	return out
}

// TestOpensToRead: the rows of a live program are read, also those in the log of
// writes alone, and each of the three files is open for reading alone.
func TestOpensToRead(t *testing.T) {
	path, say := start(t)
	for i := range 3 {
		say("INSERT INTO t (s) VALUES ('one more')")
		db := look(t, path, Shared)
		tx, err := db.Begin()
		must(t, err)
		var n int
		must(t, tx.QueryRow("SELECT count(DISTINCT s) FROM t").Scan(&n))
		if n != rows+1 {
			t.Errorf("%d different rows", n)
		}
		must(t, tx.QueryRow("SELECT count(*) FROM t").Scan(&n))
		if n != rows+1+i {
			t.Errorf("%d rows after %d more", n, i+1)
		}
		open := held(t, filepath.Dir(path))
		for _, name := range []string{"its.db", "its.db-wal", "its.db-shm"} {
			if flags, ok := open[name]; !ok || flags&syscall.O_ACCMODE != syscall.O_RDONLY {
				t.Errorf("%s: open %v, flags %o", name, ok, flags)
			}
		}
		must(t, tx.Rollback())
		must(t, db.Close())
		if open := held(t, filepath.Dir(path)); len(open) != 0 {
			t.Errorf("still open: %v", open)
		}
	}
}

// TestSorts: SQLite would take a file to sort that much.
func TestSorts(t *testing.T) {
	path, _ := start(t)
	var last string
	must(t, look(t, path, Shared).QueryRow(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n LIMIT 50000)
		SELECT x FROM (SELECT printf('%0200d', i*7919 % 50000) AS x FROM n) ORDER BY x LIMIT 1 OFFSET 49999`).Scan(&last))
	if !strings.HasSuffix(last, "0049999") {
		t.Errorf("the last is %s", last)
	}
}

// TestWritesAreRefused: no statement changes anything.
func TestWritesAreRefused(t *testing.T) {
	path, _ := start(t)
	db := look(t, path, Shared)
	for _, statement := range []string{
		"INSERT INTO t (s) VALUES ('ours')", "CREATE TABLE ours (i)", "PRAGMA journal_mode=DELETE", "VACUUM",
		"PRAGMA query_only=0; INSERT INTO t (s) VALUES ('ours')", "PRAGMA wal_checkpoint(TRUNCATE)",
		"ATTACH DATABASE '" + path + "2' AS other; CREATE TABLE other.t (i)",
	} {
		before := contents(t, path)
		db.Exec(statement) // some are refused without an error
		if contents(t, path) != before {
			t.Errorf("%s changed something", statement)
		}
	}
	if n, err := count(t.Context(), db); n != rows || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// contents are the names and bytes in a database's directory.
func contents(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		must(t, err)
		fmt.Fprintf(&b, "%s\n%s\n", e.Name(), data)
	}
	return b.String()
}

// TestNothingIsRemoved: SQLite removes a log of writes beside an empty database, for the
// program's writes that would be their loss.
func TestNothingIsRemoved(t *testing.T) {
	from, _ := start(t)
	path := filepath.Join(t.TempDir(), "its.db")
	must(t, os.WriteFile(path, nil, 0o600))
	for _, end := range []string{"-wal", "-shm"} {
		b, err := os.ReadFile(from + end)
		must(t, err)
		must(t, os.WriteFile(path+end, b, 0o600))
	}
	before := contents(t, path)
	_, err := count(t.Context(), look(t, path, Shared))
	if kind, code := Classify(err); kind != Busy {
		t.Errorf("%v (%d)", err, code)
	}
	if contents(t, path) != before {
		t.Error("the log of writes is not as it was")
	}
}

// TestNothingIsMade: a database without -wal and -shm gets none.
func TestNothingIsMade(t *testing.T) {
	from, say := start(t)
	say("PRAGMA wal_checkpoint(TRUNCATE)")
	b, err := os.ReadFile(from)
	must(t, err)
	path := filepath.Join(t.TempDir(), "its.db")
	must(t, os.WriteFile(path, b, 0o600))
	before := contents(t, path)
	if n, err := count(t.Context(), look(t, path, Shared)); err == nil {
		t.Errorf("%d rows without -wal and -shm", n)
	}
	if n, err := count(t.Context(), look(t, path, Immutable)); n != rows || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	if contents(t, path) != before {
		t.Error("something was made")
	}
}

// TestDamagedSharedMemory: SQLite would wait 10 s for the program to mend it, and asks
// for no context meanwhile.
func TestDamagedSharedMemory(t *testing.T) {
	path, say := start(t)
	say("BEGIN IMMEDIATE") // it could be mending
	shm, err := os.OpenFile(path+"-shm", os.O_WRONLY, 0)
	must(t, err)
	_, err = shm.Write(bytes.Repeat([]byte("garbage "), 12)) // both copies of the header
	must(t, err)
	must(t, shm.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	n, err := count(ctx, look(t, path, Shared))
	if err == nil {
		t.Errorf("%d rows with damaged shared memory", n)
	}
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("waited %v for a context of 100 ms", d)
	}
}

// TestForeign: what is no database is told at once, whatever lies beside it.
func TestForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "its.db")
	for _, end := range []string{"", "-wal", "-shm"} {
		must(t, os.WriteFile(path+end, bytes.Repeat([]byte("garbage "), 9999), 0o600))
	}
	for _, how := range []How{Shared, Immutable} {
		n, err := count(t.Context(), look(t, path, how))
		if kind, code := Classify(err); kind != Broken || code != 26 { // SQLITE_NOTADB
			t.Errorf("%s: %d rows, %v (%d)", how, n, err, code)
		}
		if open := held(t, filepath.Dir(path)); len(open) != 0 {
			t.Errorf("%s: still open: %v", how, open)
		}
	}
}

func TestClassify(t *testing.T) {
	path, say := start(t)
	db := look(t, path, Shared)
	kindOf := func(ctx context.Context, query string) Trouble {
		t.Helper()
		_, err := db.ExecContext(ctx, query)
		if err == nil {
			t.Errorf("%s: no error", query)
		}
		kind, _ := Classify(fmt.Errorf("look: %w", err))
		return kind
	}
	if got := kindOf(t.Context(), "SELECT nothing FROM t"); got != Broken {
		t.Errorf("another schema: %v", got)
	}
	if got := kindOf(t.Context(), "DELETE FROM t"); got != Busy {
		t.Errorf("read-only: %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
	if got := kindOf(ctx, endless); got != Interrupted && got != Other { // the driver's word or the context's
		t.Errorf("interrupted: %v", got)
	}
	if kind, code := Classify(errors.New("SQLITE_BUSY")); kind != Other || code != 0 {
		t.Errorf("no error of SQLite: %v %d", kind, code)
	}
	must(t, db.Close())
	say("PRAGMA locking_mode=EXCLUSIVE")
	say("INSERT INTO t (s) VALUES ('locked')")
	db = look(t, path, Shared)
	if got := kindOf(t.Context(), "SELECT count(*) FROM t"); got != Busy {
		t.Errorf("locked: %v", got)
	}
}

func TestBeside(t *testing.T) {
	path, _ := start(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(path, link))
	real, err := filepath.EvalSymlinks(path)
	must(t, err)
	if got := Beside(link); got != real {
		t.Errorf("Beside(%s) = %s", link, got)
	}
	if got := Beside(link + "none"); got != link+"none" {
		t.Errorf("Beside of nothing = %s", got)
	}
	if n, err := count(t.Context(), look(t, link, Shared)); n != rows || err != nil {
		t.Errorf("through a link: %d rows, %v", n, err)
	}
}

// TestManyAtOnce: looks at the same time share SQLite's list of open files.
func TestManyAtOnce(t *testing.T) {
	path, say := start(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				db, err := Open(path, Shared)
				if err != nil {
					t.Error(err)
					return
				}
				if n, err := count(t.Context(), db); n < rows || err != nil {
					if kind, _ := Classify(err); kind != Busy {
						t.Errorf("%d rows, %v", n, err)
					}
				}
				db.Close()
			}
		})
	}
	for range 50 {
		say("INSERT INTO t (s) VALUES ('more')")
	}
	all.Wait()
}
