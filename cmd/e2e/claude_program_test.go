//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
)

func init() {
	register(program{
		name:   "claude",
		title:  "Claude Code",
		module: "@anthropic-ai/claude-code",
		links:  map[string]string{"claude": "@anthropic-ai/claude-code-linux-{arch}/claude"},
		env: func(w *world) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + w.model.URL(), "ANTHROPIC_AUTH_TOKEN=dummy", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
				"DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1",
			}
		},
		settle:   settleClaude,
		ready:    []string{"Claude Code v", "❯"},
		composer: "❯",
		leave:    "/exit",
		shapes: []source{
			lines("", ".claude/projects/**/*.jsonl", "type", "subtype"),
			passing(documents("session", ".claude/sessions/*.json")),
		},
		scenarios: slices.Concat(claudeScenarios, claudeMoreScenarios),
	})
}

// claude starts Claude Code and waits for its prompt.
func claude(args ...string) action { return start("claude", args...) }

func settleClaude(w *world, dirs []string) {
	w.t.Helper()
	projects := map[string]any{}
	for _, path := range dirs {
		projects[path] = map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": []any{}}
	}
	version, err := installedVersion("@anthropic-ai/claude-code")
	w.must(err)
	state, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": version, "theme": "dark",
		"autoUpdates": false, "numStartups": 5, "projects": projects,
	})
	w.must(err)
	w.write(".claude.json", string(state))
	w.write(".claude/settings.json", `{"permissions":{"defaultMode":"default","allow":["Bash(echo:*)","Bash(sleep:*)","Bash(ls:*)","Bash(tail:*)","Bash(codex:*)"]}}`)
}

// pointed goes down in a dialog until it points to a choice: which one it begins
// with, and how many there are, changes with the version.
func pointed(to string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the dialog points to "+to, func() bool {
			there := func() bool {
				for line := range strings.Lines(a.screen()) {
					if strings.Contains(line, "❯") && strings.Contains(line, to) {
						return true
					}
				}
				return false
			}
			if there() {
				return true
			}
			key("Down")(a)
			return within(times(redrawn), there)
		})
	}
}
