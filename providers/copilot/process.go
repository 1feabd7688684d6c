package copilot

import (
	"path/filepath"
	"regexp"
	"strings"

	"steno/providers"
)

// EnvKeys are the variables that name the program's home.
func (Provider) EnvKeys() []string { return []string{"COPILOT_HOME", "HOME"} }

// NeedsOpen is true: a process holds inuse.<pid>.hold of its sessions open.
func (Provider) NeedsOpen() bool { return true }

// packaged is where npm puts the program.
var packaged = regexp.MustCompile(`/copilot-linux(musl)?-[a-z0-9]+/copilot$`)

// Recognise goes by the executable: one named copilot in a package of the
// program, or whose first thread has the name that the program gives it (there
// are other programs of this name). Node with the npm script only waits for it.
func (Provider) Recognise(p providers.Process) providers.Part {
	exe := strings.TrimSuffix(p.Exe, " (deleted)") // an update replaced it
	rest := p.Args[min(1, len(p.Args)):]
	part := providers.Worker
	switch base := providers.ProgramName(p.Exe); {
	case base == "copilot" && (p.Comm == "MainThread" || packaged.MatchString(exe)):
	case exe == "" && p.Comm == "MainThread" && len(p.Args) > 0 && filepath.Base(p.Args[0]) == "copilot":
	case providers.IsInterpreter(base):
		script, after, ok := providers.Script(rest)
		if !ok || !ours(script) {
			return providers.NotMine
		}
		rest, part = after, providers.Launcher
	default:
		return providers.NotMine
	}
	if command(rest).helper {
		return providers.Helper
	}
	return part
}

// ours says whether a script is npm's link to the program, or its file.
func ours(script string) bool {
	base := filepath.Base(script)
	return base == "copilot" || strings.Contains(filepath.ToSlash(script), "/@github/copilot/") &&
		(base == "npm-loader.js" || base == "index.js")
}

// valueOptions take the next argument as their value (1.0.102, --help).
var valueOptions = map[string]bool{
	"-i": true, "--interactive": true, "-p": true, "--prompt": true, "--model": true, "--reasoning-effort": true,
	"--context": true, "--auto-tier": true, "--agent": true, "-n": true, "--name": true, "--session-id": true, "-C": true,
	"--log-dir": true, "--extension-sdk-path": true, "--log-level": true, "--stream": true, "--output-format": true,
	"--add-dir": true, "--attachment": true, "--disable-mcp-server": true, "--add-github-mcp-toolset": true,
	"--add-github-mcp-tool": true, "--plugin-dir": true, "--additional-mcp-config": true, "--mcp-github-auth": true,
	"--max-autopilot-continues": true, "--mode": true, "--environment-host": true, "--environment-compute-id": true,
	"--dynamic-retrieval": true, "--enable-mcp-server": true, "--max-ai-credits": true, "--usage-output-file": true,
}

// subcommands that run no session (1.0.102, --help).
var subcommands = map[string]bool{
	"app": true, "login": true, "help": true, "config": true, "update": true, "version": true, "sessions": true,
	"memories": true, "plugin": true, "mcp": true, "skill": true, "instruction": true, "lsp": true, "sandbox": true,
	"completion": true,
}

// call is what a command line asks for.
type call struct {
	helper  bool   // it runs no session of a person at this terminal
	resumes bool   // it goes on with an earlier session
	session string // it names this one
}

func command(args []string) (c call) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			break
		}
		if !strings.HasPrefix(a, "-") {
			c.helper = c.helper || i == 0 && subcommands[a]
			continue
		}
		name, value, inline := strings.Cut(a, "=")
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		if inline {
			next = value
		}
		switch name {
		case "--acp", "--environment-host", "-h", "--help", "-v", "--version":
			c.helper = true
		case "--continue":
			c.resumes = true
		case "-r", "--resume":
			c.resumes = true
			fallthrough
		case "--session-id":
			if providers.IsUUID(next) {
				c.session = next
			}
		}
		if !inline && valueOptions[name] {
			i++
		}
	}
	return c
}

// Resumes says whether the command line asks for an earlier session. With
// --session-id the session may be new.
func (Provider) Resumes(p providers.Process) bool {
	rest := p.Args[min(1, len(p.Args)):]
	if providers.IsInterpreter(providers.ProgramName(p.Exe)) {
		if _, after, ok := providers.Script(rest); ok {
			rest = after
		}
	}
	return command(rest).resumes
}
