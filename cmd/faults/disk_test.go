package faults

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"steno/ipc"
	"steno/ipc/wire"
)

// refused runs the daemon, which has to end with an error that has the words,
// and a hint where one is wanted.
func (w *world) refused(args []string, words ...string) {
	w.t.Helper()
	_, stderr, code := w.steno(append([]string{"serve"}, args...)...)
	for _, word := range words {
		if !strings.Contains(stderr, word) {
			w.t.Errorf("steno serve %s: %q does not say %q", strings.Join(args, " "), stderr, word)
		}
	}
	if code != 1 {
		w.t.Errorf("steno serve %s: exit code %d, want 1", strings.Join(args, " "), code)
	}
}

// streams says whether the daemon offers its event stream now.
func (w *world) streams() bool {
	w.t.Helper()
	var has bool
	err := w.ask(func(ctx context.Context, c *ipc.Client) error {
		caps, err := c.Capabilities(ctx)
		has = slices.Contains(caps.Capabilities, wire.CapEventStream)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return has
}

// seen waits until the daemon knows the agents.
func (w *world) seen(agents ...*agent) {
	w.t.Helper()
	w.until("every agent", func() bool { return len(w.agents()) == len(agents) })
}

// stuck waits until the log is said not to work because of the words, in all
// three places.
func (w *world) stuck(s *story, words string, busy func()) {
	w.t.Helper()
	w.until("the log does not work", func() bool { busy(); return !w.status().Store.Working })
	if st := w.status().Store; !strings.Contains(st.Error, words) {
		w.t.Errorf("status says %q, want %q", st.Error, words)
	}
	if w.streams() {
		w.t.Error("the event stream is offered while the log does not work")
	}
	w.until("a line in the log", func() bool { return w.said("store does not take events; trying again", words) })
	// What the readers have is all that is there: nothing was told that is not
	// committed.
	latest := w.status().Store.Latest
	s.grown(latest, 0, patience)
	if head := s.head(); head != latest {
		w.t.Errorf("a reader has %d, the log ends at %d", head, latest)
	}
}

// works waits until the log works and tells what an agent writes now; it says
// how long that took since a moment.
func (w *world) works(since time.Time, s *story, a *agent) time.Duration {
	w.t.Helper()
	head := s.head()
	a.do("turn 1 10")
	if !s.grown(head, 1, patience) {
		w.t.Fatalf("nothing was told in %s after the fault was over", patience)
	}
	w.until("the log works", func() bool { return w.status().Store.Working && w.streams() })
	return time.Since(since)
}

// hog takes the free space of a file system.
func hog(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Fault 3: the disk of the state directory is full, again and again; while it
// is, the daemon is killed and cannot start. Nothing is acknowledged that is not
// committed, and it goes on by itself when there is space.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if !mounts(t) {
		return
	}
	w := newWorld(t)
	mountTmpfs(t, w.stateDir(), "mode=700,size=48m")
	w.env = append(w.env, "STENO_RETENTION_BYTES=4MiB")
	rounds := pick(3, 40)
	f := &figures{Fault: "3 disk full", Tried: rounds, Unit: "times full",
		How: "a tmpfs is filled by another file while 2 agents write; each other time the daemon is killed then"}
	d := w.serve()
	s := w.read(0)
	agents := []*agent{w.agent("claude", "a"), w.agent("codex", "b")}
	w.seen(agents...)
	for round := range rounds {
		// A log that was closed has to take new space; one that runs for long
		// has files that it writes again, and needs none.
		d.stop()
		d = w.serve()
		w.seen(agents...)
		other := filepath.Join(w.stateDir(), "other")
		if err := hog(other); err != nil {
			t.Fatal(err)
		}
		w.stuck(s, "disk or database is full", func() {
			for _, a := range agents {
				a.do("turn 1 300000")
			}
		})
		if round%2 == 1 {
			d.kill()
			d = w.start()
			// It starts, serves what there is, and waits for space. What it finds
			// in the log's files may be room enough for some commits.
			d.ready()
		}
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		free := time.Now()
		f.recovered(w.works(free, s, agents[0]))
	}
	s.verdict(f, agents...)
	d.stop()
	f.report(t)
}

// Fault 3: another process holds the database's lock for longer than Steno
// waits, while Steno runs and while it starts.
func TestDatabaseLocked(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	w := newWorld(t)
	rounds := pick(2, 30)
	f := &figures{Fault: "3 database locked", Tried: rounds, Unit: "times locked",
		How: "another process holds an exclusive transaction while 2 agents write"}
	d := w.serve()
	s := w.read(0)
	agents := []*agent{w.agent("claude", "a"), w.agent("codex", "b")}
	w.seen(agents...)
	db, err := sql.Open("sqlite", "file:"+w.database()+"?_txlock=exclusive&_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range rounds {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			a.do("turn 2 100")
		}
		w.stuck(s, "locked by another process", func() {})
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		f.recovered(w.works(time.Now(), s, agents[0]))
	}
	d.stop()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	w.refused(nil, "locked by another process")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	db.Close()
	d = w.serve()
	s.verdict(f, agents...)
	d.stop()
	f.report(t)
}

// Fault 3: the state directory is read-only when the daemon starts. A disk that
// is in use cannot be made read-only: the kernel refuses.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	if !mounts(t) {
		return
	}
	w := newWorld(t)
	mountTmpfs(t, w.stateDir(), "mode=700,size=48m")
	f := &figures{Fault: "3 read-only disk", Tried: pick(2, 20), Unit: "starts",
		How: "the state directory's file system is remounted read-only while the daemon is down"}
	d := w.serve()
	s := w.read(0)
	a := w.agent("claude", "a")
	w.seen(a)
	for range f.Tried {
		a.do("turn 1 100")
		s.verdict(f, a)
		if err := remount(w.stateDir(), true); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("remount of a disk in use: %v, want EBUSY", err)
		}
		d.stop()
		if err := remount(w.stateDir(), true); err != nil {
			t.Fatal(err)
		}
		a.do("turn 1 100")
		before := w.files()
		w.refused(nil, "read-only file system", "hint: ")
		w.refused([]string{"--recover"}, "read-only file system", "hint: ")
		if after := w.files(); !slices.Equal(before, after) {
			t.Errorf("files of the state directory: %q, before %q", after, before)
		}
		if err := remount(w.stateDir(), false); err != nil {
			t.Fatal(err)
		}
		head := s.head()
		d = w.start()
		if !s.grown(head, 1, patience) {
			t.Fatal("nothing was told")
		}
		f.recovered(time.Since(d.started))
	}
	s.verdict(f, a)
	d.stop()
	f.report(t)
}

// files are the names in the state directory.
func (w *world) files() []string {
	w.t.Helper()
	var out []string
	entries, err := os.ReadDir(w.stateDir())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// execute changes the database behind Steno's back.
func (w *world) execute(statements ...string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.database()+"?_pragma=busy_timeout(2000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			w.t.Fatalf("%s: %v", q, err)
		}
	}
}

// Fault 3: a database that is not Steno's, or too new for it. It is refused with
// --recover too, not one byte changes, and no other log begins.
func TestForeignDatabase(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	f := &figures{Fault: "3 foreign or newer database", Unit: "starts",
		How: "another application's database at the path, or a newer schema; also with --recover"}
	for name, words := range map[string][]string{
		"foreign": {"not a database of this program", "hint: move that file away"},
		"newer":   {"written by a newer version", "hint: install the newer steno"},
	} {
		w := newWorld(t)
		d := w.serve()
		s := w.read(0)
		a := w.agent("codex", name)
		w.seen(a)
		a.do("turn 1 100")
		s.verdict(f, a)
		d.stop()
		ours, err := os.ReadFile(w.database())
		if err != nil {
			t.Fatal(err)
		}
		if name == "foreign" {
			if err := os.Remove(w.database()); err != nil {
				t.Fatal(err)
			}
			w.execute("CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)", "PRAGMA application_id = 7")
		} else {
			w.execute("PRAGMA user_version = 99")
		}
		theirs, err := os.ReadFile(w.database())
		if err != nil {
			t.Fatal(err)
		}
		names := w.files()
		a.do("turn 1 100")
		for range pick(1, 10) {
			w.refused(nil, words...)
			w.refused([]string{"--recover"}, words...)
			f.Tried += 2
		}
		now, err := os.ReadFile(w.database())
		if err != nil || !bytes.Equal(now, theirs) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
		if got := w.files(); !slices.Equal(got, names) {
			t.Errorf("%s: files are %q, were %q", name, got, names)
		}
		if err := os.WriteFile(w.database(), ours, 0o600); err != nil {
			t.Fatal(err)
		}
		d = w.start()
		f.recovered(d.ready())
		s.verdict(f, a)
		d.stop()
	}
	f.report(t)
}

// Fault 3: damage to the database, to its shared memory, and its loss. What is
// whole goes on; what is not is refused until --recover, which begins above every
// sequence that was ever handed out.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	r := dice(t)
	f := &figures{Fault: "3 damaged database", Unit: "damages",
		How: "random pages or the head overwritten, -shm deleted or garbage, the file deleted while it is open"}
	for range pick(1, 10) {
		for _, tt := range []struct {
			name   string
			damage func(w *world, d *daemon, a *agent) *daemon // gives a daemon that runs
			lost   bool                                        // the log that was
		}{
			{"no shared memory", func(w *world, d *daemon, _ *agent) *daemon {
				d.kill()
				w.remove("-shm")
				return w.start()
			}, false},
			{"shared memory is garbage", func(w *world, d *daemon, _ *agent) *daemon {
				d.kill()
				junk := make([]byte, 32<<10)
				for i := range junk {
					junk[i] = byte(r.Uint32())
				}
				if err := os.WriteFile(w.database()+"-shm", junk, 0o600); err != nil {
					t.Fatal(err)
				}
				return w.start()
			}, false},
			{"shared memory deleted while open", func(w *world, d *daemon, _ *agent) *daemon {
				w.remove("-shm")
				d.kill()
				return w.start()
			}, false},
			{"head", func(w *world, d *daemon, _ *agent) *daemon {
				d.stop()
				scribble(t, w.database(), 0, 4096)
				w.refused(nil, "database is corrupt", "--recover")
				return w.start("--recover")
			}, true},
			{"pages", func(w *world, d *daemon, _ *agent) *daemon {
				d.stop()
				info, err := os.Stat(w.database())
				if err != nil {
					t.Fatal(err)
				}
				pages := info.Size() / 4096
				from := 1 + r.Int64N(pages/2)
				scribble(t, w.database(), from*4096, (from+pages/2)*4096)
				return w.start("--recover")
			}, true},
			{"deleted while open", func(w *world, d *daemon, a *agent) *daemon {
				w.remove("")
				a.do("turn 1 100")
				d.end() // the next commit notices
				if !w.said("database file was deleted or replaced") || d.cmd.ProcessState.ExitCode() != 1 {
					t.Errorf("the daemon ended with %v: %s", d.cmd.ProcessState, w.logTail(500))
				}
				for _, x := range []string{"-wal", "-shm"} {
					if err := os.Remove(w.database() + x); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Fatal(err)
					}
				}
				return w.start()
			}, true},
		} {
			f.Tried++
			damageOne(t, f, tt.name, tt.damage, tt.lost)
		}
	}
	f.report(t)
}

func damageOne(t *testing.T, f *figures, name string, damage func(*world, *daemon, *agent) *daemon, lost bool) {
	t.Helper()
	w := newWorld(t)
	d := w.serve()
	s := w.read(0)
	a := w.agent("claude", "a")
	w.seen(a)
	for range 8 {
		a.do("turn 3 2000")
	}
	s.verdict(f, a)
	head := s.head()
	if lost {
		s.end() // its cursor is about to be too old
	}
	d = damage(w, d, a)
	took := d.ready()
	if !lost {
		a.do("turn 1 100")
		s.verdict(f, a)
		f.recovered(took)
		d.stop()
		return
	}
	// A reader's cursor is too old, and every new sequence is above it.
	w.until("the agent is there again", func() bool { return len(w.agents()) == 1 })
	a.do("turn 1 100")
	err := w.ask(func(ctx context.Context, c *ipc.Client) error {
		page, err := c.ReadEvents(ctx, wire.ReadParams{After: head})
		if err == nil && page.Status != wire.CursorTooOld {
			t.Errorf("%s: cursor %d gives %s, want too old", name, head, page.Status)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again := w.read(w.status().Store.Oldest - 1)
	if !again.grown(again.head(), 1, patience) {
		t.Fatalf("%s: nothing is told by the new log", name)
	}
	again.mu.Lock()
	for _, e := range again.events {
		if e.sequence <= head {
			f.Reused++
			t.Errorf("%s: sequence %d of the new log, %d was handed out", name, e.sequence, head)
		}
	}
	again.mu.Unlock()
	f.recovered(took)
	aside, err := filepath.Glob(w.database() + ".corrupt-*")
	if err != nil || name != "deleted while open" && len(aside) == 0 {
		t.Errorf("%s: the damaged database was not kept: %v", name, err)
	}
	d.stop()
}

func (w *world) remove(suffix string) {
	w.t.Helper()
	if err := os.Remove(w.database() + suffix); err != nil {
		w.t.Fatal(err)
	}
}

func scribble(t *testing.T, path string, from, to int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(to-from)), from); err != nil {
		t.Fatal(fmt.Errorf("damage: %w", err))
	}
}
