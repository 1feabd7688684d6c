package opencode

import (
	"strings"
	"time"

	"steno/providers"
)

const (
	fromContinue = "command line (the session that changed last)"
	offered      = 30 * 24 * time.Hour // the program lists no session that did not change for so long
	noProject    = "global"            // the project of all directories that are in no repository
)

// continued is the session that -c opens: of those in the directory and below
// it, or in the same repository, the one that changed last (bundle of 1.18.33;
// which of them count depends on a setting, so the choice has to be the same for
// all). Once one of them has changed since the process began, or where there may
// be more than are looked at, this tells nothing.
func (s *seeker) continued() (e providers.Evidence, found bool, err error) {
	if !s.call.resumes || s.call.fork || s.p.CWD == "" || s.p.Started.IsZero() || len(s.dbs) != 1 {
		return e, false, nil
	}
	known, all, err := s.newest(s.dbs[0])
	if err != nil || !all {
		return e, false, err
	}
	dir := real(s.call.where(s.p.CWD))
	var last, rival candidate // of this directory, of all that could be meant
	for _, c := range known {
		if real(c.dir) == dir && c.updated.After(last.updated) {
			last = c
		}
	}
	for _, c := range known {
		below := strings.HasPrefix(real(c.dir), strings.TrimSuffix(dir, "/")+"/")
		if c.id != last.id && (real(c.dir) == dir || below || c.project == last.project && c.project != noProject) && c.updated.After(rival.updated) {
			rival = c
		}
	}
	if last.id == "" || !last.updated.After(rival.updated) || !last.updated.Before(s.p.Started) || last.updated.Before(s.p.Started.Add(-offered)) {
		return e, false, nil
	}
	return providers.Evidence{Rank: providers.Arguments, Session: last.id, Path: s.dbs[0] + "/" + last.id, Source: fromContinue, At: s.p.Started}, true, nil
}
