package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The demonstration: a daemon with a home of its own, one stand-in for each
// recorded session in its own terminal, and a reader of the event stream that
// decides when everything was seen. It ends after at most demoLimit.
const demoLimit = 60 * time.Second

// demoTrees are the directories that the programs work in, in the order of names.
var demoTrees = []string{"maple", "birch", "cedar", "hazel", "rowan", "alder"}

// demoProgram is where the copy of the stand-in for a program lies: Copilot is
// known by its package's directory.
func demoProgram(name string) string {
	if name == "copilot" {
		return "bin/copilot-linux-x64/copilot"
	}
	return "bin/" + name
}

type demo struct {
	self, steno, records string
	pace                 time.Duration
	out, errw            io.Writer

	known map[string]bool // agents that were asked about, and whether they are ours
	dir   string          // removed at the end
	env   []string        // of the daemon and the stand-ins
}

func demoCommand(ctx context.Context, self string, args []string, out, errw io.Writer) error {
	d := demo{known: map[string]bool{}, self: self, out: out, errw: errw}
	set := flag.NewFlagSet("standin demo", flag.ContinueOnError)
	set.SetOutput(errw)
	set.StringVar(&d.steno, "steno", filepath.Join(filepath.Dir(self), "steno"), "the steno `file` to show")
	set.StringVar(&d.records, "records", "testdata/demo", "`directory` with claude.jsonl, codex.jsonl and so on")
	set.DurationVar(&d.pace, "pace", 150*time.Millisecond, "`time` between two records")
	if err := set.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	return d.run(ctx)
}

func (d *demo) run(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "steno-demo-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	if err := d.prepare(); err != nil {
		return err
	}
	daemon, err := d.startDaemon(ctx)
	if err != nil {
		return err
	}
	err = d.show(ctx)
	return errors.Join(err, daemon.stop())
}

// prepare makes the home, the programs and the environment.
func (d *demo) prepare() error {
	records, err := filepath.Abs(d.records)
	if err != nil {
		return fmt.Errorf("find recordings: %w", err)
	}
	d.records = records
	if d.steno, err = filepath.Abs(d.steno); err != nil {
		return fmt.Errorf("find steno: %w", err)
	}
	dirs := []string{"run", "bin/copilot-linux-x64"}
	for _, tree := range demoTrees {
		dirs = append(dirs, "home/"+tree)
	}
	for _, sub := range dirs {
		if err := os.MkdirAll(filepath.Join(d.dir, sub), 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(d.dir, demoProgram(name)), d.self); err != nil {
			return err
		}
	}
	home := filepath.Join(d.dir, "home")
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "TERM", "LANG", "LC_ALL", "NO_COLOR", "TMPDIR":
			d.env = append(d.env, kv)
		}
	}
	d.env = append(d.env, "HOME="+home, "XDG_RUNTIME_DIR="+filepath.Join(d.dir, "run"),
		"XDG_STATE_HOME="+filepath.Join(home, ".local/state"), "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"TMUX_TMPDIR="+filepath.Join(d.dir, "run"))
	return nil
}

// copyFile copies an executable. A hard link would share its name in /proc
// with the original, whichever was made first.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy stand-in: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return fmt.Errorf("copy stand-in: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return fmt.Errorf("copy stand-in: %w", err)
	}
	return out.Close()
}

// daemonProcess is a running daemon; exited gives the result of its end once.
type daemonProcess struct {
	*os.Process
	exited chan error
}

// startDaemon starts "steno serve --follow" and waits until it says it is ready.
func (d *demo) startDaemon(ctx context.Context) (*daemonProcess, error) {
	addr := &net.UnixAddr{Name: filepath.Join(d.dir, "run", "notify"), Net: "unixgram"}
	notify, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for readiness: %w", err)
	}
	cmd := exec.Command(d.steno, "serve", "--follow", "--log-level", "warn")
	cmd.Env = append(append([]string{}, d.env...), "NOTIFY_SOCKET="+addr.Name)
	cmd.Stdout, cmd.Stderr = d.out, d.errw
	if err := cmd.Start(); err != nil {
		notify.Close()
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	daemon := &daemonProcess{cmd.Process, make(chan error, 1)}
	go func() { // joined in stop
		err := cmd.Wait()
		notify.Close() // nobody says anything any more
		daemon.exited <- err
	}()
	ready := make(chan bool, 1)
	go func() { // ends when notify is closed
		defer close(ready)
		for buf := make([]byte, 4096); ; {
			n, err := notify.Read(buf)
			if err != nil {
				return
			}
			if strings.Contains(string(buf[:n]), "READY=1") {
				select {
				case ready <- true:
				default: // said twice
				}
			}
		}
	}()
	select {
	case ok := <-ready:
		if ok {
			return daemon, nil
		}
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("the daemon did not become ready"), daemon.stop())
}

func (p *daemonProcess) stop() error {
	_ = p.Signal(syscall.SIGTERM) // it may have ended already
	if err := <-p.exited; err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	return nil
}

// show runs the stand-ins and reads the stream until all have come and gone.
func (d *demo) show(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader := exec.CommandContext(ctx, d.steno, "agent", "events", "--after", "0", "--follow", "--wait-ms", "1000")
	reader.Env = d.env
	pages, err := reader.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	if err := reader.Start(); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer func() {
		cancel()
		_ = reader.Wait() // ended by us
	}()
	played := make(chan error, len(names))
	for i, name := range names {
		go func() { played <- d.play(ctx, name, i) }() // joined below
	}
	seen, err := watchPages(pages, len(names), func(id string) bool { return d.ours(ctx, id) })
	if err != nil {
		cancel()
	}
	for range names {
		err = errors.Join(err, <-played)
	}
	if err == nil {
		fmt.Fprintf(d.errw, "standin: replayed %d recorded sessions: %d events, every turn exactly once\n",
			len(names), seen)
	}
	return err
}

// play runs one stand-in in a terminal of its own until its recording ends.
func (d *demo) play(ctx context.Context, name string, i int) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.dir, demoProgram(name)))
	cmd.Dir = filepath.Join(d.dir, "home", demoTrees[i])
	// Gemini is started by itself; this variable says that it was.
	cmd.Env = append(append([]string{}, d.env...), "GEMINI_CLI_NO_RELAUNCH=true", "STANDIN_RECORD="+filepath.Join(d.records, name+".jsonl"),
		"STANDIN_PACE="+d.pace.String(), "STANDIN_LINGER=1s")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	master, err := startInPTY(cmd)
	if err != nil {
		return fmt.Errorf("start stand-in for %s: %w", name, err)
	}
	defer master.Close()
	drained := make(chan struct{})
	go func() { // ends when the last writer of the terminal is gone
		defer close(drained)
		_, _ = io.Copy(io.Discard, master)
	}()
	err = cmd.Wait()
	<-drained
	if err != nil {
		return fmt.Errorf("stand-in for %s: %w", name, err)
	}
	return nil
}

// ours says whether an agent is one of the stand-ins: this user may have others,
// and many. One answer tells of all that are there.
func (d *demo) ours(ctx context.Context, id string) bool {
	if ours, known := d.known[id]; known {
		return ours
	}
	cmd := exec.CommandContext(ctx, d.steno, "agent", "list", "--format", "json")
	cmd.Env = d.env
	out, err := cmd.Output()
	if err != nil {
		return false
	}
	var agents []struct {
		Metadata struct {
			AgentID     string `json:"agent_id"`
			DeclaredCWD string `json:"declared_cwd"`
		} `json:"metadata"`
	}
	if json.Unmarshal(out, &agents) != nil {
		return false
	}
	for _, a := range agents {
		d.known[a.Metadata.AgentID] = strings.HasPrefix(a.Metadata.DeclaredCWD, d.dir)
	}
	return d.known[id]
}

// watchPages reads pages of events until n of our agents have come, finished a
// turn and gone. It checks what is said afterwards: no event id is seen twice.
func watchPages(pages io.Reader, n int, ours func(id string) bool) (int, error) {
	type progress struct{ ours, came, final, gone bool }
	agents := map[string]*progress{}
	ids := map[string]bool{}
	scan := bufio.NewScanner(pages)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var page struct {
			Events []struct {
				EventID   string  `json:"event_id"`
				Kind      string  `json:"kind"`
				AgentID   string  `json:"agent_id"`
				Lifecycle *string `json:"lifecycle"`
			} `json:"events"`
		}
		if err := json.Unmarshal(scan.Bytes(), &page); err != nil {
			return 0, fmt.Errorf("read page of events: %w", err)
		}
		for _, e := range page.Events {
			if ids[e.EventID] {
				return 0, fmt.Errorf("event %s came twice", e.EventID)
			}
			ids[e.EventID] = true
			a := agents[e.AgentID]
			if a == nil {
				a = &progress{ours: ours(e.AgentID)}
				agents[e.AgentID] = a
			}
			switch {
			case e.Kind == "turn_final":
				a.final = true
			case e.Lifecycle != nil && *e.Lifecycle == "available":
				a.came = true
			case e.Lifecycle != nil && *e.Lifecycle == "unavailable":
				a.gone = true
			}
		}
		done := 0
		for _, a := range agents {
			if a.ours && a.came && a.final && a.gone {
				done++
			}
		}
		if done >= n {
			return len(ids), nil
		}
	}
	if err := scan.Err(); err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}
	return 0, fmt.Errorf("the event stream ended early: %d agents seen, %d events", len(agents), len(ids))
}
