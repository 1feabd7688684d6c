package copilot

import (
	"reflect"
	"testing"

	"steno/providers"
)

const (
	someID  = "8d190f13-45bf-4741-aa5c-4aa94bc5ca79"
	otherID = "3d59621f-cf7e-4995-a969-feec681ff5e3"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestRoots(t *testing.T) {
	root := func(dir string) providers.Root {
		return providers.Root{Provider: "copilot", Name: "session-state", Dir: dir, Depth: 1}
	}
	tests := []struct {
		name string
		env  providers.Env
		want []providers.Root
	}{
		{"home", providers.Env{Home: "/h", Getenv: env(nil)}, []providers.Root{root("/h/.copilot/session-state")}},
		{"moved", providers.Env{Home: "/h", Getenv: env(map[string]string{"COPILOT_HOME": "/c/"})}, []providers.Root{root("/c/session-state")}},
		{"relative", providers.Env{Home: "/h", Getenv: env(map[string]string{"COPILOT_HOME": "c"})}, nil},
		{"no home", providers.Env{Getenv: env(nil)}, nil},
		{"no environment", providers.Env{Home: "/h"}, []providers.Root{root("/h/.copilot/session-state")}},
		{"extra", providers.Env{Home: "/h", Getenv: env(nil), Extra: []string{"/x", "/h/.copilot/", "y", "/x"}},
			[]providers.Root{root("/h/.copilot/session-state"), root("/x/session-state")}},
	}
	for _, tt := range tests {
		if got := (Provider{}).Roots(tt.env); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: Roots = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestClaim(t *testing.T) {
	root := providers.Root{Provider: ID, Name: stateDir, Dir: "/h/.copilot/session-state", Depth: 1}
	transcript, registry := providers.Transcript, providers.Registry
	tests := []struct {
		rel  string
		role *providers.Role
	}{
		{someID + "/events.jsonl", &transcript},
		{someID + "/inuse.18391.lock", &registry},
		{someID + "/workspace.yaml", &registry},
		{someID + "/inuse.18391.hold", nil}, {someID + "/inuse..lock", nil}, {someID + "/inuse.1x.lock", nil},
		{someID + "/inuse.12345678901.lock", nil}, {someID + "/session.db", nil}, {someID + "/plan.md", nil},
		{someID + "/files/events.jsonl", nil}, {".session-operation-locks/" + someID + ".lock", nil},
		{"../" + someID + "/events.jsonl", nil}, {"events.jsonl", nil}, {someID, nil}, {"x/events.jsonl", nil}, {"", nil},
	}
	for _, tt := range tests {
		a, ok := Provider{}.Claim(root, tt.rel)
		if ok != (tt.role != nil) {
			t.Errorf("Claim(%q) = %v", tt.rel, ok)
			continue
		}
		if want := (providers.Artifact{Provider: ID, Path: root.Dir + "/" + tt.rel, Session: someID}); ok {
			want.Role = *tt.role
			if a != want {
				t.Errorf("Claim(%q) = %+v, want %+v", tt.rel, a, want)
			}
		}
	}
	if _, ok := (Provider{}).Claim(providers.Root{Name: "logs"}, someID+"/events.jsonl"); ok {
		t.Error("a transcript under another root is claimed")
	}
}

func TestAbout(t *testing.T) {
	a := Provider{}.About()
	if a.Name == "" || a.Version != version || !reflect.DeepEqual(a.Programs, []string{"copilot"}) || len(a.Hints) == 0 {
		t.Errorf("About = %+v", a)
	}
	for _, h := range a.Hints {
		if len(h) < 20 || h[len(h)-1] != '.' {
			t.Errorf("hint %q is no sentence", h)
		}
	}
}
