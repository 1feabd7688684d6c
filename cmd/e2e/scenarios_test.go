//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// scenario is one table of what is done and what has to come of it.
type scenario struct {
	name  string
	about string
	dirs  []string // beside "work"
	also  []string // programs that are there beside its own
	steps []step
	known string // why Steno does not hold it yet; it is skipped and counted

	program string // whose it is, set by TestReal
}

// step is something done and the rows that have to follow, exactly.
type step struct {
	do   action
	want string
}

// run plays a scenario in namespaces of its own, by way of this test binary.
func (s scenario) run(t *testing.T) {
	if os.Getenv(insideVar) != "" {
		s.play(t)
		return
	}
	t.Parallel()
	if s.known != "" && os.Getenv(knownVar) == "" {
		tally.skip()
		t.Skipf("known: %s", s.known)
	}
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+part+"$")
	}
	name := strings.Join(parts, "/")
	stage.RLock()
	out, err := s.inside(name)
	stage.RUnlock()
	if err == nil {
		return
	}
	t.Logf("%v\n%s", err, out)
	if !tally.again(s.program + "/" + s.name) {
		t.Fatal("failed; not played again")
	}
	stage.Lock()
	defer stage.Unlock()
	if out, err := s.inside(name); err != nil {
		t.Fatalf("failed twice: %v\n%s", err, out)
	}
	t.Log("held when it was played again, alone")
}

// stage is held for reading by what runs beside others.
var stage sync.RWMutex

// inside plays the scenario in a child of this binary.
func (s scenario) inside(name string) ([]byte, error) {
	// The thread that starts the child has to live as long: its death ends it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := inside(os.Args[0], "-test.run="+name, "-test.timeout="+lifetime.String())
	began := time.Now()
	out, err := cmd.CombinedOutput()
	tally.add(ran{s.program, s.name, time.Since(began)})
	return out, err
}

// play does the steps and compares what comes.
func (s scenario) play(t *testing.T) {
	w := newWorld(t, append([]string{s.program}, s.also...)...)
	w.settle(append([]string{"work"}, s.dirs...)...)
	w.table = s.rows()
	w.serve()
	w.follow()
	want := map[string][]string{}
	for _, st := range s.steps {
		st.do(w.agent("work"))
		for name, rows := range split(st.want) {
			want[name] = append(want[name], rows...)
		}
		w.expect(want)
		w.collect(true)
	}
}

// TestReal runs every scenario.
func TestReal(t *testing.T) {
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			if os.Getenv(insideVar) == "" {
				t.Parallel()
			}
			for _, s := range p.scenarios {
				s.program = p.name
				t.Run(s.name, s.run)
			}
		})
	}
}

// TestRealTable keeps testdata/e2e/SCENARIOS.md the table of this suite.
func TestRealTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What runs against the published programs\n\nWritten by `make e2e REWRITE=1`; do not edit. `make e2e RUN=claude/plain` runs one row.\n")
	for _, p := range programs() {
		version, err := pinnedVersion(p.module)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s %s\n\n| scenario | what happens | events |\n| --- | --- | --- |\n", p.title, version)
		for _, s := range p.scenarios {
			about := s.about
			if s.known != "" {
				about += " (**not held yet**: " + s.known + ")"
			}
			fmt.Fprintf(&b, "| %s/%s | %s | %s |\n", p.name, s.name, about, s.kinds())
		}
	}
	path := filepath.Join(moduleRoot, "testdata/e2e/SCENARIOS.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if on, err := os.ReadFile(path); err != nil || string(on) != b.String() {
		t.Errorf("%s is not the table of this suite (%v): make e2e REWRITE=1", path, err)
	}
}

// rows are all that have to come, by their agent and without their texts.
func (s scenario) rows() map[string][]string {
	out := map[string][]string{}
	for _, st := range s.steps {
		for name, rows := range split(st.want) {
			out[name] = append(out[name], textlessRows(rows)...)
		}
	}
	return out
}

// kinds spells the rows of a scenario without their texts.
func (s scenario) kinds() string {
	var out []string
	for _, st := range s.steps {
		for line := range strings.Lines(st.want) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, textless(line))
			}
		}
	}
	return strings.Join(out, ", ")
}
