package claude

import (
	"strings"
	"testing"

	"steno/providers"
)

const someID = "0a884aad-f3bb-441b-9bfc-20cf978f52f0"

// Field list: D35.
func TestRoots(t *testing.T) {
	tests := []struct {
		name, home, config string
		extra              []string
		want               []string
	}{
		{"home", "/home/dev", "", nil, []string{"/home/dev/.claude/projects", "/home/dev/.claude/sessions"}},
		{"moved", "/home/dev", "/srv/claude/", nil, []string{"/srv/claude/projects", "/srv/claude/sessions"}},
		{"extra", "/home/dev", "", []string{"/two", "/home/dev/.claude", "rel"},
			[]string{"/home/dev/.claude/projects", "/home/dev/.claude/sessions", "/two/projects", "/two/sessions"}},
		{"relative", "/home/dev", "conf", nil, nil},
		{"nothing", "", "", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := providers.Env{Home: tt.home, Extra: tt.extra, Getenv: func(key string) string {
				if key == "CLAUDE_CONFIG_DIR" {
					return tt.config
				}
				return ""
			}}
			var got []string
			for _, r := range (Provider{}).Roots(env) {
				got = append(got, r.Dir)
				if want := map[string]int{"projects": 1, "sessions": 0}[r.Name]; r.Depth != want || r.Provider != "claude" {
					t.Errorf("root %v: depth %d, want %d", r, r.Depth, want)
				}
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("Roots = %v, want %v", got, tt.want)
			}
		})
	}
}

// Field list: D10, D11.
func TestClaim(t *testing.T) {
	tests := []struct {
		root, rel string
		role      providers.Role
		session   string
		ok        bool
	}{
		{"projects", "-home-dev-proj/" + someID + ".jsonl", providers.Transcript, someID, true},
		{"projects", someID + ".jsonl", 0, "", false},
		{"projects", "-home-dev/agent-a82b995d6135eb860.jsonl", 0, "", false},
		{"projects", "-home-dev/" + someID + "/subagents/agent-a82b995d6135eb860.jsonl", 0, "", false},
		{"projects", "-home-dev/" + someID + "/" + someID + ".jsonl", 0, "", false},
		{"projects", "-home-dev/" + strings.ToUpper(someID) + ".jsonl", 0, "", false},
		{"projects", "-home-dev/" + someID + ".jsonl.bak", 0, "", false},
		{"projects", "-home-dev/memory", 0, "", false},
		{"projects", "../" + someID + ".jsonl", 0, "", false},
		{"projects", "/" + someID + ".jsonl", 0, "", false},
		{"sessions", "13487.json", providers.Registry, "", true},
		{"sessions", "13487.1a2b.key", 0, "", false},
		{"sessions", "13487.key", 0, "", false},
		{"sessions", "x.json", 0, "", false},
		{"sessions", ".json", 0, "", false},
		{"sessions", "1/2.json", 0, "", false},
		{"sessions", "99999999999.json", 0, "", false},
		{"plans", "a.md", 0, "", false},
	}
	for _, tt := range tests {
		a, ok := Provider{}.Claim(providers.Root{Provider: ID, Name: tt.root, Dir: "/c/" + tt.root}, tt.rel)
		if ok != tt.ok || a.Role != tt.role || a.Session != tt.session {
			t.Errorf("Claim(%s, %s) = %v, %v, want role %v, session %q, %v", tt.root, tt.rel, a, ok, tt.role, tt.session, tt.ok)
		}
		if ok && a.Path != "/c/"+tt.root+"/"+tt.rel {
			t.Errorf("Claim(%s, %s).Path = %q", tt.root, tt.rel, a.Path)
		}
	}
}

// The two recorded folders of p-odd-cwd, and a short one.
//
// Field list: D6.
func TestSlug(t *testing.T) {
	long := "/home/dev/proj/" + strings.Repeat("long", 60)
	tests := []struct {
		cwd, want string
		whole     bool
	}{
		{"/home/dev/proj/cct-two", "-home-dev-proj-cct-two", true},
		{"/home/dev/proj/we ird.dir_é@x", "-home-dev-proj-we-ird-dir---x", true},
		{long, "-home-dev-proj-" + strings.Repeat("long", 46) + "l-", false},
	}
	for _, tt := range tests {
		got, whole := slug(tt.cwd)
		if got != tt.want || whole != tt.whole {
			t.Errorf("slug(%q) = %q, %v, want %q, %v", tt.cwd, got, whole, tt.want, tt.whole)
		}
	}
	recorded := "-home-dev-proj-longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglongl-nwv0e0"
	if folder, whole := slug(long); !inFolder("/c/projects/"+recorded+"/x.jsonl", folder, whole) {
		t.Errorf("the recorded folder of a long directory is not recognised")
	}
}
