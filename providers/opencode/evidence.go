package opencode

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"steno/providers"
)

// Sources of evidence.
const (
	fromLog       = "place of the process in opencode.log"
	fromArguments = "command line"
	fromAgreement = "directory and time"
)

// Bounds of what Evidence asks for.
const (
	maxParents  = 8   // from a subagent's session to the one that owns it
	maxSessions = 256 // newest sessions that are compared with the directory
	maxAgreeing = 8
	maxFiles    = 8 // databases tried when the process does not tell its own
)

const (
	querySession  = `SELECT parent_id, directory, time_created, time_updated FROM session WHERE id = ?`
	querySessions = `SELECT id, parent_id, directory, project_id, time_updated FROM session ORDER BY id LIMIT ?`
)

// Evidence follows the place of the process in the program's log to its run
// and to the session that this run named last (rank 1), then reads the command
// line (rank 3), then looks for sessions of the process's directory that
// changed after it began (rank 4). A subagent's session stands for the one that
// it works for.
//
// The log names a session that -c opens with its first prompt only; until then
// the program's own choice is made again (continued.go).
//
// It reads at most 1 MiB of the log and a few indexed rows, and remembers
// nothing. An error means that log or database could not be read now.
func (Provider) Evidence(ctx context.Context, p providers.Process, _ []providers.Session) ([]providers.Evidence, error) {
	s := seeker{ctx: ctx, p: p, call: parseCall(p.Args)}
	s.find()
	var out []providers.Evidence
	strong := false
	for _, ask := range []func() (providers.Evidence, bool, error){s.byLog, s.byArguments} {
		e, found, err := ask()
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, e)
			strong = strong || e.Refused == ""
		}
	}
	if strong {
		return out, nil
	}
	agreeing, err := s.byAgreement()
	return append(out, agreeing...), err
}

// seeker looks for the sessions of one process.
type seeker struct {
	ctx  context.Context
	p    providers.Process
	call call
	// dbs are the databases that the process has open, spelled as its roots
	// spell them, or those that it could have open.
	dbs []string
}

// find lists the databases.
func (s *seeker) find() {
	roots := Provider{}.Roots(providers.Env{Home: s.p.Env["HOME"], Getenv: func(k string) string { return s.p.Env[k] }})
	for _, path := range s.p.Open {
		dir, name := filepath.Dir(path), filepath.Base(path)
		spelled := false
		for _, r := range roots {
			if isDatabase(r, name) && (r.Dir == dir || real(r.Dir) == dir) {
				s.add(filepath.Join(r.Dir, name))
				spelled = true
			}
		}
		if !spelled && channelDB.MatchString(name) {
			s.add(path)
		}
	}
	if len(s.dbs) > 0 {
		return
	}
	for _, r := range roots {
		for _, path := range databases(r) {
			s.add(path)
		}
	}
}

// add takes a database by its own path, where its log of writes is.
func (s *seeker) add(db string) {
	db = unlinked(db)
	if len(s.dbs) < maxFiles && !slices.Contains(s.dbs, db) {
		s.dbs = append(s.dbs, db)
	}
}

// escape makes a directory match itself alone.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

func (s *seeker) byLog() (e providers.Evidence, found bool, err error) {
	e = providers.Evidence{Rank: providers.Exact, Source: fromLog}
	path, off := logPlace(s.p.Positions)
	switch {
	case s.p.Positions == nil:
		return e, false, nil
	case path == "":
		e.Refused = "the process does not have the program's log open"
		return e, true, nil
	case off == 0:
		return e, false, nil // nothing was written yet
	}
	l, err := readLog(path, off)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Refused = "the program's log was removed"
		return e, true, nil
	case err != nil:
		return e, false, fmt.Errorf("opencode: %w", err)
	case l.run == "":
		e.Refused = "the log does not tell which run wrote the line of the process"
		return e, true, nil
	case l.session == "":
		return e, false, nil // no session yet
	}
	e.At = l.at
	return e, true, s.resolve(&e, l.session)
}

func (s *seeker) byArguments() (e providers.Evidence, found bool, err error) {
	if s.call.session == "" {
		return s.continued()
	}
	e = providers.Evidence{Rank: providers.Arguments, Source: fromArguments, At: s.p.Started}
	if err := s.resolve(&e, s.call.session); err != nil {
		return e, false, err
	}
	if s.call.fork {
		e.Refused = "the process forked this session into a new one"
	}
	return e, true, nil
}

// resolve names the session, and the rows that hold it, or the one that it
// works for.
func (s *seeker) resolve(e *providers.Evidence, session string) error {
	e.Session = session
	for _, db := range s.dbs {
		root, err := rootOf(s.ctx, db, session)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("opencode: %w", err)
		case root == "":
			e.Refused = childSession
			return nil
		}
		e.Session, e.Path = root, db+"/"+root
		return nil
	}
	return nil // not written yet, or in a database that is not known
}

// rootOf goes from a session to the one that no other started; "" when that
// cannot be found.
func rootOf(ctx context.Context, db, session string) (root string, err error) {
	if _, err := identify(db); err != nil {
		return "", err
	}
	err = look(ctx, db, session, func(v *view) error {
		for range maxParents {
			var parent, dir sql.NullString
			var created, updated sql.NullInt64
			err := v.tx.QueryRowContext(v.ctx, querySession, session).Scan(&parent, &dir, &created, &updated)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return classify(v.ctx, "read session", err)
			}
			if parent.String == "" {
				root = session
				return nil
			}
			session = parent.String
		}
		return nil
	})
	if root != "" && !sessionID.MatchString(root) {
		root = ""
	}
	return root, err
}

// dirs are the directories that the process may work in, without links.
func (s *seeker) dirs() map[string]bool {
	dirs := map[string]bool{real(s.call.where(s.p.CWD)): true}
	if s.call.dir == "" {
		dirs[real(s.p.CWD)] = true
	}
	return dirs
}

// byAgreement lists the sessions of the process's directory that changed after
// it began.
func (s *seeker) byAgreement() ([]providers.Evidence, error) {
	if s.p.CWD == "" || s.p.Started.IsZero() {
		return nil, nil
	}
	dirs := s.dirs()
	var out []providers.Evidence
	same := map[string]bool{}
	for _, db := range s.dbs {
		all, _, err := s.newest(db)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if c.updated.Before(s.p.Started) {
				continue
			}
			hit, known := same[c.dir]
			if !known {
				hit = dirs[c.dir] || dirs[real(c.dir)]
				same[c.dir] = hit
			}
			if hit && len(out) < maxAgreeing {
				// No time: two of them are a tie, not an older and a newer one.
				out = append(out, providers.Evidence{Rank: providers.Agreement, Session: c.id, Path: db + "/" + c.id, Source: fromAgreement})
			}
		}
	}
	return out, nil
}

// candidate is a session that no other started.
type candidate struct {
	id, dir, project string
	updated          time.Time
}

// newest lists the newest sessions of a database, and says whether those are all:
// their ids are in the reverse order of their making.
func (s *seeker) newest(db string) (out []candidate, all bool, err error) {
	if _, err := os.Stat(db); errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	err = look(s.ctx, db, "", func(v *view) (err error) {
		out, all, err = v.candidates()
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("opencode: %w", err)
	}
	return out, all, nil
}

func (v *view) candidates() (out []candidate, all bool, err error) {
	rows, err := v.tx.QueryContext(v.ctx, querySessions, maxSessions)
	if err != nil {
		return nil, false, classify(v.ctx, "read sessions", err)
	}
	defer rows.Close()
	seen := 0
	for ; rows.Next(); seen++ {
		var c candidate
		var parent, dir, project sql.NullString
		var updated sql.NullInt64
		if err := rows.Scan(&c.id, &parent, &dir, &project, &updated); err != nil {
			return nil, false, classify(v.ctx, "read sessions", err)
		}
		c.dir, c.project, c.updated = dir.String, project.String, millis(updated.Int64)
		if parent.String == "" && sessionID.MatchString(c.id) && filepath.IsAbs(c.dir) {
			out = append(out, c)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, false, classify(v.ctx, "read sessions", err)
	}
	return out, seen < maxSessions, nil
}
