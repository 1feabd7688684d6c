package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The side file holds the ceiling: a number that no sequence handed out has
// passed. It is raised, durably, before a commit would pass it, by a block, so
// it costs one small write in a million events. It outlives a lost or corrupt
// database, which is all it is for.
const (
	ceilingSuffix = "-sequence"
	ceilingBlock  = 1 << 20
	ceilingPrefix = "steno-sequence "
	// A ceiling is refused as nonsense above this; JSON readers that know
	// numbers as doubles are exact below it.
	maxSequence = 1 << 53
)

// errNoCeiling says that the side file is there but cannot be understood.
var errNoCeiling = errors.New("sequence file is malformed")

// readCeiling returns 0 when there is no side file.
func readCeiling(path string) (Seq, error) {
	b, err := os.ReadFile(path + ceilingSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, wrap("read sequence file", err)
	}
	// The newline proves that the number is whole.
	digits, ok := strings.CutSuffix(strings.TrimPrefix(string(b), ceilingPrefix), "\n")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || n >= maxSequence || !strings.HasPrefix(string(b), ceilingPrefix) {
		return 0, errNoCeiling
	}
	return Seq(n), nil
}

func writeCeiling(path string, n Seq) error {
	return wrap("write sequence file", writeFile(path+ceilingSuffix, fmt.Appendf(nil, "%s%d\n", ceilingPrefix, n)))
}

// syncCeiling makes a side file durable that is there already: whoever wrote it
// may have failed to.
func syncCeiling(path string) error {
	return wrap("sync sequence file", syncDir(filepath.Dir(path)))
}

// reserve returns a durable ceiling of at least n. A side file that is malformed
// or was lost is replaced: the database that asks knows how far it is.
func reserve(path string, n Seq) (Seq, error) {
	have, err := readCeiling(path)
	if errors.Is(err, errNoCeiling) {
		have, err = 0, nil
	}
	if err != nil {
		return 0, err
	}
	if have >= n {
		if err := syncCeiling(path); err != nil {
			return 0, err
		}
		return have, nil
	}
	n += ceilingBlock
	if err := writeCeiling(path, n); err != nil {
		return 0, err
	}
	return n, nil
}

// floor is where a new log begins: its first sequence is floor+1. It is 0 where
// no log was before. One above the ceiling makes every cursor of the old log
// too old, since the reader must not believe that it missed nothing.
func floor(path string, now time.Time) (Seq, error) {
	have, err := readCeiling(path)
	switch {
	case errors.Is(err, errNoCeiling):
		return unknownFloor(now), nil
	case err != nil || have == 0:
		return 0, err
	}
	return have + 1, nil
}

// unknownFloor is above any log whose ceiling is not known: Unix time in
// milliseconds, since no log has taken a thousand events a second since 1970.
// The constant guards against a clock that was never set.
func unknownFloor(now time.Time) Seq {
	return Seq(max(now.UnixMilli(), 1<<40))
}

// keepFloor makes sure, before a database is set aside, that its successor will
// find a ceiling.
func keepFloor(path string, now time.Time) error {
	have, err := readCeiling(path)
	if errors.Is(err, errNoCeiling) || err == nil && have == 0 {
		return writeCeiling(path, unknownFloor(now))
	}
	if err != nil {
		return err
	}
	return syncCeiling(path)
}
