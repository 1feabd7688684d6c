//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// program is all that the suite knows of one published program. Each has a file
// of its own, which registers it.
type program struct {
	name   string // what a person types, and the first part of its scenarios' names
	title  string // for the table
	module string // npm package of testdata/e2e/package.json

	// links are the names that are put on PATH and where they lead in
	// node_modules; {arch} there is npm's name of this machine's kind.
	links map[string]string
	// env is set for the whole scenario. It may be nil.
	env func(*world) []string
	// settle writes, below w.home(), what a person has who used the program
	// before and trusts the directories.
	settle func(w *world, dirs []string)

	ready    []string // what its screen shows when it takes a prompt
	composer string   // what the line begins with that a prompt is typed into
	leave    string   // the command that ends it

	drop []string // below the home: copies of the program, not kept on failure

	shapes []source // where its records are

	scenarios []scenario
}

var registered []*program

// register is called by each program's file.
func register(p program) { registered = append(registered, &p) }

// programs are what the suite runs, by name.
func programs() []*program {
	slices.SortFunc(registered, func(a, b *program) int { return cmp.Compare(a.name, b.name) })
	return registered
}

// programNamed finds a program; nil if there is none.
func programNamed(name string) *program {
	for _, p := range registered {
		if p.name == name {
			return p
		}
	}
	return nil
}

// inModules is where a link leads.
func inModules(modules, path string) string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return filepath.Join(modules, strings.ReplaceAll(path, "{arch}", arch))
}

// start starts a program in the agent's pane and waits until it takes a prompt.
func start(name string, args ...string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.program = programNamed(name)
		do(wiped, shell(strings.Join(append([]string{name}, args...), " ")))(a)
		for _, text := range a.program.ready {
			see(text)(a)
		}
	}
}

// installedVersion is the version of a package that is installed.
func installedVersion(module string) (string, error) {
	var p struct {
		Version string `json:"version"`
	}
	err := readJSON(filepath.Join(os.Getenv(modulesVar), module, "package.json"), &p)
	return p.Version, err
}

// pinnedVersion is the version of a package in testdata/e2e/package.json.
func pinnedVersion(module string) (string, error) {
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	err := readJSON(filepath.Join(moduleRoot, "testdata/e2e/package.json"), &p)
	if err == nil && p.Dependencies[module] == "" {
		err = fmt.Errorf("no version of %s is pinned", module)
	}
	return p.Dependencies[module], err
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return nil
}
