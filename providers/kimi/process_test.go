package kimi

import (
	"testing"

	"steno/providers"
)

func TestRecognise(t *testing.T) {
	const node = "/opt/node22/bin/node"
	main := "/home/dev/lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs"
	tests := []struct {
		name string
		p    providers.Process
		want providers.Part
	}{
		{"young, by its link", providers.Process{Exe: node, Comm: "node", Args: []string{"node", "/home/dev/bin/kimi", "-p", "hi"}}, providers.Worker},
		{"young, by its file", providers.Process{Exe: node, Comm: "node", Args: []string{node, main}}, providers.Worker},
		{"young, with flags of node", providers.Process{Exe: node, Comm: "node", Args: []string{"node", "--import", "x.mjs", "--max-old-space-size=4096", main}}, providers.Worker},
		{"as it calls itself", providers.Process{Exe: node, Comm: "kimi-code", Args: []string{"kimi-code                                  "}}, providers.Worker},
		{"after an update", providers.Process{Exe: node + " (deleted)", Comm: "kimi-code", Args: []string{"kimi-code"}}, providers.Worker},
		{"exe not readable", providers.Process{Comm: "kimi-code"}, providers.Worker},
		{"one executable", providers.Process{Exe: "/usr/local/bin/kimi", Comm: "kimi", Args: []string{"kimi"}}, providers.Worker},
		{"a server", providers.Process{Exe: node, Comm: "node", Args: []string{"node", "/home/dev/bin/kimi", "web"}}, providers.Helper},
		{"an ACP server", providers.Process{Exe: "/usr/local/bin/kimi", Args: []string{"kimi", "acp"}}, providers.Helper},
		{"its version", providers.Process{Exe: node, Args: []string{"node", main, "--version"}}, providers.Helper},
		{"a prompt with the word", providers.Process{Exe: node, Args: []string{"node", main, "-p", "web"}}, providers.Worker},
		{"another main.mjs", providers.Process{Exe: node, Args: []string{"node", "/srv/app/main.mjs"}}, providers.NotMine},
		{"node alone", providers.Process{Exe: node, Args: []string{"node"}}, providers.NotMine},
		{"a shell in a directory of that name", providers.Process{Exe: "/bin/bash", Comm: "bash", Args: []string{"bash", "/home/dev/bin/kimi"}}, providers.NotMine},
		{"another program's comm", providers.Process{Exe: "/bin/sleep", Comm: "kimi-code", Args: []string{"kimi-code"}}, providers.NotMine},
		{"the older program", providers.Process{Exe: "/usr/bin/python3.13", Comm: "kimi", Args: []string{"python3", "/home/dev/.local/bin/kimi"}}, providers.NotMine},
		{"nothing", providers.Process{}, providers.NotMine},
	}
	for _, tt := range tests {
		if got := (Provider{}).Recognise(tt.p); got != tt.want {
			t.Errorf("%s: Recognise = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestResumes(t *testing.T) {
	tests := []struct {
		args    []string
		earlier bool
		session string
	}{
		{[]string{"node", "/bin/kimi", "-r", someSession}, true, someSession},
		{[]string{"node", "/bin/kimi", "--session=" + someSession}, true, someSession},
		{[]string{"node", "/bin/kimi", "-S"}, true, ""},
		{[]string{"node", "/bin/kimi", "-S", "-y"}, true, ""},
		{[]string{"node", "/bin/kimi", "--continue"}, true, ""},
		{[]string{"node", "/bin/kimi", "--", "-c"}, false, ""},
		{[]string{"node", "-r", "hook.js", "/bin/kimi"}, false, ""},
		{[]string{"node", "/bin/kimi", "-p", "hi"}, false, ""},
		{[]string{"kimi-code      "}, false, ""},
	}
	for _, tt := range tests {
		p := providers.Process{Exe: "/usr/bin/node", Args: tt.args}
		session := asked(programArgs(p)).id
		if got := (Provider{}).Resumes(p); got != tt.earlier || session != tt.session {
			t.Errorf("%q: Resumes = %v, session %q, want %v, %q", tt.args, got, session, tt.earlier, tt.session)
		}
	}
}
