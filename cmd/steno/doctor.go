package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"steno/ipc"
	"steno/ipc/wire"
	"steno/owned"
)

// commandTimeout bounds every external command.
const commandTimeout = 2 * time.Second

// verdict of one check.
type verdict string

const (
	pass verdict = "ok"
	warn verdict = "warn"
	fail verdict = "fail"
)

// finding is one line of "steno doctor".
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Detail  string  `json:"detail"`
	Do      string  `json:"do"` // what to do about it, "" when nothing
}

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check what works and say what to do where it does not",
		Long: `Checks the configuration, the daemon, the event log, file watching, the multiplexer
and each agent program, one line each. Ends with code 1 when a check failed.`,
		Args: cobra.NoArgs,
	}
	format := formatFlag(cmd)
	versions := cmd.Flags().Bool("versions", false, "run each agent program with --version, for at most 2 s")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		d := doctor{app: a, versions: *versions}
		d.examine(cmd.Context())
		if asJSON {
			err = a.printJSON(d.findings)
		} else {
			err = d.print()
		}
		if err != nil {
			return err
		}
		for _, f := range d.findings {
			if f.Verdict == fail {
				return errSilent
			}
		}
		return nil
	}
	return cmd
}

type doctor struct {
	*app
	versions bool
	findings []finding
}

func (d *doctor) add(check string, v verdict, do, format string, args ...any) {
	if v == pass {
		do = ""
	}
	d.findings = append(d.findings, finding{check, v, fmt.Sprintf(format, args...), do})
}

func (d *doctor) print() error {
	colour := d.colour(d.tty)
	colours := map[verdict]string{pass: green, warn: yellow, fail: red}
	for _, f := range d.findings {
		line := fmt.Sprintf("%s %s: %s\n", paint(colour, colours[f.Verdict], fmt.Sprintf("%-4s", f.Verdict)), clean(f.Check), clean(f.Detail))
		if f.Do != "" {
			line += fmt.Sprintf("     -> %s\n", clean(f.Do))
		}
		if _, err := d.out.Write([]byte(line)); err != nil {
			return fmt.Errorf("write findings: %w", err)
		}
	}
	return nil
}

func (d *doctor) examine(ctx context.Context) {
	c, err := d.load(true)
	if err != nil {
		d.add("configuration", fail, "correct it; steno config prints the settings in effect", "%v", err)
		return
	}
	if c.origin["config"] == "default" && !exists(c.ConfigFile) {
		d.add("configuration", pass, "", "defaults, %s does not exist", d.shorten(c.ConfigFile))
	} else {
		d.add("configuration", pass, "", "%s", d.shorten(c.ConfigFile))
	}
	d.stateDir(c)
	status := d.daemon(ctx, c)
	if status != nil {
		d.log(status.Store)
		d.watch(status.Watch)
	}
	d.tmux(ctx, c, status)
	d.programs(ctx, status)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (d *doctor) stateDir(c *config) {
	info, err := os.Stat(c.StateDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.add("state directory", warn, "steno serve makes it", "%s does not exist yet", d.shorten(c.StateDir))
		return
	case err != nil:
		d.add("state directory", fail, "make it accessible to this user", "%v", err)
		return
	case !info.IsDir():
		d.add("state directory", fail, "move the file away", "%s is not a directory", d.shorten(c.StateDir))
		return
	case owned.Check(c.StateDir) != nil: // the daemon would refuse it
		d.add("state directory", fail, hintUnsafe, "%v", owned.Check(c.StateDir))
		return
	case info.Mode().Perm()&0o077 != 0:
		d.add("state directory", warn, "chmod 700 "+c.StateDir, "%s can be read by others (mode %04o)", d.shorten(c.StateDir), info.Mode().Perm())
		return
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(c.StateDir, &fs); err == nil {
		// A full log needs its own size, and its write-ahead log some more.
		if free := int64(fs.Bavail) * fs.Bsize; free < c.RetentionBytes/4 {
			d.add("state directory", warn, "free some space, or lower retention_bytes", "%s has %s free; the log may take %s",
				d.shorten(c.StateDir), size(free), size(c.RetentionBytes))
			return
		}
	}
	d.add("state directory", pass, "", "%s", d.shorten(c.StateDir))
}

// daemon asks the daemon for its status; nil when it cannot be asked.
func (d *doctor) daemon(ctx context.Context, c *config) *wire.Status {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	const start = "systemctl --user start steno, or steno serve in a terminal"
	client, err := ipc.Dial(ctx, c.Socket)
	if err != nil {
		do := start
		if errors.Is(err, ipc.ErrIncompatible) {
			do = "restart the daemon: it is of another version"
		}
		d.add("daemon", fail, do, "%s: %v", d.shorten(c.Socket), err)
		return nil
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		d.add("daemon", fail, "restart it: systemctl --user restart steno", "%v", err)
		return nil
	}
	if status.Version != versionText() {
		d.add("daemon", warn, "restart the daemon", "runs steno %s, this is %s", status.Version, versionText())
		return &status
	}
	d.add("daemon", pass, "", "steno %s, pid %d", status.Version, status.PID)
	return &status
}

func (d *doctor) log(s wire.StoreStatus) {
	if !s.Working {
		d.add("event log", fail, "see the daemon's log; a full or read-only disk ends by itself once it is repaired", "does not work: %s", s.Error)
		return
	}
	d.add("event log", pass, "", "%d events, %s", s.Events, size(s.Bytes))
}

func (d *doctor) watch(w wire.WatchStatus) {
	limit := readLimit("/proc/sys/fs/inotify/max_user_watches")
	switch {
	case w.Unwatched > 0:
		d.add("file watching", warn, fmt.Sprintf("raise the limit: sysctl fs.inotify.max_user_watches=%d", max(2*limit, 65536)),
			"%s: %d directories are only swept (%d watches of at most %d, system limit %d)", w.Mode, w.Unwatched, w.Watches, w.Budget, limit)
	case w.Mode != "inotify":
		d.add("file watching", warn, "raise fs.inotify.max_user_instances, or leave it: sweeps see everything, later", "%s: %s", w.Mode, w.Reason)
	case w.Overflows > 0:
		d.add("file watching", pass, "", "inotify, %d watches of at most %d, %d overflows repaired by a sweep", w.Watches, w.Budget, w.Overflows)
	default:
		d.add("file watching", pass, "", "inotify, %d watches of at most %d", w.Watches, w.Budget)
	}
}

func readLimit(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return n
}

func (d *doctor) tmux(ctx context.Context, c *config, status *wire.Status) {
	path, err := exec.LookPath(c.Tmux)
	if err != nil {
		d.add("tmux", warn, "install tmux, or name it with --tmux; agents in bare terminals are seen without it", "%s is not found", c.Tmux)
		return
	}
	out, err := output(ctx, path, "-V")
	if err != nil {
		d.add("tmux", warn, "", "%s -V: %v", d.shorten(path), err)
		return
	}
	if status == nil {
		d.add("tmux", pass, "", "%s", out)
		return
	}
	if len(status.Mux) == 0 {
		d.add("tmux", warn, "start the agent inside tmux, or add its socket to tmux_sockets", "%s, no server is running", out)
		return
	}
	for _, m := range status.Mux {
		if m.Error != "" {
			d.add("tmux "+d.shorten(m.Socket), warn, "a socket without a server can be removed", "%s", m.Error)
			continue
		}
		d.add("tmux "+d.shorten(m.Socket), pass, "", "%s, %d panes", out, m.Panes)
	}
}

// output is the first line that a command prints, within commandTimeout.
func output(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = 100 * time.Millisecond // a grandchild may hold the pipe
	cmd.Dir = filepath.Dir(path)
	var b limitedBuffer
	cmd.Stdout = &b
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("no answer within %s", commandTimeout)
		}
		return "", err
	}
	return firstLine(string(b.data), 80), nil
}

// limitedBuffer keeps the first 4 KiB and takes the rest without keeping it.
type limitedBuffer struct{ data []byte }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p[:min(len(p), 4096-len(b.data))]...)
	return len(p), nil
}
