package kimi

import (
	"path/filepath"
	"regexp"
	"strconv"

	"steno/providers"
)

// ID is the harness name on the wire.
const ID = "kimi"

// Names of the roots.
const (
	sessions = "sessions"
	legacy   = "legacy" // of the Python program kimi-cli, which Kimi Code replaced
)

// Provider knows Kimi Code. Its zero value is ready.
type Provider struct{}

var (
	_ providers.Provider  = Provider{}
	_ providers.Binder    = Provider{}
	_ providers.Namer     = Provider{}
	_ providers.Resumer   = Provider{}
	_ providers.Describer = Provider{}
)

// ID is "kimi".
func (Provider) ID() string { return ID }

// About describes the program.
func (Provider) About() providers.About {
	return providers.About{
		Name:     "Kimi Code",
		Programs: []string{"kimi"},
		Version:  "2.1.0",
		Hints: []string{
			"A session that was resumed is proved by its first prompt; until then it is found by its directory and time.",
			"Let Steno run before Kimi Code starts: what proves a session among several of one directory is seen only while it happens.",
			"Sessions of the older kimi-cli (.kimi in the home directory) give no events; kimi migrate converts them.",
		},
	}
}

// Roots are the sessions directory of KIMI_CODE_HOME, else of .kimi-code in the
// home directory, and of each directory of env.Extra; and that of kimi-cli
// (KIMI_SHARE_DIR, else .kimi). Paths that are not absolute are left out.
func (Provider) Roots(env providers.Env) []providers.Root {
	get := env.Getenv
	if get == nil {
		get = func(string) string { return "" }
	}
	var roots []providers.Root
	known := map[string]bool{}
	add := func(dir, name string, depth int) {
		if !filepath.IsAbs(dir) {
			return
		}
		if dir = filepath.Join(dir, "sessions"); known[dir] {
			return
		}
		known[dir] = true
		roots = append(roots, providers.Root{Provider: ID, Name: name, Dir: dir, Depth: depth})
	}
	add(homeOf(env.Home, get("KIMI_CODE_HOME"), ".kimi-code"), sessions, 4)
	for _, dir := range env.Extra {
		add(dir, sessions, 4)
	}
	add(homeOf(env.Home, get("KIMI_SHARE_DIR"), ".kimi"), legacy, 2)
	return roots
}

func homeOf(home, set, name string) string {
	if set != "" || home == "" {
		return set
	}
	return filepath.Join(home, name)
}

// Shapes of paths below sessions. A directory is named by the first 12 hex of
// the SHA-256 of the working directory; the tmp names exist for some
// milliseconds of every write (2.1.0).
var (
	wireRel   = regexp.MustCompile(`^wd_[^/]*_[0-9a-f]{12}/(session_[0-9A-Za-z-]{1,64})/agents/main/wire\.jsonl$`)
	stateRel  = regexp.MustCompile(`^wd_[^/]*_[0-9a-f]{12}/(session_[0-9A-Za-z-]{1,64})/state\.json(?:\.tmp\.([0-9]{1,10})\.[0-9a-f]{1,32})?$`)
	legacyRel = regexp.MustCompile(`^[0-9a-f]{32}/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/wire\.jsonl$`)
)

// Claim takes the record of a session's main agent as its transcript, and
// state.json with the names it has while it is written as registry records.
// Agents of the session's own (agents/agent-<n>) are never claimed.
func (Provider) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	a := providers.Artifact{Provider: ID, Path: filepath.Join(root.Dir, filepath.FromSlash(rel))}
	switch root.Name {
	case sessions:
		if m := wireRel.FindStringSubmatch(rel); m != nil {
			a.Role, a.Session = providers.Transcript, m[1]
			return a, true
		}
		if stateRel.MatchString(rel) {
			a.Role = providers.Registry
			return a, true
		}
	case legacy:
		if m := legacyRel.FindStringSubmatch(rel); m != nil {
			a.Role, a.Session = providers.Transcript, m[1]
			return a, true
		}
	}
	return providers.Artifact{}, false
}

// Names reads the pid in a name that state.json has while it is written: the
// process writes for that session. One case is no proof, see Doubt.
func (Provider) Names(root providers.Root, rel string) (providers.Naming, bool) {
	if root.Name != sessions {
		return providers.Naming{}, false
	}
	m := stateRel.FindStringSubmatch(rel)
	if m == nil || m[2] == "" {
		return providers.Naming{}, false
	}
	pid, err := strconv.Atoi(m[2])
	if err != nil || pid <= 0 {
		return providers.Naming{}, false
	}
	return providers.Naming{PID: pid, Session: m[1], Source: fromName}, true
}

// Projector makes the projector of one transcript.
func (Provider) Projector(a providers.Artifact, state []byte) providers.Projector {
	if legacyPath(a.Path) {
		return &legacyProjector{}
	}
	p := newProjector(a.Session, state)
	if len(state) == 0 {
		p.Copied = copiedBefore(a.Path)
	}
	return p
}
