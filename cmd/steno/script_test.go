package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs testdata/script/*.txtar, one theme each. Beside the usual
// commands they have
//
//	exits CODE PROGRAM ARGS...   run it; it has to end with this code
//	ready                        wait until the daemon of the script answers
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			// Short, and of its own: a socket's path has at most 107 bytes.
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(e.WorkDir, "r"))
			e.Setenv("TMUX_TMPDIR", e.WorkDir)
			e.Vars = append(e.Vars, raceQuick())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := 0
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					e, ok := errors.AsType[*exec.ExitError](err)
					if !ok {
						ts.Fatalf("%v", err)
					}
					got = e.ExitCode()
				}
				if got != want {
					ts.Fatalf("exit code %d, want %d", got, want)
				}
			},
			"ready": func(ts *testscript.TestScript, _ bool, _ []string) {
				waitFor(t, "the daemon's answer", func() bool { return ts.Exec("steno", "status") == nil })
			},
		},
	})
}
