package opencode

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"steno/providers"
)

// ID is the harness name.
const ID = "opencode"

// Names of the roots: the program's data directory, and the directory of a
// database that OPENCODE_DB names, with that name.
const (
	dataRoot = "data"
	dbRoot   = "db:"
)

// Provider knows OpenCode. Its zero value is ready.
type Provider struct{}

var (
	_ providers.Provider  = Provider{}
	_ providers.Binder    = Provider{}
	_ providers.Resumer   = Provider{}
	_ providers.Describer = Provider{}
	_ providers.RowReader = Provider{}
)

// ID is "opencode".
func (Provider) ID() string { return ID }

// About describes the program.
func (Provider) About() providers.About {
	return providers.About{
		Name: "OpenCode", Programs: []string{"opencode"}, Version: "1.18.33",
		Hints: []string{
			"Its log (log/opencode.log in its data directory) names the session of each process: do not use --print-logs, nor a log level above INFO.",
			"Terminals that are attached to a shared `opencode serve` are told apart only by `opencode attach URL -s SESSION`.",
		},
	}
}

// Roots are the data directory (XDG_DATA_HOME, else .local/share in the home
// directory, and in it opencode), that of the database that OPENCODE_DB names,
// and each directory of env.Extra, which are data directories too; and for each
// database there that is a symbolic link, the file's own directory, because SQLite
// has the log of writes beside the file. Paths that are not absolute are left out.
func (Provider) Roots(env providers.Env) []providers.Root {
	var roots []providers.Root
	add := func(name, dir string) {
		if !filepath.IsAbs(dir) {
			return
		}
		r := providers.Root{Provider: ID, Name: name, Dir: filepath.Clean(dir)}
		for _, have := range roots {
			if have == r {
				return
			}
		}
		roots = append(roots, r)
	}
	data := dataDir(env)
	add(dataRoot, data)
	if db := env.Getenv("OPENCODE_DB"); db != "" && db != ":memory:" {
		if !filepath.IsAbs(db) && data != "" {
			db = filepath.Join(data, db)
		}
		if name := filepath.Base(db); !channelDB.MatchString(name) || filepath.Dir(db) != filepath.Clean(data) {
			add(dbRoot+name, filepath.Dir(db))
		}
	}
	for _, dir := range env.Extra {
		add(dataRoot, dir)
	}
	for _, r := range roots {
		for _, db := range databases(r) {
			if file := unlinked(db); file != db {
				add(dbRoot+filepath.Base(file), filepath.Dir(file))
			}
		}
	}
	return roots
}

// databases are the paths of those in a root, in the order of their names; one that
// a root is named for need not be there.
func databases(r providers.Root) (out []string) {
	if own, ok := strings.CutPrefix(r.Name, dbRoot); ok {
		return []string{filepath.Join(r.Dir, own)}
	}
	names, _ := filepath.Glob(filepath.Join(escape(r.Dir), "*.db"))
	for _, path := range names {
		if isDatabase(r, filepath.Base(path)) && len(out) < maxFiles {
			out = append(out, path)
		}
	}
	return out
}

// unlinked is the file itself where a path is a symbolic link to one; a directory
// on the way to it keeps its spelling.
func unlinked(path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path
	}
	return real(path)
}

func dataDir(env providers.Env) string {
	if xdg := env.Getenv("XDG_DATA_HOME"); xdg != "" {
		return filepath.Join(xdg, "opencode")
	}
	if env.Home == "" {
		return ""
	}
	return filepath.Join(env.Home, ".local", "share", "opencode")
}

var (
	// channelDB are the program's own names of its database: one for each
	// release channel, whose name is cleaned in the same way.
	channelDB = regexp.MustCompile(`^opencode(-[A-Za-z0-9._-]{1,64})?\.db$`)
	sessionID = regexp.MustCompile(`^ses_[A-Za-z0-9]{1,64}$`)
)

// Claim takes <database>/<session> as the rows of that session, and the
// database and its -wal as carriers. -shm says nothing of its own.
func (Provider) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	name, session, rows := strings.Cut(rel, "/")
	a := providers.Artifact{Provider: ID, Path: filepath.Join(root.Dir, filepath.FromSlash(rel))}
	if rows {
		if !isDatabase(root, name) || !sessionID.MatchString(session) {
			return providers.Artifact{}, false
		}
		a.Role, a.Framing, a.Session = providers.Transcript, providers.Rows, session
		return a, true
	}
	db := strings.TrimSuffix(name, "-wal")
	if !isDatabase(root, db) {
		return providers.Artifact{}, false
	}
	a.Role, a.Of = providers.Carrier, db
	return a, true
}

func isDatabase(root providers.Root, name string) bool {
	if own, ok := strings.CutPrefix(root.Name, dbRoot); ok {
		return name == own
	}
	return root.Name == dataRoot && channelDB.MatchString(name)
}

// Projector makes the projector of one session.
func (Provider) Projector(_ providers.Artifact, state []byte) providers.Projector {
	return newProjector(state)
}

// Describe reads the session's first record, session.created.
func (Provider) Describe(a providers.Artifact, first []byte) providers.Session {
	s := providers.Session{ID: a.Session, Path: a.Path}
	if f := decode(providers.Record{Data: first}); f.what == sessionInfo {
		s.CWD, s.Born = f.dir, f.created
		if f.child {
			s.Internal = childSession
		}
	}
	return s
}

// childSession is why the session of a subagent owns no pane.
const childSession = "subagent"
