package copilot

import (
	"testing"

	"steno/providers"
)

const packagedExe = "/usr/lib/node_modules/@github/copilot/node_modules/@github/copilot-linux-x64/copilot"

func TestRecognise(t *testing.T) {
	tests := []struct {
		name, comm, exe string
		args            []string
		want            providers.Part
	}{
		{"worker", "MainThread", packagedExe, []string{packagedExe}, providers.Worker},
		{"worker just started", "copilot", packagedExe, []string{packagedExe}, providers.Worker},
		{"musl", "copilot", "/x/@github/copilot-linuxmusl-arm64/copilot", []string{"copilot"}, providers.Worker},
		{"replaced by an update", "MainThread", packagedExe + " (deleted)", []string{packagedExe}, providers.Worker},
		{"installed without npm", "MainThread", "/usr/local/bin/copilot", []string{"copilot", "-p", "mcp"}, providers.Worker},
		{"another program of the name", "copilot", "/usr/local/bin/copilot", []string{"copilot", "svc", "deploy"}, providers.NotMine},
		{"unreadable", "MainThread", "", []string{packagedExe}, providers.Worker},
		{"unreadable node", "MainThread", "", []string{"node", "/x/bin/copilot"}, providers.NotMine},
		{"launcher", "node", "/usr/bin/node", []string{"node", "/usr/bin/copilot", "--continue"}, providers.Launcher},
		{"launcher with a flag", "node", "/usr/bin/node", []string{"node", "--no-warnings", "/usr/bin/copilot"}, providers.Launcher},
		{"launcher by its file", "node", "/usr/bin/node", []string{"node", "/x/@github/copilot/npm-loader.js"}, providers.Launcher},
		{"bun", "bun", "/usr/bin/bun", []string{"bun", "run", "/x/bin/copilot"}, providers.Launcher},
		{"other script", "node", "/usr/bin/node", []string{"node", "/x/server.js", "copilot"}, providers.NotMine},
		{"other loader", "node", "/usr/bin/node", []string{"node", "/x/other/npm-loader.js"}, providers.NotMine},
		{"node alone", "node", "/usr/bin/node", []string{"node"}, providers.NotMine},
		{"subcommand", "MainThread", packagedExe, []string{"copilot", "mcp", "list"}, providers.Helper},
		{"subcommand of the launcher", "node", "/usr/bin/node", []string{"node", "/usr/bin/copilot", "login"}, providers.Helper},
		{"protocol server", "MainThread", packagedExe, []string{"copilot", "--acp"}, providers.Helper},
		{"prompt with the name of a subcommand", "MainThread", packagedExe, []string{"copilot", "-i", "mcp", "-p", "--acp"}, providers.Worker},
		{"after --", "MainThread", packagedExe, []string{"copilot", "--", "--acp"}, providers.Worker},
		{"init", "MainThread", packagedExe, []string{"copilot", "init"}, providers.Worker},
		{"shell", "bash", "/bin/bash", []string{"bash", "-c", "copilot"}, providers.NotMine},
		{"nothing", "", "", nil, providers.NotMine},
	}
	for _, tt := range tests {
		got := Provider{}.Recognise(providers.Process{Comm: tt.comm, Exe: tt.exe, Args: tt.args})
		if got != tt.want {
			t.Errorf("%s: Recognise = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	tests := []struct {
		args    []string
		resumes bool
		session string
	}{
		{[]string{"copilot"}, false, ""},
		{[]string{"copilot", "--continue"}, true, ""},
		{[]string{"copilot", "--resume"}, true, ""},
		{[]string{"copilot", "--resume=" + someID}, true, someID},
		{[]string{"copilot", "--resume", someID}, true, someID},
		{[]string{"copilot", "-r", someID}, true, someID},
		{[]string{"copilot", "--resume=my feature"}, true, ""},
		{[]string{"copilot", "--resume=8d190f1"}, true, ""},
		{[]string{"copilot", "--session-id", someID}, false, someID},
		{[]string{"copilot", "--session-id=" + someID}, false, someID},
		{[]string{"copilot", "-p", "--continue"}, false, ""},
		{[]string{"copilot", "--prompt=--continue"}, false, ""},
		{[]string{"copilot", "--name", "--resume", "--model", "x"}, false, ""},
		{[]string{"copilot", "--", "--continue"}, false, ""},
		{nil, false, ""},
	}
	for _, tt := range tests {
		p := providers.Process{Comm: "MainThread", Exe: packagedExe, Args: tt.args}
		if got := (Provider{}).Resumes(p); got != tt.resumes {
			t.Errorf("Resumes(%q) = %v", tt.args, got)
		}
		if got := command(tt.args[min(1, len(tt.args)):]).session; got != tt.session {
			t.Errorf("session of %q = %q, want %q", tt.args, got, tt.session)
		}
		if len(tt.args) == 0 {
			continue
		}
		p.Exe, p.Args = "/usr/bin/node", append([]string{"node", "/usr/bin/copilot"}, tt.args[1:]...)
		if got := (Provider{}).Resumes(p); got != tt.resumes {
			t.Errorf("Resumes(%q) = %v", p.Args, got)
		}
	}
}
