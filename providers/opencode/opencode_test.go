package opencode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"steno/providers"
)

func env(home string, extra []string, pairs ...string) providers.Env {
	return providers.Env{Home: home, Extra: extra, Getenv: func(k string) string {
		for _, p := range pairs {
			if name, value, _ := strings.Cut(p, "="); name == k {
				return value
			}
		}
		return ""
	}}
}

func TestRoots(t *testing.T) {
	tests := []struct {
		name string
		env  providers.Env
		want string
	}{
		{"home", env("/home/dev", nil), "data /home/dev/.local/share/opencode"},
		{"XDG_DATA_HOME", env("/home/dev", nil, "XDG_DATA_HOME=/data"), "data /data/opencode"},
		{"extra", env("/home/dev", []string{"/srv/oc", "not/absolute"}), "data /home/dev/.local/share/opencode|data /srv/oc"},
		{"no home", env("", nil), ""},
		{"own name", env("/h", nil, "OPENCODE_DB=mine.db"), "data /h/.local/share/opencode|db:mine.db /h/.local/share/opencode"},
		{"own place", env("/h", nil, "OPENCODE_DB=/var/db/opencode.db"), "data /h/.local/share/opencode|db:opencode.db /var/db"},
		{"the usual place", env("/h", nil, "OPENCODE_DB=/h/.local/share/opencode/opencode-dev.db"), "data /h/.local/share/opencode"},
		{"memory", env("/h", nil, "OPENCODE_DB=:memory:"), "data /h/.local/share/opencode"},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range (Provider{}).Roots(tt.env) {
			if r.Provider != ID || r.Depth != 0 {
				t.Errorf("%s: root %+v", tt.name, r)
			}
			got = append(got, r.Name+" "+r.Dir)
		}
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

// A database that is a link is followed to the file itself, whose directory is a
// root; one whose name is another one than the program's is found, too.
func TestLinkedDatabases(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data", "opencode")
	for _, dir := range []string{data, filepath.Join(home, "disk")} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	must(t, os.WriteFile(filepath.Join(home, "disk", "mine.sqlite"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(data, "opencode-dev.db"), nil, 0o600))
	must(t, os.Symlink("../../disk/mine.sqlite", filepath.Join(data, "opencode.db")))
	must(t, os.Symlink("nowhere", filepath.Join(data, "opencode-x.db")))
	e := env(home, nil, "XDG_DATA_HOME="+filepath.Join(home, "data"), "OPENCODE_DB=own.sqlite")
	var roots []string
	for _, r := range (Provider{}).Roots(e) {
		roots = append(roots, r.Name+" "+strings.TrimPrefix(r.Dir, home))
	}
	if want := []string{"data /data/opencode", "db:own.sqlite /data/opencode", "db:mine.sqlite /disk"}; !slices.Equal(roots, want) {
		t.Errorf("roots %q, want %q", roots, want)
	}
	s := seeker{p: providers.Process{Env: map[string]string{"HOME": home, "XDG_DATA_HOME": filepath.Join(home, "data"), "OPENCODE_DB": "own.sqlite"}}}
	s.find()
	for i, db := range s.dbs {
		s.dbs[i] = strings.TrimPrefix(db, home)
	}
	if want := []string{"/data/opencode/opencode-dev.db", "/data/opencode/opencode-x.db", "/disk/mine.sqlite", "/data/opencode/own.sqlite"}; !slices.Equal(s.dbs, want) {
		t.Errorf("databases %q, want %q", s.dbs, want)
	}
}

func TestClaim(t *testing.T) {
	data := providers.Root{Provider: ID, Name: dataRoot, Dir: "/d"}
	own := providers.Root{Provider: ID, Name: dbRoot + "my.sqlite", Dir: "/d"}
	tests := []struct {
		root providers.Root
		rel  string
		want string // "" = not claimed
	}{
		{data, "opencode.db", "carrier opencode.db"},
		{data, "opencode.db-wal", "carrier opencode.db"},
		{data, "opencode-dev.db", "carrier opencode-dev.db"},
		{data, "opencode-dev.db-wal", "carrier opencode-dev.db"},
		{data, "opencode.db-shm", ""},
		{data, "opencode.db-journal", ""},
		{data, "other.db", ""},
		{data, "opencode-.db", ""},
		{data, "log/opencode.log", ""},
		{data, "opencode.db/ses_abc123", "rows ses_abc123"},
		{data, "opencode-nightly.1.db/ses_abc", "rows ses_abc"},
		{data, "opencode.db/ses_", ""},
		{data, "opencode.db/ses_a/b", ""},
		{data, "opencode.db/../x", ""},
		{data, "opencode.db/msg_1", ""},
		{data, "opencode.db/ses_" + strings.Repeat("x", 65), ""},
		{own, "my.sqlite", "carrier my.sqlite"},
		{own, "my.sqlite-wal", "carrier my.sqlite"},
		{own, "my.sqlite/ses_1", "rows ses_1"},
		{own, "opencode.db", ""},
		{providers.Root{Name: "other", Dir: "/d"}, "opencode.db", ""},
	}
	for _, tt := range tests {
		a, ok := Provider{}.Claim(tt.root, tt.rel)
		got := ""
		switch {
		case !ok:
		case a.Role == providers.Carrier:
			got = "carrier " + a.Of
		case a.Role == providers.Transcript && a.Framing == providers.Rows:
			got = "rows " + a.Session
		default:
			got = fmt.Sprint(a)
		}
		if got != tt.want || ok && (a.Path != "/d/"+tt.rel || a.Provider != ID) {
			t.Errorf("Claim(%q, %q) = %q, %+v; want %q", tt.root.Name, tt.rel, got, a, tt.want)
		}
	}
}

func TestRecognise(t *testing.T) {
	const exe = "/usr/lib/node_modules/opencode-ai/bin/opencode.exe"
	tests := []struct {
		exe, comm, args string
		want            providers.Part
	}{
		{exe, "opencode", "opencode", providers.Worker},
		{exe + " (deleted)", "opencode", "opencode -c", providers.Worker},
		{"/home/dev/.opencode/bin/opencode", "opencode", "opencode /home/dev/work", providers.Worker},
		{exe, "opencode", "opencode -m fake/serve --prompt serve", providers.Worker},
		{exe, "opencode", "opencode run serve", providers.Worker},
		{exe, "opencode", "opencode attach http://localhost:4096", providers.Worker},
		{exe, "opencode", "opencode serve --port 4096", providers.Helper},
		{exe, "opencode", "opencode --print-logs serve", providers.Helper},
		{exe, "opencode", "opencode --log-level DEBUG web", providers.Helper},
		{exe, "opencode", "opencode acp", providers.Helper},
		{exe, "opencode", "opencode auth login", providers.Helper},
		{"/usr/bin/node", "node", "node /usr/local/bin/opencode run x", providers.Launcher},
		{"/usr/bin/node", "node", "node --no-warnings /usr/local/bin/opencode", providers.Launcher},
		{"/usr/bin/node", "node", "node /usr/local/bin/opencode serve", providers.Helper},
		{"/usr/bin/node", "node", "node server.js opencode", providers.NotMine},
		{"/usr/bin/vim", "vim", "vim opencode", providers.NotMine},
		{"", "opencode", "opencode", providers.Worker},
		{"", "opencode", "sh opencode", providers.NotMine},
		{"", "node", "node opencode", providers.NotMine},
	}
	for _, tt := range tests {
		p := providers.Process{Exe: tt.exe, Comm: tt.comm, Args: strings.Fields(tt.args)}
		if got := (Provider{}).Recognise(p); got != tt.want {
			t.Errorf("%s %q: part %d, want %d", tt.exe, tt.args, got, tt.want)
		}
	}
}

func TestResumes(t *testing.T) {
	for args, want := range map[string]bool{
		"opencode": false, "opencode -c": true, "opencode --continue": true, "opencode -s ses_1": true, "opencode --session=ses_1": true,
		"opencode run -s ses_1 hello": true, "opencode -s ses_1 --fork": false, "opencode -c --fork": false, "opencode --prompt -c": false,
		"opencode run -- -c": false,
	} {
		if got := (Provider{}).Resumes(providers.Process{Args: strings.Fields(args)}); got != want {
			t.Errorf("%q: %v, want %v", args, got, want)
		}
	}
	for args, want := range map[string]string{
		"opencode -s ses_1": "ses_1", "opencode --session=ses_2 x": "ses_2", "opencode -s ../../etc": "", "opencode run -m a/b -s ses_3 hi": "ses_3",
		"opencode -- -s ses_4": "",
	} {
		if got := parseCall(strings.Fields(args)).session; got != want {
			t.Errorf("%q: session %q, want %q", args, got, want)
		}
	}
}

func TestWhere(t *testing.T) {
	for args, want := range map[string]string{
		"opencode": "/w", "opencode sub": "/w/sub", "opencode /abs": "/abs", "opencode run hello there": "/w", "opencode run --dir /d hello": "/d",
		"opencode attach http://x --dir sub": "/w/sub",
	} {
		if got := parseCall(strings.Fields(args)).where("/w"); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	a := providers.Artifact{Path: "/d/opencode.db/ses_1", Session: "ses_1"}
	tests := []struct{ first, want string }{
		{`{"type":"session.created.1","data":{"info":{"id":"ses_1","directory":"/w","time":{"created":1000}}}}`, "/w 1000 "},
		{`{"type":"session.created.1","data":{"info":{"id":"ses_1","parentID":"ses_0","directory":"/w","time":{"created":1000}}}}`, "/w 1000 subagent"},
		{`{"type":"message.updated.1","data":{"info":{"id":"msg_1","role":"user"}}}`, " 0 "},
		{`{"type":7`, " 0 "}, {``, " 0 "},
	}
	for _, tt := range tests {
		s := Provider{}.Describe(a, []byte(tt.first))
		ms := int64(0)
		if !s.Born.IsZero() {
			ms = s.Born.UnixMilli()
		}
		if got := fmt.Sprintf("%s %d %s", s.CWD, ms, s.Internal); got != tt.want || s.ID != "ses_1" || s.Path != a.Path {
			t.Errorf("Describe(%s) = %q, want %q", tt.first, got, tt.want)
		}
	}
}

func TestAbout(t *testing.T) {
	a := Provider{}.About()
	if a.Name != "OpenCode" || !slices.Equal(a.Programs, []string{"opencode"}) || a.Version == "" || len(a.Hints) == 0 {
		t.Errorf("About = %+v", a)
	}
}
