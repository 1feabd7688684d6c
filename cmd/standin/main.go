package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run does what the name of the executable asks for. The name on disk counts,
// as it does for an observer, and not argv[0].
func run(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out, errw io.Writer) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(errw, "standin: error: find own executable:", err)
		return 1
	}
	name := filepath.Base(self)
	switch {
	case slices.Contains(names, name):
		err = play(ctx, name, getenv, in, out)
	case len(args) > 1 && args[1] == "demo":
		err = demoCommand(ctx, self, args[2:], out, errw)
	default:
		fmt.Fprintln(errw, "usage: standin demo [--steno FILE] [--records DIR] [--pace DURATION]")
		fmt.Fprintln(errw, "       (or run a copy of this file that is named "+strings.Join(names, ", ")+"; see its documentation)")
		return 2
	}
	if err != nil {
		fmt.Fprintf(errw, "standin: error: %v\n", err)
		return 1
	}
	return 0
}
