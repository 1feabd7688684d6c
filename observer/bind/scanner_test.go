package bind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

// deadline bounds every wait for a condition.
const deadline = 20 * time.Second

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", deadline, what)
		}
	}
}

// byName recognises a program by the last part of its first two arguments, and
// of its executable.
type byName struct {
	id   string
	part map[string]providers.Part
}

func (b byName) ID() string { return b.id }

func (b byName) Recognise(p providers.Process) providers.Part {
	names := []string{filepath.Base(p.Exe)}
	for _, a := range p.Args[:min(2, len(p.Args))] {
		names = append(names, filepath.Base(a))
	}
	for _, n := range names {
		if part := b.part[n]; part != providers.NotMine {
			return part
		}
	}
	return providers.NotMine
}

// table is a made-up /proc whose clock stands until it is moved.
type table struct {
	t   *testing.T
	dir string
	up  time.Duration
}

var epoch = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

func newTable(t *testing.T) *table { return &table{t, t.TempDir(), 1000 * time.Second} }

func (f *table) scanner(keys ...string) *Scanner {
	return NewScanner(Options{
		Proc: f.dir, EnvKeys: keys, Recognisers: []Recogniser{byName{"x", map[string]providers.Part{"agent": providers.Worker}}},
		Now:    func() time.Time { return epoch.Add(f.up) },
		Uptime: func() (time.Duration, error) { return f.up, nil },
	})
}

// row is a made-up process.
type row struct {
	pid, ppid int
	start     uint64
	comm      string
	exe, cwd  string
	args, env string
	image     int // changes with an exec
	flags     int
	state     string
}

func (f *table) put(r row) {
	f.t.Helper()
	dir := filepath.Join(f.dir, strconv.Itoa(r.pid))
	if r.state == "" {
		r.state = "S"
	}
	line := fmt.Sprintf("%d (%s) %s %d %d %d 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 0 0 0 %d\n",
		r.pid, r.comm, r.state, r.ppid, r.pid, r.pid, r.flags, r.start, r.image)
	must := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir, 0o700))
	for name, text := range map[string]string{"stat": line, "cmdline": r.args, "environ": r.env} {
		must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, to := range map[string]string{"exe": r.exe, "cwd": r.cwd} {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			f.t.Fatal(err)
		}
		if to != "" {
			must(os.Symlink(to, path))
		}
	}
}

func (f *table) drop(pid int) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, strconv.Itoa(pid))); err != nil {
		f.t.Fatal(err)
	}
}

func scan(t *testing.T, s *Scanner) Processes {
	t.Helper()
	p, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pids(list []providers.Process) []int {
	var out []int
	for _, p := range list {
		out = append(out, p.PID)
	}
	return out
}

func TestScan(t *testing.T) {
	t.Parallel()
	f := newTable(t)
	f.put(row{pid: 2, comm: "kthreadd", flags: kernelThread})
	f.put(row{pid: 10, ppid: 1, start: 1000, comm: "bash", exe: "/bin/bash", args: "-bash\x00"})
	f.put(row{pid: 20, ppid: 10, start: 98000, comm: "agent", exe: "/opt/agent (deleted)", cwd: "/work",
		args: "/opt/agent\x00--flag\x00", env: "HOME=/h\x00TOKEN=secret\x00"})
	f.put(row{pid: 21, ppid: 20, start: 98100, comm: "cat", exe: "/bin/cat", args: "cat\x00", env: "HOME=/h\x00"})
	if err := os.MkdirAll(filepath.Join(f.dir, "30"), 0o700); err != nil { // vanished before its stat was read
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "version"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := f.scanner("HOME")
	p := scan(t, s)
	if got := pids(p.Candidates()); !slices.Equal(got, []int{20}) || p.Len() != 3 {
		t.Fatalf("candidates %v of %d processes", got, p.Len())
	}
	want := providers.Process{
		PID: 20, PPID: 10, PGID: 20, SID: 20, TPGID: -1, StartTicks: 98000, Started: epoch.Add(980 * time.Second),
		State: 'S', Comm: "agent", Exe: "/opt/agent", CWD: "/work", Args: []string{"/opt/agent", "--flag"},
		Env: map[string]string{"HOME": "/h"},
	}
	if got, ok := p.Get(20); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("process = %+v, want %+v", got, want)
	}
	if got, _ := p.Get(21); got.Args != nil || got.Env != nil || got.Exe != "" {
		t.Errorf("more than its stat is kept of %+v", got)
	}
	if got := p.Ancestors(21); !slices.Equal(got, []int{20, 10, 1}) {
		t.Errorf("ancestors %v", got)
	}
	if got := p.Children(10); !slices.Equal(got, []int{20}) {
		t.Errorf("children %v", got)
	}
	if !p.Is(20, 98000) || p.Is(20, 98001) || p.Is(99, 1) {
		t.Error("Is does not go by pid and start")
	}
}

// Work is counted: what has not changed is not read again.
func TestScanWork(t *testing.T) {
	t.Parallel()
	f := newTable(t)
	const others = 50
	for i := range others {
		f.put(row{pid: 1000 + i, ppid: 1, start: 1000, comm: "idle", exe: "/bin/idle", args: "idle\x00"})
	}
	f.put(row{pid: 2, comm: "kthreadd", flags: kernelThread})
	f.put(row{pid: 10, ppid: 1, start: 1000, comm: "bash", exe: "/bin/bash", args: "bash\x00"})
	f.put(row{pid: 20, ppid: 10, start: 2000, comm: "agent", exe: "/opt/agent", args: "agent\x00", env: "HOME=/h\x00"})
	s := f.scanner("HOME")
	before := scan(t, s)
	if want := (counter{lstat: others + 3, stat: others + 3, args: others + 2, environ: 1}); s.counter != want {
		t.Fatalf("first scan: %+v, want %+v", s.counter, want)
	}
	s.counter = counter{}
	after := scan(t, s)
	// The agent and the shell above it.
	if want := (counter{lstat: others + 3, stat: 2}); s.counter != want {
		t.Errorf("second scan: %+v, want %+v", s.counter, want)
	}
	if before.index[20] != after.index[20] || before.index[1000] != after.index[1000] {
		t.Error("unchanged processes were made anew")
	}
	s.counter = counter{}
	f.up += defaultRefresh
	scan(t, s)
	if want := (counter{lstat: others + 3, stat: others + 2}); s.counter != want {
		t.Errorf("scan after the refresh time: %+v, want %+v", s.counter, want)
	}
	s.counter = counter{}
	f.put(row{pid: 21, ppid: 20, start: 100000, comm: "ls", exe: "/bin/ls", args: "ls\x00"})
	scan(t, s)
	if want := (counter{lstat: others + 4, stat: 3, args: 1}); s.counter != want {
		t.Errorf("scan with one new process: %+v, want %+v", s.counter, want)
	}
}

// Field list: F10, F15.
func TestScanChanges(t *testing.T) {
	t.Parallel()
	old := row{pid: 20, ppid: 1, start: 1000, comm: "bash", exe: "/bin/bash", args: "bash\x00", image: 1}
	agent := old
	agent.comm, agent.exe, agent.args, agent.image = "agent", "/opt/agent", "agent\x00", 2
	for _, c := range []struct {
		name          string
		first, second row
		later         time.Duration
		want          bool // is it a candidate afterwards
		args          []string
	}{
		{"exec of an agent in an old shell", old, agent, defaultRefresh, true, []string{"agent"}},
		{"exec with the same name", func() row { r := old; r.comm = "agent"; return r }(), agent, defaultRefresh, true, []string{"agent"}},
		{"exec of something else in an agent", agent, old, 0, false, nil},
		{"exec of itself with other arguments", agent, func() row { r := agent; r.image, r.args = 3, "agent\x00--resume\x00"; return r }(), 0, true, []string{"agent", "--resume"}},
		{"new name, same program", func() row { r := agent; r.comm, r.args = "node", "node\x00/x/agent\x00"; return r }(), agent, 0, true, []string{"agent"}},
		{"new title of an old agent is not looked for", agent, func() row { r := agent; r.args = "other\x00"; return r }(), 0, true, []string{"agent"}},
		{"new title of a young agent", func() row { r := agent; r.start = 99500; return r }(), func() row { r := agent; r.start, r.args = 99500, "agent\x00\x00\x00"; return r }(), 0, true, []string{"agent"}},
		{"command line that comes late", func() row { r := agent; r.start, r.args, r.exe, r.comm = 99999, "", "", "agent"; return r }(), func() row { r := agent; r.start = 99999; return r }(), 0, true, []string{"agent"}},
		{"pid used again by an agent", old, func() row { r := agent; r.start = 99999; return r }(), defaultRefresh, true, []string{"agent"}},
		{"pid used again by a shell", agent, func() row { r := old; r.start = 99999; return r }(), 0, false, nil},
		{"a zombie keeps what it was", agent, func() row { r := agent; r.state, r.args, r.exe, r.image = "Z", "", "", 0; return r }(), 0, true, []string{"agent"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newTable(t)
			s := f.scanner()
			f.put(c.first)
			before, _ := scan(t, s).Get(20)
			f.put(c.second)
			f.up += c.later
			p := scan(t, s)
			after, _ := p.Get(20)
			if got := len(p.Candidates()) == 1; got != c.want || !slices.Equal(after.Args, c.args) {
				t.Fatalf("candidate %v with %q, want %v with %q", got, after.Args, c.want, c.args)
			}
			if c.first.start == c.second.start && !before.Started.Equal(after.Started) {
				t.Errorf("start moved from %v to %v", before.Started, after.Started)
			}
			f.drop(20)
			if p := scan(t, s); p.Len() != 0 || len(s.known) != 0 {
				t.Errorf("%d processes and %d entries after its end", p.Len(), len(s.known))
			}
		})
	}
}

func TestScanDirectoryChange(t *testing.T) {
	t.Parallel()
	f := newTable(t)
	s := f.scanner()
	r := row{pid: 20, ppid: 1, start: 1000, comm: "agent", exe: "/opt/agent", args: "agent\x00", cwd: "/a"}
	f.put(r)
	first := scan(t, s)
	r.cwd = "/b"
	f.put(r)
	second := scan(t, s)
	a, _ := first.Get(20)
	b, _ := second.Get(20)
	if a.CWD != "/a" || b.CWD != "/b" {
		t.Errorf("directories %q, %q: a table that was given out must not change", a.CWD, b.CWD)
	}
}

// A stat line that is no stat line hides one process, not the others; a start that
// no clock can have is no date before the boot.
func TestScanStrangeStat(t *testing.T) {
	t.Parallel()
	f := newTable(t)
	f.put(row{pid: 20, ppid: 1, start: 1000, comm: "agent", exe: "/opt/agent", args: "agent\x00"})
	f.put(row{pid: 21, ppid: 1, start: 1<<64 - 1, comm: "agent", exe: "/opt/agent", args: "agent\x00"})
	for pid, line := range map[int]string{30: "", 31: "31 (agent", 32: "32 (agent) S x", 33: "\x00"} {
		f.put(row{pid: pid, ppid: 1, start: 1000, comm: "agent", exe: "/opt/agent", args: "agent\x00"})
		if err := os.WriteFile(filepath.Join(f.dir, strconv.Itoa(pid), "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := f.scanner()
	p := scan(t, s)
	if p.Len() != 2 || len(p.Candidates()) != 2 {
		t.Errorf("%d processes, %d candidates", p.Len(), len(p.Candidates()))
	}
	if strange, _ := p.Get(21); strange.Started.Before(epoch) {
		t.Errorf("started %v", strange.Started)
	}
}

func TestScanFails(t *testing.T) {
	t.Parallel()
	s := NewScanner(Options{Proc: filepath.Join(t.TempDir(), "none")})
	if _, err := s.Scan(t.Context()); err == nil {
		t.Error("no error without /proc")
	}
	s = newTable(t).scanner()
	s.uptime = func() (time.Duration, error) { return 0, syscall.EINVAL }
	if _, err := s.Scan(t.Context()); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error %v", err)
	}
	f := newTable(t)
	f.put(row{pid: 20, ppid: 20, start: 1, comm: "agent", exe: "/opt/agent", args: "agent\x00"}) // its own parent
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.scanner().Scan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := scan(t, f.scanner()).Ancestors(20); !slices.Equal(got, []int{20}) {
		t.Errorf("ancestors of its own parent: %v", got)
	}
	if _, err := f.scanner().ReadProcess(21); !errors.Is(err, ErrGone) {
		t.Errorf("ReadProcess of nobody: %v", err)
	}
	if _, _, err := f.scanner().Open(21); !errors.Is(err, ErrGone) {
		t.Errorf("Open of nobody: %v", err)
	}
}

// child starts a copy of sleep under another name.
func child(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if sleep, err = filepath.EvalSymlinks(sleep); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "1000")
	cmd.Env = []string{"HOME=/some/home", "TOKEN=secret"}
	cmd.Dir = filepath.Dir(path)
	// Another test that forks may hold the file open for writing for a moment.
	until(t, "start of "+name, func() bool {
		err := cmd.Start()
		if errors.Is(err, syscall.ETXTBSY) {
			fresh := exec.Command(path, "1000")
			fresh.Env, fresh.Dir = cmd.Env, cmd.Dir
			cmd = fresh
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // some tests have ended it
		_ = cmd.Wait()
	})
	return cmd
}

func TestScanRealChild(t *testing.T) {
	t.Parallel()
	s := NewScanner(Options{
		EnvKeys:     []string{"HOME"},
		Recognisers: []Recogniser{byName{"x", map[string]providers.Part{"steno-agent-one": providers.Worker}}},
	})
	cmd := child(t, "steno-agent-one")
	var p providers.Process
	find := func(procs Processes) bool {
		var ok bool
		p, ok = procs.Get(cmd.Process.Pid)
		return ok && slices.Contains(pids(procs.Candidates()), cmd.Process.Pid)
	}
	until(t, "the child is a candidate", func() bool { return find(scan(t, s)) })
	if p.PPID != os.Getpid() || p.Comm != "steno-agent-one" || filepath.Base(p.Exe) != "steno-agent-one" ||
		p.CWD != cmd.Dir || !slices.Equal(p.Args[1:], []string{"1000"}) || len(p.Env) != 1 || p.Env["HOME"] != "/some/home" {
		t.Errorf("process %+v", p)
	}
	if age := time.Since(p.Started); age < -time.Second || age > time.Minute {
		t.Errorf("started %v ago", age)
	}
	// Once it is no longer young, neither command line nor environment is read
	// for it. Other programs on the machine come and go: count only its own.
	s.uptime = func() (time.Duration, error) {
		up, err := uptime()
		return up + young, err
	}
	scan(t, s)
	first := s.known[cmd.Process.Pid]
	s.recog = []Recogniser{byName{"x", map[string]providers.Part{"steno-agent-one": providers.Helper}}} // would be asked again
	scan(t, s)
	if again := s.known[cmd.Process.Pid]; first.proc != again.proc {
		t.Errorf("an unchanged process was made anew: %+v, %+v", first.proc, again.proc)
	}
	if err := os.Remove(cmd.Path); err != nil { // an update while it runs
		t.Fatal(err)
	}
	if !find(scan(t, s)) || p.Exe != cmd.Path {
		t.Errorf("after its file was removed: %+v", p)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the child is a zombie", func() bool {
		procs := scan(t, s)
		return find(procs) && p.State == 'Z' && !procs.Is(p.PID, p.StartTicks)
	})
	_ = cmd.Wait() // it was killed
	if _, ok := scan(t, s).Get(cmd.Process.Pid); ok {
		t.Error("a collected child is still there")
	}
}

// Field list: F13.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, deleted := filepath.Join(dir, "b (deleted)"), filepath.Join(dir, "gone")
	written := 9
	for _, name := range []string{path, path, deleted, filepath.Join(dir, "a")} {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if name == path {
			written -= 3 // the first descriptor stands further on, and may be listed first
			if _, err := f.WriteString(strings.Repeat("x", written)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Remove(deleted); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, at, err := NewScanner(Options{}).Open(os.Getpid())
	got = slices.DeleteFunc(got, func(p string) bool { return !strings.HasPrefix(p, dir) })
	if want := []string{filepath.Join(dir, "a"), path}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Open = %q, %v, want %q", got, err, want)
	}
	if at[path] != 6 || at[filepath.Join(dir, "a")] != 0 {
		t.Errorf("positions = %v, want 6 for %s and 0 for the other", at, path)
	}
}

func BenchmarkScan(b *testing.B) {
	s := NewScanner(Options{Recognisers: []Recogniser{byName{"x", nil}}})
	n := 0
	for b.Loop() {
		p, err := s.Scan(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		n = p.Len()
	}
	b.ReportMetric(float64(n), "processes")
}
