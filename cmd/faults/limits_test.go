package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"steno/ipc"
)

// plainBinary is the daemon without the race detector, for what is measured.
var plainBinary = sync.OnceValues(func() (string, error) {
	first, err := stenoBinary() // makes the directory
	if err != nil {
		return "", err
	}
	path := first + "-plain"
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "steno/cmd/steno")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build steno: %w: %s", err, out)
	}
	return path, nil
})

// plain makes a daemon the program that users run.
func plain(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	bin, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	return func(cmd *exec.Cmd) { cmd.Path, cmd.Args[0] = bin, bin }
}

// mostMemory is what the daemon may have in memory at any time, in bytes.
const mostMemory = 128 << 20

// peak is the most memory that a process ever had, in bytes.
func (d *daemon) peak() int64 {
	d.w.t.Helper()
	n, err := statusField(d.cmd.Process.Pid, "VmHWM:")
	if err != nil {
		d.w.t.Fatal(err)
	}
	return n
}

// patrol asks for the status all the time and keeps the longest wait.
func (w *world) patrol() (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		for ctx.Err() == nil {
			began := time.Now()
			err := func() error {
				c, err := ipc.Dial(ctx, w.socket())
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = c.Status(ctx)
				return err
			}()
			if err == nil {
				longest = max(longest, time.Since(began))
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond): // its pace
			}
		}
		done <- longest
	}()
	return func() time.Duration { cancel(); return <-done }
}

// monsters are transcripts that no program should write.
var monsters = []struct {
	name  string
	write func(t *testing.T, path string)
}{
	{"1 GiB without a newline", func(t *testing.T, path string) {
		appendBytes(t, path, []byte(`{"type":"user","x":"`))
		grow(t, path, 1<<30)
	}},
	{"a record of 1 GiB", func(t *testing.T, path string) { appendBytes(t, path, []byte("\"}\n")) }},
	{"1,000,000 tiny records", func(t *testing.T, path string) {
		appendBytes(t, path, bytes.Repeat([]byte("{}\n"), 1_000_000))
	}},
	{"100,000 levels", func(t *testing.T, path string) {
		appendBytes(t, path, []byte(strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)+"\n"))
	}},
	{"1,000,000 keys", func(t *testing.T, path string) {
		appendBytes(t, path, []byte(`{"type":"user"`+strings.Repeat(`,"":0`, 1_000_000)+"}\n"))
	}},
	{"800,000 keys within the bound of a record", func(t *testing.T, path string) {
		appendBytes(t, path, []byte(`{"type":"user"`+strings.Repeat(`,"":0`, 800_000)+"}\n"))
	}},
	{"800,000 keys of a message", func(t *testing.T, path string) {
		appendBytes(t, path, []byte(`{"type":"assistant","uuid":"`+newUUID()+`","message":{"role":"assistant"`+strings.Repeat(`,"":0`, 800_000)+"}}\n"))
	}},
	{"answers of 4 MB", func(t *testing.T, path string) {
		c := &claude{cwd: "/", session: newUUID()}
		c.root = filepath.Dir(path)
		text := strings.Repeat("x", 4_000_000)
		for range pick(8, 400) {
			appendBytes(t, path, append(c.assistant(text, "tool_use"), '\n'))
		}
	}},
}

// Fault 5: 64 descriptors for 500 sessions of as many processes. Not even half of
// the processes can be watched for their end then.
func TestFewDescriptors(t *testing.T) {
	w := newWorld(t)
	const limit = 64
	sessions := pick(100, 500)
	f := &figures{Fault: "5 descriptors", Unit: "sessions", Tried: sessions,
		How: "RLIMIT_NOFILE 64, and as many clients; a process each, all write at once, then all are killed"}
	plain := plain(t)
	d := w.startWith(func(cmd *exec.Cmd) {
		plain(cmd)
		cmd.Args = append([]string{"sh", "-c", `ulimit -n ` + itoa(limit) + `; exec "$0" "$@"`}, cmd.Args...)
		cmd.Path = "/bin/sh"
	})
	d.ready()
	s := w.read(0)
	crowd := w.crowd(sessions)
	w.until("every agent", func() bool { return len(w.agents()) == sessions })
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for range limit {
		c, err := net.Dial("unix", w.socket())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	w.until("there is no room for more", func() bool {
		c, err := ipc.Dial(t.Context(), w.socket())
		if err == nil {
			c.Close()
		}
		var e *ipc.Error
		return errors.As(err, &e) && e.Code == ipc.CodeTooMany
	})
	room := func(idle []net.Conn) {
		for _, c := range idle {
			c.Close()
		}
		w.until("there is room again", func() bool {
			return w.ask(func(ctx context.Context, c *ipc.Client) error { _, err := c.Catalog(ctx); return err }) == nil
		})
	}
	room(idle[:4]) // for the questions of this test
	for range pick(1, 5) {
		began := time.Now()
		for _, p := range crowd {
			p.turn(t, 2000)
		}
		s.heard(f, crowd)
		f.recovered(time.Since(began))
	}
	n, err := descriptors(d.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	room(idle)
	for _, p := range crowd {
		p.turn(t, 100)
		p.kill()
	}
	w.until("every exit", func() bool {
		ends := 0
		names := w.agents()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.events {
			if names[e.agent] != "" && strings.HasPrefix(e.kind, "unavailable") {
				ends++
			}
		}
		return ends == sessions
	})
	s.heard(f, crowd)
	if d.peak() > mostMemory {
		t.Errorf("%d MiB in memory, at most %d", d.peak()>>20, mostMemory>>20)
	}
	f.Note = fmt.Sprintf("%d descriptors, at most %d MiB in memory", n, d.peak()>>20)
	d.stop()
	f.report(t)
}

// grow makes a file longer by a hole: it reads as NUL bytes.
func grow(t *testing.T, path string, n int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()+n); err != nil {
		t.Fatal(err)
	}
}

// Fault 5: transcripts that no program should write cost neither memory nor the
// patience of a client, and what stands behind them is told.
func TestMonsters(t *testing.T) {
	w := newWorld(t)
	f := &figures{Fault: "5 memory", Unit: "monsters", Tried: len(monsters),
		How: "1 GiB without a newline, a record of 1 GiB, 1e6 records, 1e5 levels, 1e6 keys, answers of 4 MB"}
	d := w.startWith(plain(t))
	d.ready()
	s := w.read(0)
	a := w.agent("claude", "one")
	a.do("turn 1 10")
	if !s.grown(0, 7, patience) {
		t.Fatal("the first turn was not told")
	}
	file := a.files()[0]
	session := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	stop := w.patrol()
	for i, m := range monsters {
		m.write(t, file)
		began := time.Now()
		if i == 0 {
			// Nothing can be told before the newline; it is read to its end all the same.
			if !eventually(time.Minute, func() bool { return w.readTo(d, file) }) {
				t.Error("the file was not read to its end")
			}
		} else {
			turn := appendTurn(t, file, w.path("one"), session)
			if !eventually(patience, func() bool { return slices.Contains(s.tokens(w.agents())["one"], "final "+turn) }) {
				f.Lost++
				t.Errorf("%s: the turn behind it was not told", m.name)
			}
		}
		f.recovered(time.Since(began))
		now, err := residentBytes(d.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MiB in memory, at most %d MiB so far, %v", m.name, now>>20, d.peak()>>20, time.Since(began).Round(time.Millisecond))
	}
	longest := stop()
	if d.peak() > mostMemory {
		t.Errorf("%d MiB in memory, at most %d", d.peak()>>20, mostMemory>>20)
	}
	if longest > 5*time.Second {
		t.Errorf("a client waited %v for the status", longest)
	}
	f.Note = fmt.Sprintf("at most %d MiB in memory, longest wait of a client %v", d.peak()>>20, longest.Round(time.Millisecond))
	s.mu.Lock()
	f.Repeated, f.Reused = s.repeated, s.reused
	for _, line := range s.wrong {
		t.Error(line)
	}
	s.mu.Unlock()
	d.stop()
	f.report(t)
}

// readTo says whether the daemon has read a file to its end: it has read as many
// bytes as there are.
func (w *world) readTo(d *daemon, path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join("/proc", itoa(d.cmd.Process.Pid), "io"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(line, "rchar: "); ok {
			return int64(atoi(strings.TrimSpace(n))) >= info.Size()
		}
	}
	return false
}

// eventually polls a condition that nothing announces, for at most d.
func eventually(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); !ok(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(10 * time.Millisecond) // between two looks
	}
	return true
}

// Fault 5: many sessions have much to read at the same time.
func TestManyBacklogs(t *testing.T) {
	w := newWorld(t)
	sessions, turns := pick(60, 100), pick(8, 50)
	f := &figures{Fault: "5 memory: backlogs", Unit: "sessions", Tried: sessions,
		How: "the daemon stands still while each session gets up to 3 MB in records of 60 kB; all are told after SIGCONT"}
	d := w.startWith(plain(t))
	d.ready()
	s := w.read(0)
	crowd := w.crowd(sessions)
	w.until("every agent", func() bool { return len(w.agents()) == sessions })
	for _, p := range crowd {
		p.turn(t, 100)
	}
	s.heard(f, crowd)
	d.halt()
	for _, p := range crowd {
		for range turns {
			p.turn(t, 60_000)
		}
	}
	began := time.Now()
	if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.heard(f, crowd)
	f.recovered(time.Since(began))
	if d.peak() > mostMemory {
		t.Errorf("%d MiB in memory, at most %d", d.peak()>>20, mostMemory>>20)
	}
	f.Note = fmt.Sprintf("at most %d MiB in memory", d.peak()>>20)
	d.stop()
	f.report(t)
}
