package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/ipc"
	"steno/ipc/wire"
)

// world is a home of its own for a daemon and its agents.
type world struct {
	t   *testing.T
	dir string
	env []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// Short: the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "sf")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"TMUX_TMPDIR=" + filepath.Join(dir, "run"), "GORACE=atexit_sleep_ms=0",
		// A long run is compared with files of its first minute.
		"STENO_RETENTION_EVENTS=5000000", "STENO_RETENTION_BYTES=64GiB",
	}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the daemon's log:\n%s", w.logTail(4<<10))
			if os.Getenv(keepVar) != "" {
				t.Logf("kept: %s", dir)
				return
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) path(name ...string) string {
	return filepath.Join(append([]string{w.dir}, name...)...)
}
func (w *world) socket() string   { return w.path("run", "steno", "steno.sock") }
func (w *world) stateDir() string { return w.path(".local", "state", "steno") }
func (w *world) database() string { return filepath.Join(w.stateDir(), "events.db") }
func (w *world) logFile() string  { return w.path("daemon.log") }

// logTail is the end of what all daemons of this world wrote to stderr.
func (w *world) logTail(most int) string {
	data, err := os.ReadFile(w.logFile())
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}

// daemon is a running "steno serve".
type daemon struct {
	w       *world
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{}
}

// command prepares the built steno with the world's environment and more.
func (w *world) command(ctx context.Context, more []string, args ...string) *exec.Cmd {
	w.t.Helper()
	bin, err := stenoBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(append([]string{}, w.env...), more...)
	cmd.Dir = w.dir
	return cmd
}

// steno runs one command to its end.
func (w *world) steno(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	cmd := w.command(w.t.Context(), nil, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		w.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// start starts the daemon and does not wait for anything.
func (w *world) start(args ...string) *daemon {
	w.t.Helper()
	return w.startWith(nil, args...)
}

// startWith is start with a change of the command: a wrapper, limits, more of
// the environment.
func (w *world) startWith(change func(*exec.Cmd), args ...string) *daemon {
	w.t.Helper()
	log, err := os.OpenFile(w.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	d := &daemon{w: w, done: make(chan struct{})}
	d.cmd = w.command(context.Background(), nil, append([]string{"serve"}, args...)...)
	d.cmd.Stderr = log
	if change != nil {
		change(d.cmd)
	}
	d.started = time.Now()
	if err := d.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { // joined in end
		_ = d.cmd.Wait() // the state is looked at
		close(d.done)
	}()
	w.t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it may have ended
		<-d.done
	})
	return d
}

// serve starts the daemon and waits until it answers.
func (w *world) serve(args ...string) *daemon {
	w.t.Helper()
	d := w.start(args...)
	d.ready()
	return d
}

// ready waits until the daemon answers and says how long that took.
func (d *daemon) ready() time.Duration {
	d.w.t.Helper()
	d.w.until("an answer of the daemon", func() bool {
		if d.ended() {
			d.w.t.Fatalf("the daemon ended: %v: %s", d.cmd.ProcessState, d.w.logTail(2<<10))
		}
		c, err := ipc.Dial(d.w.t.Context(), d.w.socket())
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
	return time.Since(d.started)
}

func (d *daemon) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// end waits for the end of the daemon, which somebody else caused.
func (d *daemon) end() {
	d.w.t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		d.w.t.Fatalf("the daemon did not end in %s", patience)
	}
}

// kill ends the daemon the way a crash does.
func (d *daemon) kill() {
	d.w.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.w.t.Fatal(err)
	}
	d.end()
}

// stop ends the daemon in order and checks that it did. A data race that the
// detector found ends it with another code.
func (d *daemon) stop() {
	d.w.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.w.t.Fatal(err)
	}
	d.end()
	if !d.cmd.ProcessState.Success() {
		d.w.t.Fatalf("the daemon ended with %v: %s", d.cmd.ProcessState, d.w.logTail(4<<10))
	}
}

// until polls a condition that nothing announces.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not seen in %s", what, patience)
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
}

// ask gives a client to f.
func (w *world) ask(f func(ctx context.Context, c *ipc.Client) error) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	c, err := ipc.Dial(ctx, w.socket())
	if err != nil {
		return err
	}
	defer c.Close()
	return f(ctx, c)
}

// status is the daemon's own word.
func (w *world) status() wire.Status {
	w.t.Helper()
	var s wire.Status
	w.insist(func(ctx context.Context, c *ipc.Client) (err error) {
		s, err = c.Status(ctx)
		return err
	})
	return s
}

// insist is ask until it succeeds: all connections may be in use.
func (w *world) insist(f func(ctx context.Context, c *ipc.Client) error) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := w.ask(f)
		if err == nil {
			return
		}
		if !passing(err) || time.Now().After(deadline) {
			w.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // between two tries
	}
}

// agents maps the ids of this world's agents to the names of their directories.
func (w *world) agents() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	w.insist(func(ctx context.Context, c *ipc.Client) error {
		all, err := c.ListAgents(ctx)
		for _, e := range all {
			if rel, err := filepath.Rel(w.dir, e.Metadata.DeclaredCWD); err == nil && filepath.IsLocal(rel) {
				out[e.Metadata.AgentID] = rel
			}
		}
		return err
	})
	return out
}

// said is whether the daemons' log has all of the words.
func (w *world) said(words ...string) bool {
	data, err := os.ReadFile(w.logFile())
	if err != nil {
		return false
	}
	for _, word := range words {
		if !strings.Contains(string(data), word) {
			return false
		}
	}
	return true
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("decode %.200q: %v", data, err)
	}
}

// residentBytes is the memory of a process in bytes, from /proc.
func residentBytes(pid int) (int64, error) { return statusField(pid, "VmRSS:") }

// statusField is a field of /proc/<pid>/status that is given in kB, in bytes.
func statusField(pid int, name string) (int64, error) {
	data, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name && f[2] == "kB" {
			return int64(atoi(f[1])) << 10, nil
		}
	}
	return 0, io.ErrUnexpectedEOF
}

// descriptors is how many files a process has open.
func descriptors(pid int) (int, error) {
	d, err := os.Open(filepath.Join("/proc", itoa(pid), "fd"))
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return len(names), err
}
