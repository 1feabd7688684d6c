package claude

import (
	"strings"
	"testing"

	"steno/providers"
)

// Field list: F14.
func TestRecognise(t *testing.T) {
	const npm = "/opt/lib/node_modules/@anthropic-ai/claude-code"
	tests := []struct {
		name, comm, exe, args string
		want                  providers.Part
	}{
		{"recorded", "claude", npm + "/bin/claude.exe", "/opt/bin/claude", providers.Worker},
		{"headless", "claude", npm + "-linux-x64/claude", npm + "-linux-x64/claude|-p|hello|--output-format|stream-json", providers.Worker},
		{"replaced by an update", "claude", npm + "/bin/claude.exe (deleted)", "claude|--continue", providers.Worker},
		{"native installer", "claude", "/home/dev/.local/share/claude/versions/2.1.332", "claude", providers.Worker},
		{"native installer by its version", "2.1.332", "/home/dev/.local/share/claude/versions/2.1.332", "/home/dev/.local/share/claude/versions/2.1.332|-c", providers.Worker},
		{"unreadable executable", "claude", "", "claude", providers.Worker},
		{"script", "node", "/usr/bin/node", "node|" + npm + "/cli.js|--resume", providers.Worker},
		{"script by its link", "node", "/usr/bin/node", "node|--no-warnings|/usr/local/bin/claude", providers.Worker},
		{"bun", "bun", "/usr/bin/bun", "bun|run|" + npm + "/cli.js", providers.Worker},
		{"deno", "deno", "/usr/bin/deno", "deno|run|-A|/x/claude", providers.Worker},
		{"process title", "claude", "/usr/bin/node", "claude", providers.Worker},
		{"prompt that names a subcommand", "claude", "/x/claude", "claude|update the docs", providers.Worker},
		{"prompt after the end of flags", "claude", "/x/claude", "claude|--|--bg-spare", providers.Worker},
		{"spare", "claude", "/x/claude", "claude|--bg-spare", providers.Helper},
		{"mcp server", "claude", "/x/claude", "claude|mcp|serve", providers.Helper},
		{"update", "node", "/usr/bin/node", "node|/usr/bin/claude|update", providers.Helper},
		{"built-in search", "rg", npm + "/bin/claude.exe", "rg|--files|.", providers.Helper},
		{"script behind the value of a flag", "node", "/usr/bin/node", "node|--require|/x/y.js|/usr/bin/claude", providers.Worker},
		{"value of a flag", "node", "/usr/bin/node", "node|--require|/usr/bin/claude|/x/y.js", providers.NotMine},
		{"another script", "node", "/usr/bin/node", "node|/srv/app/cli.js", providers.NotMine},
		{"an argument of another script", "node", "/usr/bin/node", "node|app.js|claude", providers.NotMine},
		{"interpreter alone", "node", "/usr/bin/node", "node", providers.NotMine},
		{"shell", "bash", "/usr/bin/bash", "bash|-c|claude", providers.NotMine},
		{"comm alone", "claude", "/usr/bin/sleep", "claude", providers.NotMine},
		{"nothing", "", "", "", providers.NotMine},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := providers.Process{PID: 7, Comm: tt.comm, Exe: tt.exe}
			if tt.args != "" {
				p.Args = strings.Split(tt.args, "|")
			}
			if got := (Provider{}).Recognise(p); got != tt.want {
				t.Errorf("Recognise = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestResumed(t *testing.T) {
	tests := []struct {
		args, session string
		fork          bool
	}{
		{"claude|--resume|" + someID, someID, false},
		{"claude|-r|" + someID + "|hello", someID, false},
		{"claude|--resume=" + someID, someID, false},
		{"claude|--session-id|" + someID, someID, false},
		{"claude|--resume|" + someID + "|--fork-session", someID, true},
		{"claude|--resume", "", false},
		{"claude|--resume|my session", "", false},
		{"claude|--continue", "", false},
		{"claude|--|--resume|" + someID, "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		session, fork := resumed(strings.Split(tt.args, "|"))
		if session != tt.session || fork != tt.fork {
			t.Errorf("resumed(%s) = %q, %v, want %q, %v", tt.args, session, fork, tt.session, tt.fork)
		}
	}
}

func TestResumes(t *testing.T) {
	for line, want := range map[string]bool{
		"claude":            false,
		"claude --continue": true,
		"claude -c":         true,
		"claude --resume":   true,
		"claude -p --resume=" + someID + " hello": true,
		"claude --continue --fork-session":        false,
		"claude -- --continue":                    false,
		"--resume":                                false,
	} {
		if got := (Provider{}).Resumes(providers.Process{Args: strings.Fields(line)}); got != want {
			t.Errorf("Resumes(%s) = %v, want %v", line, got, want)
		}
	}
}
