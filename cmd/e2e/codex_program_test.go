//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

func init() {
	register(program{
		name:     "codex",
		title:    "Codex CLI",
		module:   "@openai/codex",
		links:    map[string]string{"codex": ".bin/codex"},
		env:      func(*world) []string { return []string{"FAKE_KEY=dummy"} },
		settle:   settleCodex,
		ready:    []string{"? for shortcuts", "GPT-5.5 default ·"}, // the model is shown once it is connected
		composer: "›",
		leave:    "/exit",
		drop:     []string{".codex/packages"},
		shapes: []source{
			lines("", ".codex/sessions/**/*.jsonl", "type", "payload.type", "payload.item.type"),
			databases("logs", ".codex/**/logs_*.sqlite"),
		},
		scenarios: slices.Concat(codexScenarios, codexMoreScenarios),
	})
}

// codex starts Codex and waits for its prompt, and for its shared daemon unless
// it shall have none.
func codex(args ...string) action {
	if slices.Contains(args, "--no-daemon") {
		return start("codex", args...)
	}
	return do(codexDaemon, start("codex", args...))
}

// codexDaemon sees to it that the shared daemon runs, as it does for everyone who
// used the program before. For the first one the program copies itself, 400 MB,
// and a terminal does not wait longer than 10 s for that.
func codexDaemon(a *agent) {
	a.w.t.Helper()
	a.w.eventually("Codex's daemon runs", func() bool {
		cmd := a.w.command("codex", "app-server", "daemon", "start")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Run() == nil
	})
}

func settleCodex(w *world, dirs []string) {
	w.t.Helper()
	var trust strings.Builder
	for _, path := range dirs {
		fmt.Fprintf(&trust, "[projects.%q]\ntrust_level = \"trusted\"\n", path)
	}
	w.write(".codex/config.toml", fmt.Sprintf(`model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
default_mode_request_user_input = true
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
[tui]
animations = false
screen_reader_detection_done = true
[tui.model_availability_nux]
"gpt-6.1-sol" = 1
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
%s`, w.model.URL(), trust.String()))
}
