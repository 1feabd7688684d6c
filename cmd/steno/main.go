package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"steno/ipc"
)

// version is set by the linker; a plain build takes what the module says.
var version string

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
)

func main() {
	ctx, drain := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // none of the two is lost
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // lives as long as the process
		<-signals
		drain()
		<-signals
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out, errw io.Writer) int {
	a := &app{getenv: getenv, in: in, out: out, errw: errw, tty: isTerminal(out), errTTY: isTerminal(errw)}
	args, a.skipConfig = stripPrefix(args)
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return a.report(err)
}

// app is what every command needs of its surroundings.
type app struct {
	getenv      func(string) string
	in          io.Reader
	out, errw   io.Writer
	tty, errTTY bool // whether out and errw are terminals
	skipConfig  bool
	started     bool              // the command line was understood
	json        bool              // --json
	flags       map[string]string // settings that were given as flags
}

// usageError is a command line, or a value in the environment, that cannot be
// understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// hintError is an error with something to do about it.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }

// errSilent ends a command with code 1 after it has said everything itself.
var errSilent = errors.New("failed")

// report prints what went wrong and gives the exit code.
func (a *app) report(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, unix.EPIPE):
		return exitOK // the reader has seen enough
	case errors.Is(err, errSilent):
		return exitFailed
	}
	code, hint := exitFailed, ""
	if h, ok := errors.AsType[hintError](err); ok {
		hint = h.hint
	}
	if _, ok := errors.AsType[usageError](err); ok || !a.started {
		code = exitUsage
		if hint == "" {
			hint = "steno --help lists the commands, steno COMMAND --help their flags"
		}
	}
	if errors.Is(err, ipc.ErrUnreachable) || errors.Is(err, ipc.ErrDisconnected) {
		code = exitUnreachable
		if hint == "" {
			hint = "start the daemon: systemctl --user start steno, or steno serve in a terminal"
		}
	}
	if errors.Is(err, context.Canceled) {
		return exitFailed // a signal; the user knows
	}
	fmt.Fprintf(a.errw, "steno: error: %s\n", clean(err.Error()))
	if hint != "" {
		fmt.Fprintf(a.errw, "steno: hint: %s\n", hint)
	}
	return code
}

// stripPrefix accepts the command lines of consumers that were written for a
// multiplexer: [--skip-config] [cli [--prefer-mux] [--no-auto-start]] COMMAND.
func stripPrefix(args []string) (rest []string, skipConfig bool) {
	for len(args) > 0 && args[0] == "--skip-config" {
		args, skipConfig = args[1:], true
	}
	if len(args) == 0 || args[0] != "cli" {
		return args, skipConfig
	}
	args = args[1:]
	for len(args) > 0 && (args[0] == "--prefer-mux" || args[0] == "--no-auto-start") {
		args = args[1:]
	}
	return args, skipConfig
}

// versionText is the version in one word.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// width is how many columns the terminal behind w has, 0 when it is none.
func width(w any) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// colour says whether w may be written to in colours. https://no-color.org:
// any value but the empty one switches them off.
func (a *app) colour(terminal bool) bool {
	return terminal && a.getenv("NO_COLOR") == "" && !strings.EqualFold(a.getenv("TERM"), "dumb")
}
