//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func init() {
	register(program{
		name:   "copilot",
		title:  "GitHub Copilot CLI",
		module: "@github/copilot",
		links:  map[string]string{"copilot": ".bin/copilot", "copilot-direct": copilotNative},
		env: func(w *world) []string {
			return []string{
				"COPILOT_PROVIDER_BASE_URL=" + w.model.URL() + "/v1", "COPILOT_MODEL=fake-model", "COPILOT_PROVIDER_API_KEY=dummy",
				"COPILOT_PROVIDER_MAX_PROMPT_TOKENS=128000", "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=16000",
				"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_PKG_CACHE_HOME=" + copilotUnpacked(),
			}
		},
		settle:    settleCopilot,
		ready:     []string{"/ commands ·", "fake-model"},
		composer:  "❯",
		leave:     "/exit",
		shapes:    []source{lines("", ".copilot/session-state/*/events.jsonl", "type", "data.kind.type")},
		scenarios: copilotScenarios,
	})
}

// copilotNative is the program itself, which npm's script starts.
const copilotNative = "@github/copilot-linux-{arch}/copilot"

// copilot starts Copilot and waits for its prompt.
func copilot(args ...string) action { return start("copilot", args...) }

// copilotUnpacked is where the program keeps the 230 MB that it unpacks at its
// first start: beside the installation, for all scenarios.
func copilotUnpacked() string {
	return filepath.Join(filepath.Dir(os.Getenv(modulesVar)), "copilot-unpacked")
}

// unpackCopilot has it unpacked once, whichever scenario comes first.
func unpackCopilot(w *world) {
	w.t.Helper()
	dir := copilotUnpacked()
	w.must(os.MkdirAll(dir, 0o755))
	lock, err := os.Open(dir)
	w.must(err)
	defer lock.Close()
	w.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	if done, err := filepath.Glob(filepath.Join(dir, "pkg/*/*/.extraction-complete")); err == nil && len(done) > 0 {
		return
	}
	cmd := exec.Command(inModules(os.Getenv(modulesVar), copilotNative), "--version")
	cmd.Env = append(w.env[:len(w.env):len(w.env)], "COPILOT_SEA_EXTRACT_ONLY=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("unpack copilot: %v: %s", err, out)
	}
}

func settleCopilot(w *world, dirs []string) {
	w.t.Helper()
	unpackCopilot(w)
	config, err := json.Marshal(map[string]any{"firstLaunchAt": "2026-01-01T00:00:00.000Z", "appTipShown": true, "trustedFolders": dirs})
	w.must(err)
	w.write(".copilot/config.json", string(config))
	w.write(".copilot/settings.json", `{"banner":"never","experimental":false}`)
}

// escEsc interrupts. The program wants to be asked twice within a moment, and
// takes two at once for one other key: on a busy machine that has to be tried
// again, as long as it says that it works.
func escEsc(a *agent) {
	a.w.t.Helper()
	shows := func(text string) func() bool {
		return func() bool { return strings.Contains(squeeze(a.screen()), squeeze(text)) }
	}
	works := shows("esc esc") // "interrupt", or "edit prompt" before any output
	a.w.eventually("the program is interrupted", func() bool {
		if !works() {
			return true
		}
		key("Escape")(a)
		if within(times(time.Second), shows("again to")) {
			key("Escape")(a)
		}
		return within(times(3*time.Second), func() bool { return !works() && !shows("again to")() })
	})
}

// slash types a command and sends it. The composer shows what may follow, and a
// list of commands.
func slash(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.tmux("send-keys", "-t", a.pane, "-l", text)
		a.w.eventually("the composer shows "+text, func() bool {
			return strings.Contains(squeeze(a.screen()), squeeze(a.program.composer+text))
		})
		key("Enter")(a)
	}
}

// made puts an empty file into the agent's directory.
func made(name string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.must(os.WriteFile(filepath.Join(a.w.dir, a.dir(), name), nil, 0o600))
	}
}

// sessions counts the sessions that Copilot has a directory for.
func sessions(n int) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("Copilot has so many sessions", func() bool {
			all, err := filepath.Glob(filepath.Join(a.w.home(), ".copilot/session-state/*-*"))
			return err == nil && len(all) == n
		})
	}
}

// resumed is the argument by which Copilot resumes its only session.
func resumed(flag string, then func(arg string) action) action {
	return func(a *agent) {
		a.w.t.Helper()
		all, err := filepath.Glob(filepath.Join(a.w.home(), ".copilot/session-state/*/events.jsonl"))
		if err != nil || len(all) != 1 {
			a.w.t.Fatalf("Copilot has %d sessions, not one: %s", len(all), strings.Join(all, " "))
		}
		then(flag + filepath.Base(filepath.Dir(all[0])))(a)
	}
}
