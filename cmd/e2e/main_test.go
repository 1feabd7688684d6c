//go:build e2e

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
)

// Variables that a person may set.
const (
	cacheVar = "STENO_E2E_CACHE" // where the programs are installed
	knownVar = "STENO_E2E_KNOWN" // not empty: run what is known not to hold, too
)

// Variables by which the outer run tells the inner one where things are.
const (
	insideVar  = "STENO_E2E_INSIDE"
	stenoVar   = "STENO_E2E_STENO"
	modulesVar = "STENO_E2E_MODULES"
)

// root of the module, from this package's directory.
const moduleRoot = "../.."

var updateDoc = flag.Bool("update", false, "write testdata/e2e/SCENARIOS.md")

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
	if missing := missing(); missing != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", missing)
		if os.Getenv("CI") == "true" {
			return 1
		}
		fmt.Fprintln(os.Stderr, "e2e: skipped")
		return 0
	}
	dir, err := os.MkdirTemp("", "steno-e2e-build-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	code := m.Run()
	ran, known := counts.ran.Load(), counts.known.Load()
	fmt.Printf("e2e: %d scenarios ran, %d are known not to hold\n", ran, known)
	if code == 0 && ran+known == 0 && !*updateDoc {
		fmt.Fprintln(os.Stderr, "e2e: no scenario has that name")
		return 1
	}
	return code
}

// counts are of scenarios.
var counts struct{ ran, known atomic.Int64 }

// missing names what the suite needs and does not find.
func missing() error {
	var all []error
	for _, name := range []string{"node", "npm", "unshare", "ip", "tmux", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			all = append(all, fmt.Errorf("%s is missing", name))
		}
	}
	if len(all) == 0 {
		if out, err := inside("true").CombinedOutput(); err != nil {
			all = append(all, fmt.Errorf("unshare makes no namespaces here: %w: %s", err, out))
		}
	}
	return errors.Join(all...)
}

// inside prepares a command that runs in its own network and process
// namespaces. The shell brings loopback up and stays as the first process, to
// reap what loses its parent.
func inside(args ...string) *exec.Cmd {
	flags := []string{"--net", "--pid", "--mount-proc", "--fork", "--kill-child"}
	if os.Getuid() != 0 {
		flags = append(flags, "--map-root-user")
	}
	flags = append(flags, "sh", "-c", `ip link set lo up && "$0" "$@"; exit $?`)
	cmd := exec.Command("unshare", append(flags, args...)...)
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// prepare builds steno into dir and installs the programs, and leaves word of
// both in the environment.
func prepare(dir string) error {
	steno := filepath.Join(dir, "steno")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", steno, "./cmd/steno")
	build.Dir = moduleRoot
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build steno: %w: %s", err, out)
	}
	modules, err := install()
	if err != nil {
		return err
	}
	return errors.Join(os.Setenv(stenoVar, steno), os.Setenv(modulesVar, modules))
}

// install brings the pinned programs into the cache, once for each lock file,
// and gives the directory of their modules.
func install() (string, error) {
	lock, err := os.ReadFile(filepath.Join(moduleRoot, "testdata/e2e/package-lock.json"))
	if err != nil {
		return "", err
	}
	cache := os.Getenv(cacheVar)
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a cache directory (set %s): %w", cacheVar, err)
		}
		cache = filepath.Join(base, "steno-e2e")
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, hex.EncodeToString(sum[:6]))
	modules := filepath.Join(dir, "node_modules")
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(moduleRoot, "testdata/e2e", name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return "", fmt.Errorf("fill the cache: %w", err)
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install the programs: %w: %s", err, out)
	}
	return modules, os.WriteFile(done, nil, 0o644)
}
