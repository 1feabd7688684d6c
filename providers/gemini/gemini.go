package gemini

import (
	"path/filepath"
	"regexp"
	"strings"

	"steno/providers"
)

// ID is the harness name.
const ID = "gemini"

const rootTmp = "tmp"

// Provider knows Gemini CLI. Its zero value is ready.
type Provider struct {
	plan func(path, session, file string) string // readPlan where nil
}

var (
	_ providers.Provider  = Provider{}
	_ providers.Binder    = Provider{}
	_ providers.Resumer   = Provider{}
	_ providers.Titler    = Provider{}
	_ providers.Describer = Provider{}
)

// ID is "gemini".
func (Provider) ID() string { return ID }

// About describes the program.
func (Provider) About() providers.About {
	return providers.About{
		Name:     "Gemini CLI",
		Programs: []string{"gemini"},
		Version:  "0.61.0",
		Hints: []string{
			"Leave ui.hideWindowTitle false and ui.dynamicWindowTitle true (their defaults): the title proves when an answer is final.",
			"Start two Gemini CLIs of one directory half a minute apart, or with --session-id: nothing else tells their sessions apart.",
		},
	}
}

// Roots are the temporary directories of the program: GEMINI_CLI_HOME, or else
// the home directory, is the parent of .gemini (0.61.0). Each directory of
// env.Extra takes the place of .gemini.
func (Provider) Roots(env providers.Env) []providers.Root {
	var roots []providers.Root
	known := map[string]bool{}
	home := ""
	if env.Getenv != nil {
		home = env.Getenv("GEMINI_CLI_HOME")
	}
	for _, dir := range append([]string{configDir(env.Home, home)}, env.Extra...) {
		if !filepath.IsAbs(dir) || known[filepath.Clean(dir)] {
			continue
		}
		dir = filepath.Clean(dir)
		known[dir] = true
		roots = append(roots, providers.Root{Provider: ID, Name: rootTmp, Dir: filepath.Join(dir, rootTmp), Depth: 3})
	}
	return roots
}

func configDir(home, geminiHome string) string {
	if geminiHome != "" {
		home = geminiHome
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".gemini")
}

var (
	mainFile = regexp.MustCompile(`^session-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9A-Za-z_-]{1,8}\.jsonl?$`)
	subFile  = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}\.jsonl$`)
)

// Claim takes <project>/chats/session-<minute>-<8 of the id>.jsonl, the same as
// .json (older versions), and <project>/chats/<parent's id>/<id>.jsonl of a
// subagent. A name has eight characters of the session's id, so only the header
// tells it. Logs, checkpoints, plans and files that were put aside
// (*.unreadable-<ms>, *.tmp-<pid>) are not taken.
func (Provider) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	parts := strings.Split(rel, "/")
	if root.Name != rootTmp || len(parts) < 3 || len(parts) > 4 || parts[1] != "chats" {
		return providers.Artifact{}, false
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return providers.Artifact{}, false
		}
	}
	name := parts[len(parts)-1]
	if len(parts) == 3 && !mainFile.MatchString(name) || len(parts) == 4 && !subFile.MatchString(name) {
		return providers.Artifact{}, false
	}
	a := providers.Artifact{Provider: ID, Path: filepath.Join(root.Dir, filepath.FromSlash(rel))}
	if strings.HasSuffix(name, ".json") {
		a.Framing = providers.Document
	}
	return a, true
}

// Projector makes the projector of one artifact.
func (pr Provider) Projector(a providers.Artifact, state []byte) providers.Projector {
	read := pr.plan
	if read == nil {
		read = readPlan
	}
	return newProjector(a, state, read)
}
