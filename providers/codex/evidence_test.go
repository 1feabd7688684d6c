package codex

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

func TestRoots(t *testing.T) {
	env := func(home string) func(string) string {
		return func(k string) string { return map[string]string{"CODEX_HOME": home}[k] }
	}
	for _, c := range []struct {
		name string
		env  providers.Env
		want []string
	}{
		{"home", providers.Env{Home: "/home/dev", Getenv: env("")}, []string{"/home/dev/.codex/sessions"}},
		{"CODEX_HOME", providers.Env{Home: "/home/dev", Getenv: env("/srv/cx/")}, []string{"/srv/cx/sessions"}},
		{"extra, twice the same, relative", providers.Env{Home: "/home/dev", Getenv: env(""), Extra: []string{"/a", "/home/dev/.codex", "b"}}, []string{"/home/dev/.codex/sessions", "/a/sessions"}},
		{"relative CODEX_HOME", providers.Env{Home: "/home/dev", Getenv: env("cx")}, nil},
		{"nothing known", providers.Env{}, nil},
	} {
		var got []string
		for _, r := range (Provider{}).Roots(c.env) {
			if r.Depth != 3 || r.Provider != ID {
				t.Errorf("%s: root %+v", c.name, r)
			}
			got = append(got, r.Dir)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: Roots = %q, want %q", c.name, got, c.want)
		}
	}
}

// Field list: C20, C21.
func TestClaim(t *testing.T) {
	root := providers.Root{Provider: ID, Name: rootSessions, Dir: "/h/.codex/sessions", Depth: 3}
	const name = "rollout-2026-11-30T18-55-18-01a22dcf-bc0b-7ae2-8bbf-62284b314f6c"
	a, ok := Provider{}.Claim(root, "2026/11/30/"+name+".jsonl")
	want := providers.Artifact{Provider: ID, Path: "/h/.codex/sessions/2026/11/30/" + name + ".jsonl", Session: "01a22dcf-bc0b-7ae2-8bbf-62284b314f6c"}
	if !ok || a != want {
		t.Errorf("Claim = %+v, %v, want %+v", a, ok, want)
	}
	for _, rel := range []string{
		"2026/11/30/" + name + ".jsonl.zst", "2026/11/30/" + name + ".jsonl.tmp", "2026/11/" + name + ".jsonl", name + ".jsonl",
		"2026/11/30/x/" + name + ".jsonl", "../archived_sessions/" + name + ".jsonl", "2026/11/30/rollout-x.jsonl", "2026/11/30/notes.jsonl", "",
	} {
		if a, ok := (Provider{}).Claim(root, rel); ok {
			t.Errorf("Claim(%q) = %+v, want none", rel, a)
		}
	}
	if _, ok := (Provider{}).Claim(providers.Root{Name: "projects"}, "2026/11/30/"+name+".jsonl"); ok {
		t.Error("Claim takes a path of another root")
	}
}

func TestRecognise(t *testing.T) {
	const native = "/opt/n/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
	const daemon = "/home/dev/.codex/packages/app-server-daemon/releases/0.171.0-x/bin/codex"
	for _, c := range []struct {
		exe, comm, args string
		want            providers.Part
	}{
		{"/usr/bin/node", "node", "node /usr/bin/codex", providers.Launcher},
		{"/usr/bin/node", "node", "node /opt/n/@openai/codex/bin/codex.js exec hi", providers.Launcher},
		{"/usr/bin/node", "node", "node /usr/bin/codex mcp-server", providers.Helper},
		{"/usr/bin/node", "node", "node --max-old-space-size=4096 /usr/bin/codex resume", providers.Launcher},
		{"/usr/bin/node", "node", "node --require /x/y.js /usr/bin/codex", providers.Launcher},
		{"/usr/bin/node", "node", "node --require /usr/bin/codex /x/y.js", providers.NotMine},
		{"/usr/bin/bun", "bun", "bun run /usr/bin/codex", providers.Launcher},
		{"/usr/bin/node", "node", "node server.js codex", providers.NotMine},
		{"/usr/bin/node", "node", "node --inspect", providers.NotMine},
		{"/usr/bin/node", "node", "node", providers.NotMine},
		{native, "codex", native, providers.Worker},
		{native + " (deleted)", "codex", native, providers.Worker},
		{native, "codex", native + " resume 01a22e4e-da41-7d32-b9af-e696cb51a3c6", providers.Worker},
		{native, "codex", native + " -m gpt-5.5 exec --json app-server", providers.Worker},
		{native, "codex", native + " -c app-server explain this", providers.Worker},
		{native, "codex", native + " --no-daemon", providers.Worker},
		{native, "codex", native + " -- app-server", providers.Worker},
		{daemon, "codex", daemon + " app-server --listen unix:// --analytics-default-enabled --managed-daemon", providers.Helper},
		{daemon, "codex", daemon + " app-server daemon pid-update-loop", providers.Helper},
		{native, "codex", native + " app-server", providers.Helper},
		{native, "codex", native + " queue add hi", providers.Helper},
		{native, "codex", native + " agents", providers.Worker},
		{native, "codex", native + " -c a=b mcp-server", providers.Helper},
		{native, "codex", "codex-linux-sandbox --sandbox-policy-cwd /x -- bash", providers.Helper},
		{native, "codex", "apply_patch x", providers.Helper},
		{native, "codex", native + " --codex-run-as-apply-patch x", providers.Helper},
		{"/usr/local/bin/codex-x86_64-unknown-linux-musl", "codex-x86_64-un", "codex", providers.Worker},
		{"", "codex", "codex", providers.Worker},
		{"", "bash", "codex", providers.NotMine},
		{"", "codex", "", providers.NotMine},
		{"/usr/bin/vim", "vim", "vim codex", providers.NotMine},
		{"/usr/bin/codexify", "codexify", "codexify", providers.NotMine},
	} {
		p := providers.Process{Exe: c.exe, Comm: c.comm, Args: strings.Fields(c.args)}
		if got := (Provider{}).Recognise(p); got != c.want {
			t.Errorf("Recognise(%s | %s) = %d, want %d", c.exe, c.args, got, c.want)
		}
	}
}

// firstLine is the header of a recorded rollout.
func firstLine(t *testing.T, pattern string) (string, []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return files[0], line
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ file, id, cwd, born, internal string }{
		{"t-nd/*.jsonl", "01a22dd4-91de-7f43-84c0-26c4b5610d72", "/home/dev/proj/cxt-nd", "2026-11-30T19:00:52.673Z", ""},
		{"v0.138.0-tui-mix/*.jsonl", "01a22de2-6eda-7550-9259-8dccde9c8472", "/home/dev/proj/v138t", "2026-11-30T19:15:49.931Z", ""},
		{"app-server-stdio1/*58-16*.jsonl", "01a22dd2-7175-7ec1-adac-fecd2e8a39fb", "/home/dev/proj/as1", "2026-11-30T18:58:16.325Z", ""},
		{"t-misc/*19-02-50*.jsonl", "01a22dd6-9f8b-7852-800f-ce27f9792b2b", "/home/dev/proj/cxt-misc", "2026-11-30T19:02:50.182Z", internalSubagent},
		{"p-spawn1/*7-3d95*.jsonl", "01a22dd7-3d95-77e2-ad12-778a9d615763", "/home/dev/proj/cx-spawn1", "2026-11-30T19:03:30.468Z", internalSubagent},
	} {
		_, line := firstLine(t, c.file)
		got := Provider{}.Describe(providers.Artifact{Path: "/p", Session: "s"}, line)
		born, err := time.Parse(time.RFC3339Nano, c.born)
		if err != nil {
			t.Fatal(err)
		}
		if want := (providers.Session{ID: c.id, Path: "/p", CWD: c.cwd, Born: born, Internal: c.internal}); got != want {
			t.Errorf("%s: Describe = %+v\nwant %+v", c.file, got, want)
		}
	}
	for _, line := range []string{"", "{", `{"type":"event_msg","payload":{"id":"x"}}`, `{"type":"session_meta"}`, `{"type":"session_meta","payload":[]}`} {
		if got := (Provider{}).Describe(providers.Artifact{Path: "/p", Session: "s"}, []byte(line)); got.ID != "s" || got.Internal != "" {
			t.Errorf("Describe(%s) = %+v", line, got)
		}
	}
}

const (
	idA = "01a22e4e-5482-7ae1-a980-6b5144ccb84b"
	idB = "01a22e50-2060-76e3-a06a-1bdcc88318b9"
	idC = "01a22e4e-da41-7d32-b9af-e696cb51a3c6"
	idI = "01a22e4e-ffff-7d32-b9af-e696cb51a3c6"
)

func path(home, id string) string {
	return home + "/.codex/sessions/2026/11/30/rollout-2026-11-30T21-13-35-" + id + ".jsonl"
}

func session(home, id, cwd string) providers.Session {
	return providers.Session{ID: id, Path: path(home, id), CWD: cwd}
}

// look asks again where the log could not be read in time, as the caller
// does: on a loaded machine that is no fault.
func look(t *testing.T, p providers.Process, known []providers.Session) []providers.Evidence {
	t.Helper()
	var err error
	for range 100 {
		var ev []providers.Evidence
		if ev, err = (Provider{}).Evidence(t.Context(), p, known); err == nil {
			return ev
		}
	}
	t.Fatalf("Evidence: %v", err)
	return nil
}

// line writes evidence short: rank, session's first 13 characters, refusal.
func line(ev []providers.Evidence) string {
	var s []string
	for _, e := range ev {
		w := fmt.Sprintf("%d:%.13s", e.Rank, e.Session)
		if e.Refused != "" {
			w += " refused"
		}
		s = append(s, w)
	}
	return strings.Join(s, ", ")
}

// Field list: D12, F6, F13.
func TestEvidence(t *testing.T) {
	const home = "/home/none"
	const proj = "/home/dev/proj"
	internal := session(home, idI, proj)
	internal.Internal = internalSubagent
	known := []providers.Session{session(home, idA, proj), session(home, idC, proj), session(home, idB, "/elsewhere"), internal,
		{ID: "01a22e4e-0000-7000-8000-000000000001", Path: "/other/.codex/sessions/x", CWD: proj}}
	lock := func(id string) string { return home + "/.codex/thread-writer-locks/" + id + ".lock" }
	before := time.Date(2026, 11, 30, 21, 13, 3, 0, time.UTC)
	for _, c := range []struct {
		name, args, title string
		open              []string
		started           time.Time
		want              string
	}{
		{name: "one rollout and its lock", open: []string{"/x", path(home, idA), lock(idA)}, want: "1:01a22e4e-5482"},
		{name: "a rollout of another directory", open: []string{path(home, idB)}, want: "1:01a22e50-2060"},
		{name: "the user's thread and a subagent's", open: []string{path(home, idI), path(home, idA)}, want: "1:01a22e4e-ffff refused, 1:01a22e4e-5482"},
		{name: "two of the user's, one in the directory", open: []string{path(home, idB), path(home, idA)}, want: "1:01a22e50-2060 refused, 1:01a22e4e-5482"},
		{name: "two of the user's in the directory", open: []string{path(home, idC), path(home, idA)}, want: "1:01a22e4e-da41, 1:01a22e4e-5482"},
		{name: "the same, and -C", args: "codex -C /elsewhere", open: []string{path(home, idB), path(home, idC)}, want: "1:01a22e50-2060, 1:01a22e4e-da41 refused"},
		{name: "the same, and a title", title: "x | 01a22e4e-da41-7d32-b9af-e696c...", open: []string{path(home, idC), path(home, idA)},
			want: "1:01a22e4e-da41, 1:01a22e4e-5482 refused, 1:01a22e4e-da41"},
		{name: "a lock before the first prompt", open: []string{lock("01a22e52-f9f7-7c81-838c-26a2df628382")}, want: "1:01a22e52-f9f7"},
		{name: "a lock of a subagent", open: []string{lock(idI)}, want: "1:01a22e4e-ffff refused"},
		{name: "a lock of a new thread and the old rollout", open: []string{path(home, idA), lock(idA), lock(idC)}, want: "1:01a22e4e-5482, 1:01a22e4e-da41 refused"},
		{name: "title while the agent works", title: "⠋ 01a22e4e-da41-7d32-b9af-e696c... | proj", want: "1:01a22e4e-da41"},
		{name: "title item", title: "proj | 01a22e4e-da41-7d32-b9af-e696c...", want: "1:01a22e4e-da41"},
		{name: "title of a subagent", title: "01a22e4e-ffff-7d32-b9af-e696c...", want: "1:01a22e4e-ffff refused"},
		{name: "a name that looks like an id", title: "01a22e4e-da41-7d32-b9af-e696cb51a3c6", want: ""},
		{name: "argument", args: "codex resume 01a22e4e-da41-7d32-b9af-e696cb51a3c6", want: "3:01a22e4e-da41"},
		{name: "argument after options and exec", args: "codex --json exec -m x resume 01A22E4E-DA41-7D32-B9AF-E696CB51A3C6 more", want: "3:01a22e4e-da41"},
		{name: "no argument", args: "codex resume --last", want: ""},
		{name: "a prompt", args: "codex 01a22e4e-da41-7d32-b9af-e696cb51a3c6", want: ""},
		{name: "agreement: two", started: before, want: "4:01a22e4e-5482 refused, 4:01a22e4e-da41 refused"},
		{name: "agreement: one", started: before.Add(40 * time.Second), want: "4:01a22e4e-da41"},
		{name: "agreement: none", started: before.Add(time.Hour), want: ""},
		{name: "no agreement for an embedded one", args: "codex --no-daemon", started: before, want: ""},
		{name: "no agreement for exec", args: "codex exec hi", started: before, want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := providers.Process{PID: 7, CWD: proj, Args: strings.Fields(c.args), Title: c.title, Open: c.open, Started: c.started,
				Env: map[string]string{"HOME": home}}
			ev := look(t, p, known)
			if got := line(ev); got != c.want {
				t.Errorf("Evidence = %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestEvidenceHeader: the header of an open rollout that nobody has described
// yet is read.
func TestEvidenceHeader(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".codex/sessions/2026/11/30")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, pattern := range []string{"t-misc/*19-02-42*.jsonl", "t-misc/*19-02-50*.jsonl"} {
		file, header := firstLine(t, pattern)
		p := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(p, append(header, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		open = append(open, p)
	}
	half := path(home, idA)
	if err := os.WriteFile(half, []byte(`{"type":"session_meta","payl`), 0o600); err != nil {
		t.Fatal(err)
	}
	open = append(open, half, path(home, idB)) // the last one is gone
	ev := look(t, providers.Process{Open: open, Env: map[string]string{"HOME": home}}, nil)
	if got, want := line(ev), "1:01a22dd6-821f, 1:01a22dd6-9f8b refused, 1:01a22e4e-5482 refused, 1:01a22e50-2060 refused"; got != want {
		t.Errorf("Evidence = %s\nwant %s", got, want)
	}
}

// TestLinkedHome: the kernel tells where an open file really is; the artifact
// is known by the path it is watched under.
func TestLinkedHome(t *testing.T) {
	s := session("/home/link", idA, "/p")
	ev := look(t, providers.Process{Open: []string{path("/real/home", idA)}, Env: map[string]string{"HOME": "/home/link"}}, []providers.Session{s})
	if len(ev) != 1 || ev[0].Path != s.Path || ev[0].Refused != "" {
		t.Errorf("Evidence = %+v, want %s", ev, s.Path)
	}
}

func TestTitleActivity(t *testing.T) {
	for title, want := range map[string]providers.Activity{
		"[ ! ] Action Required | Fix | cx": providers.Waiting,
		"[ . ] Action Required | Fix | cx": providers.Waiting,
		"\u280b Fix | cx":                  providers.Busy,
		"\u2807 cx":                        providers.Busy,
		"Fix | cx":                         providers.NoActivity,
		"cx":                               providers.NoActivity,
		"Action Required | cx":             providers.NoActivity,
		"Fix | [ ! ] Action Required":      providers.NoActivity,
		"":                                 providers.NoActivity,
		"\xff\u2807":                       providers.NoActivity,
	} {
		if got, why := (Provider{}).TitleActivity(title); got != want || (why != "") != (want == providers.Waiting) {
			t.Errorf("TitleActivity(%q) = %q, %q, want %q", title, got, why, want)
		}
	}
}

// TestIndexThatIsNoFile: nobody waits for a writer of a pipe in the place of
// the index.
func TestIndexThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session_index.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		names, err := threadNames(path)
		if len(names) > 0 {
			err = fmt.Errorf("names %v", names)
		}
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("reading the index waits")
		if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close() // lets the reader go
		}
	}
}

// TestNames: the title's name binds when exactly one thread has it.
func TestNames(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".codex")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	row := func(id, name string) string {
		return fmt.Sprintf(`{"id":%q,"thread_name":%q,"updated_at":"x"}`, id, name)
	}
	long := strings.Repeat("long name ", 6)
	index := strings.Join([]string{row(idA, "Old name"), row(idA, "Fix the build"), row(idB, "Forked"), row(idC, "Forked"), "half a li",
		row("01a22e4e-0000-7000-8000-000000000001", "cx"), row("01a22e4e-0000-7000-8000-000000000002", long)}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "session_index.jsonl"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	known := append(logKnown(home), session(home, "01a22e4e-0000-7000-8000-000000000001", "/d"), session(home, "01a22e4e-0000-7000-8000-000000000002", "/d"))
	for title, want := range map[string]string{
		"Fix the build | cx":                         "4:01a22e4e-5482",
		"⠙ Fix the build | cx":                       "4:01a22e4e-5482",
		"[ ! ] Action Required | Fix the build | cx": "4:01a22e4e-5482",
		"Old name | cx":                              "",
		"Forked | cx":                                "",
		"cx":                                         "",
		"":                                           "",
		"Fix the b":                                  "",
		long[:45] + "... | cx":                       "4:01a22e4e-0000",
	} {
		p := providers.Process{CWD: "/home/dev/proj/cx", Title: title, Env: map[string]string{"HOME": home}}
		ev := look(t, p, known)
		if got := line(ev); got != want {
			t.Errorf("title %q: Evidence = %s, want %s", title, got, want)
		}
	}
}

// writeLog makes <home>/.codex/logs_2.sqlite with the recorded rows, open in
// write-ahead mode as the program has it.
func writeLog(t *testing.T, home string, more ...string) *sql.DB {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(home, ".codex/logs_2.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	rows, err := os.ReadFile(filepath.Join(corpusDir, "logs/logs.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range append([]string{"PRAGMA journal_mode=WAL", string(rows)}, more...) {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%.60s: %v", q, err)
		}
	}
	return db
}

// logKnown are the threads of the recorded log, with a rollout each.
func logKnown(home string) []providers.Session {
	var known []providers.Session
	for _, id := range []string{idA, "01a22e4e-d845-7d72-ac06-e9ed3b57baf9", idC, idB, "01a22e50-32e5-7862-8cea-d68f7698a26a",
		"01a22e50-64ad-7621-8499-bf4661ce673d", "01a22e50-801a-7180-b0b1-93993d1c24bb"} {
		known = append(known, session(home, id, "/home/dev/proj/cx"))
	}
	return known
}

func TestLog(t *testing.T) {
	home := t.TempDir()
	writeLog(t, home)
	known := logKnown(home)
	started := time.Date(2026, 11, 30, 21, 13, 3, 0, time.UTC)
	for _, c := range []struct {
		name    string
		pid     int
		started time.Time
		known   []providers.Session
		want    string
	}{
		{"after /new", 23488, started, known, "2:01a22e50-2060"},
		{"the new thread has no rollout yet", 23488, started, known[:3], "2:01a22e4e-5482"},
		{"after /fork", 25738, started.Add(time.Minute), known, "2:01a22e50-32e5"},
		{"started half a second after another", 25790, started.Add(time.Minute), known, "2:01a22e4e-da41"},
		{"resumed", 28169, started.Add(2 * time.Minute), known, "2:01a22e4e-da41"},
		{"the same pid, a later process", 23488, started.Add(time.Hour), known, ""},
		{"the daemon itself", 23652, started, known, ""},
		{"nobody", 4711, started, known, ""},
		{"a number that begins alike", 2348, started, known, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := providers.Process{PID: c.pid, Started: c.started, Env: map[string]string{"HOME": home}, CWD: "/nowhere"}
			ev := look(t, p, c.known)
			if got := line(ev); got != c.want {
				t.Errorf("Evidence = %s, want %s", got, c.want)
			}
			for _, e := range ev {
				if e.At.Before(c.started) || e.Source != fromLog || e.Path != path(home, e.Session) {
					t.Errorf("evidence %+v", e)
				}
			}
		})
	}
}

// TestLogMoved: CODEX_SQLITE_HOME moves the databases, not the sessions.
func TestLogMoved(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	writeLog(t, elsewhere)
	p := providers.Process{PID: 23488, CWD: "/nowhere", Env: map[string]string{"HOME": home, "CODEX_SQLITE_HOME": filepath.Join(elsewhere, ".codex")}}
	if got, want := line(look(t, p, logKnown(home))), "2:01a22e50-2060"; got != want {
		t.Errorf("Evidence = %s, want %s", got, want)
	}
}

// TestLogEmbedded: after /new an embedded process holds both rollouts open; its
// own rows tell which thread is the newer one.
func TestLogEmbedded(t *testing.T) {
	home := t.TempDir()
	writeLog(t, home)
	const old, young = "01a22e50-64ad-7621-8499-bf4661ce673d", "01a22e50-801a-7180-b0b1-93993d1c24bb"
	p := providers.Process{PID: 28319, Args: []string{"codex", "--no-daemon"}, Env: map[string]string{"HOME": home}, CWD: "/home/dev/proj/cx",
		Started: time.Date(2026, 11, 30, 21, 15, 48, 0, time.UTC), Open: []string{path(home, young), path(home, old)}}
	ev := look(t, p, logKnown(home))
	if got, want := line(ev), "1:01a22e50-801a, 1:01a22e50-64ad refused"; got != want {
		t.Errorf("Evidence = %s, want %s", got, want)
	}
	p.PID = 9
	ev = look(t, p, logKnown(home))
	if got, want := line(ev), "1:01a22e50-801a, 1:01a22e50-64ad"; got != want {
		t.Errorf("without rows: Evidence = %s, want the tie %s", got, want)
	}
}

// TestLogSameTime: two terminals that connect within the same moment cannot be
// told apart.
func TestLogSameTime(t *testing.T) {
	const row = `INSERT INTO logs(ts,ts_nanos,feedback_log_body,process_uuid) VALUES(1796073400,%d,'%s','pid:%s')`
	ask := func(ms, conn int, kind string) string {
		return fmt.Sprintf(row, ms*1e6, fmt.Sprintf("app-server request: initialize connection_id=ConnectionId(%d) request_id=%s", conn, kind), "23652:aba85074")
	}
	on := func(ms, pid int) string {
		return fmt.Sprintf(row, ms*1e6, "connected app-server platform x=true", fmt.Sprintf("%d:u", pid))
	}
	start := func(conn int) string {
		return strings.Replace(fmt.Sprintf(row, 900_000_000, fmt.Sprintf(`app_server.request{rpc.method="thread/start" app_server.connection_id=%d x}`, conn), "23652:aba85074"),
			"process_uuid) VALUES(", "process_uuid,thread_id) VALUES(", 1)
	}
	thread := func(q, id string) string { return strings.TrimSuffix(q, ")") + ",'" + id + "')" }
	const i, s = "Integer(1)", `String("initialize")`
	for _, c := range []struct {
		name string
		rows []string
		want string
	}{
		{"one alone", []string{ask(100, 20, i), ask(130, 21, s), ask(160, 22, s), on(300, 1)}, "2:01a22e4e-5482"},
		{"one after the other", []string{ask(100, 20, i), ask(130, 21, s), ask(160, 22, s), ask(200, 23, i), ask(220, 24, s), ask(250, 25, s), on(300, 1)}, "2: refused"},
		{"mixed", []string{ask(100, 20, i), ask(110, 21, i), ask(130, 22, s), ask(160, 23, s), ask(200, 24, s), ask(250, 25, s), on(300, 1)}, "2: refused"},
		{"long before", []string{ask(100, 20, i), ask(130, 21, s), ask(160, 22, s), on(700, 1)}, ""},
		{"only two connections", []string{ask(100, 20, i), ask(160, 22, s), on(300, 1)}, "2: refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			writeLog(t, home, append(c.rows, thread(start(22), idA), thread(start(25), idC))...)
			p := providers.Process{PID: 1, Env: map[string]string{"HOME": home}, CWD: "/nowhere", Started: time.Unix(1796073399, 0)}
			ev := look(t, p, logKnown(home))
			if got := line(ev); got != c.want {
				t.Errorf("Evidence = %s, want %s", got, c.want)
			}
		})
	}
}

// TestLogTrouble: a log that is not there or of another shape is no evidence; a
// log that cannot be read now is "unknown". Nothing is ever written.
//
// Field list: D15, E6.
func TestLogTrouble(t *testing.T) {
	known := func(home string) []providers.Session { return logKnown(home) }
	try := func(t *testing.T, ctx context.Context, home string) (string, error) {
		t.Helper()
		p := providers.Process{PID: 23488, Env: map[string]string{"HOME": home}, CWD: "/nowhere"}
		ev, err := Provider{}.Evidence(ctx, p, known(home))
		return line(ev), err
	}
	t.Run("not open by the program", func(t *testing.T) {
		home := t.TempDir()
		writeLog(t, home).Close()
		if got, err := try(t, t.Context(), home); got != "" || err != nil {
			t.Errorf("Evidence = %s, %v, want none", got, err)
		}
		files, err := os.ReadDir(filepath.Join(home, ".codex"))
		if err != nil || len(files) != 1 {
			t.Errorf("files = %v, %v, want the log alone", files, err)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		home := t.TempDir()
		if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{"", "-shm", "-wal"} {
			if err := os.WriteFile(filepath.Join(home, ".codex/logs_2.sqlite"+end), bytes.Repeat([]byte("garbage "), 999), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := try(t, t.Context(), home); got != "" || err != nil {
			t.Errorf("Evidence = %s, %v, want none", got, err)
		}
	})
	t.Run("another schema", func(t *testing.T) {
		home := t.TempDir()
		writeLog(t, home, "ALTER TABLE logs RENAME COLUMN feedback_log_body TO message")
		if got, err := try(t, t.Context(), home); got != "" || err != nil {
			t.Errorf("Evidence = %s, %v, want none", got, err)
		}
	})
	t.Run("locked", func(t *testing.T) {
		home := t.TempDir()
		writeLog(t, home, "PRAGMA locking_mode=EXCLUSIVE", "UPDATE logs SET level='x'")
		// In exclusive mode the index lives in memory: this stands for the file
		// that another process would show.
		shm := filepath.Join(home, ".codex/logs_2.sqlite-shm")
		if _, err := os.Stat(shm); err != nil {
			if err := os.WriteFile(shm, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := try(t, t.Context(), home)
		if err == nil || got != "" {
			t.Fatalf("Evidence = %s, %v, want an error", got, err)
		}
		if strings.Contains(err.Error(), home) {
			t.Errorf("error %q names a path", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		home := t.TempDir()
		writeLog(t, home)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := try(t, ctx, home); err == nil {
			t.Errorf("Evidence = %s, nil, want an error", got)
		}
	})
}

func TestResumes(t *testing.T) {
	for line, want := range map[string]bool{
		"codex":                          false,
		"codex resume --last":            true,
		"codex -m gpt resume":            true,
		"codex exec resume --last again": true,
		"codex exec resumed":             false,
		"codex fork":                     false,
		"codex -- resume":                false,
	} {
		if got := (Provider{}).Resumes(providers.Process{Args: strings.Fields(line)}); got != want {
			t.Errorf("Resumes(%s) = %v, want %v", line, got, want)
		}
	}
}
