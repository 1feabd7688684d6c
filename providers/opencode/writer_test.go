package opencode

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"steno/providers"
)

// The program is another process: its locks and its shared memory are not ours.
// The test binary plays it, one statement a line.
const writerEnv = "OPENCODE_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		os.Exit(write(path))
	}
	os.Exit(m.Run())
}

func write(path string) int {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(2000)")
	if err != nil {
		return 1
	}
	db.SetMaxOpenConns(1)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0 // without closing: 1.18.33 does not fold its log of writes either
		}
		var query string
		if json.Unmarshal(line, &query) != nil {
			return 1
		}
		fmt.Println(answer(db, query))
	}
}

// answer is "ok", the integers of the first row, or an error.
func answer(db *sql.DB, query string) string {
	rows, err := db.Query(query)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	names, _ := rows.Columns()
	if len(names) == 0 || !rows.Next() {
		return "ok"
	}
	values := make([]any, len(names))
	for i := range values {
		values[i] = new(any)
	}
	if err := rows.Scan(values...); err != nil {
		return err.Error()
	}
	out := ""
	for _, v := range values {
		out += fmt.Sprint(*v.(*any), " ")
	}
	return out
}

// program is a writer in a process of its own.
type program struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func start(t testing.TB, path string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), writerEnv+"="+path)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

// end is the end of the process, which leaves -wal and -shm as they are.
func (p *program) end() {
	p.in.Close()
	p.cmd.Wait()
}

func (p *program) say(query string) string {
	p.t.Helper()
	b, err := json.Marshal(query)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return string(bytes.TrimSpace(line))
}

func (p *program) exec(query string) {
	p.t.Helper()
	if got := p.say(query); got != "ok" {
		p.t.Fatalf("%s", got)
	}
}

// apart rebuilds a recorded database in another process that keeps it open.
func apart(t testing.TB, name string) (path string, p *program) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "opencode.db")
	p = start(t, path)
	p.exec("BEGIN;\n" + dump(t, name) + "COMMIT;")
	return path, p
}

// Rows of a living process, and those of one that has ended.
func TestAnotherProcessWrites(t *testing.T) {
	path, p := apart(t, "tui1")
	a := rowsOf(path, tui)
	if n := len(readAll(t, a, 1<<20)); n != 180 {
		t.Errorf("%d records beside the writer", n)
	}
	p.exec(`INSERT INTO event VALUES('evt_last', '` + tui + `', 180, 'x', '{}')`)
	if n := len(readAll(t, a, 1<<20)); n != 181 {
		t.Errorf("%d records after one more", n)
	}
	p.exec("BEGIN IMMEDIATE")
	p.exec(`INSERT INTO event VALUES('evt_open', '` + tui + `', 181, 'x', '{}')`)
	if n := len(readAll(t, a, 1<<20)); n != 181 {
		t.Errorf("%d records beside an open transaction", n)
	}
	p.end()
	if n := len(readAll(t, a, 1<<20)); n != 181 {
		t.Errorf("%d records after the writer's end", n)
	}
	again := start(t, path)
	again.exec(`INSERT INTO event VALUES('evt_again', '` + tui + `', 181, 'x', '{}')`)
	if n := len(readAll(t, a, 1<<20)); n != 182 {
		t.Errorf("%d records of the next process", n)
	}
}

// A file that is removed while SQLite has it open must not surprise: ours is
// open only within a call.
func TestNothingStaysOpen(t *testing.T) {
	path, _ := apart(t, "plain")
	readAll(t, rowsOf(path, "ses_dd23788a9ffemZn0ip4YuiY1vO"), 1<<20)
	deadline := time.Now().Add(5 * time.Second)
	for {
		open := 0
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc")
		}
		for _, e := range entries {
			if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && filepath.Dir(target) == filepath.Dir(path) {
				open++
			}
		}
		if open == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d files of the program are open", open)
		}
	}
}

var _ providers.Cursor = (*cursor)(nil)
