package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// applicationID marks the file as Steno's: "STNO".
const applicationID = 0x53544e4f

//go:embed schema/*.sql
var schemaFiles embed.FS

// migrations lists the scripts in order: script n leads from version n to n+1.
func migrations() ([]string, error) {
	names, err := fs.Glob(schemaFiles, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	scripts := make([]string, len(names))
	for i, name := range names {
		b, err := schemaFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		scripts[i] = string(b)
	}
	return scripts, nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns the schema version of our database, 0 for an empty one.
func version(ctx context.Context, q queryer, newest int) (int, error) {
	var app, user, objects int
	err := q.QueryRowContext(ctx, `SELECT a.application_id, u.user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id a, pragma_user_version u`).Scan(&app, &user, &objects)
	switch {
	case err != nil:
		return 0, wrap("read schema version", err)
	case app == 0 && user == 0 && objects == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("database file: %w: its application id is %#x", ErrForeign, uint32(app))
	case user > newest:
		return 0, fmt.Errorf("database file: %w: its schema is %d, this program knows %d", ErrNewer, user, newest)
	case user < 1 || objects == 0:
		return 0, fmt.Errorf("database file: %w", corrupt("it is marked as ours and has no schema"))
	}
	return user, nil
}

// inspect looks at the file through a connection that changes nothing. The last
// connection that may write brings a write-ahead log home when it closes, so
// where there is one, this may not. Elsewhere it has to: a database that may only
// be read cannot be rolled back, and would be left with an empty log.
func inspect(ctx context.Context, o Options) error {
	scripts, err := migrations()
	if err != nil {
		return err
	}
	mode := "rw"
	if fi, err := os.Lstat(o.Path + "-wal"); err == nil && fi.Size() > 0 {
		mode = "ro"
	}
	db, err := sql.Open("sqlite", dsn(o, mode, "query_only(1)"))
	if err != nil {
		return wrap("open database", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = version(ctx, db, len(scripts))
	return err
}

// migrate runs the missing scripts in one transaction. The version is read
// again under the lock: another process may have been faster.
func migrate(ctx context.Context, c *sql.Conn, o Options) (err error) {
	scripts, err := migrations()
	if err != nil {
		return err
	}
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return wrap("begin migration", err)
	}
	defer tx.Rollback()
	have, err := version(ctx, tx, len(scripts))
	if err != nil {
		return err
	}
	if have == len(scripts) {
		// SQLite begins on a read-only file without a word; only a write
		// tells, and the rollback undoes it.
		_, err := tx.ExecContext(ctx, `UPDATE meta SET latest = latest WHERE id = 1`)
		return wrap("try to write", broken(err))
	}
	for _, script := range scripts[have:] {
		if _, err := tx.ExecContext(ctx, script); err != nil {
			return wrap("migrate schema", err)
		}
	}
	if have == 0 {
		if err := seed(ctx, tx, o); err != nil {
			return err
		}
	}
	for _, pragma := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", len(scripts)),
	} {
		if _, err := tx.ExecContext(ctx, pragma); err != nil {
			return wrap("mark schema version", err)
		}
	}
	return wrap("commit migration", tx.Commit())
}

// seed begins a new log above any that was at this path before.
func seed(ctx context.Context, tx *sql.Tx, o Options) error {
	from, err := floor(o.Path, o.Now())
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO meta (id, pruned_through, latest, bytes) VALUES (1, ?1, ?1, 0)`, int64(from)); err != nil {
		return wrap("begin log", err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?1)`, int64(from))
	return wrap("begin log", err)
}
