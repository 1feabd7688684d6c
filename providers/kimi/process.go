package kimi

import (
	"path/filepath"
	"strings"

	"steno/providers"
)

// EnvKeys are the variables that name the program's directories.
func (Provider) EnvKeys() []string { return []string{"HOME", "KIMI_CODE_HOME", "KIMI_SHARE_DIR"} }

// NeedsOpen is false: the program opens its record for each write only (2.1.0,
// seen with strace).
func (Provider) NeedsOpen() bool { return false }

// Recognise goes by the command line. It is `node <bin>/kimi` or `node
// .../@moonshot-ai/kimi-code/dist/main.mjs` for the first 0.8 to 5 s, and then
// "kimi-code" with the arguments lost (2.1.0). A single executable, as the
// package can build one, is known by its name.
func (Provider) Recognise(p providers.Process) providers.Part {
	base := providers.ProgramName(p.Exe)
	name := ""
	if len(p.Args) > 0 {
		name = strings.TrimRight(filepath.Base(p.Args[0]), " ")
	}
	var rest []string
	switch {
	case base == "kimi" || base == "kimi-code":
		rest = p.Args[min(1, len(p.Args)):]
	case !providers.IsInterpreter(base) && (base != "" || p.Comm != "kimi-code"):
		return providers.NotMine
	case name == "kimi-code" || len(p.Args) == 0 && p.Comm == "kimi-code":
		return providers.Worker
	default:
		script, after, ok := providers.Script(p.Args[min(1, len(p.Args)):])
		if !ok || !ours(script) {
			return providers.NotMine
		}
		rest = after
	}
	if subcommand(rest) {
		return providers.Helper
	}
	return providers.Worker
}

// ours says whether a script is the program: the npm link, or its file.
func ours(script string) bool {
	base := filepath.Base(script)
	return base == "kimi" || base == "kimi-code" || base == "main.mjs" && strings.Contains(script, "/@moonshot-ai/kimi-code/")
}

// subcommands run no session in their terminal. Only the first argument counts:
// a prompt may have any words.
var subcommands = map[string]bool{
	"export": true, "fork": true, "provider": true, "session": true, "acp": true, "web": true, "server": true, "rc": true,
	"remote": true, "login": true, "doctor": true, "vis": true, "install-desktop": true, "migrate": true, "upgrade": true,
	"update": true, "help": true,
}

func subcommand(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "-V", "--version", "-h", "--help":
		return true
	}
	return subcommands[args[0]]
}

// programArgs are the arguments of the program itself, while they can be seen.
func programArgs(p providers.Process) []string {
	rest := p.Args[min(1, len(p.Args)):]
	if providers.IsInterpreter(providers.ProgramName(p.Exe)) {
		_, after, ok := providers.Script(rest)
		if !ok {
			return nil
		}
		return after
	}
	return rest
}

// wish is what a command line asks for: an earlier session.
type wish struct {
	last bool   // the last one of the directory
	pick bool   // one that it names, or that the user will pick
	id   string // the one that it names
}

func asked(args []string) (w wish) {
	for i, a := range args {
		if a == "--" {
			break
		}
		name, value, inline := strings.Cut(a, "=")
		switch name {
		case "-c", "-C", "--continue":
			w.last = true
		case "-S", "--session", "-r", "--resume":
			w.pick = true
			if !inline && i+1 < len(args) {
				value = args[i+1]
			}
			if sessionID.MatchString(value) {
				w.id = value
			}
		}
	}
	return w
}

// Resumes says whether the command line asks for an earlier session.
func (Provider) Resumes(p providers.Process) bool {
	w := asked(programArgs(p))
	return w.last || w.pick
}
