package copilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

// home is a program's home with sessions in it, and a process that runs there.
type home struct {
	t    *testing.T
	dir  string
	proc providers.Process
}

func newHome(t *testing.T) *home {
	dir := t.TempDir()
	return &home{t, dir, providers.Process{PID: 18391, Comm: "MainThread", Exe: packagedExe, Args: []string{packagedExe},
		Started: time.Unix(1796060000, 0), Env: map[string]string{"COPILOT_HOME": dir}}}
}

func (h *home) write(rel, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// session makes a session's directory with the lock of a pid, and its
// transcript when it has one.
func (h *home) session(id string, pid int, transcript bool) providers.Session {
	dir := "session-state/" + id + "/"
	h.write(dir+"workspace.yaml", "id: "+id+"\n")
	h.write(fmt.Sprintf("%sinuse.%d.lock", dir, pid), fmt.Sprint(pid))
	h.write(fmt.Sprintf("%sinuse.%d.hold", dir, pid), "")
	path := filepath.Join(h.dir, dir, "events.jsonl")
	if transcript {
		h.write(dir+"events.jsonl", "{}\n")
	}
	return providers.Session{ID: id, Path: path}
}

// holds adds the open hold file of a session, and others that a process has.
func (h *home) holds(id string, pid int) {
	h.proc.Open = append(h.proc.Open, "/h/.cache/copilot/pkg/linux-x64/1.0.102/inuse."+fmt.Sprint(pid)+".hold",
		filepath.Join(h.dir, "session-store.db"), filepath.Join(h.dir, "session-state", id, fmt.Sprintf("inuse.%d.hold", pid)))
}

// log is the program's own log, held open.
func (h *home) log(text string) {
	h.proc.Open = append(h.proc.Open, h.write("logs/process-1796060000000-18391.log", text))
}

// want compares session, rank, source, whether it has a path, and a part of
// the reason for a refusal.
func (h *home) want(known []providers.Session, want ...string) {
	h.t.Helper()
	ev, err := Provider{}.Evidence(h.t.Context(), h.proc, known)
	if err != nil {
		h.t.Fatal(err)
	}
	var got []string
	for _, e := range ev {
		line := fmt.Sprintf("%s %d %s", e.Session[:4], e.Rank, e.Source)
		if e.Path != "" {
			line += " path"
			if e.Path != filepath.Join(h.dir, "session-state", e.Session, "events.jsonl") {
				h.t.Errorf("Path = %q", e.Path)
			}
		}
		if e.At.IsZero() {
			h.t.Errorf("%s has no time", line)
		}
		if e.Refused != "" {
			line += ": " + e.Refused
		}
		got = append(got, line)
	}
	if len(got) != len(want) {
		h.t.Fatalf("Evidence = %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) || strings.Contains(got[i], ":") != strings.Contains(want[i], ":") {
			h.t.Errorf("Evidence[%d] = %q, want %q", i, got[i], want[i])
		}
	}
}

const (
	exact   = "8d19 1 session-state/<id>/inuse.<pid>.hold"
	another = "3d59 1 session-state/<id>/inuse.<pid>.hold"
	lock    = "8d19 1 session-state/<id>/inuse.<pid>.lock"
)

func TestHoldIsExact(t *testing.T) {
	h := newHome(t)
	s := h.session(someID, 18391, true)
	h.holds(someID, 18391)
	h.want([]providers.Session{s}, exact+" path")
	h.want(nil, exact+" path")
}

// A session has no events.jsonl before its first prompt (1.0.102).
func TestHoldBeforeTheFirstPrompt(t *testing.T) {
	h := newHome(t)
	h.session(someID, 18391, false)
	h.holds(someID, 18391)
	h.want(nil, exact)
	if err := os.Mkdir(filepath.Join(h.dir, "session-state", someID, "events.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.want(nil, exact)
}

// In a container the program sees another pid than Steno: what is open decides.
func TestHoldOfAnotherNamespace(t *testing.T) {
	h := newHome(t)
	s := h.session(someID, 7, true)
	h.holds(someID, 7)
	h.want([]providers.Session{s}, exact+" path")
}

func TestLockWithoutHoldIsRefused(t *testing.T) {
	h := newHome(t)
	s, o := h.session(someID, 18391, true), h.session(otherID, 18392, true)
	h.want([]providers.Session{s, o}, lock+" path: the process does not hold the lock")
	h.proc.Open = []string{filepath.Join(h.dir, "session-state", someID, "inuse.18391.lock"), "/x/session-state/nope/inuse.1.hold",
		filepath.Join(h.dir, "session-state", someID, "inuse.18391.hold (deleted)")}
	h.want([]providers.Session{s, o}, lock+" path: the process does not hold the lock")
	h.want([]providers.Session{o})
	// What it does hold counts alone.
	h.session(otherID, 18391, true)
	h.holds(otherID, 18391)
	h.want([]providers.Session{s, o}, another+" path")
}

func TestInternalSessionIsRefused(t *testing.T) {
	h := newHome(t)
	s := h.session(someID, 18391, true)
	s.Internal = "a run that another session started"
	h.holds(someID, 18391)
	h.want([]providers.Session{s}, exact+": the session can own no pane: a run that another session started")
}

// 1.0.102: /new keeps a session that had prompts open, and the list of sessions
// goes back to it.
func TestSeveralOpenSessions(t *testing.T) {
	line := func(word, id string) string {
		return "2026-11-30T23:54:58.394Z [INFO] " + word + " foreground session: " + id + "\n"
	}
	start := line("Registering", someID)
	moved := start + line("Unregistering", someID) + "2026-11-30T23:54:58.394Z [INFO] Welcome\n" + line("Registering", otherID)
	filler := strings.Repeat("2026-11-30T23:55:00.000Z [INFO] "+strings.Repeat("x", 200)+"\n", 2000)
	const unknown, shown, absent = ": the process has several sessions open, and its log does not say", ": the process has several sessions open, and its log says", ": the process has several sessions open, and its log is not to be read"
	tests := []struct {
		name, log   string
		some, other string
	}{
		{"first", start, "", shown},
		{"moved", moved, shown, ""},
		{"back", moved + line("Unregistering", otherID) + line("Registering", someID), "", shown},
		{"in between", moved + line("Unregistering", otherID), unknown, unknown},
		{"long after", moved + filler, shown, ""},
		{"too long after", moved + strings.Repeat(filler, 11), unknown, unknown},
		{"half a line", moved + "2026-11-30T23:54:58.394Z [INFO] Registering foreground session: " + someID, shown, ""},
		{"a session that is not open", start + line("Registering", "00000000-0000-4000-8000-000000000000"), shown, shown},
		{"words of somebody", moved + "2026-11-30T23:54:58.394Z [INFO] prompt: Registering foreground session: " + someID + "\nRegistering foreground session: " + someID + "\n", shown, ""},
		{"long lines", moved + strings.Repeat("y", 3*logBlock) + "\n" + strings.Repeat("z", 100), shown, ""},
		{"over a border", strings.Repeat("y", logBlock-70) + "\n" + line("Registering", otherID) + strings.Repeat("z", logBlock-40), shown, ""},
		{"nothing", "", unknown, unknown},
		{"another log", "no", absent, absent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			known := []providers.Session{h.session(someID, 18391, true), h.session(otherID, 18391, true)}
			h.holds(someID, 18391)
			h.holds(otherID, 18391)
			if tt.log != "no" {
				h.log(tt.log)
			} else {
				h.proc.Open = append(h.proc.Open, h.write("logs/.copilot-log.lock", ""))
			}
			h.want(known, exact+" path"+tt.some, another+" path"+tt.other)
		})
	}
}

func TestInternalAmongSeveral(t *testing.T) {
	h := newHome(t)
	known := []providers.Session{h.session(someID, 18391, true), h.session(otherID, 18391, true)}
	known[0].Internal = "a run that another session started"
	h.holds(someID, 18391)
	h.holds(otherID, 18391)
	h.log("2026-11-30T23:54:58.394Z [INFO] Registering foreground session: " + otherID + "\n")
	h.want(known, exact+": the session can own no pane", another+" path")
}

func TestLogThatIsNoFile(t *testing.T) {
	h := newHome(t)
	known := []providers.Session{h.session(someID, 18391, true), h.session(otherID, 18391, true)}
	h.holds(someID, 18391)
	h.holds(otherID, 18391)
	const absent = " path: the process has several sessions open, and its log is not to be read"
	pipe := filepath.Join(h.dir, "process-1-2.log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	h.proc.Open = append(h.proc.Open, pipe)
	h.want(known, exact+absent, another+absent)
	h.proc.Open[len(h.proc.Open)-1] = filepath.Join(h.dir, "process-1-3.log")
	h.want(known, exact+absent, another+absent)
}

func TestArguments(t *testing.T) {
	h := newHome(t)
	s := h.session(someID, 1, true)
	h.proc.Args = []string{packagedExe, "--resume=" + someID}
	h.want([]providers.Session{s}, "8d19 3 command line path")
	h.want(nil, "8d19 3 command line path")
	h.proc.Args = []string{packagedExe, "--session-id", otherID}
	h.want([]providers.Session{s}, "3d59 3 command line")
	h.proc.Env = nil
	h.want([]providers.Session{s}, "3d59 3 command line")
	h.proc.Args = []string{packagedExe, "--resume=" + someID}
	h.holds(otherID, 18391)
	h.session(otherID, 18391, true)
	h.want([]providers.Session{s}, another+" path", "8d19 3 command line path")
}

func TestNothing(t *testing.T) {
	h := newHome(t)
	h.want(nil)
	h.want([]providers.Session{{ID: someID, Path: "/elsewhere/x.jsonl"}})
}

func TestDescribe(t *testing.T) {
	a := providers.Artifact{Provider: ID, Session: someID, Path: "/h/x"}
	tests := []struct {
		first string
		want  providers.Session
	}{
		{`{"type":"session.start","data":{"sessionId":"` + otherID + `","startTime":"2026-11-30T18:49:33.101Z","context":{"cwd":"/home/dev/work"}},"id":"x"}`,
			providers.Session{CWD: "/home/dev/work", Born: time.Date(2026, 11, 30, 18, 49, 33, 101e6, time.UTC)}},
		{`{"data":{"detachedFromSpawningParentSessionId":"` + otherID + `"},"type":"session.start"}`,
			providers.Session{Internal: "a run that another session started"}},
		{`{"type":"session.start","data":{"detachedFromSpawningParentSessionId":null,"startTime":7,"context":"x"}}`, providers.Session{}},
		{`{"type":"user.message","data":{"startTime":"2026-11-30T18:49:33.101Z"}}`, providers.Session{}},
		{`{"type":"session.start"}`, providers.Session{}},
		{``, providers.Session{}},
	}
	for _, tt := range tests {
		tt.want.ID, tt.want.Path = a.Session, a.Path
		if got := (Provider{}).Describe(a, []byte(tt.first)); got != tt.want {
			t.Errorf("Describe(%s) = %+v, want %+v", tt.first, got, tt.want)
		}
	}
}
