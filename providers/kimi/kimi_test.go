package kimi

import (
	"strings"
	"testing"

	"steno/providers"
)

const (
	someUUID    = "2deff8b9-6e7c-42b3-8aee-8a5d0a510323"
	someSession = "session_" + someUUID
	someDir     = "wd_work-plain_8d7dae18ee3f/" + someSession
)

func TestRoots(t *testing.T) {
	tests := []struct {
		name, home, code, share string
		extra                   []string
		want                    []string
	}{
		{"home", "/home/dev", "", "", nil, []string{"sessions /home/dev/.kimi-code/sessions 4", "legacy /home/dev/.kimi/sessions 2"}},
		{"moved", "/home/dev", "/srv/kimi/", "/srv/old", nil, []string{"sessions /srv/kimi/sessions 4", "legacy /srv/old/sessions 2"}},
		{"extra", "/home/dev", "", "", []string{"/two", "/home/dev/.kimi-code", "rel"},
			[]string{"sessions /home/dev/.kimi-code/sessions 4", "sessions /two/sessions 4", "legacy /home/dev/.kimi/sessions 2"}},
		{"relative", "", "conf", "", nil, nil},
		{"nothing", "", "", "", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := providers.Env{Home: tt.home, Extra: tt.extra, Getenv: func(key string) string {
				return map[string]string{"KIMI_CODE_HOME": tt.code, "KIMI_SHARE_DIR": tt.share}[key]
			}}
			var got []string
			for _, r := range (Provider{}).Roots(env) {
				got = append(got, r.Name+" "+r.Dir+" "+string('0'+rune(r.Depth)))
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("Roots = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestClaim(t *testing.T) {
	tests := []struct {
		root, rel string
		role      providers.Role
		session   string
		ok        bool
	}{
		{sessions, someDir + "/agents/main/wire.jsonl", providers.Transcript, someSession, true},
		{sessions, "wd__8d7dae18ee3f/" + someSession + "/agents/main/wire.jsonl", providers.Transcript, someSession, true},
		{sessions, someDir + "/agents/agent-0/wire.jsonl", 0, "", false},
		{sessions, someDir + "/agents/main/wire.jsonl.bak", 0, "", false},
		{sessions, someDir + "/agents/main/plans/x.md", 0, "", false},
		{sessions, someDir + "/wire.jsonl", 0, "", false},
		{sessions, "wd_work/" + someSession + "/agents/main/wire.jsonl", 0, "", false},
		{sessions, "wd_work-plain_8d7dae18ee3f/other/agents/main/wire.jsonl", 0, "", false},
		{sessions, "a/" + someDir + "/agents/main/wire.jsonl", 0, "", false},
		{sessions, someDir + "/state.json", providers.Registry, "", true},
		{sessions, someDir + "/state.json.tmp.6693.16112c24", providers.Registry, "", true},
		{sessions, someDir + "/state.json.tmp.6693.", 0, "", false},
		{sessions, someDir + "/state.json.bak", 0, "", false},
		{sessions, someDir + "/notify/state.json", 0, "", false},
		{sessions, ".index-dirty/" + someSession + ".1796082749419", 0, "", false},
		{legacy, "0123456789abcdef0123456789abcdef/" + someUUID + "/wire.jsonl", providers.Transcript, someUUID, true},
		{legacy, "0123456789abcdef0123456789abcdef/" + someUUID + "/context.jsonl", 0, "", false},
		{legacy, someDir + "/agents/main/wire.jsonl", 0, "", false},
		{"other", someDir + "/state.json", 0, "", false},
	}
	for _, tt := range tests {
		root := providers.Root{Provider: ID, Name: tt.root, Dir: "/k/sessions"}
		a, ok := Provider{}.Claim(root, tt.rel)
		if ok != tt.ok || a.Role != tt.role || a.Session != tt.session {
			t.Errorf("Claim(%s, %s) = %v, %v, want role %v, session %q, %v", tt.root, tt.rel, a, ok, tt.role, tt.session, tt.ok)
		}
		if ok && a.Path != "/k/sessions/"+tt.rel {
			t.Errorf("Claim(%s, %s).Path = %q", tt.root, tt.rel, a.Path)
		}
	}
}

func TestNames(t *testing.T) {
	root := providers.Root{Provider: ID, Name: sessions, Dir: "/k/sessions"}
	tests := []struct {
		rel string
		pid int
	}{
		{someDir + "/state.json.tmp.6693.16112c24", 6693},
		{someDir + "/state.json", 0},
		{someDir + "/state.json.tmp.0.16112c24", 0},
		{someDir + "/state.json.tmp.99999999999.16112c24", 0},
		{someDir + "/state.json.tmp.-5.16112c24", 0},
		{someDir + "/notify/state.json.tmp.6693.16112c24", 0},
		{someDir + "/agents/main/wire.jsonl", 0},
	}
	for _, tt := range tests {
		n, ok := Provider{}.Names(root, tt.rel)
		if ok != (tt.pid != 0) || n.PID != tt.pid || ok && (n.Session != someSession || n.Source == "") {
			t.Errorf("Names(%s) = %v, %v, want pid %d", tt.rel, n, ok, tt.pid)
		}
	}
	root.Name = legacy
	if _, ok := (Provider{}).Names(root, tests[0].rel); ok {
		t.Error("a name below the directory of kimi-cli counts")
	}
}

// Records of kimi-cli are known, give no events and can own no pane.
func TestLegacy(t *testing.T) {
	a, ok := Provider{}.Claim(providers.Root{Name: legacy, Dir: "/h/.kimi/sessions"}, "0123456789abcdef0123456789abcdef/"+someUUID+"/wire.jsonl")
	if !ok {
		t.Fatal("not claimed")
	}
	if s := (Provider{}).Describe(a, []byte(`{"type":"metadata","protocol_version":"1.1"}`)); s.Internal == "" || s.ID != someUUID {
		t.Errorf("Describe = %+v, want an internal session", s)
	}
	p := Provider{}.Projector(a, nil)
	for _, line := range []string{`{"type":"turn.prompt","turnId":0,"time":1}`, `{"type":"TurnBegin"}`, `{}`} {
		if got := p.Project(providers.Record{Data: []byte(line)}); got != nil {
			t.Errorf("%s gives %v", line, got)
		}
	}
	if got := p.Project(providers.Record{Gap: providers.Padding, End: 5}); len(got) != 1 || got[0].Kind != providers.ObserverFailure {
		t.Errorf("a gap gives %v", got)
	}
	if got := p.Turn(); got != (providers.Turn{State: providers.Unknown}) || len(p.State()) != 0 {
		t.Errorf("Turn, State = %v, %q", got, p.State())
	}
	if got := p.(providers.Surveyor).Drift(); len(got) != 1 || got[0] != "kimi-cli" {
		t.Errorf("Drift = %v", got)
	}
}

func TestAbout(t *testing.T) {
	a := Provider{}.About()
	if a.Name == "" || a.Version == "" || len(a.Programs) == 0 || len(a.Hints) == 0 {
		t.Errorf("About = %+v", a)
	}
}
