package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"steno/store"
)

// Fault 2: the power goes. strace writes down what the daemon does to the files
// of its state directory, and what it tells its clients, over several lives with
// load. Cut at a random call, the record gives a directory as it may be after
// the machine starts again (see disk in disklog_test.go): the log has to open,
// to be whole, to have everything that a reader had been told by then, and to
// go on above it.
//
// Simulated: lost, reordered and torn writes (512 bytes), lost names, a -shm of
// zeros or garbage, or none. Not simulated: a disk that loses what it said is
// written, or changes what nobody wrote to.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	strace := tracer(t)
	if !alone(t) {
		return
	}
	r := dice(t)
	w := newWorld(t)
	cuts := pick(30, 2000)
	f := &figures{Fault: "2 power loss", Tried: cuts, Unit: "cuts",
		How: "the daemon's calls on its state directory, cut anywhere; unsynced writes lost, reordered or torn at 512 bytes"}
	traces := w.recorded(strace)
	if t.Failed() {
		return
	}
	log, err := readDiskLog(w.stateDir(), traces...)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, o := range log {
		told += len(o.told)
	}
	if told == 0 || len(log) < 500 {
		t.Fatalf("%d calls with %d events told were recorded", len(log), told)
	}
	f.Note = fmt.Sprintf("of %d recorded calls", len(log))
	at := make([]int, cuts)
	for i := range at {
		at[i] = r.IntN(len(log) + 1)
	}
	slices.Sort(at)
	d := newDisk()
	seen := map[uint64]string{}
	done := 0
	for i, cut := range at {
		for ; done < cut; done++ {
			d.apply(log[done])
			for sequence, id := range log[done].told {
				seen[sequence] = id
			}
		}
		dir := w.path(fmt.Sprint("cut", i))
		if err := d.crash(r, dir); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := afterPowerLoss(t, filepath.Join(dir, "events.db"), seen, f); err != nil {
			f.Lost++
			t.Errorf("cut %d of %d: %v", cut, len(log), err)
			if os.Getenv(keepVar) != "" || f.Lost > 5 {
				break
			}
		}
		f.recovered(time.Since(began))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	f.report(t)
}

// recorded runs the daemon with load, ends it in order, by a kill, and in order
// again, and gives the traces.
func (w *world) recorded(strace string) []string {
	w.t.Helper()
	s := w.read(0)
	plain := plain(w.t)
	var agents []*agent
	for _, harness := range []string{"claude", "codex"} {
		agents = append(agents, w.agent(harness, harness))
	}
	var traces []string
	for life := range 3 {
		trace := w.path(fmt.Sprint("trace", life))
		traces = append(traces, trace)
		d := w.startWith(func(cmd *exec.Cmd) {
			plain(cmd)
			cmd.Args = append([]string{strace, "-f", "-qq", "-y", "-xx", "-s", "4200000", "--seccomp-bpf", "-o", trace, "-e", "trace=" + tracedCalls}, cmd.Args...)
			cmd.Path = strace
		})
		d.ready()
		w.seen(agents...)
		for range 15 {
			for _, a := range agents {
				a.do("turn 3 %d", 100+life*800)
			}
			s.grown(s.head(), 1, 50*time.Millisecond) // several commits, not one
		}
		var f figures
		s.verdict(&f, agents...)
		how := syscall.SIGTERM
		if life == 1 {
			how = syscall.SIGKILL
		}
		if err := syscall.Kill(w.status().PID, how); err != nil {
			w.t.Fatal(err)
		}
		d.end()
	}
	return traces
}

// afterPowerLoss opens a log that the power was taken from.
func afterPowerLoss(t *testing.T, path string, seen map[uint64]string, f *figures) (err error) {
	t.Helper()
	ctx := t.Context()
	s, err := store.Open(ctx, store.Options{Path: path, RetainEvents: 5_000_000})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Check(ctx); err != nil {
		return err
	}
	have := map[uint64]string{}
	for after := store.Seq(0); ; {
		p, err := s.Page(ctx, store.Query{After: after, Limit: store.MaxLimit})
		if err != nil {
			return err
		}
		if p.Gap {
			after = p.Oldest - 1
			continue
		}
		for _, body := range p.Events {
			sequence, id, ok := nextEvent(body)
			if !ok {
				return fmt.Errorf("event %.60s", body)
			}
			have[sequence] = id
		}
		if after = p.Next; after == p.Latest {
			break
		}
	}
	highest := uint64(0)
	for sequence, id := range seen {
		highest = max(highest, sequence)
		switch got, ok := have[sequence]; {
		case !ok:
			return fmt.Errorf("a reader had event %d, which is gone", sequence)
		case got != id:
			f.Reused++
			return fmt.Errorf("a reader had another event %d", sequence)
		}
	}
	c, err := s.Commit(ctx, store.Batch{Events: []store.Event{{ID: "new", Kind: "plan", Agent: "a", Incarnation: "i", Body: []byte(`{"event_id":"new"}`)}}})
	if err != nil {
		return err
	}
	if uint64(c.Latest) <= highest {
		f.Reused++
		return fmt.Errorf("the next event got sequence %d, a reader had %d", c.Latest, highest)
	}
	return nil
}
