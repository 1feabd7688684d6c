package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const demoDir = "../../testdata/demo"

func TestRecordings(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r, err := loadRecording(filepath.Join(demoDir, name+".jsonl"), "", `/home/me/a "quoted" dir`)
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			n := r.left()
			batch := r.take(n + 5)
			if len(batch) != n || r.left() != 0 {
				t.Fatalf("take gave %d of %d records, %d left", len(batch), n, r.left())
			}
			all := bytes.Join(batch, nil)
			for _, old := range []string{r.session, "/home/dev/"} {
				if old == "" {
					continue // Kimi's record names no session
				}
				if bytes.Contains(all, []byte(old)) {
					t.Errorf("%q of the recording is still there", old)
				}
			}
			for i, rec := range batch {
				if !json.Valid(rec) {
					t.Errorf("record %d is no JSON: %.200s", i, rec)
				}
				at := recordTime(rec)
				if !at.IsZero() && (at.Before(before.Add(-10*time.Millisecond)) || at.After(time.Now().Add(time.Millisecond))) {
					t.Errorf("record %d has the time %s, want now, %s", i, at, before)
				}
			}
		})
	}
}

func TestIdsAreRenamedConsistently(t *testing.T) {
	r := &recording{session: "11111111-1111-4111-8111-111111111111", self: "22222222-2222-4222-8222-222222222222", renamed: map[string]string{}, now: time.Now}
	const old = "33333333-3333-4333-8333-333333333333"
	one := string(r.rewrite([]byte(`{"a":"`+old+`","s":"`+r.session+`"}`), time.Now()))
	two := string(r.rewrite([]byte(`{"b":"msg_`+old+`"}`), time.Now()))
	id := strings.Split(one, `"`)[3]
	if id == old || !strings.Contains(two, "msg_"+id) || !strings.Contains(one, r.self) {
		t.Errorf("rewritten to %s and %s", one, two)
	}
	r.again()
	if three := string(r.rewrite([]byte(`{"b":"`+old+`"}`), time.Now())); strings.Contains(three, id) {
		t.Error("a second pass has the ids of the first")
	}
}

func TestNewID(t *testing.T) {
	at := time.UnixMilli(0x0123456789ab)
	for like, want := range map[string]string{
		"01a22dd0-0fa0-7262-80e0-9e5680bc5175": "01234567-89ab-7",
		"76a30f40-74fb-49f2-be29-18173e1a9655": "",
	} {
		id := newID(like, at)
		if !uuidPattern.MatchString(id) || len(id) != 36 || id[14] != like[14] || !strings.HasPrefix(id, want) {
			t.Errorf("newID(%s) = %s", like, id)
		}
		if newID(like, at) == id {
			t.Errorf("newID(%s) gave one id twice", like)
		}
	}
}

// TestPlayClaude gives every command and looks at what is on disk.
func TestPlayClaude(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	out := playAll(t, "claude", home, "next", "write 4", "half", "next", "rest", "status waiting", "skip 1", "nonsense",
		"write x", "raw not json", "again", "all", "clear", "write 2", "where")
	answers := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{"ready ", "wrote 1 left 22", "wrote 4 left 18", "ok half", "error: a record is half written", "ok rest",
		"ok status", "ok skip", `error: unknown command "nonsense"`, `error: "x" is not a count`, "ok raw", "ok again",
		"wrote 23 left 0", "ready ", "wrote 2 left 21", "ready ", "bye"}
	if len(answers) != len(want) {
		t.Fatalf("%d answers, want %d: %s", len(answers), len(want), out)
	}
	for i := range want {
		if !strings.HasPrefix(answers[i], want[i]) {
			t.Errorf("answer %d = %q, want %q", i, answers[i], want[i])
		}
	}
	first, second := strings.Fields(answers[0])[3], strings.Fields(answers[13])[3]
	if first == second {
		t.Error("clear did not begin another session")
	}
	for path, want := range map[string]int{first: 30, second: 2} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(data, []byte("\n")); got != want {
			t.Errorf("%s has %d lines, want %d", filepath.Base(path), got, want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(home, ".claude/sessions")); err != nil || len(left) != 0 {
		t.Errorf("a clean exit left %v, %v", left, err)
	}
}

func TestClaudeStatus(t *testing.T) {
	home := t.TempDir()
	c, err := newClaude(&recording{self: "s", dir: home, version: "2.1.197"}, func(k string) string { return map[string]string{"HOME": home}[k] })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	published := func() registryRecord {
		t.Helper()
		data, err := os.ReadFile(c.registry)
		if err != nil {
			t.Fatal(err)
		}
		var r registryRecord
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("registry record: %v: %s", err, data)
		}
		return r
	}
	if r := published(); r.Status != "idle" || r.PID != os.Getpid() || r.ProcStart == "" || r.SessionID != "s" {
		t.Errorf("at the start: %+v", r)
	}
	for _, step := range []struct{ record, status, waiting string }{
		{`{"type":"user"}`, "busy", ""},
		{`{"type":"assistant","name":"AskUserQuestion"}`, "waiting", "permission prompt"},
		{`{"type":"user"}`, "busy", ""}, // shorter than before: no old tail may stay
		{`{"type":"system","subtype":"turn_duration"}`, "idle", ""},
	} {
		if err := c.saw([]byte(step.record)); err != nil {
			t.Fatal(err)
		}
		if r := published(); r.Status != step.status || r.WaitingFor != step.waiting {
			t.Errorf("after %s: %s %q, want %s %q", step.record, r.Status, r.WaitingFor, step.status, step.waiting)
		}
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestPlayCodex(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- play(t.Context(), "codex", environment(t, "codex", home), r, pw) }() // joined below
	answers := bufio.NewReader(pr)
	say := func(command string) string {
		t.Helper()
		if command != "" {
			fmt.Fprintln(w, command)
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	rollout := strings.Fields(say(""))[3]
	if _, err := os.Stat(rollout); !os.IsNotExist(err) {
		t.Errorf("the rollout is there before the first record: %v", err)
	}
	say("write 3")
	held := false
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && target == rollout {
			held = true
		}
	}
	if !held {
		t.Error("the rollout is not held open")
	}
	if got := say("status busy"); !strings.HasPrefix(got, "error") {
		t.Errorf("codex published a status: %s", got)
	}
	locks, err := filepath.Glob(filepath.Join(home, ".codex/thread-writer-locks/*.lock"))
	if err != nil || len(locks) != 1 {
		t.Errorf("locks = %v, %v, want one", locks, err)
	}
	if got := say("exit"); got != "bye" {
		t.Errorf("exit: %q", got)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(locks[0]); !os.IsNotExist(err) {
		t.Errorf("a clean exit left the lock: %v", err)
	}
}

func TestStartInPTY(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `tty; read line; echo "got $line"`)
	master, err := startInPTY(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	r := bufio.NewReader(master)
	tty, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(tty, "/dev/pts/") {
		t.Fatalf("terminal = %q, %v", tty, err)
	}
	if _, err := master.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(line) == "got hello" {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestWatchPages(t *testing.T) {
	page := func(events string) string { return `{"events":[` + events + "]}\n" }
	come := `{"event_id":"1","kind":"agent_lifecycle","agent_id":"a","lifecycle":"available"}`
	final := `{"event_id":"2","kind":"turn_final","agent_id":"a"}`
	gone := `{"event_id":"3","kind":"agent_lifecycle","agent_id":"a","lifecycle":"unavailable"}`
	for name, c := range map[string]struct {
		pages string
		ours  bool
		ok    bool
	}{
		"all":      {page(come+","+final) + page("") + page(gone), true, true},
		"twice":    {page(come) + page(come), true, false},
		"no final": {page(come) + page(gone), true, false},
		"garbage":  {"nonsense\n", true, false},
		"not ours": {page(come + "," + final + "," + gone), false, false},
	} {
		n, err := watchPages(strings.NewReader(c.pages), 1, func(string) bool { return c.ours })
		if (err == nil) != c.ok || c.ok && n != 3 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func environment(t *testing.T, harness, home string) func(string) string {
	t.Helper()
	if demoRootErr != nil {
		t.Fatal(demoRootErr)
	}
	env := map[string]string{"HOME": home, "STANDIN_RECORD": filepath.Join(demoRoot, harness+".jsonl")}
	return func(k string) string { return env[k] }
}

// demoRoot is found before any test changes the working directory.
var demoRoot, demoRootErr = filepath.Abs(demoDir)

func playAll(t *testing.T, harness, home string, commands ...string) string {
	t.Helper()
	var out bytes.Buffer
	in := strings.NewReader(strings.Join(commands, "\n") + "\nexit\n")
	if err := play(t.Context(), harness, environment(t, harness, home), in, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
