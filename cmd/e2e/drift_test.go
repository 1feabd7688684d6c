//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// outcome is what a scenario tells the outer run of itself.
type outcome struct {
	Shapes    map[string]string   // by program
	Want, Got map[string][]string // rows by agent, without texts; only if it failed
}

// tell writes the outcome where the outer run finds it.
func (w *world) tell(o outcome) {
	w.t.Helper()
	data, err := json.Marshal(o)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(os.Getenv(outVar), strings.ReplaceAll(w.t.Name(), "/", "+")+".json"), data, 0o600))
}

// collect adds the shapes of what the programs have written to those of before:
// of all, or only of what they remove when they end.
func (w *world) collect(onlyPassing bool) {
	w.t.Helper()
	for _, p := range w.programs {
		if w.shapes[p.name] == nil {
			w.shapes[p.name] = shapes{}
		}
		for _, s := range p.shapes {
			if onlyPassing && !s.passing {
				continue
			}
			if err := s.collect(w.home(), w.shapes[p.name]); err != nil {
				w.t.Errorf("%s: %v", p.name, err)
			}
		}
	}
}

// seen is what the scenarios of a run told.
type seen struct {
	shapes map[string]shapes  // by program
	failed map[string]outcome // by scenario
}

func readOutcomes(dir string) (seen, error) {
	s := seen{map[string]shapes{}, map[string]outcome{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return s, err
		}
		var o outcome
		if err := json.Unmarshal(data, &o); err != nil {
			return s, fmt.Errorf("read what %s told: %w", f.Name(), err)
		}
		for name, text := range o.Shapes {
			if s.shapes[name] == nil {
				s.shapes[name] = shapes{}
			}
			s.shapes[name].merge(parseShapes(text))
		}
		if o.Want != nil {
			name := strings.TrimSuffix(strings.TrimPrefix(f.Name(), "TestReal+"), ".json")
			s.failed[strings.ReplaceAll(name, "+", "/")] = o
		}
	}
	return s, nil
}

// drift tells what the programs did otherwise than before, from what the
// scenarios left in a directory. With -update it writes that instead: also what a
// scenario left that failed is what the program writes.
func drift(dir string) error {
	s, err := readOutcomes(dir)
	if err != nil {
		return err
	}
	if *latest {
		fmt.Println("e2e: drift report")
	}
	for _, p := range programs() {
		now := s.shapes[p.name]
		if now == nil {
			continue // none of its scenarios ran
		}
		path := filepath.Join(moduleRoot, "testdata/e2e/shapes", p.name+".txt")
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		was := parseShapes(string(text))
		switch {
		case *latest:
			if err := p.report(now, was); err != nil {
				return err
			}
		case *update:
			if err := p.rewrite(path, string(text), now, was); err != nil {
				return err
			}
		case len(now.without(was)) > 0:
			fmt.Printf("e2e: %s left records that testdata/e2e/shapes does not list yet (make e2e REWRITE=1 adds them):\n%s", p.name, now.without(was))
		}
	}
	if *latest {
		reportFailed(s.failed)
	}
	return nil
}

// report prints what the newest version does otherwise than the pinned one.
func (p *program) report(now, was shapes) error {
	pin, err := pinnedVersion(p.module)
	if err != nil {
		return err
	}
	newest, err := installedVersion(p.module)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s: pinned %s, newest %s\n", p.title, pin, newest)
	fresh := now.without(was)
	if len(fresh) == 0 {
		fmt.Println("  no record type or field that was not seen before")
		return nil
	}
	fmt.Println("  never seen before (a type, and below it its fields):")
	for line := range strings.Lines(fresh.String()) {
		field := strings.HasPrefix(line, "\t")
		kind := strings.TrimSpace(line)
		switch {
		case field:
			fmt.Printf("      %s\n", kind)
		case was[kind] == nil:
			fmt.Printf("    %s (new)\n", kind)
		default:
			fmt.Printf("    %s\n", kind)
		}
	}
	return nil
}

// reportFailed prints the scenarios that did not hold, with what came.
func reportFailed(failed map[string]outcome) {
	fmt.Printf("\nscenarios whose events changed: %d failed\n", len(failed))
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		fmt.Printf("  %s\n", name)
		o := failed[name]
		for _, agent := range slices.Sorted(maps.Keys(union(o.Want, o.Got))) {
			if slices.Equal(o.Want[agent], o.Got[agent]) {
				fmt.Printf("    %s: the events came as expected; their texts or something else did not hold\n", agent)
				continue
			}
			fmt.Printf("    %s: expected %s\n", agent, strings.Join(o.Want[agent], ", "))
			fmt.Printf("    %s: got      %s\n", agent, strings.Join(o.Got[agent], ", "))
		}
	}
}

// rewrite writes the list of a program: what it left now, and what was seen of
// this version before, since not every run leaves everything.
func (p *program) rewrite(path, text string, now, was shapes) error {
	pin, err := pinnedVersion(p.module)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# %s %s: the types of its records and their fields. Written by make e2e REWRITE=1; do not edit.\n", p.title, pin)
	if strings.HasPrefix(text, head) {
		now.merge(was)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(head+now.String()), 0o644)
}
