package claude

import (
	"path/filepath"
	"regexp"
	"strings"

	"steno/providers"
)

// EnvKeys are the variables that name the configuration directory.
func (Provider) EnvKeys() []string { return []string{"CLAUDE_CONFIG_DIR", "HOME"} }

// NeedsOpen is false: the program opens its transcript only for each write
// (2.1.197, seen with strace).
func (Provider) NeedsOpen() bool { return false }

// installed is the native installer's name of the program: its version.
var installed = regexp.MustCompile(`/claude/versions/[0-9]+\.[0-9]+\.[0-9]+[^/]*$`)

// Recognise goes by the executable's name (claude, claude.exe), by the native
// installer's path, or by the script that node, bun or deno runs. What the
// program starts of itself for other work is a helper: by another argv[0] (the
// search tools built into it), a subcommand, or a flag of spare processes.
func (Provider) Recognise(p providers.Process) providers.Part {
	base, name := providers.ProgramName(p.Exe), ""
	if len(p.Args) > 0 {
		name = filepath.Base(p.Args[0])
	}
	rest := p.Args[min(1, len(p.Args)):]
	switch {
	case base == "claude" || base == "claude.exe" || installed.MatchString(p.Exe):
		if name != "" && name != base && name != "claude" && name != "claude.exe" {
			return providers.Helper
		}
	case base == "" && p.Comm == "claude" && (name == "claude" || name == "claude.exe" || name == ""):
	case providers.IsInterpreter(base):
		if name == "claude" { // a script that has set its process title
			break
		}
		script, after, ok := providers.Script(rest)
		if !ok || !ours(script) {
			return providers.NotMine
		}
		rest = after
	default:
		return providers.NotMine
	}
	if helper(rest) {
		return providers.Helper
	}
	return providers.Worker
}

// ours says whether a script is the program: the npm link, or its file.
func ours(script string) bool {
	base := filepath.Base(script)
	if base == "claude" || base == "claude.js" {
		return true
	}
	return strings.Contains(filepath.ToSlash(script), "/@anthropic-ai/claude-code/") &&
		(base == "cli.js" || base == "cli.mjs" || base == "claude.exe")
}

// subcommands that run no session. Only the first argument counts: a prompt
// may have any words.
var subcommands = map[string]bool{
	"mcp": true, "daemon": true, "update": true, "upgrade": true, "install": true, "doctor": true,
	"plugin": true, "plugins": true, "auth": true, "config": true, "setup-token": true, "migrate-installer": true,
}

func helper(args []string) bool {
	if len(args) > 0 && subcommands[args[0]] {
		return true
	}
	for _, a := range args {
		if a == "--" {
			return false
		}
		if strings.HasPrefix(a, "--bg-") || a == "--chrome-native-host" || a == "--daemon-worker" {
			return true
		}
	}
	return false
}

// resumed is the session that a command line names, if it names one.
func resumed(args []string) (session string, fork bool) {
	for i, a := range args {
		if a == "--" {
			break
		}
		name, value, inline := strings.Cut(a, "=")
		switch name {
		case "--fork-session":
			fork = true
		case "--resume", "-r", "--session-id":
			if !inline && i+1 < len(args) {
				value = args[i+1]
			}
			if providers.IsUUID(value) {
				session = value
			}
		}
	}
	return session, fork
}

// Resumes says whether the command line asks for an earlier session. A fork is
// a session of its own.
func (Provider) Resumes(p providers.Process) bool {
	asked := false
	for i, a := range p.Args {
		if a == "--" {
			break
		}
		name, _, _ := strings.Cut(a, "=")
		switch name {
		case "--fork-session":
			return false
		case "--continue", "-c", "--resume", "-r":
			asked = asked || i > 0
		}
	}
	return asked
}

var _ providers.Resumer = Provider{}
