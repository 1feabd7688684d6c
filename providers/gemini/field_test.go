package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"steno/observer/tail"
	"steno/providers"
)

// TestFieldRows has faults that users of other tools reported, each by its row
// in the field list.
func TestFieldRows(t *testing.T) {
	t.Run("A19: one id in later lines and in lists is one message", rewrittenIDs)
	t.Run("A21: a session in two files is one", twoFiles)
	t.Run("C26: a shorter document repeats nothing and hides nothing", shorterDocument)
	t.Run("C27: a document that is being written is not there yet", halfDocument)
	t.Run("D17: the directory is what the project says, or its hash, else unknown", directories)
	t.Run("D18: all three layouts are found", layouts)
	t.Run("H13: what the program did not have is told", strangers)
}

func setMessages(at float64, lines ...string) string {
	return `{"$set":{"messages":[` + strings.Join(lines, ",") + `],"lastUpdated":"` + stamp(at) + `"}}`
}

func rewrittenIDs(t *testing.T) {
	context := userLine("c", 0, "<session_context>\nx")
	p := fresh()
	var got []string
	for _, line := range []string{
		`{"sessionId":"` + sid + `","projectHash":"0"}`, setMessages(0, context),
		userLine("u1", 1, "one"),
		geminiLine("g1", 2, "Looking.", ""), geminiLine("g1", 3, "Looking.", calls),
		setMessages(4, context, userLine("u1", 1, "one"), geminiLine("g1", 2, "Looked.", calls)),
		geminiLine("g2", 5, "Done.", ""), geminiLine("g2", 5, "Done!", ""),
		userLine("u1", 1, "one"),
		userLine("u2", 9, "two"),
	} {
		for _, d := range play(p, line) {
			got = append(got, strings.TrimSpace(string(d.Kind)+" "+d.Turn+" "+d.Text))
		}
	}
	want := []string{"turn_started u1", "turn_state_changed u1", "assistant_message u1 Looking.", "assistant_message u1 Done.",
		"turn_final u1 Done!", "turn_state_changed u1", "turn_started u2", "turn_state_changed u2"}
	if !slices.Equal(got, want) {
		t.Errorf("drafts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func twoFiles(t *testing.T) {
	h := newHome(t)
	sum := sha256.Sum256([]byte(h.cwd))
	hashed := hex.EncodeToString(sum[:])
	h.project("second", h.cwd)
	files := []string{h.chat("code", "a", sid, 4, prompt1), h.chat(hashed, "a", sid, 4, prompt1), h.chat("second", "a", sid, 4, prompt1)}
	h.want(h.process(), h.known(files...), "4 "+sid+" code/chats/session-a.jsonl")
	keys := func(path string) (out []string) {
		p := newProjector(providers.Artifact{Provider: ID, Path: path}, nil, nil)
		for _, d := range play(p, prompt1, geminiLine("g1", 10, "One.", "")) {
			out = append(out, d.Key)
		}
		return out
	}
	for _, f := range files[1:] {
		if a, b := keys(files[0]), keys(f); len(a) != 3 || !slices.Equal(a, b) {
			t.Errorf("keys of %s: %q, and of the other file %q", filepath.Base(filepath.Dir(f)), b, a)
		}
	}
	// What lies in .gemini/history is no place of sessions.
	for _, r := range (Provider{}).Roots(providers.Env{Home: h.dir}) {
		if rel, err := filepath.Rel(r.Dir, filepath.Join(h.dir, ".gemini", "history")); err != nil || filepath.IsLocal(rel) {
			t.Errorf("root %s has the history in it", r.Dir)
		}
	}
}

func document(messages ...string) string {
	return `{"sessionId":"` + sid + `","projectHash":"0","startTime":"` + stamp(0) + `","messages":[` + strings.Join(messages, ",") + `]}`
}

// documents reads a file as the observer does and projects each version.
type documents struct {
	t    *testing.T
	path string
	read *tail.Document
	p    *projector
}

func newDocuments(t *testing.T) *documents {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session-2026-11-30T10-00-65a45b4d.json")
	read, err := tail.NewDocument(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &documents{t, path, read, newProjector(providers.Artifact{Provider: ID, Path: path, Framing: providers.Document}, nil, nil)}
}

// put replaces the file by another one and gives the kinds of what comes of it.
func (d *documents) put(text string) string {
	d.t.Helper()
	if err := os.Remove(d.path); err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	b, err := d.read.Read(0)
	if err != nil {
		d.t.Fatal(err)
	}
	var out []providers.Draft
	for _, r := range b.Records {
		out = append(out, d.p.Project(r)...)
	}
	return kinds(out)
}

func shorterDocument(t *testing.T) {
	d := newDocuments(t)
	one, answer := userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", "")
	two, done := userLine("u2", 3, "two"), geminiLine("g2", 4, "Two.", "")
	const turn = "turn_started waiting_on_agent assistant_message"
	const end = "turn_final:recorded waiting_on_user "
	for i, step := range []struct{ text, want string }{
		{document(one, answer, two, done), turn + " " + end + turn},
		{document(two, done), ""},
		{document(done, userLine("u3", 9, "three")), end + "turn_started waiting_on_agent"},
		{document(userLine("u3", 9, "three")), ""},
		{document(one, answer, two, done, userLine("u3", 9, "three"), geminiLine("g3", 10, "Three.", "")), "assistant_message"},
	} {
		if got := d.put(step.text); got != step.want {
			t.Errorf("version %d gave %q, want %q", i, got, step.want)
		}
	}
}

func halfDocument(t *testing.T) {
	d := newDocuments(t)
	before := document(userLine("u1", 1, "one"))
	after := document(userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""))
	if got := d.put(before); got != "turn_started waiting_on_agent" {
		t.Fatalf("the first version gave %q", got)
	}
	for n := range len(after) {
		if n%7 == 0 || n > len(after)-5 {
			if got := d.put(after[:n]); got != "" {
				t.Fatalf("%d of %d bytes gave %q", n, len(after), got)
			}
		}
	}
	if got := d.put(after); got != "assistant_message" {
		t.Errorf("the second version gave %q", got)
	}
}

func directories(t *testing.T) {
	h := newHome(t)
	if err := os.Remove(filepath.Join(h.dir, ".gemini", "projects.json")); err != nil {
		t.Fatal(err)
	}
	told := h.chat("code", "a", "s-told", 4, prompt1)
	h.want(h.process(), h.known(told), "4 s-told code/chats/session-a.jsonl")
	sum := sha256.Sum256([]byte(h.cwd))
	hashed := hex.EncodeToString(sum[:])
	byHash := h.chat(hashed, "a", "s-hash", 4, prompt1)
	h.want(h.process(), h.known(byHash), "4 s-hash "+hashed+"/chats/session-a.jsonl")
	// Of a directory that neither tells, nothing is guessed: not by its name.
	unknown := h.chat(filepath.Base(h.cwd)+"-1", "a", "s-unknown", 4, prompt1)
	h.want(h.process(), h.known(unknown))
	other := sha256.Sum256([]byte(h.cwd + "2"))
	h.want(h.process(), h.known(h.chat(hex.EncodeToString(other[:]), "a", "s-other", 4, prompt1)))
}

func layouts(t *testing.T) {
	root := providers.Root{Provider: ID, Name: rootTmp, Dir: "/h/.gemini/tmp"}
	head := `{"sessionId":"` + sid + `","projectHash":"00","startTime":"` + stamp(0) + `","kind":"main"`
	for _, c := range []struct {
		rel, first, internal string
		framing              providers.Framing
	}{
		{"00ff/chats/session-2025-11-30T10-00-65a45b4d.json", head + `,"messages":[` + prompt1 + `]}`, "", providers.Document},
		{"work-1/chats/session-2026-11-30T10-00-65a45b4d.jsonl", head + `}`, "", providers.Lines},
		{"work-1/chats/96bae3ee-7b61-46c1-8528-e842a4fe3625/" + sid + ".jsonl", strings.Replace(head, "main", "subagent", 1) + `}`, internalSubagent, providers.Lines},
	} {
		a, ok := Provider{}.Claim(root, c.rel)
		if s := (Provider{}).Describe(a, []byte(c.first)); !ok || a.Framing != c.framing || s.ID != sid || s.Internal != c.internal {
			t.Errorf("%s: claimed %v as %+v, described as %+v", c.rel, ok, a, s)
		}
		var got []providers.Draft
		p := Provider{}.Projector(a, nil)
		for _, line := range strings.Split(c.first+"\n"+prompt1, "\n") {
			if c.framing == providers.Document && line == prompt1 {
				continue // it is in the document
			}
			got = append(got, p.Project(providers.Record{Framing: c.framing, Data: []byte(line)})...)
		}
		want := "turn_started waiting_on_agent"
		if c.internal != "" {
			want = "" // a subagent's turns are its parent's work
		}
		if kinds(got) != want {
			t.Errorf("%s gives %q, want %q", c.rel, kinds(got), want)
		}
	}
}

func strangers(t *testing.T) {
	p := fresh()
	for i, line := range []string{`{"checkpoint":{}}`, `{"id":"x","type":"thought"}`, `{"$set":{"branch":1}}`} {
		if got := play(p, line); len(got) != 0 {
			t.Errorf("record %d gave %s", i, kinds(got))
		}
	}
	if got, want := fmt.Sprint(p.Drift()), "[record/checkpoint message/thought $set/branch]"; got != want {
		t.Errorf("Drift = %s, want %s", got, want)
	}
}
