package claude

import (
	"path/filepath"
	"strings"

	"steno/providers"
	"steno/providers/scan"
)

// ID is the harness name.
const ID = "claude"

// Names of the roots.
const (
	projects = "projects"
	sessions = "sessions"
)

// Provider knows Claude Code. Its zero value is ready.
type Provider struct{}

var (
	_ providers.Provider = Provider{}
	_ providers.Binder   = Provider{}
)

// ID is "claude".
func (Provider) ID() string { return ID }

// Roots are projects and sessions of the configuration directory
// (CLAUDE_CONFIG_DIR, else .claude in the home directory) and of each
// directory of env.Extra. Paths that are not absolute are left out.
func (Provider) Roots(env providers.Env) []providers.Root {
	var roots []providers.Root
	known := map[string]bool{}
	for _, dir := range append([]string{configDir(env.Home, env.Getenv("CLAUDE_CONFIG_DIR"))}, env.Extra...) {
		if !filepath.IsAbs(dir) || known[filepath.Clean(dir)] {
			continue
		}
		dir = filepath.Clean(dir)
		known[dir] = true
		roots = append(roots,
			providers.Root{Provider: ID, Name: projects, Dir: filepath.Join(dir, projects), Depth: 1},
			providers.Root{Provider: ID, Name: sessions, Dir: filepath.Join(dir, sessions)})
	}
	return roots
}

func configDir(home, config string) string {
	if config != "" || home == "" {
		return config
	}
	return filepath.Join(home, ".claude")
}

// Claim takes projects/<folder>/<uuid>.jsonl as a transcript and
// sessions/<pid>.json as a registry record. Files of subagents lie deeper and
// are never claimed; nor are the secret .key files beside the records.
func (Provider) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	a := providers.Artifact{Provider: ID, Path: filepath.Join(root.Dir, filepath.FromSlash(rel))}
	switch root.Name {
	case projects:
		folder, name, ok := strings.Cut(rel, "/")
		id, jsonl := strings.CutSuffix(name, ".jsonl")
		if !ok || !jsonl || folder == "" || folder == "." || folder == ".." || !providers.IsUUID(id) {
			return providers.Artifact{}, false
		}
		a.Role, a.Session = providers.Transcript, id
	case sessions:
		pid, ok := strings.CutSuffix(rel, ".json")
		if !ok || pid == "" || len(pid) > 10 || strings.Trim(pid, "0123456789") != "" {
			return providers.Artifact{}, false
		}
		a.Role = providers.Registry
	default:
		return providers.Artifact{}, false
	}
	return a, true
}

// Projector makes the projector of one transcript.
func (Provider) Projector(_ providers.Artifact, state []byte) providers.Projector {
	return newProjector(state)
}

// slug is the folder of a working directory: every character outside
// [A-Za-z0-9] is a hyphen (2.1.197: "we ird.dir_é@x" -> "we-ird-dir---x"; the
// program counts UTF-16 units, so a character outside the BMP gives two). It is
// lossy, so it is only a first guess. Over 200 characters the program cuts
// and appends a hash that is not known; then ok is false and the first 200
// are given, with the hyphen that follows.
func slug(cwd string) (prefix string, ok bool) {
	var b strings.Builder
	for _, r := range cwd {
		switch {
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z':
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("--")
		default:
			b.WriteByte('-')
		}
	}
	s := b.String()
	if len(s) > 200 {
		return s[:200] + "-", false
	}
	return s, true
}

// maxID bounds the ids that the program writes, in bytes. Real ones have 36.
const maxID = 64

var ids = scan.NewNames(maxID, "-_")

// id is a short identifier or word of the program; a value that cannot be one
// is "".
func id(value []byte) string { return ids.Read(value) }
