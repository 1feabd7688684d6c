package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the format that is imitated
)

// opencode imitates OpenCode 1.18.33: a session is rows of a database, and the
// place in the common log tells which process writes it. A recorded line is one
// row of the table event: {"timestamp", "type", "data"}.
type opencode struct {
	rec     *recording
	dir     string // data directory
	session string
	db      *sql.DB
	log     *os.File
	seq     int
}

const opencodeSchema = `
CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE IF NOT EXISTS event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL);
CREATE TABLE IF NOT EXISTS event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS event_aggregate_seq_idx ON event (aggregate_id, seq);
`

func newOpencode(rec *recording, getenv func(string) string) (*opencode, error) {
	data := getenv("XDG_DATA_HOME")
	if data == "" {
		data = filepath.Join(getenv("HOME"), ".local", "share")
	}
	return &opencode{rec: rec, dir: filepath.Join(data, "opencode"), session: rec.self}, nil
}

func (o *opencode) path() string { return filepath.Join(o.dir, "opencode.db") }

func (o *opencode) start() error {
	if err := os.MkdirAll(filepath.Join(o.dir, "log"), 0o700); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+o.path()+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(1)
	o.db = db
	if _, err := db.Exec(opencodeSchema); err != nil {
		return fmt.Errorf("make tables: %w", err)
	}
	o.log, err = os.OpenFile(filepath.Join(o.dir, "log", "opencode.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	return o.say("creating instance")
}

// say writes a line of the log; one about a session names it.
func (o *opencode) say(message string) error {
	about := ""
	if o.seq > 0 {
		about = " session.id=" + o.session + " step=0"
	}
	_, err := fmt.Fprintf(o.log, "timestamp=%s level=INFO run=%08x message=%q%s\n",
		time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), os.Getpid(), message, about)
	return err
}

func (o *opencode) batches() bool       { return false }
func (o *opencode) saw([]byte) error    { return nil }
func (o *opencode) status(string) error { return errors.New("opencode publishes no status") }

// write inserts a row, and the session with the first one.
func (o *opencode) write(data []byte) (err error) {
	var row struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), &row); err != nil {
		return fmt.Errorf("read row: %w", err)
	}
	tx, err := o.db.Begin()
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the first error counts
		}
	}()
	now := time.Now().UnixMilli()
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO session VALUES (?, NULL, ?, 'stand-in', '1.18.33', ?, ?) ON CONFLICT (id) DO UPDATE SET time_updated = excluded.time_updated`,
			[]any{o.session, o.rec.dir, now, now}},
		{`INSERT INTO event_sequence VALUES (?, ?) ON CONFLICT (aggregate_id) DO UPDATE SET seq = excluded.seq`, []any{o.session, o.seq}},
		{`INSERT INTO event VALUES (?, ?, ?, ?, ?)`, []any{fmt.Sprintf("evt_%s_%d", o.session, o.seq), o.session, o.seq, row.Type, string(row.Data)}},
	} {
		if _, err := tx.Exec(step.query, step.args...); err != nil {
			return fmt.Errorf("write row: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit row: %w", err)
	}
	o.seq++
	return o.say("loop")
}

func (o *opencode) renew(session string) error {
	o.session, o.seq = session, 0
	return nil
}

// stop leaves the database as it is: the program ends without a checkpoint, so
// the write-ahead log stays.
func (o *opencode) stop() error { return nil }
