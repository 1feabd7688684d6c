package main

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"steno/ipc/wire"
)

// changing are the system calls that can change a file by its name.
const changing = "open,openat,openat2,creat,truncate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat," +
	"mkdir,mkdirat,rmdir,mknod,mknodat,chmod,fchmodat,chown,lchown,fchownat,utime,utimes,utimensat,futimesat,setxattr,lsetxattr,removexattr"

// TestWritesOnlyItsOwn: the daemon opens, makes, moves and removes nothing for
// writing but its state, its socket and /dev/null, while it reads a session of each
// program, and the log of Codex that its process does not name, and starts again.
func TestWritesOnlyItsOwn(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	if out, err := exec.Command(strace, "-D", "-f", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v: %s", err, out)
	}
	w := newWorld(t)
	w.env = append(w.env, "GEMINI_CLI_NO_RELAUNCH=1") // as the session's process has it
	trace := filepath.Join(w.dir, "trace")
	codexLog := filepath.Join(w.dir, ".codex/logs_2.sqlite")
	liveLog(t, codexLog)
	w.prepare = func(cmd *exec.Cmd) { // strace is a grandchild: signals are for the daemon
		cmd.Args = append([]string{strace, "-D", "-f", "-qq", "-A", "-s", "4096", "-e", "signal=none", "-e", "trace=exit_group," + changing, "-o", trace}, cmd.Args...)
		cmd.Path = strace
	}
	d := w.serve(nil)
	f := w.follow(0)
	harnesses := []string{"claude", "codex", "gemini", "opencode", "kimi", "copilot"}
	for i, harness := range harnesses {
		a := w.agent(harness, harness+"-dir")
		if harness == "codex" { // without a rollout its log is asked
			waitFor(t, "a look into the log of Codex", func() bool {
				calls, err := os.ReadFile(trace)
				return err == nil && bytes.Contains(calls, []byte(codexLog+"-shm"))
			})
		}
		a.do("all")
		id := w.entry(harness + "-dir").AgentID
		f.until(harness+"'s answer", func(events []wire.Event) bool { return count(events, id, isFinal) > 0 })
		if i == len(harnesses)/2 {
			d.stop()
			d = w.serve(nil)
		}
	}
	d.stop()
	var calls []byte
	waitFor(t, "the whole trace", func() bool {
		calls, err = os.ReadFile(trace)
		return err == nil && bytes.Count(calls, []byte("exit_group(")) == 2
	})
	own := []string{filepath.Join(w.dir, ".local/state/steno"), filepath.Join(w.dir, "run/steno")}
	quoted := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	writes := regexp.MustCompile(`O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND`)
	makes := regexp.MustCompile(`^(mkdir|mkdirat|chmod|fchmodat)\(`)
	seen := 0
	for line := range strings.Lines(string(calls)) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if strings.HasPrefix(call, "open") && !writes.MatchString(call) || strings.HasPrefix(call, "exit_group") || strings.HasPrefix(call, "<...") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(call, -1) {
			path := m[1]
			switch {
			case path == os.DevNull, path == own[0], path == own[1], strings.HasPrefix(path, own[0]+"/"), strings.HasPrefix(path, own[1]+"/"):
				seen++
			case makes.MatchString(call) && (strings.HasPrefix(own[0], path+"/") || strings.HasPrefix(own[1], path+"/")): // on the way to them
			default:
				t.Errorf("not Steno's own: %s", call)
			}
		}
	}
	if seen == 0 {
		t.Errorf("nothing was written at all: is the trace whole? %d bytes", len(calls))
	}
}

// liveLog is a database as the log of Codex is one, with a program that has it open.
func liveLog(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE logs (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
}
