package opencode

import (
	"bytes"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

const corpusDir = "../../testdata/providers/opencode"

// dump is the text of one recorded database.
func dump(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(corpusDir, name, "opencode.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writer opens a database as the program does: WAL, kept open until the test
// ends.
func writer(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	return db
}

func execute(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// live rebuilds a recorded database beside a writer that keeps it open.
func live(t testing.TB, name string) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "opencode.db")
	db = writer(t, path)
	execute(t, db, "BEGIN;\n"+dump(t, name)+"COMMIT;")
	return path, db
}

func rowsOf(path, session string) providers.Artifact {
	return providers.Artifact{Provider: ID, Path: path + "/" + session, Role: providers.Transcript, Framing: providers.Rows, Session: session}
}

// readAll reads a session from its beginning, size bytes at a time.
func readAll(t testing.TB, a providers.Artifact, size int) []providers.Record {
	t.Helper()
	c, err := Provider{}.Cursor(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []providers.Record
	for {
		b := read(t, c, size)
		if b.Reset != providers.Same {
			t.Fatalf("reset %q", b.Reset)
		}
		for _, r := range b.Records {
			r.Data = bytes.Clone(r.Data)
			out = append(out, r)
		}
		if !b.More {
			return out
		}
	}
}

// corpus is every recorded session, as its rows are read beside a writer.
func corpus(t testing.TB) []providertest.Case {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(corpusDir, "*", "*.golden"))
	if err != nil || len(names) < 59 {
		t.Fatalf("%d goldens, %v", len(names), err)
	}
	open := map[string]string{}
	var out []providertest.Case
	for _, file := range names {
		name := filepath.Base(filepath.Dir(file))
		if open[name] == "" {
			open[name], _ = live(t, name)
		}
		session := strings.TrimSuffix(filepath.Base(file), ".golden")
		c := providertest.Case{Name: name + "/" + session, File: file, Artifact: rowsOf(open[name], session)}
		for _, r := range readAll(t, c.Artifact, 1<<20) {
			c.Data = append(append(c.Data, r.Data...), '\n')
		}
		out = append(out, c)
	}
	return out
}

// Every recorded session has a golden: what is recorded without an expectation
// proves nothing.
func TestGoldensAreComplete(t *testing.T) {
	err := filepath.WalkDir(corpusDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "opencode.sql" {
			return err
		}
		_, db := live(t, filepath.Base(filepath.Dir(path)))
		rows, err := db.Query(`SELECT DISTINCT aggregate_id FROM event`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), id+".golden")); err != nil {
				t.Errorf("no golden: %v", err)
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGolden(t *testing.T) {
	for _, c := range corpus(t) {
		t.Run(c.Name, func(t *testing.T) { providertest.Golden(t, Provider{}, c, c.File) })
	}
}

func TestContract(t *testing.T) {
	providertest.Run(t, Provider{}, corpus(t))
}

func TestNothingInTheCorpusIsNew(t *testing.T) {
	for _, c := range corpus(t) {
		p := newProjector(nil)
		for _, r := range providertest.Split(c.Data) {
			p.Project(r)
		}
		if got := p.Drift(); len(got) != 0 {
			t.Errorf("%s: drift %v", c.Name, got)
		}
	}
}
