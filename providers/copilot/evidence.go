package copilot

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"steno/providers"
	"steno/providers/scan"
)

// maxLocks bounds the known sessions in which a lock of the process is looked
// for, once it holds none open.
const maxLocks = 512

// Sources of evidence.
const (
	fromHold      = "session-state/<id>/inuse.<pid>.hold"
	fromLock      = "session-state/<id>/inuse.<pid>.lock"
	fromArguments = "command line"
)

// held is the file that a process keeps open, and locked, as long as it works
// on a session. Its number is the pid that the program sees, which in a
// container is another than Steno's.
var held = regexp.MustCompile(`/session-state/([0-9a-f-]{36})/inuse\.[0-9]{1,10}\.hold$`)

// Evidence lists the sessions whose hold file the process has open (rank 1),
// and the one that its command line names (rank 3). Of several open ones
// (1.0.102 keeps those that /new left open) the one counts that the program's
// own log tells to be shown.
//
// A lock file without its hold file was left by a process that died, or is
// that of another process: it is refused.
func (Provider) Evidence(_ context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	var out []providers.Evidence
	seen := map[string]bool{}
	for _, path := range p.Open {
		m := held.FindStringSubmatch(path)
		if m == nil || !providers.IsUUID(m[1]) || seen[m[1]] {
			continue
		}
		seen[m[1]] = true
		e := providers.Evidence{Rank: providers.Exact, Session: m[1], Source: fromHold}
		if info, err := os.Lstat(path); err == nil {
			e.At = info.ModTime().UTC()
		}
		e.Path, e.Refused = transcript(known, m[1], filepath.Dir(path))
		out = append(out, e)
	}
	if len(out) > 1 {
		shown, why := foreground(p.Open)
		for i := range out {
			if shown != out[i].Session && out[i].Refused == "" {
				out[i].Refused = why
			}
		}
	}
	if len(out) == 0 {
		out = unheld(p, known)
	}
	rest := p.Args[min(1, len(p.Args)):]
	if c := command(rest); c.session != "" {
		e := providers.Evidence{Rank: providers.Arguments, Session: c.session, Source: fromArguments, At: p.Started}
		dir := ""
		if home := homeOf(p.Env["COPILOT_HOME"], p.Env["HOME"]); filepath.IsAbs(home) {
			dir = filepath.Join(home, stateDir, c.session)
		}
		e.Path, e.Refused = transcript(known, c.session, dir)
		out = append(out, e)
	}
	return out, nil
}

// transcript finds the known transcript of a session, or the one in its
// directory. There is none before the session's first prompt.
func transcript(known []providers.Session, session, dir string) (path, refused string) {
	for _, s := range known {
		if s.ID != session {
			continue
		}
		if s.Internal != "" {
			return "", "the session can own no pane: " + s.Internal
		}
		if path == "" || filepath.Dir(s.Path) == dir {
			path = s.Path
		}
	}
	if path != "" || dir == "" {
		return path, ""
	}
	path = filepath.Join(dir, transcriptName)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return "", ""
	}
	return path, ""
}

// unheld lists the known sessions that have a lock of this pid, although the
// process does not hold it.
func unheld(p providers.Process, known []providers.Session) []providers.Evidence {
	var out []providers.Evidence
	name := "inuse." + strconv.Itoa(p.PID) + ".lock"
	for i, s := range known {
		if i >= maxLocks {
			break
		}
		if filepath.Base(s.Path) != transcriptName {
			continue
		}
		info, err := os.Lstat(filepath.Join(filepath.Dir(s.Path), name))
		if err != nil {
			continue // nobody's, or not to be seen
		}
		out = append(out, providers.Evidence{Rank: providers.Exact, Session: s.ID, Path: s.Path, Source: fromLock,
			At: info.ModTime().UTC(), Refused: "the process does not hold the lock: it was left by another process with this number"})
	}
	return out
}

// Describe reads session.start: its directory, when it began, and whether it is
// a run that another session started for itself. The session is the directory.
func (Provider) Describe(a providers.Artifact, first []byte) providers.Session {
	s := providers.Session{ID: a.Session, Path: a.Path}
	var kind string
	var data []byte
	scan.Members(first, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			kind = scan.Text(value)
		case "data":
			data = value
		}
		return true
	})
	if kind != "session.start" {
		return s
	}
	scan.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "startTime":
			s.Born = scan.Time(value)
		case "context":
			scan.Members(value, func(key, value []byte) bool {
				if string(key) == "cwd" {
					s.CWD = scan.Text(value)
				}
				return true
			})
		case "detachedFromSpawningParentSessionId":
			if len(value) > 2 && value[0] == '"' {
				s.Internal = "a run that another session started"
			}
		}
		return true
	})
	return s
}
