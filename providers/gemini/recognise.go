package gemini

import (
	"path/filepath"
	"strings"

	"steno/providers"
)

// EnvKeys are the variables that name the configuration directory, and those
// that the program's first process goes by.
func (Provider) EnvKeys() []string {
	return []string{"GEMINI_CLI_HOME", "HOME", "GEMINI_CLI_NO_RELAUNCH", "SANDBOX"}
}

// NeedsOpen is false: the program opens its file only for each write (0.61.0,
// seen with strace).
func (Provider) NeedsOpen() bool { return false }

// Recognise goes by the script that node runs, or by the executable's name. The
// program starts itself again with GEMINI_CLI_NO_RELAUNCH set, in the same
// process group, and waits (0.61.0, gemini.js); with SANDBOX it does not. Where
// the environment cannot be read, node's memory option tells the child.
func (Provider) Recognise(p providers.Process) providers.Part {
	exe := providers.ProgramName(p.Exe)
	if exe == "" && len(p.Args) > 0 { // another user's, or gone
		exe = providers.ProgramName(p.Args[0])
	}
	rest := p.Args[min(1, len(p.Args)):]
	memory := false
	switch exe {
	case "gemini", "gemini.exe": // a single executable
	default:
		script, after, ok := providers.Script(rest)
		if !providers.IsInterpreter(exe) || !ok || !ours(script) {
			return providers.NotMine
		}
		for _, option := range rest[:len(rest)-len(after)-1] {
			memory = memory || strings.HasPrefix(option, "--max-old-space-size=")
		}
		rest = after
	}
	switch {
	case helper(rest):
		return providers.Helper
	case p.Env["GEMINI_CLI_NO_RELAUNCH"] != "" || p.Env["SANDBOX"] != "", len(p.Env) == 0 && memory:
		return providers.Worker
	}
	return providers.Launcher
}

// ours says whether a script is the program: the npm link, or its file.
func ours(script string) bool {
	name := providers.ProgramName(script)
	return name == "gemini" || strings.Contains(filepath.ToSlash(script), "/@google/gemini-cli/") &&
		(name == "gemini.js" || name == "index.js")
}

// Subcommands and options of 0.61.0 that run no session.
var (
	subcommands = map[string]bool{"mcp": true, "extensions": true, "extension": true, "skills": true, "skill": true,
		"hooks": true, "hook": true, "gemma": true}
	answers = map[string]bool{"--list-sessions": true, "--delete-session": true, "--list-extensions": true,
		"-l": true, "--version": true, "-v": true, "--help": true, "-h": true}
)

// helper says whether a command line runs no session. Only the first argument
// can be a subcommand: a prompt may have any words.
func helper(args []string) bool {
	if len(args) > 0 && subcommands[args[0]] {
		return true
	}
	for i := 0; i < len(args); i++ {
		switch name, _, _ := strings.Cut(args[i], "="); {
		case name == "--":
			return false
		case args[i] == "-p", args[i] == "--prompt", args[i] == "-i", args[i] == "--prompt-interactive":
			i++ // a text
		case answers[name]:
			return true
		}
	}
	return false
}

// arguments is what a command line says of its session.
type arguments struct {
	session string // --session-id, or --resume with an id
	resume  bool   // an earlier session is asked for: by id, number or "latest"
}

func parseArgs(args []string) arguments {
	var out arguments
	for i, a := range args {
		if a == "--" {
			break
		}
		name, value, inline := strings.Cut(a, "=")
		if !inline && i+1 < len(args) {
			value = args[i+1]
		}
		value = strings.ToLower(value)
		switch name {
		case "--resume", "-r":
			out.resume = true
		case "--session-id", "--sessionId":
		default:
			continue
		}
		if providers.IsUUID(value) {
			out.session = value
		}
	}
	return out
}

// Resumes says whether the command line asks for an earlier session.
func (Provider) Resumes(p providers.Process) bool { return parseArgs(p.Args).resume }

// Titles of 0.61.0, padded to 80 columns (windowTitle.ts). What follows the
// glyph of work may be the model's words, so only the glyph counts.
var titles = []struct {
	prefix string
	state  providers.Activity
	asks   string
}{
	{"◇  Ready (", providers.Idle, ""},
	{"✦  ", providers.Busy, ""},
	{"⏲  ", providers.Busy, ""},
	{"✋  Action Required", providers.Waiting, "action required"},
}

// TitleActivity reads the state that the program publishes.
func (Provider) TitleActivity(title string) (providers.Activity, string) {
	for _, t := range titles {
		if strings.HasPrefix(title, t.prefix) {
			return t.state, t.asks
		}
	}
	return providers.NoActivity, ""
}
