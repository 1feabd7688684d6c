package kimi

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// Bounds of what Evidence reads and lists.
const (
	maxStates  = 16 // state.json of sessions of the process's directory
	maxRefused = 4  // pieces that only say why they do not count
)

// Sources of evidence.
const (
	fromName      = "state.json.tmp.<pid>"
	fromArguments = "command line"
	fromAgreement = "directory and time"
)

// forkTime is how long after a fork was made the names of its state.json are
// those of the process that made it, which stays where it was (2.1.0: 0.3 s).
const forkTime = 2 * time.Second

// Evidence reads the command line (rank 3, while it can be seen) and looks for
// sessions of the process's directory that began, or were used, after it began
// (rank 4). What names a session exactly is a passing file name, see Names. The
// terminal's title, which is the session's, may say which of several it is. An
// error means that the state of a session, or their directory, could not be read.
func (Provider) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	var out []providers.Evidence
	switch w := asked(programArgs(p)); {
	case w.id != "":
		e := providers.Evidence{Rank: providers.Arguments, Session: w.id, Source: fromArguments, At: p.Started}
		for _, s := range known {
			if s.ID == w.id {
				e.Path, e.Refused = s.Path, s.Internal
			}
		}
		out = append(out, e)
	case w.last && !w.pick:
		e, found, err := continued(ctx, p)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, e)
		}
	}
	rows, err := agreeing(ctx, p, known)
	return append(out, rows...), err
}

// candidate is a session of the process's directory.
type candidate struct {
	session providers.Session
	meta    meta
	refused string
}

func agreeing(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	if p.CWD == "" || p.Started.IsZero() {
		return nil, nil
	}
	var all []candidate
	for _, s := range known {
		if s.Internal == "" && inDirectory(s.Path, p.CWD) {
			all = append(all, candidate{session: s})
		}
	}
	var failed error
	for i := range all {
		c := &all[i]
		if i >= maxStates {
			c.refused = fmt.Sprintf("more than %d sessions of this directory", maxStates)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look at sessions: %w", err)
		}
		m, err := readMeta(sessionDir(c.session.Path))
		switch {
		case err == nil:
		case unusable(err):
			c.refused = "the session has no state that can be read"
		default:
			failed = errors.Join(failed, err)
			continue
		}
		c.weigh(m, p)
	}
	if failed != nil {
		return nil, failed
	}
	narrow(all, p.Title)
	return rows(all), nil
}

// weigh compares a session with the process.
func (c *candidate) weigh(m meta, p providers.Process) {
	c.meta = m
	switch {
	case c.refused != "":
	case m.ID != c.session.ID:
		c.refused = "the state beside the record is another session's"
	case m.CWD != p.CWD:
		c.refused = "the session belongs to another directory"
	case m.Forked != "" && m.Updated < m.Created:
		c.refused = "a fork that nobody has used"
	case m.used().Before(p.Started):
		c.refused = "nothing was done in this session since the process began"
	}
}

// narrow leaves the one session whose name the terminal shows. A title that is
// none of them, or of several, says nothing: it stays when the program ends.
func narrow(all []candidate, title string) {
	named := 0
	for _, c := range all {
		if title != "" && c.meta.Title == title {
			named++
			if c.refused != "" {
				return
			}
		}
	}
	if named != 1 {
		return
	}
	for i := range all {
		if c := &all[i]; c.refused == "" && c.meta.Title != title {
			c.refused = "the terminal's title is another session's name"
		}
	}
}

// rows lists what counts, and the newest of what does not.
func rows(all []candidate) []providers.Evidence {
	sort.SliceStable(all, func(i, j int) bool { return all[i].meta.used().After(all[j].meta.used()) })
	var out []providers.Evidence
	refused := 0
	for _, c := range all {
		if c.refused != "" {
			if refused++; refused > maxRefused {
				continue
			}
		}
		out = append(out, providers.Evidence{Rank: providers.Agreement, Session: c.session.ID, Path: c.session.Path,
			Source: fromAgreement, Refused: c.refused}) // without a time: the newest of several is no proof
	}
	return out
}

// Doubt says why a name is no proof: the process made this session as a fork
// of its own, and stayed where it was. at is when the name was seen.
func (Provider) Doubt(_ providers.Process, n providers.Naming, at time.Time, known []providers.Session) string {
	for _, s := range known {
		if s.ID != n.Session || s.Path == "" {
			continue
		}
		m, err := readMeta(sessionDir(s.Path))
		if err == nil && m.ID == n.Session && m.Forked != "" && at.Before(m.born().Add(forkTime)) {
			return "the process only made this session, as a fork of its own"
		}
	}
	return ""
}

// Describe reads the first record: when the session began; of a fork, when its
// source did. A session of kimi-cli owns no pane.
func (Provider) Describe(a providers.Artifact, first []byte) providers.Session {
	s := providers.Session{ID: a.Session, Path: a.Path}
	if legacyPath(a.Path) {
		s.Internal = "a session of " + olderProgram
		return s
	}
	if scan.Is(scan.Member(first, "type"), "metadata") {
		s.Born = scan.Millis(number(scan.Member(first, "created_at")))
	}
	return s
}
