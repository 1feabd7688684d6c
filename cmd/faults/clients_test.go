package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"steno/ipc"
	"steno/ipc/wire"
)

// most connections that the daemon serves at a time.
const maxConns = 256

// Fault 9: all connections are in use: followers, and some that ask for pages
// and never read them. Whoever reads gets the whole story; one more is refused
// with a word, and gets in when there is room.
func TestManyFollowers(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	w := newWorld(t)
	f := &figures{Fault: "9 followers", Tried: maxConns, Unit: "connections",
		How: "256 at once: followers, and 8 that ask and never read; one more is refused"}
	d := w.serve()
	agents := []*agent{w.agent("claude", "a"), w.agent("codex", "b")}
	w.seen(agents...)
	const mute = 8
	var deaf []net.Conn
	for range mute {
		conn, err := net.Dial("unix", w.socket())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		deaf = append(deaf, conn)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers sync.WaitGroup
	heads := make([]atomic.Uint64, maxConns-mute)
	for i := range heads {
		readers.Go(func() {
			for ctx.Err() == nil { // one that is too slow is cut off, and comes again
				if err := w.followOnce(ctx, &heads[i]); !passing(err) && ctx.Err() == nil {
					t.Errorf("follower %d: %v", i, err)
					return
				}
			}
		})
	}
	// No room: what is refused is told so.
	w.until("one more connection is refused with a word", func() bool {
		c, err := ipc.Dial(t.Context(), w.socket())
		if err == nil {
			c.Close()
		}
		var e *ipc.Error
		return errors.As(err, &e) && e.Code == ipc.CodeTooMany
	})
	for _, conn := range deaf { // pages until the socket is full
		go func() { // ends when the daemon cuts it off
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"ReadAgentEvents","params":{"limit":1000}}`+"\n", i); err != nil {
					return
				}
			}
		}()
	}
	for range pick(5, 60) {
		for _, a := range agents {
			a.do("turn 3 300")
		}
	}
	// The mute ones are cut off, and that makes room.
	began := time.Now()
	w.until("there is room again", func() bool { return w.status().Clients <= len(heads)+1 })
	f.recovered(time.Since(began))
	s := w.read(0)
	s.verdict(f, agents...)
	head := s.head()
	for i := range heads {
		w.until("every follower has the whole story", func() bool { return heads[i].Load() >= head })
	}
	cancel()
	readers.Wait()
	s.end()
	d.stop()
	f.report(t)
}

// followOnce follows over one connection and checks that nothing is missing.
func (w *world) followOnce(ctx context.Context, head *atomic.Uint64) error {
	c, err := ipc.Dial(ctx, w.socket())
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		page, err := c.ReadEvents(ctx, wire.ReadParams{After: head.Load(), Limit: 50, Wait: 1000})
		if err != nil {
			return err
		}
		events, err := eventsOf(page)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Sequence != head.Load()+1 {
				return fmt.Errorf("event %d after %d", e.Sequence, head.Load())
			}
			head.Store(e.Sequence)
		}
	}
}

// what a client does that should not.
var rudeness = []struct {
	name string
	do   func(net.Conn)
}{
	{"closes at once", func(net.Conn) {}},
	{"half a request", func(c net.Conn) { io.WriteString(c, `{"jsonrpc":"2.0","id":1,"meth`) }},
	{"garbage", func(c net.Conn) { io.WriteString(c, "\x00\xff\x16\x03\x01 GET / HTTP/1.1\r\n\r\n[[[[{{{{\n") }},
	{"does not wait for the answer", func(c net.Conn) {
		io.WriteString(c, `{"jsonrpc":"2.0","id":1,"method":"ReadAgentEvents","params":{"limit":1000,"wait_ms":30000}}`+"\n")
	}},
	{"shuts down its side", func(c net.Conn) {
		io.WriteString(c, `{"jsonrpc":"2.0","id":1,"method":"Catalog"}`+"\n")
		c.(*net.UnixConn).CloseWrite()
	}},
	{"many requests", func(c net.Conn) {
		io.WriteString(c, strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"Status"}`+"\n", 40))
	}},
	{"a long line", func(c net.Conn) { io.WriteString(c, strings.Repeat("x", 100<<10)) }},
	{"a bad prompt", func(c net.Conn) {
		io.WriteString(c, `{"jsonrpc":"2.0","id":1,"method":"AdmitPrompt","params":{"prompt":7}}`+"\n")
	}},
}

// Fault 9: connections by the thousand that are opened, misused and closed. The
// daemon keeps nothing of them, and others are served meanwhile.
func TestRudeClients(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	w := newWorld(t)
	n := pick(3000, 100_000)
	f := &figures{Fault: "9 rude clients", Tried: n, Unit: "connections",
		How: "opened and closed: nothing, half a request, garbage, 40 requests, no reading, 8 at a time"}
	d := w.startWith(plain(t))
	d.ready()
	s := w.read(0)
	a := w.agent("claude", "a")
	w.seen(a)
	a.do("turn 2 2000")
	s.verdict(f, a)
	w.rude(500) // what a daemon keeps for itself is there now
	pid := d.cmd.Process.Pid
	calm := func() int {
		// The two of the story, and this one.
		w.until("the others are gone", func() bool { return w.status().Clients <= 3 })
		return w.open(pid)
	}
	files := calm()
	memory, err := residentBytes(pid)
	if err != nil {
		t.Fatal(err)
	}
	// A polite client gets through, if not at every try.
	served, refused := 0, 0
	stop := make(chan struct{})
	var polite sync.WaitGroup
	polite.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond): // its pace
			}
			began := time.Now()
			err := w.ask(func(ctx context.Context, c *ipc.Client) error { _, err := c.Catalog(ctx); return err })
			switch {
			case err == nil:
				served++
				f.recovered(time.Since(began))
			case passing(err):
				refused++
			default:
				t.Errorf("a polite client: %v", err)
				return
			}
		}
	})
	for range 4 {
		w.rude(n / 4)
		a.do("turn 1 500")
	}
	close(stop)
	polite.Wait()
	// What is open for a moment, such as a file that is just looked at, closes.
	calm()
	// The log is read by four connections at most, which stay once they were needed:
	// how many were by then is chance. Each has the database and its -wal.
	const pool = 3 * 2
	w.until(fmt.Sprintf("not more files open than the %d before and %d", files, pool), func() bool { return w.open(pid) <= files+pool })
	s.verdict(f, a)
	now, err := residentBytes(pid)
	if err != nil {
		t.Fatal(err)
	}
	if served == 0 {
		t.Error("a polite client was never served")
	}
	f.Note = fmt.Sprintf("recovery: a catalog meanwhile, %d of %d tries had no room; memory after/before %.2f", refused, refused+served, float64(now)/float64(memory))
	if now > mostMemory {
		t.Errorf("%d MiB of memory, at most %d", now>>20, mostMemory>>20)
	}
	d.stop()
	f.report(t)
}

// rude makes n connections, 8 at a time, none of which behaves.
func (w *world) rude(n int) {
	w.t.Helper()
	var all sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				conn, err := net.Dial("unix", w.socket())
				// The kernel keeps 4096 that the daemon has not looked at yet.
				for deadline := time.Now().Add(patience); errors.Is(err, syscall.EAGAIN) && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond) // between two tries
					conn, err = net.Dial("unix", w.socket())
				}
				if err != nil {
					w.t.Errorf("connection %d: %v", i, err)
					return
				}
				conn.SetDeadline(time.Now().Add(patience))
				rudeness[i%int64(len(rudeness))].do(conn)
				conn.Close()
			}
		})
	}
	all.Wait()
}

func (w *world) open(pid int) int {
	w.t.Helper()
	n, err := descriptors(pid)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// Fault 9: another user is refused, and the log says so once. The modes of the
// directory and of the socket keep him out already; they are opened here.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		missing(t, "only root can be another user")
	}
	w := newWorld(t)
	f := &figures{Fault: "9 another user", Tried: pick(5, 50), Unit: "connections", How: "with the socket's modes opened on purpose"}
	d := w.serve()
	s := w.read(0)
	a := w.agent("codex", "a")
	w.seen(a)
	a.do("turn 1 100")
	for _, dir := range []string{w.dir, w.path("run"), w.path("run", "steno")} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The go command keeps this binary where nobody else comes.
	bin, err := agentBinary(w.dir, "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{w.path("bin"), bin} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	other := func() string {
		cmd := exec.CommandContext(t.Context(), bin)
		cmd.Env = append(os.Environ(), partVar+"=ask", "STENO_FAULTS_SOCKET="+w.socket(), "GORACE=atexit_sleep_ms=0")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			missing(t, "this program cannot be run by another user: "+err.Error())
		}
		return string(out)
	}
	if out := other(); !strings.Contains(out, "permission denied") {
		t.Errorf("with the socket's own mode: %q", out)
	}
	if err := os.Chmod(w.socket(), 0o666); err != nil {
		t.Fatal(err)
	}
	for range f.Tried {
		if out := other(); !strings.Contains(out, "unauthorized") || strings.Contains(out, `"agents"`) {
			t.Fatalf("another user was told: %.300q", out)
		}
	}
	data, err := os.ReadFile(w.logFile())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "connection of another user refused"); n != 1 {
		t.Errorf("%d lines of the log say so, want 1", n)
	}
	s.verdict(f, a)
	d.stop()
	f.report(t)
}

func init() { parts["ask"] = askForCatalog }

// askForCatalog prints the raw answer to a request.
func askForCatalog() error {
	conn, err := net.Dial("unix", os.Getenv("STENO_FAULTS_SOCKET"))
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"Catalog"}`+"\n") // it may be closed already
	answer, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Println(answer)
	return err
}

// Fault 9: a client in another network or user namespace reads the catalog and
// the capabilities, and no event, pane or status.
func TestOtherNamespace(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	w := newWorld(t)
	f := &figures{Fault: "9 other namespace", Unit: "commands", How: "steno commands in a user, and in a user and network namespace of their own"}
	d := w.serve()
	s := w.read(0)
	a := w.agent("claude", "a")
	w.seen(a)
	a.do("turn 1 100")
	s.verdict(f, a)
	for _, flags := range []uintptr{syscall.CLONE_NEWUSER, syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET} {
		for command, allowed := range map[string]bool{
			"agent catalog": true, "agent capabilities": true,
			"agent events --after 0": false, "agent list": false, "status": false, "list": false, "explain a": false,
		} {
			cmd := w.command(t.Context(), nil, strings.Fields(command)...)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  flags,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			}
			out, err := cmd.CombinedOutput()
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				missing(t, "no user namespaces here: "+err.Error())
			}
			f.Tried++
			switch code := cmd.ProcessState.ExitCode(); {
			case allowed && code != 0:
				t.Errorf("steno %s: exit code %d: %s", command, code, out)
			case !allowed && (code != 1 || !strings.Contains(string(out), "another network or user namespace")):
				t.Errorf("steno %s: exit code %d: %.300s", command, code, out)
			}
		}
	}
	d.stop()
	f.report(t)
}

// Fault 9: "steno agent events --follow" lives through restarts of the daemon,
// in order and by kill.
func TestFollowerAcrossRestarts(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	w := newWorld(t)
	restarts := pick(6, 60)
	f := &figures{Fault: "9 follower over restarts", Tried: restarts, Unit: "restarts", How: "one process of steno agent events --follow; SIGTERM and SIGKILL in turn"}
	d := w.serve()
	a := w.agent("codex", "a")
	w.seen(a)
	cmd := w.command(t.Context(), nil, "agent", "events", "--after", "0", "--follow", "--wait-ms", "1000")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var mu sync.Mutex // guards last and at
	var last uint64
	at := time.Now()
	var reader sync.WaitGroup
	reader.Go(func() {
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, wire.MaxLine)
		defer func() {
			if err := scan.Err(); err != nil {
				t.Error(err)
			}
		}()
		for scan.Scan() {
			var page wire.Page
			if err := json.Unmarshal(scan.Bytes(), &page); err != nil {
				t.Errorf("a line that is no page: %v", err)
				return
			}
			events, err := eventsOf(page)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, e := range events {
				if e.Sequence != last+1 {
					f.Lost++
					t.Errorf("event %d after %d", e.Sequence, last)
				}
				last, at = e.Sequence, time.Now()
			}
			mu.Unlock()
		}
	})
	// It does not wait for a daemon that it never reached.
	w.until("the follower reads", func() bool { mu.Lock(); defer mu.Unlock(); return last > 0 })
	for i := range restarts {
		a.do("turn 2 100")
		if i%2 == 0 {
			d.stop()
		} else {
			d.kill()
		}
		a.do("turn 1 100")
		d = w.serve()
		latest := w.status().Store.Latest
		w.until("the follower goes on", func() bool { mu.Lock(); defer mu.Unlock(); return last > latest || last == w.status().Store.Latest })
		mu.Lock()
		f.recovered(max(0, at.Sub(d.started)))
		mu.Unlock()
	}
	s := w.read(0)
	s.verdict(f, a)
	head := s.head()
	w.until("the follower has everything", func() bool { mu.Lock(); defer mu.Unlock(); return last >= head })
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	reader.Wait()
	d.stop()
	f.report(t)
}
