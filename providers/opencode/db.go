package opencode

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"steno/providers"
	"steno/providers/readdb"
)

// maxTransaction bounds one look into a database, so that no checkpoint of the program
// waits for it.
const maxTransaction = 100 * time.Millisecond

// errBusy wraps what the next try may not meet: a lock, a recovery, our own
// limit of time.
var errBusy = errors.New("the database is busy")

// errSlow is an errBusy: our own limit of time.
var errSlow = fmt.Errorf("%w (not done within %v)", errBusy, maxTransaction)

// identity of a database file.
type identity struct{ dev, ino uint64 }

func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, bare("look at database", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return identity{}, errors.New("look at database: it is not a regular file")
	}
	return identity{uint64(st.Dev), st.Ino}, nil
}

// bare is an error without the path in it.
func bare(doing string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// split is the database and the session of an artifact's path.
func split(a providers.Artifact) (db, session string, err error) {
	db, session = filepath.Split(a.Path)
	db = filepath.Clean(db)
	if !sessionID.MatchString(session) || !filepath.IsAbs(db) {
		return "", "", errors.New("the artifact is not the rows of a session")
	}
	return db, session, nil
}

// view is one read transaction.
type view struct {
	ctx     context.Context
	tx      *sql.Tx
	session string
	events  bool  // the database has the table of events
	born    int64 // of the session, ms
	updated int64 // of the session, ms
}

// look opens the database, runs f in one read transaction of at most 100 ms and
// closes it. Opening costs some 1 ms, a connection that stays open would keep
// the program from folding its log of writes when it ends, and a database
// that was replaced is noticed at once. What f learned counts only when look
// gives no error.
//
// Nothing is written, made or removed: see package readdb. A database without its log of
// writes and its shared memory can be read in one way only.
func look(ctx context.Context, db, session string, f func(*view) error) error {
	db = readdb.Beside(db)
	if regular(db+"-shm") && regular(db+"-wal") {
		return lookWith(ctx, db, session, readdb.Shared, f)
	}
	before, ok := closed(db, time.Now())
	if !ok {
		return fmt.Errorf("open database: %w (its log of writes or its shared memory is missing)", errBusy)
	}
	if err := lookWith(ctx, db, session, readdb.Immutable, f); err != nil {
		return err
	}
	if after, ok := closed(db, time.Now()); !ok || after != before {
		return fmt.Errorf("read database: %w (it was opened meanwhile)", errBusy)
	}
	return nil
}

func regular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// file is what tells that nobody wrote to a database.
type file struct {
	identity
	size    int64
	changed int64 // Unix nanoseconds; the time of modification can be set, this one cannot
}

// settled is how old the last change of a file must be, so that the next one
// shows in its time: the kernel's clock for that has a tick of up to 10 ms.
const settled = 50 * time.Millisecond

// closed says whether all of the database is in its file, which nobody writes
// now. Its last writer has folded the log of writes and taken it
// away with the shared memory; SQLite then opens it for reading only where it
// may make both again. A writer makes them, or a journal, before it writes. So
// without them the file is all there is, and may be read as one that does not
// change, when it is found unchanged afterwards.
func closed(db string, now time.Time) (file, bool) {
	for _, suffix := range []string{"-shm", "-journal"} {
		if _, err := os.Lstat(db + suffix); !errors.Is(err, fs.ErrNotExist) {
			return file{}, false
		}
	}
	if info, err := os.Lstat(db + "-wal"); err == nil && (!info.Mode().IsRegular() || info.Size() > 0) ||
		err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file{}, false
	}
	info, err := os.Stat(db)
	if err != nil {
		return file{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || now.Sub(time.Unix(st.Ctim.Unix())) < settled {
		return file{}, false
	}
	return file{identity{uint64(st.Dev), st.Ino}, info.Size(), st.Ctim.Nano()}, true
}

// lookWith is one look in one of the ways to open the file.
func lookWith(ctx context.Context, db, session string, how readdb.How, f func(*view) error) error {
	conn, err := readdb.Open(db, how)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer conn.Close()
	short, cancel := context.WithTimeout(ctx, maxTransaction)
	defer cancel()
	tx, err := conn.BeginTx(short, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return classify(short, "open database", err)
	}
	defer tx.Rollback()
	v := &view{ctx: short, tx: tx, session: session}
	if err := v.begin(); err != nil {
		return err
	}
	return f(v)
}

// begin reads what every look needs.
func (v *view) begin() error {
	var n int
	err := v.tx.QueryRowContext(v.ctx, queryTable).Scan(&n)
	if err != nil {
		return classify(v.ctx, "read schema", err)
	}
	v.events = n > 0
	if v.session == "" {
		return nil
	}
	var born, updated sql.NullInt64
	err = v.tx.QueryRowContext(v.ctx, queryBorn, v.session).Scan(&born, &updated)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("find session: %w", fs.ErrNotExist)
	case err != nil:
		return classify(v.ctx, "find session", err)
	}
	v.born, v.updated = born.Int64, updated.Int64
	return nil
}

// Queries that run repeatedly: a test asks for their plans.
const (
	queryTable = `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'event'`
	queryBorn  = `SELECT time_created, time_updated FROM session WHERE id = ?`
)

// classify turns an error of SQLite into one of ours: without text of the
// database, and errBusy where the next try may do.
func classify(ctx context.Context, doing string, err error) error {
	switch kind, code := readdb.Classify(err); kind {
	case readdb.Busy:
		return fmt.Errorf("%s: %w (code %d)", doing, errBusy, code)
	case readdb.Interrupted:
		return fmt.Errorf("%s: %w", doing, errSlow)
	case readdb.Broken:
		return fmt.Errorf("%s: SQLite code %d", doing, code)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, errSlow)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
