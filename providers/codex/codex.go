package codex

import (
	"path/filepath"
	"regexp"

	"steno/providers"
)

// ID is the harness name on the wire.
const ID = "codex"

const rootSessions = "sessions"

// Provider knows Codex CLI. The zero value is ready for use.
type Provider struct{}

var (
	_ providers.Provider = Provider{}
	_ providers.Binder   = Provider{}
)

// ID is "codex".
func (Provider) ID() string { return ID }

// Roots is the sessions directory of CODEX_HOME, or of ~/.codex, and of each
// configured home in env.Extra. Nothing else is watched: archived_sessions is
// history, and logs_2.sqlite changes several times a second while any agent
// works, so it is read only when a binding is looked for.
func (Provider) Roots(env providers.Env) []providers.Root {
	var roots []providers.Root
	seen := map[string]bool{}
	add := func(home string) {
		if !filepath.IsAbs(home) {
			return
		}
		dir := filepath.Join(home, "sessions")
		if seen[dir] {
			return
		}
		seen[dir] = true
		roots = append(roots, providers.Root{Provider: ID, Name: rootSessions, Dir: dir, Depth: 3})
	}
	get := env.Getenv
	if get == nil {
		get = func(string) string { return "" }
	}
	add(homeOf(get("CODEX_HOME"), env.Home))
	for _, h := range env.Extra {
		add(h)
	}
	return roots
}

// homeOf is the program's own directory: CODEX_HOME moves all of it (0.171.0),
// the SQLite files included.
func homeOf(codexHome, home string) string {
	if codexHome != "" {
		return filepath.Clean(codexHome)
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".codex")
}

const uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var (
	rolloutRel  = regexp.MustCompile(`^[0-9]{4}/[0-9]{2}/[0-9]{2}/rollout-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-(` + uuidPattern + `)\.jsonl$`)
	rolloutPath = regexp.MustCompile(`/sessions/[0-9]{4}/[0-9]{2}/[0-9]{2}/rollout-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-(` + uuidPattern + `)\.jsonl$`)
	lockPath    = regexp.MustCompile(`/thread-writer-locks/(` + uuidPattern + `)\.lock$`)
)

// Claim takes YYYY/MM/DD/rollout-<time>-<uuid>.jsonl; the uuid is the thread,
// which is the session. A compressed rollout (.jsonl.zst) is history.
func (Provider) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	if root.Name != rootSessions {
		return providers.Artifact{}, false
	}
	m := rolloutRel.FindStringSubmatch(rel)
	if m == nil {
		return providers.Artifact{}, false
	}
	return providers.Artifact{
		Provider: ID,
		Path:     filepath.Join(root.Dir, filepath.FromSlash(rel)),
		Role:     providers.Transcript,
		Session:  m[1],
	}, true
}

// Projector makes the projector of one rollout.
func (Provider) Projector(a providers.Artifact, state []byte) providers.Projector {
	return newProjector(a, state)
}
