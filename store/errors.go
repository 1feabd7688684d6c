package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
)

var (
	// Returned by Open.

	// ErrForeign is returned when the file is not Steno's: a symbolic link, a
	// special file, another owner, or another program's database.
	ErrForeign = errors.New("not a database of this program")
	// ErrNewer is returned when a newer version of the schema is stored.
	ErrNewer = errors.New("written by a newer version")

	// Returned by every call.

	// ErrCorrupt is returned when SQLite finds the file malformed, or when it
	// breaks one of the package's own invariants.
	ErrCorrupt = errors.New("database is corrupt")
	// ErrReplaced is returned when the file at the path is no longer the one
	// that is open.
	ErrReplaced = errors.New("database file was deleted or replaced")
	// ErrNotWritable is returned when the file, its directory or its file
	// system may not be written or opened.
	ErrNotWritable = errors.New("database is not writable")
	// ErrFull is returned when there is no space left.
	ErrFull = errors.New("disk or database is full")
	// ErrBusy is returned when another process kept the lock for too long.
	ErrBusy = errors.New("database is locked by another process")
	// ErrIO is returned when the operating system failed a read or write.
	ErrIO = errors.New("disk error")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store is closed")

	// Returned by Commit.

	// ErrInvalid is returned when a batch breaks a bound. Nothing of it was
	// stored, and it will never be accepted.
	ErrInvalid = errors.New("batch is invalid")
)

// SQLite's primary result codes, the low byte of every code.
// https://sqlite.org/rescode.html
const (
	codeError      = 1
	codePerm       = 3
	codeBusy       = 5
	codeLocked     = 6
	codeNoMem      = 7
	codeReadOnly   = 8
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeProtocol   = 15
	codeConstraint = 19
	codeNotADB     = 26

	codeReadOnlyMoved = codeReadOnly | 4<<8
	codeIOCorruptFS   = codeIO | 33<<8
)

// Temporary says whether trying the same again later can succeed without
// anybody touching the database: busy, full, read-only, I/O.
func Temporary(err error) bool {
	switch {
	case errors.Is(err, ErrReplaced), errors.Is(err, ErrCorrupt), errors.Is(err, ErrForeign):
		return false
	}
	return errors.Is(err, ErrBusy) || errors.Is(err, ErrFull) ||
		errors.Is(err, ErrNotWritable) || errors.Is(err, ErrIO)
}

// wrap says what we were doing and adds the class of the error, which is found
// by result code, never by text.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	if class := classOf(err); class != nil && !errors.Is(err, class) {
		return fmt.Errorf("%s: %w: %w", doing, class, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// classOf returns the sentinel for an error of SQLite or of the file system,
// nil when there is none.
func classOf(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return classOfCode(e.Code())
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		switch errno {
		case syscall.ENOSPC, syscall.EDQUOT:
			return ErrFull
		case syscall.EROFS, syscall.EACCES, syscall.EPERM:
			return ErrNotWritable
		}
		return ErrIO
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return ErrIO
	}
	return nil
}

func classOfCode(code int) error {
	switch code {
	case codeReadOnlyMoved:
		return ErrReplaced
	case codeIOCorruptFS:
		return ErrCorrupt
	}
	switch code & 0xff {
	case codeBusy, codeLocked, codeProtocol:
		return ErrBusy
	case codeFull:
		return ErrFull
	case codePerm, codeReadOnly, codeCantOpen:
		return ErrNotWritable
	case codeIO, codeNoMem:
		return ErrIO
	case codeCorrupt, codeNotADB:
		return ErrCorrupt
	case codeConstraint: // two servers want one slot
		return ErrInvalid
	}
	return nil
}

// broken takes the failure to compile one of our fixed statements for what it
// is: a database that is marked as ours and has other tables.
func broken(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == codeError {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// blameless says whether err tells nothing about the state of the store: the
// caller gave up, or asked for something impossible.
func blameless(ctx context.Context, err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) ||
		ctx.Err() != nil && errors.Is(err, ctx.Err())
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
