package kimi

import (
	"path/filepath"
	"strings"

	"steno/providers"
)

// olderProgram is why a session of kimi-cli owns no pane, and its drift.
const olderProgram = "kimi-cli"

// legacyPath says whether a transcript lies as kimi-cli laid it:
// sessions/<MD5 of the directory>/<uuid>/wire.jsonl.
func legacyPath(path string) bool {
	dir := filepath.Dir(path)
	return filepath.Base(path) == "wire.jsonl" && !strings.HasPrefix(filepath.Base(dir), "session_") && filepath.Base(dir) != "main"
}

// legacyProjector makes nothing of a record of kimi-cli. It only says that there
// is one.
type legacyProjector struct{ drift }

var _ providers.Surveyor = (*legacyProjector)(nil)

// Project gives the failure of a gap and nothing else.
func (l *legacyProjector) Project(r providers.Record) []providers.Draft {
	if r.Gap != providers.Whole {
		return []providers.Draft{r.Failure(ID)}
	}
	l.add(olderProgram)
	return nil
}

// Turn is never known.
func (l *legacyProjector) Turn() providers.Turn { return providers.Turn{State: providers.Unknown} }

// State is empty.
func (l *legacyProjector) State() []byte { return nil }
