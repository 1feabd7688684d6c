package opencode

import (
	"path/filepath"
	"strings"

	"steno/providers"
)

// EnvKeys are what Roots and Evidence need of a process.
func (Provider) EnvKeys() []string { return []string{"HOME", "XDG_DATA_HOME", "OPENCODE_DB"} }

// NeedsOpen is true: the place of the process in the program's log is the
// proof of its session.
func (Provider) NeedsOpen() bool { return true }

// Options of 1.18.33 that take a value in the next argument.
var valueOptions = map[string]bool{
	"-m": true, "--model": true, "-s": true, "--session": true, "--agent": true, "--prompt": true,
	"--port": true, "--hostname": true, "--mdns-domain": true, "--cors": true, "--log-level": true,
	"--replay-limit": true, "--dir": true, "-p": true, "--password": true, "-u": true, "--username": true,
	"--command": true, "-f": true, "--file": true, "--format": true, "--title": true, "--attach": true, "--variant": true,
}

// Subcommands that own no conversation of their own (1.18.33). serve, web and
// acp run sessions for clients elsewhere, several at a time.
var helperCommands = map[string]bool{
	"completion": true, "acp": true, "mcp": true, "debug": true, "providers": true, "auth": true, "agent": true,
	"upgrade": true, "uninstall": true, "serve": true, "web": true, "models": true, "stats": true, "export": true,
	"import": true, "github": true, "session": true, "plugin": true, "plug": true, "db": true, "pr": true,
	"generate": true, "console": true,
}

// Recognise goes by the executable's name (opencode, opencode.exe, and .opencode
// of older packages), or by the script that node or bun runs: older npm
// packages start the binary from a script and wait.
func (Provider) Recognise(p providers.Process) providers.Part {
	exe := base(p.Exe)
	switch exe {
	case "opencode", "opencode.exe", ".opencode":
	case "node", "nodejs", "bun":
		i := 1
		for i < len(p.Args) && strings.HasPrefix(p.Args[i], "-") {
			i++
		}
		if i >= len(p.Args) || base(p.Args[i]) != "opencode" && base(p.Args[i]) != "opencode.js" {
			return providers.NotMine
		}
		if parseCall(p.Args[i:]).helper() {
			return providers.Helper
		}
		return providers.Launcher
	case "":
		// Unreadable: another user's, or gone. Both names have to agree.
		if p.Comm != "opencode" || len(p.Args) == 0 || base(p.Args[0]) != "opencode" {
			return providers.NotMine
		}
	default:
		return providers.NotMine
	}
	if parseCall(p.Args).helper() {
		return providers.Helper
	}
	return providers.Worker
}

// base is the last element of a path; the kernel marks a replaced executable.
func base(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(path, " (deleted)"))
}

// call is a command line of opencode, as far as it matters here.
type call struct {
	command string // the first argument that is no option; a project's path, too
	dir     string // --dir
	session string // -s
	resumes bool   // -c or -s
	fork    bool
	project string // of the TUI
}

func parseCall(args []string) call {
	var c call
	words := 0
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			break
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			if words == 0 {
				c.command = a
			}
			words++
			continue
		}
		name, val, inline := strings.Cut(a, "=")
		if !inline && valueOptions[name] && i+1 < len(args) {
			i++
			val = args[i]
		}
		switch name {
		case "-s", "--session":
			c.resumes = true
			if sessionID.MatchString(val) {
				c.session = val
			}
		case "-c", "--continue":
			c.resumes = true
		case "--fork":
			c.fork = val != "false"
		case "--dir":
			c.dir = val
		}
	}
	switch c.command {
	case "run", "attach":
	default:
		c.project = c.command
	}
	return c
}

func (c call) helper() bool { return helperCommands[c.command] }

// where is the directory that the command works in.
func (c call) where(cwd string) string {
	for _, dir := range []string{c.dir, c.project} {
		switch {
		case dir == "":
		case filepath.IsAbs(dir):
			return filepath.Clean(dir)
		case cwd != "":
			return filepath.Join(cwd, dir)
		}
	}
	return cwd
}

// Resumes says whether the command line asks for an earlier session. A fork is
// a session of its own.
func (Provider) Resumes(p providers.Process) bool {
	c := parseCall(p.Args)
	return c.resumes && !c.fork
}
