package gemini

import (
	"testing"

	"steno/providers"
)

func TestRecognise(t *testing.T) {
	none := map[string]string{"HOME": "/h"}
	child := map[string]string{"HOME": "/h", "GEMINI_CLI_NO_RELAUNCH": "true"}
	const script = "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js"
	for _, c := range []struct {
		name string
		exe  string
		args []string
		env  map[string]string
		want providers.Part
	}{
		{"the first process", "/usr/bin/node", []string{"node", "/usr/bin/gemini"}, none, providers.Launcher},
		{"the child", "/usr/bin/node", []string{"/usr/bin/node", "--max-old-space-size=3943", "/usr/bin/gemini"}, child, providers.Worker},
		{"the child without an option", "/usr/bin/node", []string{"/usr/bin/node", "/usr/bin/gemini", "-p", "x"}, child, providers.Worker},
		{"one process, as the user asked", "/usr/bin/node", []string{"node", script}, child, providers.Worker},
		{"in a sandbox", "/usr/bin/node", []string{"node", script}, map[string]string{"SANDBOX": "docker"}, providers.Worker},
		{"environment not readable, child", "", []string{"/usr/bin/node", "--max-old-space-size=3943", "/usr/bin/gemini"}, nil, providers.Worker},
		{"environment not readable", "", []string{"node", "/usr/bin/gemini"}, nil, providers.Launcher},
		{"replaced by an update", "/usr/bin/node (deleted)", []string{"node", "/usr/bin/gemini"}, child, providers.Worker},
		{"bun", "/opt/bun", []string{"bun", script}, none, providers.Launcher},
		{"single executable", "/opt/gemini", []string{"gemini"}, none, providers.Launcher},
		{"its child", "/opt/gemini", []string{"/opt/gemini", "--resume", "latest"}, child, providers.Worker},
		{"a subcommand", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "mcp", "list"}, none, providers.Helper},
		{"a list", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "--list-sessions"}, child, providers.Helper},
		{"a deletion", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "--delete-session=3"}, child, providers.Helper},
		{"a prompt that looks like one", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "-p", "--version"}, child, providers.Worker},
		{"behind the options", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "--", "-v"}, child, providers.Worker},
		{"words of a prompt", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "-i", "mcp"}, child, providers.Worker},
		{"another script", "/usr/bin/node", []string{"node", "/usr/bin/codex"}, child, providers.NotMine},
		{"another package's gemini.js", "/usr/bin/node", []string{"node", "/x/gemini.js"}, child, providers.NotMine},
		{"node alone", "/usr/bin/node", []string{"node", "--inspect"}, child, providers.NotMine},
		{"its tool", "/usr/bin/bash", []string{"bash", "-c", "gemini"}, child, providers.NotMine},
		{"an editor on the file", "/usr/bin/vim", []string{"vim", "gemini"}, none, providers.NotMine},
		{"nothing known", "", nil, nil, providers.NotMine},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (Provider{}).Recognise(providers.Process{Exe: c.exe, Args: c.args, Env: c.env}); got != c.want {
				t.Errorf("Recognise = %d, want %d", got, c.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want arguments
	}{
		{[]string{"node", "gemini"}, arguments{}},
		{[]string{"node", "gemini", "--resume", sid}, arguments{session: sid, resume: true}},
		{[]string{"node", "gemini", "-r", "latest"}, arguments{resume: true}},
		{[]string{"node", "gemini", "--resume=" + sid}, arguments{session: sid, resume: true}},
		{[]string{"node", "gemini", "--resume"}, arguments{resume: true}},
		{[]string{"node", "gemini", "--session-id", sid}, arguments{session: sid}},
		{[]string{"node", "gemini", "--session-id", "short"}, arguments{}},
		{[]string{"node", "gemini", "-p", "x", "--", "--resume", sid}, arguments{}},
	} {
		if got := parseArgs(c.args); got != c.want {
			t.Errorf("parseArgs(%q) = %+v, want %+v", c.args, got, c.want)
		}
		if got := (Provider{}).Resumes(providers.Process{Args: c.args}); got != c.want.resume {
			t.Errorf("Resumes(%q) = %v", c.args, got)
		}
	}
}

func TestTitleActivity(t *testing.T) {
	for title, want := range map[string]providers.Activity{
		"◇  Ready (work)             ":  providers.Idle,
		"✦  Working… (work)":            providers.Busy,
		"✦  Reading the files (work)":   providers.Busy,
		"⏲  Working… (work)":            providers.Busy,
		"✋  Action Required (work)":     providers.Waiting,
		"Gemini CLI (work)":             providers.NoActivity,
		"":                              providers.NoActivity,
		"◇  Closed (work)":              providers.NoActivity,
		"host":                          providers.NoActivity,
		"say: ◇  Ready (work) to go on": providers.NoActivity,
	} {
		got, asks := Provider{}.TitleActivity(title)
		if got != want || (asks != "") != (want == providers.Waiting) {
			t.Errorf("TitleActivity(%q) = %q, %q", title, got, asks)
		}
	}
}
