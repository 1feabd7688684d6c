//go:build e2e

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

func init() {
	register(program{
		name:   "kimi",
		title:  "Kimi Code",
		module: "@moonshot-ai/kimi-code",
		// It needs a newer Node than this machine may have.
		links: map[string]string{"kimi": ".bin/kimi", "node": "node-linux-{arch}/bin/node"},
		env: func(*world) []string {
			return []string{"KIMI_CODE_NO_AUTO_UPDATE=1", "KIMI_DISABLE_TELEMETRY=1"}
		},
		settle:    settleKimi,
		ready:     []string{"scripted", "context:"},
		composer:  ">",
		leave:     "/exit",
		drop:      []string{".kimi-code/cache", ".kimi-code/bin"},
		shapes:    []source{lines("", ".kimi-code/sessions/**/wire.jsonl", "type", "event.type", "event.part.type")},
		scenarios: kimiScenarios,
	})
}

// kimi starts Kimi Code and waits for its prompt.
func kimi(args ...string) action { return start("kimi", args...) }

func settleKimi(w *world, dirs []string) {
	w.t.Helper()
	w.write(".kimi-code/config.toml", fmt.Sprintf(`default_model = "scripted"
telemetry = false
[loop_control]
max_attempts_per_step = 2
[providers.scripted]
type = "kimi"
base_url = "%s/v1"
api_key = "dummy"
[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 131072
capabilities = ["thinking"]
`, w.model.URL()))
	w.write(".kimi-code/tui.toml", `disable_paste_burst = true
disable_feedback_survey = true
cache_expiry_hint = false
[notifications]
enabled = false
[upgrade]
auto_install = false
`)
	for _, dir := range dirs {
		sum := sha256.Sum256([]byte(dir))
		name := "wd_" + strings.ToLower(filepath.Base(dir)) + "_" + hex.EncodeToString(sum[:6])
		w.write(".kimi-code/workspace-trust/"+name, fmt.Sprintf(`{"root":%q,"trustedAt":1796082744947}`, dir))
	}
}

// kimiSessions counts the sessions that Kimi Code has a record for.
func kimiSessions(n int) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("Kimi Code has so many sessions", func() bool {
			all, err := filepath.Glob(filepath.Join(a.w.home(), ".kimi-code/sessions/wd_*/session_*/agents/main/wire.jsonl"))
			return err == nil && len(all) == n
		})
	}
}

var kimiResume = regexp.MustCompile(`kimi (?:-r|--resume) '?(session_[0-9a-f-]{36})`)

// kimiAgain does something with the session that the program named last on the
// screen.
func kimiAgain(then func(id string) action) action {
	return func(a *agent) {
		a.w.t.Helper()
		id := ""
		a.w.eventually("the screen names a session to resume", func() bool {
			if all := kimiResume.FindAllStringSubmatch(strings.Join(strings.Fields(a.screen()), " "), -1); len(all) > 0 {
				id = all[len(all)-1][1]
			}
			return id != ""
		})
		then(id)(a)
	}
}
