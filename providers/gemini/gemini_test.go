package gemini

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

const sid = "65a45b4d-4e24-4297-ab11-cb7e4eef05fd"

func TestRoots(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	for _, c := range []struct {
		name string
		env  providers.Env
		want []string
	}{
		{"home", providers.Env{Home: "/h", Getenv: env(nil)}, []string{"/h/.gemini/tmp"}},
		{"own home", providers.Env{Home: "/h", Getenv: env(map[string]string{"GEMINI_CLI_HOME": "/x"})}, []string{"/x/.gemini/tmp"}},
		{"extra", providers.Env{Home: "/h", Getenv: env(nil), Extra: []string{"/y/", "/h/.gemini", "rel"}}, []string{"/h/.gemini/tmp", "/y/tmp"}},
		{"nothing", providers.Env{Getenv: env(nil)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			roots := Provider{}.Roots(c.env)
			if len(roots) != len(c.want) {
				t.Fatalf("%d roots, want %d", len(roots), len(c.want))
			}
			for i, r := range roots {
				if r.Dir != c.want[i] || r.Provider != ID || r.Depth != 3 {
					t.Errorf("root %d = %+v, want %s", i, r, c.want[i])
				}
			}
		})
	}
}

func TestClaim(t *testing.T) {
	root := providers.Root{Provider: ID, Name: rootTmp, Dir: "/h/.gemini/tmp"}
	for rel, framing := range map[string]providers.Framing{
		"work-1/chats/session-2026-11-30T18-45-212e9b08.jsonl":                                         providers.Lines,
		"work-1/chats/session-2026-11-30T18-45-212e9b08.json":                                          providers.Document,
		"work-1/chats/65a45b4d-4e24-4297-ab11-cb7e4eef05fd/96bae3ee-7b61-46c1-8528-e842a4fe3625.jsonl": providers.Lines,
	} {
		a, ok := Provider{}.Claim(root, rel)
		if !ok || a.Framing != framing || a.Session != "" || a.Role != providers.Transcript || a.Path != "/h/.gemini/tmp/"+rel {
			t.Errorf("Claim(%q) = %+v, %v", rel, a, ok)
		}
	}
	for _, rel := range []string{
		"work-1/logs.json", "work-1/.project_root", "work-1/checkpoint-x.json", "work-1/chats/x.jsonl", "work-1/chats/session-2026-11-30T18-45-212e9b08.jsonl.tmp-7",
		"work-1/chats/session-2026-11-30T18-45-212e9b08.jsonl.unreadable-1", "work-1/" + sid + "/plans/plan.md", "chats/session-2026-11-30T18-45-212e9b08.jsonl",
		"../chats/session-2026-11-30T18-45-212e9b08.jsonl", "work-1/chats/../session-2026-11-30T18-45-212e9b08.jsonl", "work-1/chats/a/b/c.jsonl", "",
		"work-1/chats/" + sid + "/96bae3ee.json", "work-1/logs/session-2026-11-30T18-45-212e9b08.jsonl",
	} {
		if a, ok := (Provider{}).Claim(root, rel); ok {
			t.Errorf("Claim(%q) = %+v, want none", rel, a)
		}
	}
	if _, ok := (Provider{}).Claim(providers.Root{Name: "else"}, "w/chats/session-2026-11-30T18-45-212e9b08.jsonl"); ok {
		t.Error("a path of another root is claimed")
	}
}

func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	chats := filepath.Join(dir, "work", "chats")
	sub := filepath.Join(chats, sid)
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(chats, "session-2026-11-30T03-04-0a1b2c3d.json")
	for _, f := range []string{old, old + "l"} {
		if err := os.WriteFile(f, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head := `{"sessionId":"` + sid + `","projectHash":"00","startTime":"2026-11-30T10:00:00.000Z","kind":"main"}`
	born := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	main := filepath.Join(chats, "session-2026-11-30T10-00-65a45b4d.jsonl")
	for _, c := range []struct {
		name, path, first string
		want              providers.Session
	}{
		{"main", main, head, providers.Session{ID: sid, Born: born}},
		{"no header", main, `{"id":"u1","type":"user","sessionId":"` + sid + `"}`, providers.Session{}},
		{"nothing yet", main, "", providers.Session{}},
		{"a list first", main, `{"$set":{"sessionId":"` + sid + `"}}`, providers.Session{}},
		{"odd id", main, `{"sessionId":"../../etc","projectHash":"00"}`, providers.Session{}},
		{"odd time", main, `{"sessionId":"` + sid + `","startTime":"soon"}`, providers.Session{ID: sid}},
		{"subagent by kind", main, strings.Replace(head, "main", "subagent", 1), providers.Session{ID: sid, Born: born, Internal: internalSubagent}},
		{"subagent by place", filepath.Join(sub, "x.jsonl"), head, providers.Session{ID: sid, Born: born, Internal: internalSubagent}},
		{"legacy with a sibling", old, head, providers.Session{ID: sid, Born: born, Internal: internalHistory}},
		{"legacy", filepath.Join(chats, "session-2026-11-30T10-00-65a45b4d.json"), strings.TrimSuffix(head, "}") + `,"messages":[{"sessionId":7}],"kind":"subagent"}`,
			providers.Session{ID: sid, Born: born}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Path = c.path
			if got := (Provider{}).Describe(providers.Artifact{Path: c.path}, []byte(c.first)); got != c.want {
				t.Errorf("Describe = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAbout(t *testing.T) {
	a := Provider{}.About()
	if a.Name == "" || len(a.Programs) == 0 || a.Version == "" || len(a.Hints) == 0 {
		t.Errorf("About = %+v", a)
	}
}
