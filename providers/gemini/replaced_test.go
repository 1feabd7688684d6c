package gemini

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/providers"
	"steno/providers/observetest"
)

// TestMain lets the test binary be the program: a copy of it named gemini lives
// until its standard input ends.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == ID {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// watched is a session of a running program under a running observer.
type watched struct {
	*observetest.Observed
	t     *testing.T
	chats string // its directory
	id    string // of the session. No other test's that runs on this machine: two programs of one session have none
}

// watch starts both, and before the program what was there already.
func watch(t *testing.T, sweep time.Duration, already ...func(*watched)) *watched {
	t.Helper()
	home := t.TempDir()
	w := &watched{t: t, chats: filepath.Join(home, ".gemini", "tmp", "code", "chats"), id: newID()}
	cwd := filepath.Join(home, "code")
	for _, dir := range []string{w.chats, cwd} {
		w.must(os.MkdirAll(dir, 0o700))
	}
	w.must(os.WriteFile(filepath.Join(filepath.Dir(w.chats), ".project_root"), []byte(cwd), 0o600))
	w.Observed = observetest.Run(t, Provider{}, home, sweep, func(e wire.Event) []*string {
		return []*string{e.TurnID, e.TurnState, e.Outcome, &e.Completion, e.Text}
	})
	for _, f := range already {
		f(w)
	}
	cmd := w.Command(cwd, "GEMINI_CLI_NO_RELAUNCH=true")
	in, err := cmd.StdinPipe()
	w.must(err)
	w.must(cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	w.Known(cmd.Process.Pid)
	return w
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Records that are written now.
func nowStamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func nowUser(id string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"user","content":[{"text":"go"}]}`, id, nowStamp())
}

func nowAnswer(id string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"gemini","content":"Text of %s.","thoughts":[],"tokens":{"input":1},"model":"m"}`, id, nowStamp(), id)
}

func nowHeader(session string) string {
	return fmt.Sprintf(`{"sessionId":%q,"projectHash":"00","startTime":%q,"kind":"main"`, session, nowStamp())
}

func lined(header string, messages ...string) string {
	context := fmt.Sprintf(`{"id":"c","timestamp":%q,"type":"user","content":[{"text":"<session_context>\nx"}]}`, nowStamp())
	return header + "}\n" + `{"$set":{"messages":[` + context + `]}}` + "\n" + strings.Join(append(messages, ""), "\n")
}

// beheaded is how the program goes on after another start in the directory has
// deleted its file.
func beheaded(_ string, messages ...string) string { return strings.Join(append(messages, ""), "\n") }

func documented(header string, messages ...string) string {
	return header + `,"messages":[` + strings.Join(messages, ",") + `]}`
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// A session's file that is deleted and made again is another one: what waited in
// the old one is decided, one failure says so, nothing is replayed, and what comes
// after it is told.
func TestFileMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		name, ext string
		make      func(header string, messages ...string) string
		other     bool // the new file has another session
	}{
		{"lines, another session", ".jsonl", lined, true},
		{"lines, the same session", ".jsonl", lined, false},
		{"lines without a header", ".jsonl", beheaded, false},
		{"document, another session", ".json", documented, true},
		{"document, the same session", ".json", documented, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := watch(t, time.Hour)
			session := w.id
			if tt.other {
				session = newID()
			}
			path := filepath.Join(w.chats, "session-2026-11-30T10-00-65a45b4d"+tt.ext)
			first, second := []string{nowUser("u1"), nowAnswer("g1")}, []string{nowUser("u2"), nowAnswer("g2")}
			old := tt.make
			if tt.ext == ".jsonl" {
				old = lined
			}
			w.must(os.WriteFile(path, []byte(old(nowHeader(w.id), first...)), 0o600))
			told := []string{"turn_started u1", "turn_state_changed u1 waiting_on_agent", "assistant_message u1 Text of g1."}
			w.Want(told...)
			w.must(os.Remove(path))
			w.must(os.WriteFile(path, []byte(tt.make(nowHeader(session), second...)), 0o600))
			told = append(told, "turn_final u1 completed settled Text of g1.", "turn_state_changed u1 waiting_on_user", "observer_failure")
			w.Want(told...)
			third := append(second, nowUser("u3"))
			if tt.ext == ".json" {
				w.must(os.WriteFile(path, []byte(tt.make(nowHeader(session), third...)), 0o600))
			} else {
				w.add(path, third[2])
			}
			w.Want(append(told, "turn_started u3", "turn_state_changed u3 waiting_on_agent")...)
		})
	}
}

// add appends lines to a session's file.
func (w *watched) add(path string, lines ...string) {
	w.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	w.must(err)
	_, err = f.WriteString(strings.Join(append(lines, ""), "\n"))
	w.must(err)
	w.must(f.Close())
}

// turnOf are the events of one that ends, as its answer is proved final.
func turnOf(n int, completion string) []string {
	r := strings.NewReplacer("N", fmt.Sprint(n), "C", completion)
	var out []string
	for _, s := range []string{"turn_started uN", "turn_state_changed uN waiting_on_agent", "assistant_message uN Text of gN.",
		"turn_final uN completed C Text of gN.", "turn_state_changed uN waiting_on_user"} {
		out = append(out, r.Replace(s))
	}
	return out
}

// A session of an older version goes on in the sibling of its file, which has all
// of it once more, while its process works on it: the session, the agent and the
// place in it stay.
func TestSiblingKeepsPlace(t *testing.T) {
	w := watch(t, time.Hour)
	old := filepath.Join(w.chats, "session-2026-11-30T10-00-65a45b4d.json")
	head := nowHeader(w.id)
	first := []string{nowUser("u1"), nowAnswer("g1"), nowUser("u2"), nowAnswer("g2")}
	w.must(os.WriteFile(old, []byte(documented(head, first...)), 0o600))
	told := append(turnOf(1, "recorded"), turnOf(2, "recorded")[:3]...)
	w.Want(told...)
	lines := append([]string{head + "}"}, first...)
	context := fmt.Sprintf(`{"id":"c","timestamp":%q,"type":"user","content":[{"text":"<session_context>\nx"}]}`, nowStamp())
	lines = append(lines, `{"$set":{"sessionId":"`+w.id+`"}}`, `{"$set":{"messages":[`+strings.Join(append([]string{context}, first...), ",")+`]}}`, "")
	w.must(os.WriteFile(old+"l", []byte(strings.Join(lines, "\n")), 0o600))
	w.add(old+"l", nowUser("u3"), nowAnswer("g3"), nowUser("u4"))
	// Which of the two files proves the second answer final is a matter of moments.
	told = append(append(append(told, turnOf(2, "recorded")[3:]...), turnOf(3, "recorded")...), turnOf(4, "")[:2]...)
	w.Until("the events", func() bool {
		got := strings.ReplaceAll(strings.Join(w.Seen(), "\n"), providers.CompletionSettled, providers.CompletionRecorded)
		return got == strings.Join(told, "\n")
	})
	all := w.Events()
	for _, e := range all {
		if first := all[0]; e.AgentID != first.AgentID || e.IncarnationID != first.IncarnationID {
			t.Errorf("%s is of another agent", e.Kind)
		}
	}
}

// A resumed session of an older version: its file, then the stub of the run, then
// the sibling in which it goes on. Only what is new is told, once.
func TestResumedOldSession(t *testing.T) {
	const before = "2026-11-29T10:00:01.000Z"
	history := []string{strings.Replace(userLine("u1", 0, "one"), stamp(0), before, 1), strings.Replace(geminiLine("g1", 0, "One.", ""), stamp(0), before, 1)}
	var old, head string
	w := watch(t, time.Hour, func(w *watched) {
		head = `{"sessionId":"` + w.id + `","projectHash":"00","startTime":"` + before + `","kind":"main"`
		old = filepath.Join(w.chats, "session-2026-11-29T10-00-65a45b4d.json")
		w.must(os.WriteFile(old, []byte(documented(head, history...)), 0o600))
	})
	w.must(os.WriteFile(filepath.Join(w.chats, "session-"+time.Now().UTC().Format("2006-01-02T15-04")+"-65a45b4d.jsonl"), []byte(lined(nowHeader(w.id))), 0o600))
	w.must(os.WriteFile(old+"l", []byte(strings.Join(append(append([]string{head + "}"}, history...), ""), "\n")), 0o600))
	w.add(old+"l", `{"$set":{"sessionId":"`+w.id+`"}}`, nowUser("u2"), nowAnswer("g2"), nowUser("u3"))
	w.Want(append(turnOf(2, "recorded"), turnOf(3, "")[:2]...)...)
}

// A record of over 4 MiB, as a line or as a message of a document, is a failure
// that says how long it was, and observation goes on.
func TestLongRecordGoesOn(t *testing.T) {
	long := func() string {
		return fmt.Sprintf(`{"id":"g1","timestamp":%q,"type":"gemini","content":"Text of g1.","tokens":{"input":1},"toolCalls":[{"id":"c1","name":"x","status":"success","resultDisplay":%q}]}`,
			nowStamp(), strings.Repeat("x", providers.MaxRecord))
	}
	for _, tt := range []struct {
		ext, detail string
		make        func(header string, messages ...string) string
	}{
		{".jsonl", "gemini record at byte ", lined},
		{".json", "gemini message 1 of a document is longer than 4194304 bytes: ", documented},
	} {
		t.Run(tt.ext, func(t *testing.T) {
			w := watch(t, time.Hour)
			path := filepath.Join(w.chats, "session-2026-11-30T10-00-65a45b4d"+tt.ext)
			head, all := nowHeader(w.id), []string{nowUser("u1"), long()}
			put := func() { w.must(os.WriteFile(path, []byte(tt.make(head, all...)), 0o600)) }
			put()
			told := append(turnOf(1, "")[:2], "observer_failure")
			w.Want(told...)
			all = append(all, nowUser("u2"), nowAnswer("g2"), nowUser("u3"))
			if tt.ext == ".json" {
				put()
			} else {
				w.add(path, all[2:]...)
			}
			w.Want(append(append(told, turnOf(2, "recorded")...), turnOf(3, "")[:2]...)...)
			e := w.Events()[2]
			if want := fmt.Sprintf("%d bytes skipped", len(all[1])); !strings.HasPrefix(*e.Detail, tt.detail) || tt.ext == ".json" && !strings.HasSuffix(*e.Detail, want) {
				t.Errorf("detail %q, want %q ... %q", *e.Detail, tt.detail, want)
			}
		})
	}
}

// Retention deletes a session's file: what waited in it is decided, and a file of
// that session that comes back tells only what is new.
func TestFileDeleted(t *testing.T) {
	w := watch(t, time.Hour)
	path := filepath.Join(w.chats, "session-2026-11-30T10-00-65a45b4d.jsonl")
	text := lined(nowHeader(w.id), nowUser("u1"), nowAnswer("g1"))
	w.must(os.WriteFile(path, []byte(text), 0o600))
	w.Want(turnOf(1, "")[:3]...)
	w.must(os.Remove(path))
	told := turnOf(1, "settled")
	w.Want(told...)
	aside := filepath.Join(filepath.Dir(w.chats), "aside")
	w.must(os.WriteFile(aside, []byte(text+nowUser("u2")+"\n"), 0o600))
	w.must(os.Rename(aside, path))
	w.Want(append(told, turnOf(2, "")[:2]...)...)
}
