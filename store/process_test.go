package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary runs itself as another process. A child gets the database's
// path and its part in the environment, speaks on stdout, and fails on stderr.
const (
	childEnv = "STENO_STORE_CHILD"
	pathEnv  = "STENO_STORE_PATH"
	argEnv   = "STENO_STORE_ARG"
)

func TestMain(m *testing.M) {
	part := os.Getenv(childEnv)
	if part == "" {
		os.Exit(m.Run())
	}
	parts := map[string]func(path, arg string) error{
		"write": childWrite, "join": childJoin, "modes": childModes, "locked": childLocked, "recover": childRecover,
	}
	if err := parts[part](os.Getenv(pathEnv), os.Getenv(argEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t *testing.T, program, part, path, arg string) *exec.Cmd {
	t.Helper()
	if program == "" {
		program = os.Args[0]
	}
	c := exec.CommandContext(t.Context(), program)
	c.Env = append(os.Environ(), childEnv+"="+part, pathEnv+"="+path, argEnv+"="+arg)
	return c
}

// childWrite goes on from its restart point for ever: event n is "n<n>", the
// offset is how many there are. It names what was acknowledged.
func childWrite(path, _ string) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: path})
	if err != nil {
		return err
	}
	sources, err := s.Sources(ctx)
	if err != nil {
		return err
	}
	n := int64(0)
	if len(sources) == 1 {
		n = sources[0].Offset
	}
	for {
		b := Batch{}
		for range 1 + rand.IntN(4) {
			n++
			b.Events = append(b.Events, sized(fmt.Sprint("n", n), 60+rand.IntN(9000)))
		}
		b.Sources = []Source{{Path: "source", Offset: n}}
		c, err := s.Commit(ctx, b)
		if err != nil {
			return err
		}
		fmt.Println(c.Latest, n)
	}
}

// A writer that is killed at any moment loses nothing that it acknowledged and
// repeats nothing: the log is n1, n2, ... up to the restart point.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "db")
	var acked int64
	for range 20 {
		c := child(t, "", "write", path, "")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + rand.IntN(25) {
			if !lines.Scan() {
				t.Fatalf("writer ended: %s", stderr.String())
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		last := lines.Text()
		for lines.Scan() { // what was acknowledged before the signal arrived
			last = lines.Text()
		}
		c.Wait()
		var latest, n int64
		if _, err := fmt.Sscan(last, &latest, &n); err != nil || latest != n || n <= acked {
			t.Fatalf("acknowledged %q after %d: %v", last, acked, err)
		}
		acked = n
	}
	torn(t, path)
	s := openTest(t, Options{Path: path})
	if n := sequenceOf(t, s); n < acked {
		t.Errorf("log ends at %d, %d was acknowledged", n, acked)
	}
}

// sequenceOf proves that the log is n1, n2, ... and that the restart point is
// its end, which it returns.
func sequenceOf(t *testing.T, s *Store) int64 {
	t.Helper()
	next := int64(1)
	for after := Seq(0); ; {
		p := page(t, s, Query{After: after})
		if p.Gap || p.Oldest != 1 {
			t.Fatalf("Page(%d) = gap %v, oldest %d", after, p.Gap, p.Oldest)
		}
		for _, e := range p.Events {
			if want := fmt.Sprintf(`{"sequence":%d,"event_id":"n%d",`, next, next); !strings.HasPrefix(string(e), want) {
				t.Fatalf("event %d starts %.60s", next, e)
			}
			next++
		}
		if after = p.Next; after == p.Latest {
			break
		}
	}
	sources, err := s.Sources(t.Context())
	if err != nil || len(sources) > 1 || len(sources) == 1 && sources[0].Offset != next-1 || len(sources) == 0 && next > 1 {
		t.Fatalf("Sources = %+v, %v, want offset %d", sources, err, next-1)
	}
	return next - 1
}

// torn opens copies whose write-ahead log was cut anywhere, as by a machine
// that stopped in the middle of a commit. What is left is whole transactions.
func torn(t *testing.T, path string) {
	t.Helper()
	db, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		at := filepath.Join(t.TempDir(), "db")
		if err := errors.Join(
			os.WriteFile(at, db, 0o600),
			os.WriteFile(at+"-wal", wal[:len(wal)*i/12+rand.IntN(len(wal)/12+1)], 0o600),
		); err != nil {
			t.Fatal(err)
		}
		sequenceOf(t, openTest(t, Options{Path: at}))
	}
}

func childJoin(path, arg string) error {
	// Everybody starts when the parent closes the pipe.
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		return err
	}
	if _, err := s.Commit(context.Background(), Batch{Events: []Event{event(arg)}}); err != nil {
		return err
	}
	return s.Close()
}

func childRecover(path, _ string) error {
	now := func() time.Time { return time.Unix(2e9, 0) }
	s, err := Open(context.Background(), Options{Path: path, Recover: true, Now: now})
	if err != nil {
		return err
	}
	return s.Close()
}

// calls are what a child does to names and how it makes them durable, in order.
func calls(t *testing.T, part, path string) string {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	c := child(t, "strace", part, path, "e")
	c.Args = append(c.Args, "-f", "-y", "-qq", "-e", "signal=none",
		"-e", "trace=fsync,fdatasync,link,linkat,rename,renameat,renameat2", "-o", trace, os.Args[0])
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	name := func(p string) string {
		if rel, err := filepath.Rel(filepath.Dir(path), p); err == nil {
			p = rel
		}
		return regexp.MustCompile(`\.tmp-[A-Z0-9]+`).ReplaceAllString(p, ".tmp")
	}
	var all strings.Builder
	call := regexp.MustCompile(`^\d+ +(?:f(?:data)?sync\(\d+<(.*?)>|(link|rename).*?"(.*?)".*?"(.*?)")`)
	for line := range strings.Lines(string(b)) {
		switch m := call.FindStringSubmatch(line); {
		case m == nil: // the rest of a call that was interrupted
		case m[2] == "":
			fmt.Fprintln(&all, "sync", name(m[1]))
		default:
			fmt.Fprintln(&all, m[2], name(m[3]), name(m[4]))
		}
	}
	return all.String()
}

// A file is durable before it has its name, and its name before anything is built
// on it. So are the names of the directories that were made for it.
func TestSyncs(t *testing.T) {
	if err := exec.Command("strace", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("no strace: %v", err)
	}
	path := filepath.Join(t.TempDir(), "new", "state", "db")
	got := calls(t, "join", path)
	for _, want := range []string{
		"sync db.tmp\nlink db.tmp db\nsync .\nsync ..\nsync ../..\n",
		"sync db-sequence.tmp\nrename db-sequence.tmp db-sequence\nsync .\nsync db-wal\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("calls of a first commit:\n%swant\n%s", got, want)
		}
	}
	// A number that is there already may never have become durable.
	if got := calls(t, "join", path); !strings.HasPrefix(got, "sync .\n") {
		t.Errorf("calls of another start:\n%s", got)
	}
	if err := os.Remove(path + ceilingSuffix); err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, 0, 8*4096)
	if err := errors.Join(os.WriteFile(path+"-wal", nil, 0o600), os.WriteFile(path+"-shm", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	got = calls(t, "recover", path)
	const aside = "db.corrupt-20330518T033320Z"
	// The number first, or a crash leaves neither. The database before its log: a
	// log beside an empty database is dropped, one beside another is replayed.
	if want := "sync db-sequence.tmp\nrename db-sequence.tmp db-sequence\nsync .\n" +
		"rename db " + aside + "\nrename db-wal " + aside + "-wal\nrename db-shm " + aside + "-shm\nsync .\n" +
		"sync db.tmp\nlink db.tmp db\n"; !strings.Contains(got, want) {
		t.Errorf("calls of a recovery:\n%swant\n%s", got, want)
	}
	overwrite(t, path, 0, 8*4096)
	if got := calls(t, "recover", path); !strings.HasPrefix(got, "sync .\nrename db ") {
		t.Errorf("calls of a recovery with a number:\n%s", got)
	}
}

// Several processes that open a new database at once all succeed.
func TestOpenTogether(t *testing.T) {
	const processes = 6
	for range 3 {
		path := filepath.Join(t.TempDir(), "new", "db")
		var gates []io.Closer
		var all sync.WaitGroup
		for i := range processes {
			c := child(t, "", "join", path, fmt.Sprint("e", i))
			gate, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			gates = append(gates, gate)
			var stderr strings.Builder
			c.Stderr = &stderr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := c.Wait(); err != nil {
					t.Errorf("process %d: %v: %s", i, err, stderr.String())
				}
			})
		}
		for _, g := range gates {
			g.Close()
		}
		all.Wait()
		s := openTest(t, Options{Path: path})
		if p := page(t, s, Query{}); len(p.Events) != processes || p.Latest != processes {
			t.Errorf("Page has %d events, latest %d, want %d", len(p.Events), p.Latest, processes)
		}
	}
}

func childModes(path, arg string) error {
	var mask int
	if _, err := fmt.Sscanf(arg, "%o", &mask); err != nil {
		return err
	}
	syscall.Umask(mask)
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		return err
	}
	if _, err := s.Commit(context.Background(), Batch{Events: []Event{event("e")}}); err != nil {
		return err
	}
	for _, name := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path), path, path + "-wal", path + "-shm", path + ceilingSuffix} {
		fi, err := os.Stat(name)
		if err != nil {
			return err
		}
		fmt.Printf("%o ", fi.Mode().Perm())
	}
	return s.Close()
}

// private makes a directory and a copy of the test binary that an unprivileged
// user can use. Root would pass every permission.
func private(t *testing.T) (dir, program string, drop *syscall.SysProcAttr) {
	t.Helper()
	if os.Geteuid() != 0 {
		return t.TempDir(), "", nil
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "steno-store-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program = filepath.Join(dir, "test")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, b, 0o755)
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	return dir, program, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

func TestModes(t *testing.T) {
	dir, program, drop := private(t)
	for _, mask := range []string{"0", "22", "77", "777"} {
		c := child(t, program, "modes", filepath.Join(dir, mask, "state", "db"), mask)
		c.SysProcAttr = drop
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.Output()
		if want := "700 700 600 600 600 600 "; err != nil || string(out) != want {
			t.Errorf("umask %s: modes %q, %v: %s, want %q", mask, out, err, stderr.String(), want)
		}
	}
	// One that was left open to others is closed.
	path := filepath.Join(t.TempDir(), "db")
	openTest(t, Options{Path: path}).Close()
	if err := os.Chmod(path, 0o664); err != nil {
		t.Fatal(err)
	}
	openTest(t, Options{Path: path})
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode of an opened file = %v, %v", fi.Mode(), err)
	}
	// One that was made read-only stays so.
	path = filepath.Join(t.TempDir(), "db")
	openTest(t, Options{Path: path}).Close()
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), Options{Path: path}); err == nil { // as root
		s.Close()
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o400 {
		t.Errorf("mode of a read-only file = %v, %v", fi.Mode(), err)
	}
}

// What another user owns is refused: he could read it or put another in its place.
func TestOtherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	for _, what := range []string{"db", "."} {
		path := filepath.Join(t.TempDir(), "db")
		openTest(t, Options{Path: path}).Close()
		if err := os.Chown(filepath.Join(filepath.Dir(path), what), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		for _, recover := range []bool{false, true} {
			if s, err := Open(t.Context(), Options{Path: path, Recover: recover}); s != nil || !errors.Is(err, ErrForeign) {
				t.Errorf("Open of another user's %s: %v, want ErrForeign", what, err)
			}
		}
	}
}

// childLocked makes a store that may not be written, and opens it.
func childLocked(path, arg string) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: path})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if arg == "file" {
		err = os.Chmod(path, 0o400)
	} else {
		err = os.Chmod(filepath.Dir(path), 0o500)
	}
	if err != nil {
		return err
	}
	defer os.Chmod(filepath.Dir(path), 0o700)
	for _, recover := range []bool{false, true} {
		if s, err = Open(ctx, Options{Path: path, Recover: recover}); s != nil || !errors.Is(err, ErrNotWritable) || !Temporary(err) {
			return fmt.Errorf("open: %v, want %v", err, ErrNotWritable)
		}
	}
	return nil
}

func TestNotWritable(t *testing.T) {
	dir, program, drop := private(t)
	for _, what := range []string{"file", "directory"} {
		c := child(t, program, "locked", filepath.Join(dir, what, "db"), what)
		c.SysProcAttr = drop
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("read-only %s: %v: %s", what, err, out)
		}
	}
}
