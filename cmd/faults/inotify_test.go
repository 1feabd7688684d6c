package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Variables of a test that runs itself again in a user namespace.
const (
	insideVar = "STENO_FAULTS_INSIDE" // name of the test
	binaryVar = "STENO_FAULTS_STENO"  // the daemon that was built outside
)

func init() {
	if path := os.Getenv(binaryVar); path != "" {
		stenoBinary = func() (string, error) { return path, nil }
	}
}

// inside runs the present test again in a user namespace of its own, where a
// user may set limits. It is true in there. Its daemon and its agents are inside
// too: from a namespace nobody sees the files of a process outside.
func inside(t *testing.T, more uintptr) bool {
	t.Helper()
	if os.Getenv(insideVar) == t.Name() {
		return true
	}
	bin, err := stenoBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVar+"="+t.Name(), binaryVar+"="+bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | more, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	switch err := cmd.Start(); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		missing(t, "no user namespaces here")
	case err != nil:
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "--- SKIP") {
		t.Errorf("inside: %v", err)
	}
	t.Logf("inside:\n%s", out.String())
	return false
}

// limit sets a limit of this user namespace.
func limit(t *testing.T, name string, n int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc/sys/user", name), []byte(itoa(n)), 0); err != nil {
		missing(t, fmt.Sprint("limits of a namespace cannot be set: ", err))
	}
}

// Fault 4: the system has 8 watches, then none at all, for four agents in as
// many directories.
func TestFewWatches(t *testing.T) {
	if !inside(t, 0) {
		return
	}
	for _, tt := range []struct {
		name, limit string
		n           int
		mode        string
	}{
		{"8 watches", "max_inotify_watches", 8, "mixed"},
		{"no instance", "max_inotify_instances", 0, "polling"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limit(t, tt.limit, tt.n)
			w := newWorld(t)
			turns := pick(1, 20)
			f := &figures{Fault: "4 inotify: " + tt.name, How: "limit of a user namespace; 4 agents in 4 directories",
				Unit: "turns"}
			d := w.serve()
			s := w.read(0)
			var agents []*agent
			for i := range 4 {
				agents = append(agents, w.agent([]string{"claude", "codex"}[i%2], fmt.Sprint("agent", i)))
			}
			w.until("every agent", func() bool { return len(w.agents()) == len(agents) })
			for range turns {
				head, began := s.head(), time.Now()
				for _, a := range agents {
					a.do("turn 2 200")
					f.Tried++
				}
				// A turn is a start, its state, three answers, its end and a state.
				if !s.grown(head, 7*len(agents), patience) {
					t.Fatalf("not told in %v: %+v", patience, w.status().Watch)
				}
				f.recovered(time.Since(began))
			}
			s.verdict(f, agents...)
			if h := w.status().Watch; h.Mode != tt.mode || h.Reason == "" || h.Unwatched == 0 {
				t.Errorf("the status says %+v", h)
			}
			// It is said with the next sweep.
			w.until("the log says so", func() bool { return w.said("cannot be watched") })
			d.stop()
			f.report(t)
		})
	}
}

// Fault 4: without watches the daemon sweeps every 2 s. That costs little, also
// where there are thousands of sessions.
func TestIdleWithoutWatches(t *testing.T) {
	if !inside(t, 0) {
		return
	}
	const files, dirs = 2000, 50
	f := &figures{Fault: "4 inotify: idle", Unit: "spans", How: "2,000 old sessions and 3 idle agents; CPU time without any watch, and with all of them"}
	used := map[string]float64{}
	type form struct {
		mode string
		n    int
	}
	for _, tt := range pick([]form{{"polling", 0}}, []form{{"inotify", 1000}, {"polling", 0}}) {
		limit(t, "max_inotify_instances", tt.n)
		w := newWorld(t)
		for i := range files {
			dir := w.path(".claude", "projects", fmt.Sprint("old", i%dirs))
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, newUUID()+".jsonl"), []byte("{}\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		d := w.startWith(plain(t))
		d.ready()
		s := w.read(0)
		crowd := w.crowd(3)
		w.until("every agent", func() bool { return len(w.agents()) == len(crowd) })
		for _, p := range crowd {
			p.turn(t, 100)
		}
		s.heard(f, crowd)
		s.end() // a reader costs something too
		if h := w.status().Watch; h.Mode != tt.mode {
			t.Fatalf("the status says %+v", h)
		}
		// What is new is looked at for 20 s.
		span := pick(3*time.Second, time.Minute)
		if long {
			time.Sleep(20 * time.Second)
		}
		before := d.cpu()
		time.Sleep(span) // the span that is measured
		used[tt.mode] = perMinute(d.cpu()-before, span)
		f.Tried++
		d.stop()
	}
	f.Note = fmt.Sprintf("%.1f CPU seconds a minute", used["polling"])
	if long {
		f.Note += fmt.Sprintf(", with watches %.1f", used["inotify"])
	}
	if used["polling"] > 6 {
		t.Errorf("%s; at most 6", f.Note)
	}
	f.report(t)
}

// Fault 4: the daemon stands still until the kernel's queue of events is full,
// and so does not hear of most of what was written.
func TestQueueOverflow(t *testing.T) {
	w := newWorld(t)
	most, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	events := atoi(strings.TrimSpace(string(most))) + 1000
	if events > 1<<20 {
		missing(t, fmt.Sprintf("a queue of %d events takes too long to fill", events))
	}
	tries := pick(1, 5)
	f := &figures{Fault: "4 inotify: full queue", Tried: tries, Unit: "overflows",
		How: "SIGSTOP, then more changes than the queue holds while 4 agents write; all are told after SIGCONT"}
	d := w.serve()
	s := w.read(0)
	var agents []*agent
	for i := range 4 {
		agents = append(agents, w.agent([]string{"claude", "codex"}[i%2], fmt.Sprint("agent", i)))
		agents[i].do("turn 1 10")
	}
	w.until("every agent", func() bool { return len(w.agents()) == len(agents) })
	noise := filepath.Dir(agents[0].files()[0])
	for try := range tries {
		d.halt()
		fill(t, noise, events)
		for _, a := range agents {
			a.do("turn 3 300")
		}
		head, began := s.head(), time.Now()
		if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		w.until("the overflow", func() bool { return w.status().Watch.Overflows > uint64(try) })
		if !s.grown(head, 8*len(agents), patience) {
			t.Fatalf("not told in %v: %+v", patience, w.status().Watch)
		}
		f.recovered(time.Since(began))
	}
	s.verdict(f, agents...)
	if h := w.status().Watch; h.Mode != "inotify" {
		t.Errorf("afterwards the status says %+v", h)
	}
	d.stop()
	f.report(t)
}

// halt stops the daemon where it stands.
func (d *daemon) halt() {
	d.w.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		d.w.t.Fatal(err)
	}
	d.w.until("a daemon that stands", func() bool {
		fields, err := statOf(d.cmd.Process.Pid)
		return err == nil && fields[0] == "T"
	})
}

// fill makes n events below a directory, no two neighbours of them alike: those
// are one event.
func fill(t *testing.T, dir string, n int) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("noise", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	for i := range n {
		if _, err := files[i%2].Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}

// Fault 4: events that never come. A write by another name of the file, outside
// of what is watched, makes none: the sweep finds it.
func TestNoEvents(t *testing.T) {
	w := newWorld(t)
	f := &figures{Fault: "4 inotify: no events", Unit: "turns", Tried: pick(3, 30),
		How: "records written through a hard link elsewhere, for which the kernel has no event"}
	d := w.serve("--sweep", "1s")
	s := w.read(0)
	a := w.agent("claude", "one")
	a.do("turn 1 10")
	s.grown(0, 7, patience)
	file := a.files()[0]
	elsewhere := w.path("elsewhere.jsonl")
	if err := os.Link(file, elsewhere); err != nil {
		t.Fatal(err)
	}
	before := d.cpu()
	began := time.Now()
	for range f.Tried {
		head, at := s.head(), time.Now()
		appendTurn(t, elsewhere, w.path("one"), strings.TrimSuffix(filepath.Base(file), ".jsonl"))
		if !s.grown(head, 5, patience) {
			t.Fatalf("not told in %v: %+v", patience, w.status().Watch)
		}
		f.recovered(time.Since(at))
	}
	if h := w.status().Watch; h.Mode != "inotify" || h.Overflows > 0 {
		t.Errorf("the status says %+v", h)
	}
	f.Note = fmt.Sprintf("%.1f CPU seconds a minute", perMinute(d.cpu()-before, time.Since(began)))
	s.verdict(f, a)
	d.stop()
	f.report(t)
}

// marks counts the answers that appendTurn wrote.
var marks int

// appendTurn writes a turn of a Claude session without its program.
func appendTurn(t *testing.T, path, cwd, session string) (turn string) {
	t.Helper()
	c := &claude{cwd: cwd, session: session}
	turn = c.turnID()
	marks++
	var data []byte
	for _, r := range append(c.prompt(turn), c.final(turn, fmt.Sprintf("[m:%s:%d] end", session[:8], 1000+marks))...) {
		data = append(append(data, r...), '\n')
	}
	appendBytes(t, path, data)
	return turn
}

func appendBytes(t *testing.T, path string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// cpu is the processor time that the daemon has used.
func (d *daemon) cpu() time.Duration {
	d.w.t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(d.cmd.Process.Pid), "stat"))
	if err != nil {
		d.w.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
	return time.Duration(atoi(fields[11])+atoi(fields[12])) * tick
}

// perMinute is processor time as seconds in each minute.
func perMinute(used, span time.Duration) float64 { return 60 * used.Seconds() / span.Seconds() }
