//go:build e2e

package e2e

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	_ "modernc.org/sqlite" // some programs leave databases
)

// source is where a program leaves records.
type source struct {
	kind  string   // the first part of their types; it may be empty
	files string   // a pattern below the home: * within a name, ** for any directories
	types []string // where a record names its type
	read  func(path string, each func(kind string, value any)) error

	passing bool // the program removes them when it ends: they are looked at after each step
}

// lines are files with a JSON record in each line.
func lines(kind, files string, types ...string) source {
	return source{kind: kind, files: files, types: types, read: readLines}
}

// documents are files that are one JSON record each.
func documents(kind, files string, types ...string) source {
	return source{kind: kind, files: files, types: types, read: readDocument}
}

// databases are SQLite files: a table is a type, a row a record, and a column
// that is JSON is looked into.
func databases(kind, files string, types ...string) source {
	return source{kind: kind, files: files, types: types, read: readDatabase}
}

// passing are files that are there only while their program runs. What is being
// written while it is looked at does not count.
func passing(s source) source {
	s.passing = true
	return s
}

// largest is the size of the largest file that is looked at.
const largest = 256 << 20

// collect adds the shapes of all that the source has below a home.
func (s source) collect(home string, into shapes) error {
	pattern := regexp.MustCompile("^" + strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(s.files)) + "$")
	fixed, _, _ := strings.Cut(s.files, "*")
	return filepath.WalkDir(filepath.Join(home, filepath.Dir(fixed)), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is gone again
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(home, path)
		if err != nil || !d.Type().IsRegular() || !pattern.MatchString(filepath.ToSlash(rel)) {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > largest {
			return err
		}
		err = s.read(path, func(kind string, value any) {
			if s.passing && kind == unreadable {
				return
			}
			if s.kind != "" && kind != "" {
				kind = s.kind + "/" + kind
			} else {
				kind = s.kind + kind
			}
			into.record(kind, s.types, value)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("collect the shapes of %s: %w", s.files, err)
		}
		return nil
	})
}

// unreadable is the type of what is no JSON.
const unreadable = "unreadable"

func readLines(path string, each func(string, any)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what has no end of line yet is no record
		}
		if err != nil {
			return err
		}
		var v any
		if json.Unmarshal(line, &v) != nil {
			each(unreadable, nil)
			continue
		}
		each("", v)
	}
}

func readDocument(path string, each func(string, any)) error {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return err
	}
	var v any
	if json.Unmarshal(data, &v) != nil {
		each(unreadable, nil)
		return nil
	}
	each("", v)
	return nil
}

func readDatabase(path string, each func(string, any)) error {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: path, RawQuery: "mode=ro"}).String())
	if err != nil {
		return err
	}
	defer db.Close()
	tables, err := db.Query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
	if err != nil {
		return err
	}
	defer tables.Close()
	var names []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			return err
		}
		names = append(names, name)
	}
	if err := tables.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if err := readTable(db, name, each); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// readTable gives its columns, also if it has no row, and then its rows.
func readTable(db *sql.DB, name string, each func(string, any)) error {
	rows, err := db.Query(`SELECT * FROM "` + strings.ReplaceAll(name, `"`, `""`) + `"`)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	record := map[string]any{}
	for _, c := range columns {
		record[c] = nil
	}
	each(foldType(name), record)
	values := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		record := map[string]any{}
		for i, c := range columns {
			record[c] = decoded(values[i])
		}
		each(foldType(name), record)
	}
	return rows.Err()
}

// decoded is the JSON object or list of a column, or nothing.
func decoded(value any) any {
	var raw []byte
	switch v := value.(type) {
	case string:
		raw = []byte(v)
	case []byte:
		raw = v
	}
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return nil
	}
	var out any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}
