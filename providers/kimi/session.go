package kimi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"steno/providers/files"
	"steno/providers/scan"
)

// maxStateFile bounds state.json in bytes; real ones have some 600.
const maxStateFile = 64 << 10

var sessionID = regexp.MustCompile(`^session_[0-9A-Za-z-]{1,64}$`)

// meta is what state.json (2.1.0, version 2) tells of a session.
type meta struct {
	ID      string `json:"id"`
	CWD     string `json:"cwd"`
	Title   string `json:"title"`
	Created int64  `json:"createdAt"` // ms
	Updated int64  `json:"updatedAt"` // ms; of a fork that nobody prompted, that of its source
	Forked  string `json:"forkedFrom"`
	Archive bool   `json:"archived"`
}

// born is when the session was made, or forked.
func (m meta) born() time.Time { return scan.Millis(m.Created) }

// used is when something was last done in it; a fork's source counts for nothing.
func (m meta) used() time.Time { return scan.Millis(max(m.Created, m.Updated)) }

// sessionDir is the directory of the session whose main agent's record is path.
func sessionDir(path string) string { return filepath.Dir(filepath.Dir(filepath.Dir(path))) }

// readMeta reads state.json of a session. The program writes it by a rename, so
// what is there is whole.
func readMeta(dir string) (m meta, err error) {
	b, _, err := files.Read(filepath.Join(dir, "state.json"), maxStateFile)
	if err != nil {
		return m, fmt.Errorf("read state of a session: %w", err)
	}
	if json.Unmarshal(b, &m) != nil {
		return meta{}, errNotJSON
	}
	return m, nil
}

var errNotJSON = errors.New("state of a session is not the JSON that the program writes")

// unusable says whether an error means that the session has no state that could
// ever be read, and not that it could not be read now.
func unusable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrUnfit) || errors.Is(err, errNotJSON)
}

// How long copiedBefore waits for a state.json: a fork's comes last, within some
// milliseconds of the name by which the fork is noticed.
const (
	stateWait  = time.Second
	stateEvery = 20 * time.Millisecond
)

// copiedBefore is the time, in ms, before which a fork's records are copies of
// another session's: when the fork was made. 0 for any other session. One that
// has its record and no state.json is a fork that is just being made: for any
// other session the program writes state.json first (2.1.0).
func copiedBefore(path string) int64 {
	if filepath.Base(filepath.Dir(path)) != "main" {
		return 0
	}
	dir := sessionDir(path)
	m, err := readMeta(dir)
	for until := time.Now().Add(stateWait); errors.Is(err, fs.ErrNotExist); m, err = readMeta(dir) {
		if _, gone := os.Stat(path); gone != nil {
			return 0
		}
		if time.Now().After(until) {
			return time.Now().UnixMilli()
		}
		time.Sleep(stateEvery)
	}
	if err != nil || m.Forked == "" || scan.Millis(m.Created).IsZero() {
		return 0
	}
	return m.Created
}

// inDirectory says whether a session lies where the program puts those of a
// working directory: wd_<part of its name>_<first 12 hex of its SHA-256>.
func inDirectory(path, cwd string) bool {
	sum := sha256.Sum256([]byte(cwd))
	name := filepath.Base(filepath.Dir(sessionDir(path)))
	return strings.HasPrefix(name, "wd_") && strings.HasSuffix(name, "_"+hex.EncodeToString(sum[:6]))
}
