package readdb

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite" // reads what the programs write; without cgo
)

// How says what SQLite may take for granted of a database.
type How string

const (
	// Shared is a database that a program may have open: -wal and -shm must be there.
	Shared How = "readonly_shm=1"
	// Immutable is a database that nobody writes to, which the caller makes sure
	// of before and after: without locks, -wal and -shm.
	Immutable How = "immutable=1"
)

// busyTimeout is how long SQLite thinks that it waits for a lock of the program's, in
// ms. Each of its twelve waits is cut to maxSleep: 25 ms in fact.
const busyTimeout = 250

// Open is a database with one connection at most, which is made by the first use. What a
// query has to sort, it sorts in memory: a query needs an index or a limit.
func Open(path string, how How) (*sql.DB, error) {
	if err := register(); err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: fmt.Sprintf(
		"vfs=%s&mode=ro&%s&_pragma=busy_timeout(%d)&_pragma=query_only(1)&_pragma=temp_store(memory)", vfsName, how, busyTimeout)}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, errors.New("the name is not usable")
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Beside is the name that SQLite gives the database, beside which it has its -wal and
// -shm: it follows symbolic links.
func Beside(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Trouble is the kind of an error of SQLite.
type Trouble int

const (
	// Other is an error that is not SQLite's.
	Other Trouble = iota
	// Busy is a lock, a recovery or a change of the program's: the next try may
	// not meet it.
	Busy
	// Interrupted is the end of the context, as SQLite noticed it.
	Interrupted
	// Broken is damage, or another schema.
	Broken
)

// Primary result codes of SQLite; extended ones have them in their low byte.
const (
	codeBusy      = 5
	codeLocked    = 6
	codeReadonly  = 8 // a lock on the shared memory could not be had read-only
	codeInterrupt = 9
	codeCantOpen  = 14
	codeProtocol  = 15
	codeSchema    = 17
)

// Classify is the kind of an error, and SQLite's code of it.
func Classify(err error) (kind Trouble, code int) {
	var coded *sqlite.Error
	if !errors.As(err, &coded) {
		return Other, 0
	}
	code = coded.Code()
	switch code & 0xff {
	case codeBusy, codeLocked, codeReadonly, codeProtocol, codeSchema, codeCantOpen:
		return Busy, code
	case codeInterrupt:
		return Interrupted, code
	}
	return Broken, code
}
