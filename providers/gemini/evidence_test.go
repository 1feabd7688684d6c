package gemini

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// home is a made-up home directory with the program's files.
type home struct {
	t    *testing.T
	dir  string
	cwd  string
	born time.Time // when the process began
}

func newHome(t *testing.T) *home {
	dir := t.TempDir()
	h := &home{t: t, dir: dir, cwd: filepath.Join(dir, "code"), born: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}
	write(t, filepath.Join(dir, ".gemini", "projects.json"), fmt.Sprintf(`{"projects":{%q:"code"}}`, h.cwd))
	h.project("code", h.cwd)
	return h
}

func (h *home) project(slug, cwd string) {
	write(h.t, filepath.Join(h.dir, ".gemini", "tmp", slug, ".project_root"), cwd)
}

// chat writes a session's file that began so many seconds after the process.
func (h *home) chat(slug, name, id string, after float64, more ...string) string {
	at := h.born.Add(time.Duration(after * float64(time.Second))).Format("2006-01-02T15:04:05.000Z")
	lines := append([]string{
		fmt.Sprintf(`{"sessionId":%q,"projectHash":"00","startTime":%q,"lastUpdated":%q,"kind":"main"}`, id, at, at),
		`{"$set":{"messages":[{"id":"c","timestamp":"` + at + `","type":"user","content":[{"text":"<session_context>\nx"}]}],"lastUpdated":"` + at + `"}}`}, more...)
	return write(h.t, filepath.Join(h.dir, ".gemini", "tmp", slug, "chats", "session-"+name+".jsonl"), strings.Join(lines, "\n")+"\n")
}

func (h *home) process(args ...string) providers.Process {
	return providers.Process{PID: 7, Started: h.born, CWD: h.cwd, Env: map[string]string{"HOME": h.dir}, Args: append([]string{"node", "/usr/bin/gemini"}, args...)}
}

// known describes files as the observer does.
func (h *home) known(paths ...string) []providers.Session {
	var out []providers.Session
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			h.t.Fatal(err)
		}
		if filepath.Ext(p) == ".jsonl" {
			b = []byte(strings.SplitN(string(b), "\n", 2)[0])
		}
		out = append(out, Provider{}.Describe(providers.Artifact{Provider: ID, Path: p}, b))
	}
	return out
}

// want compares evidence, one "rank session path [refused]" a piece.
func (h *home) want(p providers.Process, known []providers.Session, want ...string) {
	h.t.Helper()
	got, err := Provider{}.Evidence(h.t.Context(), p, known)
	if err != nil {
		h.t.Fatalf("Evidence: %v", err)
	}
	var lines []string
	for _, e := range got {
		line := fmt.Sprintf("%d %s %s", e.Rank, e.Session, strings.TrimPrefix(e.Path, filepath.Join(h.dir, ".gemini", "tmp")+"/"))
		if e.Refused != "" {
			line += " refused"
		}
		lines = append(lines, line)
		if e.Source == "" || e.Activity != providers.NoActivity {
			h.t.Errorf("evidence %+v", e)
		}
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		h.t.Errorf("evidence:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

const prompt1 = `{"id":"u1","timestamp":"2026-11-30T10:00:09.000Z","type":"user","content":[{"text":"hi"}]}`

func TestEvidenceAgreement(t *testing.T) {
	h := newHome(t)
	fresh := h.chat("code", "a", "s-fresh", 4)
	h.want(h.process(), h.known(fresh), "4 s-fresh code/chats/session-a.jsonl")

	old := h.chat("code", "b", "s-old", -100, prompt1)
	older := h.chat("code", "c", "s-older", -200, prompt1)
	h.want(h.process(), h.known(old, fresh, older), "4 s-fresh code/chats/session-a.jsonl")
	h.want(h.process(), h.known(old, older), "4 s-old code/chats/session-b.jsonl refused")

	// Another directory, a directory that is not told, another home.
	h.project("other", filepath.Join(h.dir, "other"))
	other := h.chat("other", "e", "s-other", 4, prompt1)
	bare := h.chat("bare", "f", "s-bare", 4, prompt1)
	h.want(h.process(), h.known(other, bare))
	p := h.process()
	p.Env["GEMINI_CLI_HOME"] = t.TempDir()
	h.want(p, h.known(fresh))
	p.Env["GEMINI_CLI_HOME"] = filepath.Join(h.dir, "none")
	h.want(p, h.known(fresh))
	p.Env = nil // not readable: the directory has to do
	h.want(p, h.known(fresh), "4 s-fresh code/chats/session-a.jsonl")

	// Nothing to go by.
	p = h.process()
	p.CWD = ""
	h.want(p, h.known(fresh))
	headless := write(t, filepath.Join(h.dir, ".gemini", "tmp", "code", "chats", "session-g.jsonl"), prompt1+"\n")
	h.want(h.process(), h.known(headless))
}

func TestEvidenceResumed(t *testing.T) {
	h := newHome(t)
	old := h.chat("code", "old", sid, -500, prompt1, `{"$set":{"sessionId":"`+sid+`"}}`)
	h.want(h.process("--resume", "latest"), h.known(old), "4 "+sid+" code/chats/session-old.jsonl refused")
	stubFile := h.chat("code", "new", sid, 4)
	line := "4 " + sid + " code/chats/session-old.jsonl"
	h.want(h.process("--resume", "latest"), h.known(stubFile, old), line)
	// The stub written last is a stub all the same.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(stubFile, later, later); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), h.known(old, stubFile), line)
	h.want(h.process("-r", sid), h.known(old, stubFile), "3 "+sid+" code/chats/session-old.jsonl", line)
	h.want(h.process("--session-id", sid), nil, "3 "+sid+" ")
	// Two files that both went on: the one written last.
	second := h.chat("code", "second", sid, 5, prompt1)
	if err := os.Chtimes(second, later, later); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), h.known(old, stubFile, second), "4 "+sid+" code/chats/session-second.jsonl")
	// A file that was deleted a moment ago is nobody's choice.
	known := h.known(old, second)
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), known, "4 "+sid+" code/chats/session-old.jsonl")
}

// A session that is resumed in the minute of its start has no stub of its own:
// the new header stands in its file.
func TestEvidenceResumedAtOnce(t *testing.T) {
	h := newHome(t)
	h.born = h.born.Add(30 * time.Second)
	at := func(after float64) string {
		return h.born.Add(time.Duration(after * float64(time.Second))).Format("2006-01-02T15:04:05.000Z")
	}
	again := fmt.Sprintf(`{"sessionId":%q,"projectHash":"00","startTime":%q,"kind":"main"}`, sid, at(4))
	file := h.chat("code", "2026-11-30T10-00-"+sid[:8], sid, -20, prompt1, again)
	h.want(h.process("--resume", "latest"), h.known(file), "4 "+sid+" code/chats/"+filepath.Base(file))
	// The name has another minute: the file is the old one, whatever it holds.
	other := h.chat("code", "2026-11-30T09-58-"+sid[:8], "s-other", -20, prompt1, strings.Replace(again, sid, "s-other", 1))
	h.want(h.process(), h.known(other), "4 s-other code/chats/"+filepath.Base(other)+" refused")
	for name, want := range map[string]bool{"session-2026-11-30T10-00-x.jsonl": true, "session-2026-11-30T10-01-x.jsonl": false,
		"session-2026-11-30T09-59-x.jsonl": false, "session-x.jsonl": false, "session-2026-13-30T10-00-x.jsonl": false} {
		if got := sameMinute("/w/"+name, h.born); got != want {
			t.Errorf("sameMinute(%q) = %v, want %v", name, got, want)
		}
	}
	if !sameMinute("/w/session-2026-11-30T09-59-x.jsonl", h.born.Add(-20*time.Second)) {
		t.Error("a process that began just before the end of the minute")
	}
	if got := lastStart("/w/none", h.born); got != h.born {
		t.Errorf("lastStart of no file = %v", got)
	}
}

func TestEvidenceLegacy(t *testing.T) {
	h := newHome(t)
	at := h.born.Add(4 * time.Second).Format("2006-01-02T15:04:05.000Z")
	legacy := write(t, filepath.Join(h.dir, ".gemini", "tmp", "code", "chats", "session-x.json"),
		`{"sessionId":"`+sid+`","projectHash":"00","startTime":"`+at+`","messages":[]}`)
	before := h.known(legacy)
	h.want(h.process(), before, "4 "+sid+" code/chats/session-x.json")
	sibling := h.chat("code", "x", sid, 4, prompt1)
	line := "4 " + sid + " code/chats/session-x.jsonl"
	h.want(h.process(), h.known(legacy, sibling), line)
	// Described before the sibling came, and written after it by somebody else.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(legacy, later, later); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), append(before, h.known(sibling)...), line)
}

func TestEvidenceCopies(t *testing.T) {
	h := newHome(t)
	sum := sha256.Sum256([]byte(h.cwd))
	hashed := hex.EncodeToString(sum[:])
	copied := h.chat(hashed, "a", sid, 4, prompt1)
	h.want(h.process(), h.known(copied), "4 "+sid+" "+hashed+"/chats/session-a.jsonl")
	real := h.chat("code", "a", sid, 4, prompt1)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(copied, later, later); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), h.known(copied, real), "4 "+sid+" code/chats/session-a.jsonl")
	// Without projects.json the one that was written last.
	if err := os.Remove(filepath.Join(h.dir, ".gemini", "projects.json")); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), h.known(copied, real), "4 "+sid+" "+hashed+"/chats/session-a.jsonl")
}

func TestEvidenceSubagent(t *testing.T) {
	h := newHome(t)
	main := h.chat("code", "a", "s-main", 4, prompt1)
	sub := write(t, filepath.Join(h.dir, ".gemini", "tmp", "code", "chats", "s-main", "s-sub.jsonl"),
		`{"sessionId":"`+sid+`","projectHash":"00","startTime":"2026-11-30T10:00:30.000Z","kind":"subagent"}`+"\n")
	h.want(h.process(), h.known(main, sub), "4 s-main code/chats/session-a.jsonl")
	h.want(h.process("--resume", sid), h.known(main, sub), "3 "+sid+"  refused", "4 s-main code/chats/session-a.jsonl")
}

// Two processes of one directory: each began a session soon after it began. What
// began later, and was not begun by /clear, is another process's.
func TestEvidenceTwoProcesses(t *testing.T) {
	h := newHome(t)
	other := strings.Replace(sid, "65", "66", 1)
	one := h.chat("code", "a", sid, 4)
	two := h.chat("code", "b", other, 104)
	p2 := h.process()
	p2.PID, p2.Started = 8, h.born.Add(100*time.Second)
	known := h.known(two, one)
	h.want(h.process(), known, "4 "+sid+" code/chats/session-a.jsonl", "4 "+other+" code/chats/session-b.jsonl refused")
	h.want(p2, known, "4 "+other+" code/chats/session-b.jsonl")
	h.want(h.process("--session-id", sid), known, "3 "+sid+" code/chats/session-a.jsonl",
		"4 "+sid+" code/chats/session-a.jsonl", "4 "+other+" code/chats/session-b.jsonl refused")

	// Begun within a short time, both could be of either: they have no order.
	p2.Started = h.born.Add(10 * time.Second)
	three := h.chat("code", "c", "s-three", 14)
	known = h.known(one, three)
	h.want(h.process(), known, "4 "+sid+" code/chats/session-a.jsonl", "4 s-three code/chats/session-c.jsonl")
	all, err := Provider{}.Evidence(t.Context(), h.process(), known)
	if err != nil || !all[0].At.IsZero() || !all[1].At.IsZero() {
		t.Errorf("sessions that are not told apart have times: %+v, %v", all, err)
	}
	h.want(p2, known, "4 s-three code/chats/session-c.jsonl")

	// A process that took long to begin: the only one is its own.
	h.want(h.process(), h.known(two), "4 "+other+" code/chats/session-b.jsonl")
}

// /clear is logged with the session that the process began with.
func TestEvidenceCleared(t *testing.T) {
	h := newHome(t)
	first := h.chat("code", "a", sid, 4, prompt1)
	second := h.chat("code", "b", "s-second", 61, prompt1)
	third := h.chat("code", "c", "s-third", 121, prompt1)
	log := func(entries string) { write(t, filepath.Join(h.dir, ".gemini", "tmp", "code", "logs.json"), entries) }
	entry := func(message, session string, after int) string {
		return fmt.Sprintf(`{"sessionId":%q,"messageId":1,"type":"user","message":%q,"timestamp":%q}`, session, message,
			h.born.Add(time.Duration(after)*time.Second).Format("2006-01-02T15:04:05.000Z"))
	}
	line := func(id, file, refused string) string {
		return strings.TrimSpace("4 " + id + " code/chats/session-" + file + ".jsonl " + refused)
	}
	known := h.known(third, first, second)
	a, b, c := line(sid, "a", "refused"), line("s-second", "b", "refused"), line("s-third", "c", "refused")
	h.want(h.process(), known, line(sid, "a", ""), b, c)
	log("[" + entry("hello", sid, 9) + "," + entry("/clear", sid, 60) + "]")
	h.want(h.process(), known, a, line("s-second", "b", ""), c)
	log("[" + entry("/clear", sid, 60) + "," + entry("/clear", sid, 120) + "]")
	h.want(h.process(), known, a, b, line("s-third", "c", ""))
	log("[" + entry("/clear", sid, 60) + "," + entry("/clear", "s-second", 120) + "]")
	h.want(h.process(), known, a, b, line("s-third", "c", ""))
	// Not of this process, not the command, too early, a loop, nothing of use.
	for _, entries := range []string{
		"[" + entry("/clear", "else", 60) + "]", "[" + entry("say /clear", sid, 60) + "]", "[" + entry("/clear", sid, 40) + "]",
		"[" + entry("/clear", "s-third", 60) + "," + entry("/clear", "s-second", 120) + "]", "{}", `[{"message":"/clear"}]`, "[7]",
	} {
		log(entries)
		h.want(h.process(), known, line(sid, "a", ""), b, c)
	}
	// Two sessions began at that time: either may be the one.
	fourth := h.chat("code", "d", "s-fourth", 62, prompt1)
	log("[" + entry("/clear", sid, 60) + "]")
	h.want(h.process(), h.known(first, second, fourth), line(sid, "a", ""), b, line("s-fourth", "d", "refused"))
	// Half written now; broken for good.
	log("[" + entry("/clear", sid, 60))
	if _, err := (Provider{}).Evidence(t.Context(), h.process(), known); err == nil {
		t.Error("a list that is being written gave no error")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(h.dir, ".gemini", "tmp", "code", "logs.json"), old, old); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), known, line(sid, "a", ""), b, c)
}

// Another start deletes the file of a session without a prompt; the program goes
// on in a file without a header, which only its name and the command line tell.
func TestEvidenceHeadless(t *testing.T) {
	h := newHome(t)
	file := write(t, filepath.Join(h.dir, ".gemini", "tmp", "code", "chats", "session-2026-11-30T10-00-"+sid[:8]+".jsonl"), prompt1+"\n")
	h.want(h.process(), h.known(file))
	h.want(h.process("--session-id", sid), h.known(file), "3 "+sid+" code/chats/"+filepath.Base(file))
	h.want(h.process("--session-id", strings.Replace(sid, "65", "66", 1)), h.known(file), "3 "+strings.Replace(sid, "65", "66", 1)+" ")
	h.project("other", "/elsewhere")
	away := write(t, filepath.Join(h.dir, ".gemini", "tmp", "other", "chats", filepath.Base(file)), prompt1+"\n")
	h.want(h.process("--session-id", sid), h.known(away), "3 "+sid+" ")
}

func TestEvidenceCannotLook(t *testing.T) {
	h := newHome(t)
	chat := h.chat("code", "a", sid, 4)
	known := h.known(chat)
	root := filepath.Join(h.dir, ".gemini", "tmp", "code", ".project_root")
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := (Provider{}).Evidence(t.Context(), h.process(), known); err == nil {
		t.Error("a project root that is a directory gave no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Provider{}).Evidence(ctx, h.process(), known); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled look gave %v", err)
	}
	write(t, filepath.Join(h.dir, ".gemini", "projects.json"), strings.Repeat("x", maxProjects+1))
	if _, err := (Provider{}).Evidence(t.Context(), h.process(), nil); err == nil {
		t.Error("a projects.json without bounds gave no error")
	}
}

// A project directory that is a link out of the program's own is not looked into.
func TestEvidenceLink(t *testing.T) {
	h := newHome(t)
	away := newHome(t)
	away.cwd = h.cwd
	away.project("code", h.cwd)
	away.chat("code", "a", sid, 4)
	link := filepath.Join(h.dir, ".gemini", "tmp", "linked")
	if err := os.Symlink(filepath.Join(away.dir, ".gemini", "tmp", "code"), link); err != nil {
		t.Fatal(err)
	}
	h.want(h.process(), h.known(filepath.Join(link, "chats", "session-a.jsonl")))
}

func TestStub(t *testing.T) {
	head := `{"sessionId":"s","projectHash":"0"}` + "\n"
	ctx := `{"$set":{"messages":[{"id":"c","type":"user","content":[{"text":"<session_context>x"}]}]}}` + "\n"
	for text, want := range map[string]bool{
		"":         true,
		head:       true,
		head + ctx: true,
		head + ctx + `{"$set":{"lastUpdated":"x"}}` + "\n":      true,
		head + ctx + `{"id":"u"`:                                true, // not there yet
		head + ctx + prompt1 + "\n":                             false,
		head + ctx + `{"$set":{"sessionId":"s"}}` + "\n":        false,
		head + `{"$set":{"messages":[` + prompt1 + `]}}` + "\n": false,
		head + "no json\n":                                      false,
	} {
		if got := stub([]byte(text), int64(len(text))); got != want {
			t.Errorf("stub(%q) = %v, want %v", text, got, want)
		}
	}
	if stub([]byte(head), 1<<20) {
		t.Error("a file of which only the head was read is a stub")
	}
}
