package codex

import (
	"strings"

	"steno/providers"
)

// Options of codex 0.171.0 that take a value in the next argument.
var valueOptions = map[string]bool{
	"-c": true, "--config": true, "--enable": true, "--disable": true, "-i": true, "--image": true,
	"-m": true, "--model": true, "--local-provider": true, "-p": true, "--profile": true,
	"-s": true, "--sandbox": true, "-a": true, "--ask-for-approval": true, "-C": true, "--cd": true,
	"--add-dir": true, "--remote": true, "--remote-auth-token-env": true, "--color": true,
	"-o": true, "--output-last-message": true, "--output-schema": true,
	"--thread-source": true, "--cyber-access-program": true,
}

// Subcommands that are no conversation (0.171.0 and older). A first word that
// is none of them is a prompt, or a subcommand that has threads: exec, resume,
// fork, review, agents.
var helperCommands = map[string]bool{
	"app-server": true, "mcp-server": true, "exec-server": true, "mcp": true, "login": true, "logout": true,
	"completion": true, "sandbox": true, "debug": true, "apply": true, "a": true, "features": true,
	"plugin": true, "update": true, "doctor": true, "archive": true, "unarchive": true, "delete": true,
	"cloud": true, "app": true, "execpolicy": true, "responses-api-proxy": true,
	"stdio-to-uds": true, "remote-control": true, "help": true, "queue": true,
	"migrate-rollouts": true, "migrate-nfs-db": true,
}

// Recognise goes by the executable, and by the script that node runs. The
// program starts itself under other names (its sandbox, apply_patch) and as a
// shared daemon that outlives its terminals; those never own a pane.
func (Provider) Recognise(p providers.Process) providers.Part {
	exe := providers.ProgramName(p.Exe)
	switch exe {
	case "node", "nodejs", "bun", "deno":
		script, after, _ := providers.Script(p.Args[min(1, len(p.Args)):])
		if name := providers.ProgramName(script); name != "codex" && name != "codex.js" {
			return providers.NotMine
		}
		if command(after).helper() {
			return providers.Helper
		}
		return providers.Launcher
	case "codex-linux-sandbox", "codex-execve-wrapper":
		return providers.Helper
	case "":
		// Unreadable: another user's, or gone. Both names have to agree.
		if p.Comm != "codex" || len(p.Args) == 0 || providers.ProgramName(p.Args[0]) != "codex" {
			return providers.NotMine
		}
	default:
		if exe != "codex" && !strings.HasPrefix(exe, "codex-x86_64-") && !strings.HasPrefix(exe, "codex-aarch64-") {
			return providers.NotMine
		}
	}
	if len(p.Args) > 0 {
		switch a := providers.ProgramName(p.Args[0]); a {
		case "codex-linux-sandbox", "codex-execve-wrapper", "apply_patch", "applypatch":
			return providers.Helper
		}
	}
	if command(p.Args[min(1, len(p.Args)):]).helper() {
		return providers.Helper
	}
	return providers.Worker
}

// call is what the arguments of codex, after its own name, ask for, as far as
// it matters here.
type call struct {
	words  []string // the arguments that are no options, at most 4
	dir    string   // -C
	daemon bool     // nothing says that it runs embedded
	run    string   // --codex-run-as-…: the program as one of its own tools
}

func command(args []string) call {
	c := call{daemon: true}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			break
		}
		name, val, inline := strings.Cut(a, "=")
		if !strings.HasPrefix(a, "-") {
			if len(c.words) < 4 {
				c.words = append(c.words, a)
			}
			continue
		}
		if !inline && valueOptions[a] && i+1 < len(args) {
			i++
			val = args[i]
		}
		switch {
		case name == "-C" || name == "--cd":
			c.dir = val
		case name == "--no-daemon", name == "-c", name == "--config":
			c.daemon = false // 0.171.0: both make the TUI hold its own thread
		case strings.HasPrefix(name, "--codex-run-as-"):
			c.run = name
		}
	}
	if len(c.words) > 0 {
		switch c.words[0] {
		case "exec", "e", "review":
			c.daemon = false
		}
	}
	return c
}

func (c call) helper() bool {
	return c.run != "" || len(c.words) > 0 && helperCommands[c.words[0]]
}

// resumed is the thread that `resume <uuid>` (also after exec) names.
func (c call) resumed() string {
	w := c.words
	if len(w) > 0 && (w[0] == "exec" || w[0] == "e") {
		w = w[1:]
	}
	if len(w) > 1 && w[0] == "resume" {
		if id := strings.ToLower(w[1]); providers.IsUUID(id) {
			return id
		}
	}
	return ""
}

// Resumes says whether the command line asks for an earlier thread: "resume"
// is the command, or that of "exec".
func (Provider) Resumes(p providers.Process) bool {
	words := command(p.Args[min(1, len(p.Args)):]).words
	if len(words) > 1 && (words[0] == "exec" || words[0] == "e") {
		words = words[1:]
	}
	return len(words) > 0 && words[0] == "resume"
}

var _ providers.Resumer = Provider{}
