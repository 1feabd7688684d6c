package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"steno/providers"
	"steno/providers/files"
	"steno/providers/scan"
)

const (
	maxLogs  = 4 << 20          // logs.json, in bytes; of a longer one nothing is known
	starting = 30 * time.Second // from a process's start to that of its session: 3 to 8 s were seen
	writing  = 2 * time.Second  // a broken logs.json is older than that: it stays broken
	clearing = 10 * time.Second // from /clear to the start of the session that follows
)

// Reasons for which a session does not count. Fixed words.
const (
	tooOld  = "the session began before the process, and no newer file says that it was resumed"
	tooLate = "the session began long after the process, and no /clear says that the process began it"
	leftIt  = "the process left the session with /clear"
)

// started is a session of the process's directory that began after it.
type started struct {
	*group
	path string
	from string // the session that a /clear left for it, "" for the first of a process
}

// agreeing lists the sessions of the process's directory. A process begins one
// when it starts, and one more with each /clear, which the program logs with the
// session that it leaves. So of several that began after the process the ones
// that began soon after it count, and what follows them; if those are more than
// one, none is newer than another.
func (l *look) agreeing(ctx context.Context, groups map[string]*group) ([]providers.Evidence, error) {
	if l.p.CWD == "" || l.p.Started.IsZero() {
		return nil, nil
	}
	after, older, err := l.sessions(ctx, groups)
	if err != nil {
		return nil, err
	}
	if err := l.follow(after); err != nil {
		return nil, err
	}
	soon := slices.ContainsFunc(after, func(s started) bool { return s.from == "" && s.began.Sub(l.p.Started) <= starting })
	var out []providers.Evidence
	mine := map[string]int{} // by the first session of a chain: its newest, in out
	for _, s := range after {
		first := l.first(after, s)
		e := providers.Evidence{Rank: providers.Agreement, Session: s.id, Path: s.path, Source: fromAgreement, At: s.began}
		if soon && first.began.Sub(l.p.Started) > starting {
			e.Refused = tooLate
		} else {
			if n, ok := mine[first.id]; ok {
				out[n].Refused = leftIt
			}
			mine[first.id] = len(out)
		}
		out = append(out, e)
	}
	if len(mine) > 1 {
		for _, n := range mine {
			out[n].At = time.Time{}
		}
	}
	if len(after) == 0 && older != nil {
		out = append(out, providers.Evidence{Rank: providers.Agreement, Session: older.id, Path: older.path,
			Source: fromAgreement, At: older.began, Refused: tooOld})
	}
	return out, nil
}

// sessions are those of the process's directory that began after it, the oldest
// first, and the newest that began before it.
func (l *look) sessions(ctx context.Context, groups map[string]*group) (after []started, older *started, err error) {
	var order []*group
	for _, g := range groups {
		if !g.began.IsZero() {
			order = append(order, g)
		}
	}
	slices.SortFunc(order, func(a, b *group) int {
		return cmp.Or(b.began.Compare(a.began), cmp.Compare(a.id, b.id))
	})
	for _, g := range order[:min(len(order), maxSessions)] {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("look at sessions: %w", err)
		}
		path, err := l.choose(g.files)
		if err != nil {
			return nil, nil, err
		}
		switch s := (started{group: g, path: path}); {
		case path == "":
		case g.began.Before(l.p.Started):
			slices.Reverse(after)
			return after, &s, nil
		default:
			after = append(after, s)
		}
	}
	slices.Reverse(after)
	return after, nil, nil
}

// follow finds, for each /clear that the program logged, the one session that
// began then.
func (l *look) follow(after []started) error {
	if len(after) < 2 {
		return nil
	}
	read := map[string]bool{}
	for _, s := range after {
		project := filepath.Dir(filepath.Dir(s.path))
		if read[project] {
			continue
		}
		read[project] = true
		all, err := clears(project)
		if err != nil {
			return err
		}
		for _, c := range all {
			next := -1
			for i, s := range after {
				if d := s.began.Sub(c.at); d < -time.Second || d > clearing || s.id == c.session {
					continue
				}
				if next >= 0 {
					next = -1 // two began then
					break
				}
				next = i
			}
			if next >= 0 {
				after[next].from = c.session
			}
		}
	}
	return nil
}

// first is the session that a process began with, of one that it came to.
func (l *look) first(after []started, s started) started {
	for range after {
		n := slices.IndexFunc(after, func(o started) bool { return o.id == s.from })
		if s.from == "" || n < 0 || !after[n].began.Before(s.began) {
			break
		}
		s = after[n]
	}
	return s
}

// left is a /clear: the session that it left, and when.
type left struct {
	session string
	at      time.Time
}

// clears reads logs.json, the list of what was typed in a project (0.61.0). Of
// the texts only the command itself counts.
func clears(project string) ([]left, error) {
	root, err := os.OpenRoot(project)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open project directory: %w", err)
	}
	defer root.Close()
	b, _, err := files.ReadIn(root, "logs.json", maxLogs)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrUnfit) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read logs.json: %w", err)
	}
	if !json.Valid(b) {
		if info, err := root.Stat("logs.json"); err == nil && time.Since(info.ModTime()) < writing {
			return nil, errors.New("read logs.json: it is being written")
		}
		return nil, nil
	}
	var out []left
	scan.Elements(b, func(v []byte) bool {
		var c left
		command := false
		scan.Members(v, func(key, value []byte) bool {
			switch string(key) {
			case "sessionId":
				c.session = sessionID(value)
			case "timestamp":
				c.at = instant(value)
			case "message":
				command = string(value) == `"/clear"`
			}
			return true
		})
		if command && c.session != "" && !c.at.IsZero() {
			out = append(out, c)
		}
		return true
	})
	return out, nil
}
