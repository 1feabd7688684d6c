//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/cmd/e2e/model"
	"steno/ipc/wire"
)

// pulse is how often a condition is looked at.
const pulse = 80 * time.Millisecond

// world is one scenario's: a home, a tmux server, a model server, a daemon and
// a reader of its events.
type world struct {
	t        *testing.T
	dir      string
	env      []string
	programs []*program // that are there
	model    *model.Server
	daemon   *exec.Cmd
	log      *os.File
	agents   map[string]*agent // by name
	prompts  []string

	follower *exec.Cmd
	pages    chan []byte
	record   *os.File          // every page as it came
	last     uint64            // sequence
	heard    bool              // a page came
	away     time.Time         // since when the daemon is down
	mayEnd   bool              // the follower, because the daemon was away for long
	names    map[string]string // of agents by id
	tellers  map[string]*teller
	got      map[string][]string // rows by name
	table    map[string][]string // rows that the whole scenario has, without texts
	shapes   map[string]shapes   // of the programs' records, by program
}

// newWorld makes the world in which the programs of these names are there.
func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, dir: dir, agents: map[string]*agent{}, names: map[string]string{},
		tellers: map[string]*teller{}, got: map[string][]string{}, shapes: map[string]shapes{},
	}
	t.Cleanup(w.close)
	for _, d := range []string{"home", "run", "tmp", "bin"} {
		w.must(os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	w.model, err = model.Start()
	w.must(err)
	w.link("steno", os.Getenv(stenoVar))
	w.env = []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + w.home(), "LANG=C.UTF-8", "TERM=xterm-256color",
		"SHELL=/bin/bash", "PS1=$ ", "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "TMUX_TMPDIR=" + filepath.Join(dir, "run"),
		"TMPDIR=" + filepath.Join(dir, "tmp"),
	}
	for _, name := range names {
		w.add(name)
	}
	w.record, err = os.Create(filepath.Join(dir, "pages.jsonl"))
	w.must(err)
	w.log, err = os.Create(filepath.Join(dir, "steno.log"))
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// add puts a program there.
func (w *world) add(name string) {
	w.t.Helper()
	p := programNamed(name)
	if p == nil {
		w.t.Fatalf("there is no program %s", name)
	}
	w.programs = append(w.programs, p)
	for name, path := range p.links {
		w.link(name, inModules(os.Getenv(modulesVar), path))
	}
	if p.env != nil {
		w.env = append(w.env, p.env(w)...)
	}
}

// link makes a name that a person types.
func (w *world) link(name, path string) {
	w.t.Helper()
	w.must(os.Symlink(path, filepath.Join(w.dir, "bin", name)))
}

// home is the HOME of the scenario.
func (w *world) home() string { return filepath.Join(w.dir, "home") }

// write writes a file below the home, with the directories above it.
func (w *world) write(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.home(), path)
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, []byte(text), 0o600))
}

// settle makes the directories, and what a person has who used the programs
// before and trusts them.
func (w *world) settle(dirs ...string) {
	w.t.Helper()
	var paths []string
	for _, d := range dirs {
		path := filepath.Join(w.dir, d)
		w.must(os.MkdirAll(path, 0o700))
		paths = append(paths, path)
	}
	for _, p := range w.programs {
		p.settle(w, paths)
	}
}

func (w *world) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.dir, "bin", name), args...)
	cmd.Env, cmd.Dir = w.env, w.dir
	return cmd
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	if !within(patience, holds) {
		w.t.Fatalf("%s: not in %s", what, patience)
	}
}

// within tells whether a condition comes to hold in a time.
func within(d time.Duration, holds func() bool) bool {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// serve starts the daemon and waits until it answers.
func (w *world) serve() {
	w.t.Helper()
	w.daemon = w.command("steno", "serve", "--log-level", "debug")
	w.daemon.Stderr = w.log
	w.must(w.daemon.Start())
	w.eventually("the daemon answers", func() bool { return w.command("steno", "status").Run() == nil })
}

// stop ends the daemon by a signal.
func (w *world) stop(sig syscall.Signal) {
	w.t.Helper()
	if w.daemon == nil {
		return
	}
	w.must(w.daemon.Process.Signal(sig))
	err := w.daemon.Wait()
	w.daemon = nil
	if sig == syscall.SIGTERM && err != nil {
		w.t.Errorf("the daemon ended with %v", err)
	}
}

// follow starts the reader whose pages are checked, at the last event that was
// read. It lives through restarts of the daemon.
func (w *world) follow() {
	w.t.Helper()
	w.follower = w.command("steno", "agent", "events", "--after", fmt.Sprint(w.last), "--follow", "--wait-ms", "1000")
	out, err := w.follower.StdoutPipe()
	w.must(err)
	w.must(w.follower.Start())
	w.pages = make(chan []byte)
	go w.readPages(out) // ends with the follower, which close kills
}

func (w *world) readPages(out io.Reader) {
	defer close(w.pages)
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, wire.MaxLine)
	for scan.Scan() {
		w.pages <- append([]byte(nil), scan.Bytes()...)
	}
}

// expect waits until every agent has exactly the rows so far.
func (w *world) expect(want map[string][]string) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		done := true
		for dir := range union(w.got, want) {
			same, err := compare(w.got[dir], want[dir])
			if err != nil {
				w.t.Fatalf("events of %s: %v\nall so far:\n%s", dir, err, w.all())
			}
			done = done && same
		}
		if done {
			return
		}
		select {
		case page, ok := <-w.pages:
			switch {
			case ok:
				w.read(page)
			case w.mayEnd:
				w.mayEnd = false
				_ = w.follower.Wait() // it failed, because the daemon was away
				w.follow()
			default:
				w.t.Fatal("the follower ended")
			}
		case <-deadline:
			w.t.Fatalf("not in %s:\n%s\nall so far:\n%s", patience, missingRows(w.got, want), w.all())
		}
	}
}

func union(a, b map[string][]string) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

func missingRows(got, want map[string][]string) string {
	var b strings.Builder
	for dir, rows := range want {
		for _, row := range rows[min(len(got[dir]), len(rows)):] {
			fmt.Fprintf(&b, "\t%s: %s\n", dir, row)
		}
	}
	return b.String()
}

func (w *world) all() string {
	var b strings.Builder
	for dir, rows := range w.got {
		for _, row := range rows {
			fmt.Fprintf(&b, "\t%s: %s\n", dir, row)
		}
	}
	return b.String()
}

// read takes a page: its order, and the rows of its events.
func (w *world) read(raw []byte) {
	w.t.Helper()
	if _, err := w.record.Write(append(raw, '\n')); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(raw), model.ErrorText) {
		w.t.Fatal("a page has the text of an error of the model server")
	}
	w.heard = true
	var page wire.Page
	w.must(json.Unmarshal(raw, &page))
	if page.Status != wire.OK {
		w.t.Fatalf("page with status %s", page.Status)
	}
	for _, raw := range page.Events {
		var e wire.Event
		w.must(json.Unmarshal(raw, &e))
		if e.Sequence <= w.last {
			w.t.Fatalf("event %d came after %d", e.Sequence, w.last)
		}
		w.last = e.Sequence
		name := w.nameOf(e.AgentID)
		if w.tellers[e.AgentID] == nil {
			w.tellers[e.AgentID] = newTeller(&w.prompts)
		}
		w.got[name] = append(w.got[name], w.tellers[e.AgentID].row(e))
	}
}

// nameOf gives the name of an agent: that of its pane, or of its directory if
// it has none.
func (w *world) nameOf(id string) string {
	w.t.Helper()
	if name, ok := w.names[id]; ok {
		return name
	}
	for _, e := range w.list() {
		if e.Metadata.AgentID == id {
			w.names[id] = w.nameFor(e)
		}
	}
	name, ok := w.names[id]
	if !ok {
		w.t.Fatalf("agent %s has an event and is not in the list", id)
	}
	return name
}

func (w *world) list() []wire.AgentListEntry {
	w.t.Helper()
	out, err := w.command("steno", "agent", "list", "--format", "json").Output()
	w.must(err)
	var list []wire.AgentListEntry
	w.must(json.Unmarshal(out, &list))
	return list
}

// firstServer is the highest pane id of the first tmux server.
const firstServer = 1<<32 - 1

func (w *world) nameFor(e wire.AgentListEntry) string {
	rel, err := filepath.Rel(w.dir, e.Metadata.DeclaredCWD)
	if err != nil || !filepath.IsLocal(rel) {
		return "outside of the scenario"
	}
	for name, a := range w.agents {
		if e.PaneID <= firstServer && a.pane == fmt.Sprintf("%%%d", e.PaneID) {
			return name
		}
		if pid := e.Metadata.AdoptedPID; pid != nil && a.owns(*pid) {
			return name
		}
	}
	return rel
}

// close ends everything of this world; what it left stays if the test failed.
func (w *world) close() {
	if w.t.Failed() {
		w.keep()
	}
	if w.follower != nil {
		_ = w.follower.Process.Kill() // it may have ended
		for range w.pages {
		}
		_ = w.follower.Wait()
	}
	if w.daemon != nil {
		_ = w.daemon.Process.Kill() // it may have ended
		_ = w.daemon.Wait()
	}
	w.endProcesses()
	w.collect(false)
	o := outcome{Shapes: map[string]string{}}
	for name, s := range w.shapes {
		o.Shapes[name] = s.String()
	}
	if w.t.Failed() {
		o.Want, o.Got = w.table, map[string][]string{}
		for name, rows := range w.got {
			o.Got[name] = textlessRows(rows)
		}
	}
	w.tell(o)
	w.model.Close()
	for _, f := range []*os.File{w.log, w.record} {
		if f != nil {
			f.Close()
		}
	}
	if !w.t.Failed() {
		w.must(os.RemoveAll(w.dir))
	}
}

// keep writes down what only exists now.
func (w *world) keep() {
	for name, a := range w.agents {
		if a.pane != "" {
			out, _ := w.tmuxCommand("capture-pane", "-J", "-p", "-S", "-", "-t", a.pane).CombinedOutput() // the server may be gone
			_ = os.WriteFile(filepath.Join(w.dir, "screen-"+name+".txt"), out, 0o600)
		}
	}
	var b strings.Builder
	for _, r := range w.model.Requests() {
		fmt.Fprintf(&b, "%s %s step %d, %d tools\n", r.Path, r.Script, r.Step, r.Tools)
	}
	_ = os.WriteFile(filepath.Join(w.dir, "requests.txt"), []byte(b.String()), 0o600)
	for id, name := range w.names {
		out, _ := w.command("steno", "explain", id).CombinedOutput() // the daemon may be gone
		_ = os.WriteFile(filepath.Join(w.dir, "explain-"+name+".txt"), out, 0o600)
	}
	for _, p := range w.programs {
		for _, path := range p.drop {
			_ = os.RemoveAll(filepath.Join(w.home(), path)) // it is a copy of the program
		}
	}
	w.t.Logf("kept in %s", w.dir)
}

// processes lists the living processes beside this one: all of them are the
// scenario's. What has ended and was not waited for has no executable.
func (w *world) processes() []int {
	entries, err := os.ReadDir("/proc")
	w.must(err)
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == 1 || pid == os.Getpid() {
			continue
		}
		if _, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe")); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// endProcesses kills what the scenario left: tmux, programs, daemons of theirs.
// They would write into its directory while that is removed.
func (w *world) endProcesses() {
	w.eventually("the processes of the scenario end", func() bool {
		pids := w.processes()
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				w.t.Errorf("kill %d: %v", pid, err)
			}
		}
		return len(pids) == 0
	})
}

// bounded is a context for one wait.
func (w *world) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.t.Context(), patience)
}
