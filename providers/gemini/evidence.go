package gemini

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/files"
)

// Bounds of what Evidence reads.
const (
	maxProjects = 4 << 20 // projects.json, in bytes
	maxRoot     = 8 << 10 // .project_root, in bytes
	maxSessions = 64      // sessions that began after the process, the newest first
)

// Sources of evidence.
const (
	fromArguments = "command line"
	fromAgreement = "directory and time"
)

// Evidence looks at the command line (rank 3), then for the session of the
// process's directory that began with it (rank 4): a session's directory is what
// .project_root beside its chats says. A session that was resumed begins again
// with a stub file of the same id (0.61.0), which dates it. One path is named for
// a session, whatever the number of files that share its id.
//
// No program's record names the process. So two processes that began in one
// directory within a short time are not told apart, unless their command lines
// name sessions.
func (Provider) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	l, err := newLook(p)
	if err != nil {
		return nil, err
	}
	groups := gather(known, p.Started)
	var out []providers.Evidence
	args := parseArgs(p.Args)
	if args.session != "" {
		e := providers.Evidence{Rank: providers.Arguments, Session: args.session, Source: fromArguments, At: p.Started}
		if g := groups[args.session]; g != nil {
			if e.Path, err = l.choose(g.files); err != nil {
				return nil, err
			}
		} else if internal(known, args.session) {
			e.Refused = "the session can own no pane: it is a subagent's"
		} else if e.Path, err = l.choose(headless(known, args.session)); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	agreed, err := l.agreeing(ctx, groups)
	if err != nil {
		return nil, err
	}
	return append(out, agreed...), nil
}

// group is the files of one session.
type group struct {
	id    string
	files []providers.Session
	began time.Time // the newest start: of the session, or of a run that resumed it
}

// gather sorts the sessions that can own a pane by their id. A legacy file that
// goes on in its sibling is history.
func gather(known []providers.Session, process time.Time) map[string]*group {
	out := map[string]*group{}
	for _, s := range known {
		if s.ID == "" || s.Internal != "" || superseded(s.Path) {
			continue
		}
		g := out[s.ID]
		if g == nil {
			g = &group{id: s.ID}
			out[s.ID] = g
		}
		g.files = append(g.files, s)
		if s.Born.Before(process) && sameMinute(s.Path, process) {
			s.Born = lastStart(s.Path, s.Born)
		}
		if s.Born.After(g.began) {
			g.began = s.Born
		}
	}
	return out
}

// headless are the files without a header whose name has the first characters of
// a session's id. Another start in the directory deletes the file of a session
// that has no prompt yet, and the program goes on in a file of the same name
// (0.61.0, cleanupExpiredSessions).
func headless(known []providers.Session, id string) []providers.Session {
	return slices.DeleteFunc(slices.Clone(known), func(s providers.Session) bool {
		return s.ID != "" || s.Internal != "" || !strings.HasSuffix(s.Path, "-"+id[:min(8, len(id))]+".jsonl")
	})
}

func internal(known []providers.Session, id string) bool {
	return slices.ContainsFunc(known, func(s providers.Session) bool { return s.ID == id && s.Internal == internalSubagent })
}

// look is one look for one process.
type look struct {
	p     providers.Process
	dir   string            // its .gemini without symbolic links, "" when its environment is not readable
	slug  string            // the name of its project in projects.json, "" when it is not there
	roots map[string]string // by project directory: what .project_root says
}

func newLook(p providers.Process) (*look, error) {
	l := &look{p: p, roots: map[string]string{}}
	dir := configDir(p.Env["HOME"], p.Env["GEMINI_CLI_HOME"])
	if dir != "" && !filepath.IsAbs(dir) && filepath.IsAbs(p.CWD) {
		dir = filepath.Join(p.CWD, dir)
	}
	if !filepath.IsAbs(dir) {
		return l, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.dir = filepath.Clean(dir)
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find configuration directory: %w", err)
	}
	l.dir = real
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open configuration directory: %w", err)
	}
	defer root.Close()
	b, _, err := files.ReadIn(root, "projects.json", maxProjects)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read projects.json: %w", err)
	}
	var list struct {
		Projects map[string]string `json:"projects"`
	}
	if json.Unmarshal(b, &list) == nil { // it is replaced by renaming, so never seen half
		l.slug = list.Projects[p.CWD]
	}
	return l, nil
}

// choose names the one file of a session that goes on, of those in the process's
// own directory: in the directory that projects.json names rather than in a copy
// of it, no stub, written last.
func (l *look) choose(known []providers.Session) (string, error) {
	type file struct {
		path   string
		listed bool
		stub   bool
		wrote  time.Time
	}
	var mine []file
	for _, s := range known {
		project := filepath.Dir(filepath.Dir(s.Path))
		ok, err := l.owns(project)
		if err != nil {
			return "", err
		}
		if ok {
			mine = append(mine, file{path: s.Path, listed: l.slug != "" && filepath.Base(project) == l.slug})
		}
	}
	if len(mine) == 0 {
		return "", nil
	}
	if len(mine) == 1 {
		return mine[0].path, nil
	}
	for i := range mine {
		f := &mine[i]
		b, info, err := files.Head(f.path, maxHead)
		if errors.Is(err, fs.ErrNotExist) {
			f.stub = true // deleted a moment ago
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read session: %w", err)
		}
		f.stub, f.wrote = filepath.Ext(f.path) == ".jsonl" && stub(b, info.Size()), info.ModTime()
	}
	best := slices.MinFunc(mine, func(a, b file) int {
		return cmp.Or(no(a.listed)-no(b.listed), no(!a.stub)-no(!b.stub), b.wrote.Compare(a.wrote), cmp.Compare(a.path, b.path))
	})
	return best.path, nil
}

func no(b bool) int {
	if b {
		return 0
	}
	return 1
}

// owns says whether a project directory is that of the process's working
// directory: .project_root says so, or its name is the hash of it, as older
// versions had it.
func (l *look) owns(project string) (bool, error) {
	if l.p.CWD == "" {
		return false, nil
	}
	if l.dir != "" {
		real, err := filepath.EvalSymlinks(project)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("find project directory: %w", err)
		}
		if filepath.Dir(real) != filepath.Join(l.dir, rootTmp) {
			return false, nil
		}
	}
	sum := sha256.Sum256([]byte(l.p.CWD))
	if filepath.Base(project) == hex.EncodeToString(sum[:]) {
		return true, nil
	}
	cwd, ok := l.roots[project]
	if !ok {
		root, err := os.OpenRoot(project)
		if err == nil {
			var b []byte
			b, _, err = files.ReadIn(root, ".project_root", maxRoot)
			_ = root.Close() // only read
			cwd = string(b)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read project root: %w", err)
		}
		l.roots[project] = cwd
	}
	return cwd == l.p.CWD, nil
}
