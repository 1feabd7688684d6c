package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"steno/ipc/wire"
	"steno/providers"
)

// programs checks each agent program: installed, its directories, its processes,
// what it writes that Steno does not know, and what would make Steno surer.
func (d *doctor) programs(ctx context.Context, status *wire.Status) {
	byID := map[string]wire.ProviderStatus{}
	if status != nil {
		for _, p := range status.Providers {
			byID[p.ID] = p
		}
	}
	for _, p := range allProviders() {
		about := aboutOf(p)
		d.program(ctx, p.ID(), about)
		s, ok := byID[p.ID()]
		if !ok {
			continue
		}
		d.provider(s, about)
	}
}

// aboutOf is what a provider says about its program; the least that can be said
// where it says nothing.
func aboutOf(p providers.Provider) providers.About {
	var about providers.About
	if a, ok := p.(providers.Describer); ok {
		about = a.About()
	}
	if len(about.Programs) == 0 {
		about.Programs = []string{p.ID()}
	}
	return about
}

// provider judges what the daemon sees of one program.
func (d *doctor) provider(s wire.ProviderStatus, about providers.About) {
	there := 0
	for _, r := range s.Roots {
		if r.Exists {
			there++
		}
	}
	if there == 0 {
		d.add(s.ID+" files", warn, "nothing to do if it was never run; roots in the configuration add further directories",
			"none of its %d directories exists", len(s.Roots))
	} else {
		d.add(s.ID+" files", pass, "", "%d directories, %d sessions seen", there, s.Artifacts)
	}
	if s.Failures > 0 {
		d.add(s.ID+" records", warn, "steno agent events --kinds observer_failure says which", "%d could not be read since the daemon started", s.Failures)
	}
	if len(s.Drift) > 0 {
		d.add(s.ID+" drift", warn, "look for a newer Steno: this one was tried with version "+about.Version,
			"%d record types were never seen before: %s", len(s.Drift), strings.Join(s.Drift, " "))
	}
	if len(s.Unbound) == 0 {
		d.add(s.ID+" processes", pass, "", "%d, %d bound to their sessions", s.Processes, s.Bound)
	}
	for _, u := range s.Unbound {
		if u.PaneID == nil { // it owns no pane, so no session is expected
			d.add(s.ID+" processes", pass, "", "pid %d owns no pane: %s", u.PID, u.Reason)
			continue
		}
		d.add(s.ID+" processes", warn, fmt.Sprintf("steno explain %d says what was looked at", *u.PaneID),
			"pid %d in pane %d has no session: %s", u.PID, *u.PaneID, u.Reason)
	}
	if s.Processes > 0 {
		for _, hint := range about.Hints {
			d.add(s.ID+" evidence", pass, "", "%s", hint)
		}
	}
}

// program says whether an agent program is in PATH, and its version. That is
// read from the package that it is part of; it is run only when asked for: it is
// somebody else's program and may do more than print its version.
func (d *doctor) program(ctx context.Context, id string, about providers.About) {
	var path string
	for _, name := range about.Programs {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		d.add(id, warn, "nothing to do if you do not use it", "not found in PATH")
		return
	}
	detail := d.shorten(path)
	if d.versions {
		out, err := output(ctx, path, "--version")
		if err != nil {
			d.add(id, warn, "", "%s --version: %v", detail, err)
			return
		}
		detail += ", " + out
	} else if v := packageVersion(path); v != "" {
		detail += ", version " + v
	} else {
		detail += ", version not told by its package"
	}
	if about.Version != "" {
		detail += " (Steno was tried with " + about.Version + ")"
	}
	d.add(id, pass, "", "%s", detail)
}

// packageVersion is the version in the package.json of the npm package that a
// program belongs to, or the one that its file or directory is named by; "" when
// neither tells. Nothing is run.
func packageVersion(program string) string {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	const levels = 5 // from a binary in a package to its package.json
	dir := filepath.Dir(path)
	for range levels {
		if v := versionIn(filepath.Join(dir, "package.json")); v != "" {
			return v
		}
		dir = filepath.Dir(dir)
	}
	for range 2 {
		if base := filepath.Base(path); versionLike(base) {
			return base
		}
		path = filepath.Dir(path)
	}
	return ""
}

func versionIn(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	var pkg struct{ Version string }
	if json.Unmarshal(b, &pkg) != nil || !versionLike(pkg.Version) {
		return ""
	}
	return pkg.Version
}

// versionLike says whether a text is a version such as 2.1.197 or 0.61.0-beta.1.
func versionLike(s string) bool {
	core, _, _ := strings.Cut(s, "-")
	parts := strings.Split(core, ".")
	if len(parts) < 2 || len(s) > 40 {
		return false
	}
	for _, p := range parts {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	return true
}
