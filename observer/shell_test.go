package observer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"steno/store"
)

// playShell is a shell with job control: "run" starts an agent in the
// foreground, "fg PID" brings one back, "quit PID" ends one. Its terminal is
// descriptor 3.
func playShell() {
	signal.Ignore(syscall.SIGTTOU, syscall.SIGHUP)
	jobs := map[int]func(){}
	foreground := func(pgid int) { _ = unix.IoctlSetPointerInt(3, unix.TIOCSPGRP, pgid) }
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word, arg, _ := strings.Cut(in.Text(), " ")
		pid, _ := strconv.Atoi(arg)
		switch word {
		case "run":
			cmd := exec.Command(arg)
			cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: 3}
			pipe, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				fmt.Println(err)
				continue
			}
			pid = cmd.Process.Pid
			jobs[pid] = func() { pipe.Close(); _ = cmd.Wait() }
		case "fg":
			foreground(pid)
		case "quit":
			jobs[pid]()
			delete(jobs, pid)
			foreground(os.Getpid())
		}
		fmt.Println(pid)
	}
	for _, quit := range jobs {
		quit()
	}
}

// playTmux answers list-panes for the one server that panes.json beside the
// program describes, and fails while a file named "trouble" is there.
func playTmux() {
	dir := filepath.Dir(os.Args[0])
	var s struct {
		Socket string
		Panes  []map[string]string
	}
	b, err := os.ReadFile(filepath.Join(dir, "panes.json"))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if _, trouble := os.Stat(filepath.Join(dir, "trouble")); err != nil || trouble == nil {
		os.Exit(1)
	}
	if len(os.Args) < 8 || os.Args[3] != s.Socket {
		return
	}
	for _, p := range s.Panes {
		line := os.Args[7]
		for k, v := range p {
			line = strings.ReplaceAll(line, "#{"+k+"}", v)
		}
		fmt.Println(line)
	}
}

// terminal is a pseudo terminal with a shell.
type terminal struct {
	r   *rig
	in  io.Writer
	out *bufio.Reader
	pts string
	pid int // of the shell
}

func (r *rig) program(name string) string {
	r.t.Helper()
	path := filepath.Join(r.home, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o700); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func (r *rig) terminal() *terminal {
	r.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		r.t.Skipf("no pseudo terminals: %v", err)
	}
	r.t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		r.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		r.t.Fatal(err)
	}
	term := &terminal{r: r, pts: fmt.Sprint("/dev/pts/", n)}
	slave, err := os.OpenFile(term.pts, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer slave.Close()
	cmd := exec.Command(r.program("fakeshell-"))
	cmd.Env, cmd.Dir = []string{"HOME=" + r.home, raceExit}, r.home
	cmd.ExtraFiles = []*os.File{slave}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	term.in, term.out, term.pid = in, bufio.NewReader(out), cmd.Process.Pid
	return term
}

// do has the shell run a command and gives the pid that it answers.
func (t *terminal) do(command string, arg any) int {
	t.r.t.Helper()
	if _, err := fmt.Fprintln(t.in, command, arg); err != nil {
		t.r.t.Fatal(err)
	}
	answer, err := t.out.ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(answer))
	if err != nil || bad != nil {
		t.r.t.Fatalf("the shell says %q %v", answer, err)
	}
	return pid
}

// run starts an agent in the foreground of the terminal.
func (t *terminal) run(session string) *agentProcess {
	t.r.t.Helper()
	exe := t.r.program(agentName)
	pid := t.do("run", exe)
	a := &agentProcess{r: t.r, home: t.r.home, cmd: &exec.Cmd{Process: &os.Process{Pid: pid}}}
	if session != "" {
		a.register(fakeRegistry{Session: session})
	}
	return a
}

func (a *agentProcess) pid() int { return a.cmd.Process.Pid }

// tmux makes a made-up tmux server of these terminals, which answers from the
// next run of the observer on.
func (r *rig) tmux(terminals ...*terminal) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "tmux") // a socket's path has to be short
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { l.Close() })
	var panes []map[string]string
	for i, t := range terminals {
		panes = append(panes, map[string]string{
			"pane_id": fmt.Sprint("%", i), "pane_tty": t.pts, "pane_pid": strconv.Itoa(t.pid), "pane_dead": "0",
			"pane_active": "1", "window_active": "1", "pane_in_mode": "0", "window_id": fmt.Sprint("@", i),
			"window_index": strconv.Itoa(i), "pane_index": "0", "automatic-rename": "1", "pid": strconv.Itoa(os.Getpid()),
			"start_time": "1", "pane_current_command": "x", "session_name": "s", "window_name": "w", "pane_title": "", "pane_current_path": "/",
		})
	}
	b, err := json.Marshal(map[string]any{"Socket": socket, "Panes": panes})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.home, "panes.json"), b, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.opt.TmuxPath, r.opt.TmuxSockets = r.program("faketmux-"), []string{socket}
}

// trouble lets the server fail, or answer again.
func (r *rig) trouble(on bool) {
	r.t.Helper()
	path := filepath.Join(r.home, "trouble")
	var err error
	if on {
		err = os.WriteFile(path, nil, 0o600)
	} else {
		err = os.Remove(path)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// row is the stored agent of a process.
func (r *rig) row(pid int) (row store.Agent) {
	r.t.Helper()
	_, rows, err := r.store.Agents(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range rows {
		if a.PID == pid {
			row = a
		}
	}
	return row
}

// alone checks that no pane id has two live entries.
func (r *rig) alone() {
	r.t.Helper()
	_, rows, err := r.store.Agents(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, a := range rows {
		if a.Alive && seen[a.PaneID] {
			r.t.Errorf("pane %d has two live entries", a.PaneID)
		}
		seen[a.PaneID] = seen[a.PaneID] || a.Alive
	}
}
