//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func init() {
	register(program{
		name:   "gemini",
		title:  "Gemini CLI",
		module: "@google/gemini-cli",
		links:  map[string]string{"gemini": ".bin/gemini"},
		env: func(w *world) []string {
			return []string{
				"GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL=" + w.model.URL(), "GEMINI_MODEL=gemini-2.5-pro",
				"NO_BROWSER=true", "GEMINI_CLI_TRUST_WORKSPACE=true",
			}
		},
		settle:    settleGemini,
		ready:     []string{"Type your message"},
		composer:  ">",
		leave:     "/quit",
		shapes:    []source{lines("", ".gemini/tmp/*/chats/**/*.jsonl", "type")},
		scenarios: geminiScenarios,
	})
}

// gemini starts Gemini CLI and waits for its prompt.
func gemini(args ...string) action { return start("gemini", args...) }

// finger is how long a person takes from a letter to Enter. Gemini CLI takes an
// Enter in the 30 ms after a letter for a part of a paste (0.61.0).
const finger = 300 * time.Millisecond

// typed types a prompt into Gemini CLI and sends it.
func typed(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.prompts = append(a.w.prompts, text)
		typedCommand(text)(a)
	}
}

// typedCommand is command at the pace of a person. On a busy machine the program
// sends a text without its last letter, though the screen shows it (0.61.0): so
// that is a space, which does not matter.
func typedCommand(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		write(text)(a)
		a.w.tmux("send-keys", "-t", a.pane, "-l", " ")
		time.Sleep(times(finger))
		a.enter(text, func() bool { return !a.composed(text) })
	}
}

// answered is a turn of Gemini CLI that is one text.
func answered(turn, script, text string) step {
	return step{typed("SCENARIO:" + script), asked(turn, "SCENARIO:"+script) + done(turn, text)}
}

func geminiPlain(turn string) step  { return answered(turn, "plain", "PLAIN: one answer.") }
func geminiSecond(turn string) step { return answered(turn, "second", "SECOND: another answer.") }

// toldGemini is a turn whose first answer comes with a tool.
func toldGemini(turn, script, before, after string) step {
	return step{typed("SCENARIO:" + script), asked(turn, "SCENARIO:"+script) + "message " + turn + " \"" + before + "\"\n" + done(turn, after)}
}

// failedGemini is an error that Gemini CLI reports.
func failedGemini(turn, status, reason string) step {
	return step{typed("SCENARIO:" + status), asked(turn, "SCENARIO:"+status) + "failure " + turn + " " + reason + "\nwaiting " + turn}
}

// stubbornGemini is an error of the API that Gemini CLI does not believe: it asks
// more than once.
func stubbornGemini(turn, status string) step {
	prompt := "SCENARIO:" + status
	return step{do(typed(prompt), askedAgain(status)), asked(turn, prompt)}
}

// leftGemini is Esc on what does not come.
func leftGemini(turn string) step {
	return step{key("Escape"), "final " + turn + " aborted\nwaiting " + turn}
}

// chosen moves to a choice of a dialog, with one more key press where the dialog
// dropped the first.
func chosen(name, shown string) action {
	return func(a *agent) {
		a.w.t.Helper()
		key(name)(a)
		if !within(times(swallowed), func() bool { return strings.Contains(squeeze(a.screen()), squeeze(shown)) }) {
			do(key(name), see(shown))(a)
		}
	}
}

// rewoundGemini takes back the last prompt by /rewind, and waits until it stands in
// the composer again.
func rewoundGemini(prompt string) action {
	return func(a *agent) {
		a.w.t.Helper()
		do(typedCommand("/rewind"), see("Stay at current position"),
			chosen("Up", "● "+prompt), key("Enter"), see("Confirm Rewind"),
			answer("Enter", "Confirm Rewind"))(a)
		a.w.eventually("the prompt is in the composer", func() bool { return a.composed(prompt) })
	}
}

// resentGemini sends what stands in the composer.
func resentGemini(prompt string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.enter(prompt, func() bool { return !a.composed(prompt) })
	}
}

// leaveGemini ends the program by its key: a command is completed while it is
// typed.
func leaveGemini(a *agent) {
	a.w.t.Helper()
	do(key("C-c"), see("Press Ctrl+C again to exit"), key("C-c"), ended)(a)
}

var goneGemini = step{leaveGemini, "unavailable process_exited"}

// geminiSession is the id of Gemini CLI's only session, which the header of its
// file has.
func geminiSession(then func(id string) action) action {
	return func(a *agent) {
		a.w.t.Helper()
		all, err := filepath.Glob(filepath.Join(a.w.home(), ".gemini/tmp/*/chats/session-*.jsonl"))
		if err != nil || len(all) != 1 {
			a.w.t.Fatalf("Gemini CLI has %d sessions, not one: %s", len(all), strings.Join(all, " "))
		}
		data, err := os.ReadFile(all[0])
		a.w.must(err)
		var header struct {
			ID string `json:"sessionId"`
		}
		line, _, _ := bytes.Cut(data, []byte("\n"))
		a.w.must(json.Unmarshal(line, &header))
		then(header.ID)(a)
	}
}

// resumedGemini goes on with a session whose first turn was plain. Before the
// program has drawn the old turns again it sends nothing, and in the first
// moments after that it drops keys.
func resumedGemini(which string) action {
	return do(gemini("--resume", which), see("PLAIN: one answer."), awake)
}

// awake waits until the program takes keys, and leaves the composer empty.
func awake(a *agent) {
	a.w.t.Helper()
	a.w.eventually("the program takes keys", func() bool {
		key("x")(a)
		return within(times(finger), func() bool { return !strings.Contains(squeeze(a.screen()), "Typeyourmessage") })
	})
	a.w.eventually("the composer is empty", func() bool {
		key("BSpace")(a)
		return within(times(finger), func() bool { return strings.Contains(squeeze(a.screen()), "Typeyourmessage") })
	})
}

const oldGeminiID = "0a1b2c3d-1111-4222-8333-444455556666"

// oldGemini writes a session as older versions did: one JSON document.
func oldGemini(a *agent) {
	a.w.t.Helper()
	cwd := filepath.Join(a.w.dir, a.dir())
	projects, err := json.Marshal(map[string]any{"projects": map[string]string{cwd: "work"}})
	a.w.must(err)
	a.w.write(".gemini/projects.json", string(projects))
	began := time.Now().UTC().Add(-time.Hour).Format("2006-01-02T15:04:05.000Z")
	a.w.write(".gemini/tmp/work/.project_root", cwd)
	a.w.write(".gemini/history/work/.project_root", cwd)
	a.w.write(".gemini/tmp/work/chats/session-"+began[:10]+"T"+strings.ReplaceAll(began[11:16], ":", "-")+"-"+oldGeminiID[:8]+".json",
		fmt.Sprintf(`{"sessionId":%q,"projectHash":"%x","startTime":%[3]q,"lastUpdated":%[3]q,"messages":[`+
			`{"id":"aaaa1111-0000-4000-8000-000000000001","timestamp":%[3]q,"type":"user","content":"old question"},`+
			`{"id":"aaaa1111-0000-4000-8000-000000000002","timestamp":%[3]q,"type":"gemini","content":"old answer","thoughts":[],"tokens":{"input":10,"output":2,"cached":0,"thoughts":0,"tool":0,"total":12},"model":"gemini-2.5-pro"}]}`,
			oldGeminiID, sha256.Sum256([]byte(cwd)), began))
}

// killBare ends what runs on a bare terminal. Gemini CLI can outlive its terminal
// (0.61.0).
func killBare(a *agent) {
	a.w.t.Helper()
	for _, pid := range children(strconv.Itoa(a.bare.Process.Pid)) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			a.w.t.Fatal(err)
		}
	}
	hangUpBare(a)
}

func settleGemini(w *world, _ []string) {
	w.t.Helper()
	w.write(".gemini/settings.json", `{"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"ide":{"hasSeenNudge":true},
"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},
"ui":{"hideTips":true,"hideBanner":true}}`)
}
