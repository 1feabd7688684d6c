//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Variables that a person may set, beside cacheVar and patienceVar.
const (
	knownVar    = "STENO_E2E_KNOWN"    // not empty: run what is known not to hold, too
	requiredVar = "STENO_E2E_REQUIRED" // not empty, or CI=true: what is missing is a failure
)

// Variables by which the outer run tells the inner one where things are.
const (
	insideVar  = "STENO_E2E_INSIDE"
	stenoVar   = "STENO_E2E_STENO"
	modulesVar = "STENO_E2E_MODULES"
	outVar     = "STENO_E2E_OUT" // a directory for what a scenario tells of itself
)

// root of the module, from this package's directory.
const moduleRoot = "../.."

var (
	update = flag.Bool("update", false, "write testdata/e2e/SCENARIOS.md and shapes")
	latest = flag.Bool("latest", false, "run the newest versions and report what is new")
)

// TestMain installs and builds with the network as it is. Each scenario then
// runs this binary again, in namespaces of its own.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := bePatient(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		os.Exit(2)
	}
	if os.Getenv(insideVar) != "" {
		os.Exit(m.Run())
	}
	os.Exit(outer(m))
}

// outer prepares, runs the tests and gives their exit code.
func outer(m *testing.M) int {
	if err := missing(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		if os.Getenv("CI") == "true" || os.Getenv(requiredVar) != "" {
			fmt.Fprintln(os.Stderr, "e2e: failed, as it is required here")
			return 1
		}
		fmt.Fprintln(os.Stderr, "e2e: skipped")
		return 0
	}
	dir, err := os.MkdirTemp("", "steno-e2e-build-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	defer os.RemoveAll(dir)
	hold, err := prepare(dir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	defer hold.Close()
	began := time.Now()
	code := m.Run()
	ran := tally.print(time.Since(began))
	if code == 0 && ran == 0 && !*update {
		fmt.Fprintln(os.Stderr, "e2e: no scenario has that name")
		return 1
	}
	if err := drift(filepath.Join(dir, "out")); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	return code
}

// missing names what the suite needs and does not find.
func missing() error {
	var all []error
	for _, name := range []string{"node", "npm", "unshare", "ip", "tmux", "bash", "script", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			all = append(all, fmt.Errorf("%s is missing", name))
		}
	}
	if len(all) == 0 {
		all = append(all, findNamespaces())
	}
	return errors.Join(all...)
}

// ownUsers is set where only a namespace of users gives the right to make the
// others: without root, and in containers that took that right from it.
var ownUsers bool

// findNamespaces tries which way namespaces are made here.
func findNamespaces() error {
	var all []error
	for _, ownUsers = range []bool{false, true} {
		if os.Getuid() != 0 && !ownUsers {
			continue
		}
		out, err := inside("true").CombinedOutput()
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("unshare makes no namespaces here: %w: %s", err, bytes.TrimSpace(out)))
	}
	return errors.Join(all...)
}

// inside prepares a command that runs in its own network and process
// namespaces. The shell brings loopback up and stays as the first process, to
// reap what loses its parent.
func inside(args ...string) *exec.Cmd {
	flags := []string{"--net", "--pid", "--mount-proc", "--fork", "--kill-child"}
	if ownUsers {
		// Programs keep directories by the number of their user.
		flags = append(flags, "--map-current-user", "--keep-caps")
	}
	flags = append(flags, "sh", "-c", `ip link set lo up && "$0" "$@"; exit $?`)
	cmd := exec.Command("unshare", append(flags, args...)...)
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// prepare builds steno into dir, installs the programs, and leaves word of both
// in the environment. The file that it returns holds the installation.
func prepare(dir string) (*os.File, error) {
	steno := filepath.Join(dir, "steno")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", steno, "./cmd/steno")
	build.Dir = moduleRoot
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build steno: %w: %s", err, out)
	}
	find := pinnedWanted
	if *latest {
		find = newestWanted
	}
	want, err := find()
	if err != nil {
		return nil, err
	}
	modules, hold, err := install(want)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "out")
	return hold, errors.Join(os.Mkdir(out, 0o700), os.Setenv(stenoVar, steno), os.Setenv(modulesVar, modules), os.Setenv(outVar, out))
}
