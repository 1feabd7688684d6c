package mux

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxOutput  = 8 << 20
	maxPanes   = 10_000
	maxSockets = 64
	maxEntries = 1_024
	maxField   = 4 << 10
	parallel   = 4

	defaultTimeout = 2 * time.Second
	// grace is how long a killed command's pipes may stay open: another
	// process may hold them.
	grace = 200 * time.Millisecond
)

// Tmux finds tmux servers and lists their panes. The zero value works.
type Tmux struct {
	Path    string        // program; default "tmux", looked up in PATH
	Sockets []string      // more sockets than those in Dirs
	Dirs    []string      // directories of sockets; default $TMUX_TMPDIR/tmux-<uid>, or /tmp/tmux-<uid>
	Timeout time.Duration // for one server; default 2 s
}

// Panes asks every server that it finds, and returns one listing a socket, by
// socket path. The error is ErrNoTmux or the context's; everything else is told
// in the listing it concerns.
func (t *Tmux) Panes(ctx context.Context) ([]Listing, error) {
	program := t.Path
	if program == "" {
		program = "tmux"
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return nil, ErrNoTmux
	}
	out := t.sockets()
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range out {
		if out[i].Err != nil {
			continue
		}
		// Owned and joined here. The slot is taken before the start, so that
		// at most `parallel` commands exist.
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i] = t.list(ctx, program, out[i].Server.Socket)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// sockets gives a listing for each socket: with an error for a configured one
// that cannot be used. Strange files in a directory are passed over.
func (t *Tmux) sockets() []Listing {
	dirs := t.Dirs
	if dirs == nil {
		base := os.Getenv("TMUX_TMPDIR")
		if base == "" {
			base = "/tmp"
		}
		dirs = []string{filepath.Join(base, "tmux-"+strconv.Itoa(os.Getuid()))}
	}
	var out []Listing
	seen := make(map[[2]uint64]bool)
	add := func(path string, asked bool) {
		if len(out) >= maxSockets {
			return
		}
		id, err := socketID(path)
		switch {
		case err == nil && seen[id], err != nil && !asked:
			return
		case err == nil:
			seen[id] = true
		}
		out = append(out, Listing{Server: Server{Socket: path}, Err: err})
	}
	for _, path := range t.Sockets {
		add(path, true)
	}
	for _, dir := range dirs {
		for _, name := range entries(dir) {
			add(filepath.Join(dir, name), false)
		}
	}
	slices.SortFunc(out, func(a, b Listing) int { return strings.Compare(a.Server.Socket, b.Server.Socket) })
	return out
}

// entries lists a directory of this uid, at most maxEntries names, sorted.
func entries(dir string) []string {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !mine(info) {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxEntries) // what was read before an error is still true
	slices.Sort(names)
	return names
}

// socketID returns device and inode of a socket file of this uid.
func socketID(path string) ([2]uint64, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return [2]uint64{}, ErrNoServer
	}
	if err != nil {
		return [2]uint64{}, fmt.Errorf("look at socket: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Type() != fs.ModeSocket || !mine(info) {
		return [2]uint64{}, ErrSocket
	}
	return [2]uint64{st.Dev, st.Ino}, nil
}

func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// list asks one server.
func (t *Tmux) list(ctx context.Context, program, socket string) Listing {
	l := Listing{Server: Server{Socket: socket}}
	timeout := t.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	// A leftover socket refuses at once: that is cheaper to see than a command
	// that fails, and it needs no reading of messages.
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		l.Err = ErrNoServer
		return l
	case ctx.Err() != nil:
		l.Err = ErrTimeout
		return l
	case err != nil:
		l.Err = fmt.Errorf("dial server: %w", err)
		return l
	}
	conn.Close()

	var word [12]byte
	rand.Read(word[:]) // crypto/rand never fails: it ends the program instead
	sep := hex.EncodeToString(word[:])
	data, err := run(ctx, cancel, program, "-u", "-S", socket, "list-panes", "-a", "-F", format(sep))
	if err != nil {
		l.Err = err
		return l
	}
	if l.Panes, l.Err = parse(data, sep, socket); len(l.Panes) > 0 {
		l.Server = l.Panes[0].Server
	}
	return l
}

// run runs the command and returns its output. cancel stops it early.
func run(ctx context.Context, cancel func(), program string, args ...string) ([]byte, error) {
	out := capped{stop: cancel}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "TMUX=") || strings.HasPrefix(kv, "TMUX_PANE=")
	})
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case out.over:
		return nil, ErrTooMuch
	case ctx.Err() != nil:
		return nil, ErrTimeout
	case errors.As(err, &exit):
		return nil, fmt.Errorf("list panes: tmux ended with %s", exit.ProcessState)
	case err != nil:
		return nil, fmt.Errorf("list panes: %w", err)
	}
	return out.data, nil
}

// capped keeps at most maxOutput bytes and stops the command after that.
type capped struct {
	data []byte
	over bool
	stop func()
}

func (c *capped) Write(p []byte) (int, error) {
	if len(c.data)+len(p) > maxOutput {
		c.over = true
		c.stop()
		return 0, ErrTooMuch
	}
	c.data = append(c.data, p...)
	return len(p), nil
}
