package main

import (
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What the other programs leave behind after three records, and after a clean
// exit: what there must be, and what must not be there any more.
func TestPlayOthers(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for name, want := range map[string]struct{ there, gone []string }{
		"gemini":   {[]string{".gemini/tmp/*/.project_root", ".gemini/tmp/*/chats/session-*.jsonl"}, nil},
		"kimi":     {[]string{".kimi-code/sessions/wd_*/session_*/state.json", ".kimi-code/sessions/wd_*/session_*/agents/main/wire.jsonl"}, []string{".kimi-code/sessions/wd_*/session_*/state.json.tmp.*"}},
		"copilot":  {[]string{".copilot/session-state/*/events.jsonl"}, []string{".copilot/session-state/*/inuse." + pid + ".*"}},
		"opencode": {[]string{".local/share/opencode/opencode.db", ".local/share/opencode/log/opencode.log"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Chdir(home)
			in := strings.NewReader("write 3\nclear\nwrite 2\nexit\n")
			if err := play(t.Context(), name, environment(t, name, home), in, io.Discard); err != nil {
				t.Fatal(err)
			}
			for _, pattern := range want.there {
				if found, err := filepath.Glob(filepath.Join(home, pattern)); err != nil || len(found) == 0 {
					t.Errorf("%s: not there (%v)", pattern, err)
				}
			}
			for _, pattern := range want.gone {
				if found, err := filepath.Glob(filepath.Join(home, pattern)); err != nil || len(found) > 0 {
					t.Errorf("%s is still there (%v)", found, err)
				}
			}
			if name != "opencode" {
				return
			}
			db, err := sql.Open("sqlite", "file:"+filepath.Join(home, ".local/share/opencode/opencode.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var sessions, rows int
			if err := db.QueryRow(`SELECT count(*), sum(n) FROM (SELECT count(*) n FROM event GROUP BY aggregate_id)`).Scan(&sessions, &rows); err != nil || sessions != 2 || rows != 5 {
				t.Errorf("%d rows of %d sessions, %v", rows, sessions, err)
			}
		})
	}
}
