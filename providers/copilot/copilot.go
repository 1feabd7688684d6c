package copilot

import (
	"path/filepath"
	"strings"

	"steno/providers"
)

// ID is the harness name on the wire.
const ID = "copilot"

// stateDir is the root's name and its directory in the program's home.
const stateDir = "session-state"

// transcriptName is the file of a session's events in its directory.
const transcriptName = "events.jsonl"

// Provider knows GitHub Copilot CLI. Its zero value is ready.
type Provider struct{}

var (
	_ providers.Provider  = Provider{}
	_ providers.Binder    = Provider{}
	_ providers.Resumer   = Provider{}
	_ providers.Describer = Provider{}
)

// ID is "copilot".
func (Provider) ID() string { return ID }

// About describes the program.
func (Provider) About() providers.About {
	return providers.About{
		Name:     "GitHub Copilot CLI",
		Programs: []string{"copilot"},
		Version:  version,
		Hints: []string{
			"A process's open files prove its session: Steno has to run as the same user.",
			"With several sessions open in one process only its log tells which one is shown: --log-level must not be none, error or warning.",
		},
	}
}

// Roots is session-state of the program's home (COPILOT_HOME, else .copilot in
// the home directory) and of each directory of env.Extra. Paths that are not
// absolute are left out.
func (Provider) Roots(env providers.Env) []providers.Root {
	var roots []providers.Root
	known := map[string]bool{}
	own := ""
	if env.Getenv != nil {
		own = env.Getenv("COPILOT_HOME")
	}
	for _, home := range append([]string{homeOf(own, env.Home)}, env.Extra...) {
		if !filepath.IsAbs(home) {
			continue
		}
		dir := filepath.Join(home, stateDir)
		if known[dir] {
			continue
		}
		known[dir] = true
		roots = append(roots, providers.Root{Provider: ID, Name: stateDir, Dir: dir, Depth: 1})
	}
	return roots
}

// homeOf is the program's own directory.
func homeOf(own, home string) string {
	if own != "" || home == "" {
		return own
	}
	return filepath.Join(home, ".copilot")
}

// Claim takes <uuid>/events.jsonl as the transcript of that session, and
// <uuid>/inuse.<pid>.lock and <uuid>/workspace.yaml as registry records: they
// come when a process takes the session, and go when it leaves it.
func (Provider) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	id, name, ok := strings.Cut(rel, "/")
	if root.Name != stateDir || !ok || !providers.IsUUID(id) {
		return providers.Artifact{}, false
	}
	a := providers.Artifact{Provider: ID, Path: filepath.Join(root.Dir, id, name), Session: id}
	switch {
	case name == transcriptName:
	case name == "workspace.yaml", isLock(name):
		a.Role = providers.Registry
	default:
		return providers.Artifact{}, false
	}
	return a, true
}

func isLock(name string) bool {
	pid, ok := strings.CutPrefix(name, "inuse.")
	if !ok {
		return false
	}
	pid, ok = strings.CutSuffix(pid, ".lock")
	return ok && pid != "" && len(pid) <= 10 && strings.Trim(pid, "0123456789") == ""
}

// Projector makes the projector of one transcript.
func (Provider) Projector(_ providers.Artifact, state []byte) providers.Projector {
	return newProjector(state)
}
