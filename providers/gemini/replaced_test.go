package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"steno/ipc/wire"
	"steno/observer"
	"steno/providers"
	"steno/store"
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
	t     *testing.T
	store *store.Store
	chats string // its directory
}

// watch starts both. Other programs of this name on the machine have other homes:
// they have agents here, but no session.
func watch(t *testing.T, sweep time.Duration) *watched {
	t.Helper()
	home := t.TempDir()
	w := &watched{t: t, chats: filepath.Join(home, ".gemini", "tmp", "code", "chats")}
	cwd := filepath.Join(home, "code")
	for _, dir := range []string{w.chats, cwd, filepath.Join(home, "bin")} {
		w.must(os.MkdirAll(dir, 0o700))
	}
	w.must(os.WriteFile(filepath.Join(filepath.Dir(w.chats), ".project_root"), []byte(cwd), 0o600))
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(home, "state", "events.db")})
	w.must(err)
	w.store = s
	o, err := observer.New(observer.Options{
		Store: s, Providers: []providers.Provider{Provider{}}, Env: providers.Env{Home: home},
		TmuxPath: filepath.Join(home, "no-tmux"), Sweep: sweep, Log: zerolog.Nop(),
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-o.Swept():
	case <-time.After(30 * time.Second):
		t.Fatal("no first sweep")
	}
	self, err := os.Executable()
	w.must(err)
	program := filepath.Join(home, "bin", ID)
	b, err := os.ReadFile(self)
	w.must(err)
	w.must(os.WriteFile(program, b, 0o700))
	cmd := exec.Command(program)
	cmd.Env, cmd.Dir = []string{"HOME=" + home, "GEMINI_CLI_NO_RELAUNCH=true"}, cwd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	w.must(err)
	w.must(cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return w
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// seen are the events of the session so far: those of all agents that tell more
// than that one lives.
func (w *watched) seen() (out []string) {
	w.t.Helper()
	for after := store.Seq(0); ; {
		p, err := w.store.Page(w.t.Context(), store.Query{After: after, Limit: 1000})
		w.must(err)
		if len(p.Events) == 0 {
			return out
		}
		after = p.Next
		for _, b := range p.Events {
			var e wire.Event
			w.must(json.Unmarshal(b, &e))
			line := e.Kind
			for _, s := range []*string{e.TurnID, e.TurnState, e.Outcome, e.Text} {
				if s != nil && *s != "" {
					line += " " + *s
				}
			}
			if e.Kind != "agent_lifecycle" {
				out = append(out, line)
			}
		}
	}
}

// want waits until the events are exactly these.
func (w *watched) want(want ...string) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		changed := w.store.Changed()
		got := w.seen()
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			w.t.Fatalf("events:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
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

func documented(header string, messages ...string) string {
	return header + `,"messages":[` + strings.Join(messages, ",") + `]}`
}

const otherID = "75a45b4d-4e24-4297-ab11-cb7e4eef05fd"

// A session's file that is deleted and made again is another one: what waited in
// the old one is decided, one failure says so, nothing is replayed, and what comes
// after it is told.
func TestFileMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		name, ext string
		make      func(header string, messages ...string) string
		session   string // of the new file
	}{
		{"lines, another session", ".jsonl", lined, otherID},
		{"lines, the same session", ".jsonl", lined, sid},
		{"document, another session", ".json", documented, otherID},
		{"document, the same session", ".json", documented, sid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := watch(t, time.Hour)
			path := filepath.Join(w.chats, "session-2026-11-30T10-00-65a45b4d"+tt.ext)
			first := []string{nowUser("u1"), nowAnswer("g1")}
			w.must(os.WriteFile(path, []byte(tt.make(nowHeader(sid), first...)), 0o600))
			told := []string{"turn_started u1", "turn_state_changed u1 waiting_on_agent", "assistant_message u1 Text of g1."}
			w.want(told...)
			w.must(os.Remove(path))
			second := []string{nowUser("u2"), nowAnswer("g2")}
			w.must(os.WriteFile(path, []byte(tt.make(nowHeader(tt.session), second...)), 0o600))
			told = append(told, "turn_final u1 completed Text of g1.", "turn_state_changed u1 waiting_on_user", "observer_failure")
			w.want(told...)
			third := append(second, nowUser("u3"))
			if tt.ext == ".json" {
				w.must(os.WriteFile(path, []byte(tt.make(nowHeader(tt.session), third...)), 0o600))
			} else {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				w.must(err)
				_, err = f.WriteString(third[2] + "\n")
				w.must(err)
				w.must(f.Close())
			}
			w.want(append(told, "turn_started u3", "turn_state_changed u3 waiting_on_agent")...)
		})
	}
}
