package main

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// raceQuick is a variable for child processes: under the race detector each
// would sleep for a second at its end, and the tests start hundreds.
func raceQuick() string { return "GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE") }

// waitFor polls a condition that nothing announces.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not appear in %s", what, patience)
		}
	}
}

// listenUnix makes a listening socket the way a service manager does and gives
// its descriptor.
func listenUnix(t *testing.T, path string) *os.File {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { f.Close() })
	return f
}

// runMake runs make in the module's root.
func runMake(t *testing.T, env []string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir = moduleRoot
	cmd.Env = append(os.Environ(), env...)
	// Under "make test" these would carry the outer make's options over.
	cmd.Env = append(cmd.Env, "MAKEFLAGS=", "MAKELEVEL=0", "MFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %v: %v: %s", args, err, out)
	}
	return string(out)
}
