//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func init() {
	register(program{
		name:   "opencode",
		title:  "OpenCode",
		module: "opencode-linux-x64", // the platform package of opencode-ai, whose name a script would fill
		links:  map[string]string{"opencode": "opencode-linux-{arch}/bin/opencode"},
		env: func(w *world) []string {
			return []string{
				"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
				"OPENCODE_MODELS_PATH=" + filepath.Join(w.home(), opencodeModels),
			}
		},
		settle:    settleOpencode,
		ready:     []string{"Scripted", "commands"},
		leave:     "/exit",
		drop:      []string{".cache/opencode"},
		shapes:    []source{databases("", ".local/share/opencode/opencode.db", "type", "part.type", "info.role")},
		scenarios: opencodeScenarios,
	})
}

// opencode starts OpenCode and waits for its prompt.
func opencode(args ...string) action { return start("opencode", args...) }

const (
	opencodeConfig = ".config/opencode/opencode.json"
	// opencodeModels is the catalog of models, in place of the program's own: all of
	// that costs each start seconds, and none of it is used.
	opencodeModels = ".config/opencode/models.json"
)

func settleOpencode(w *world, _ []string) {
	w.t.Helper()
	w.write(opencodeConfig, fmt.Sprintf(`{
  "autoupdate": false, "share": "disabled", "snapshot": false, "lsp": false, "formatter": false,
  "permission": {"question": "allow"},
  "model": "scripted/scripted", "small_model": "scripted/scripted",
  "provider": {"scripted": {
    "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
    "options": {"baseURL": "%s/v1", "apiKey": "dummy"},
    "models": {"scripted": {"name": "Scripted Model", "limit": {"context": 1000000, "output": 16000}}}
  }}
}
`, w.model.URL()))
	w.write(opencodeModels, "{}")
	w.write(".local/state/opencode/kv.json", `{"animations_enabled": false}`)
	// The program installs the package for writing plugins, unless it was.
	const lock = `{"name": "opencode", %s"dependencies": {"@opencode-ai/plugin": "1.18.33"}%s}`
	w.write(".config/opencode/package.json", fmt.Sprintf(lock, "", ""))
	w.write(".config/opencode/package-lock.json", fmt.Sprintf(lock, `"lockfileVersion": 3, "packages": {"": {`, "}}"))
	w.write(".config/opencode/node_modules/.package-lock.json", "{}")
}

// asking has the program ask before it runs a command.
var asking = reconfigured(opencodeConfig, `"permission": {`, `"permission": {"bash": "ask", `)

// experimental turns on what the program calls so.
func experimental(name string) action {
	return func(a *agent) {
		a.w.t.Helper()
		shell("export OPENCODE_EXPERIMENTAL_" + name + "=1")(a)
	}
}

// elsewhere has the database lie on another disk: at its place is a link.
func elsewhere(a *agent) {
	a.w.t.Helper()
	place := filepath.Join(a.w.home(), ".local/share/opencode")
	for _, dir := range []string{place, filepath.Join(a.w.home(), "disk")} {
		a.w.must(os.MkdirAll(dir, 0o700))
	}
	a.w.must(os.Symlink("../../../disk/sessions.db", filepath.Join(place, "opencode.db")))
}

// opencodeFiled waits until OpenCode's database has so many events that are like a
// pattern.
func opencodeFiled(n int, kind, like string) action {
	return func(a *agent) {
		a.w.t.Helper()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(a.w.home(), ".local/share/opencode/opencode.db")+"?mode=ro&_pragma=busy_timeout(500)")
		a.w.must(err)
		defer db.Close()
		a.w.eventually("OpenCode records "+like, func() bool {
			var have int
			err := db.QueryRow(`SELECT count(*) FROM event WHERE type = ? AND data LIKE ?`, kind, like).Scan(&have)
			return err == nil && have >= n // while it begins there is no database yet
		})
	}
}

// opencodeAnswered waits until OpenCode has recorded the ends of so many answers.
func opencodeAnswered(n int) action {
	return opencodeFiled(n, "message.updated.1", `%"completed":%"finish":"stop"%`)
}

// opencodeSessions waits until it has so many sessions.
func opencodeSessions(n int) action { return opencodeFiled(n, "session.created.1", "%") }

// interrupt presses Esc twice, as the program wants it.
func interrupt(a *agent) {
	a.w.t.Helper()
	key("Escape")(a)
	see("again to interrupt")(a)
	key("Escape")(a)
}

var opencodeResume = regexp.MustCompile(`opencode -s (ses_[A-Za-z0-9]+)`)

// opencodeAgain does something with the session that the program named when it
// ended.
func opencodeAgain(then func(id string) action) action {
	return func(a *agent) {
		a.w.t.Helper()
		id := ""
		a.w.eventually("the screen names a session to resume", func() bool {
			if all := opencodeResume.FindAllStringSubmatch(strings.Join(strings.Fields(a.screen()), " "), -1); len(all) > 0 {
				id = all[len(all)-1][1]
			}
			return id != ""
		})
		then(id)(a)
	}
}
