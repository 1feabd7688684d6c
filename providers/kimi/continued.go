package kimi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// Bounds of the search for the last session of a directory.
const (
	maxFolders = 4096 // of working directories
	maxInOne   = 1024 // sessions of one
	maxLast    = 16   // whose state is read: those written last
)

// continued finds the session that --continue means (2.1.0: the one of the
// working directory that was used last). It is asked for while the command line
// can be seen, some seconds. When sessions of the directory were used since the
// process began, which of several was the last before is not known any more.
func continued(ctx context.Context, p providers.Process) (e providers.Evidence, found bool, err error) {
	home := homeOf(p.Env["HOME"], p.Env["KIMI_CODE_HOME"], ".kimi-code")
	if !filepath.IsAbs(home) || p.CWD == "" || p.Started.IsZero() {
		return e, false, nil
	}
	paths, err := lastSessions(ctx, filepath.Join(home, "sessions"), p.CWD)
	if err != nil {
		return e, false, err
	}
	sessions, late := 0, 0
	var last meta
	for _, path := range paths {
		m, err := readMeta(sessionDir(path))
		if err != nil && !unusable(err) {
			return e, false, err
		}
		if err != nil || m.CWD != p.CWD || m.Archive || m.ID != filepath.Base(sessionDir(path)) {
			continue
		}
		sessions++
		if !scan.Millis(m.Updated).Before(p.Started) {
			late++
		}
		if m.Updated > last.Updated {
			last, e.Path = m, path
		}
	}
	if last.ID == "" {
		return e, false, nil
	}
	e.Rank, e.Session, e.Source, e.At = providers.Arguments, last.ID, fromArguments, p.Started
	if late > 0 && sessions > 1 {
		e.Refused = "a session of this directory was used since the process began"
	}
	return e, true, nil
}

// lastSessions are the records of the sessions of a working directory whose
// state was written last.
func lastSessions(ctx context.Context, root, cwd string) ([]string, error) {
	folders, err := names(root, maxFolders)
	if err != nil {
		return nil, err
	}
	type written struct {
		path string
		at   time.Time
	}
	var all []written
	for _, folder := range folders {
		path := filepath.Join(root, folder, "session", "agents", "main", "wire.jsonl")
		if !inDirectory(path, cwd) {
			continue
		}
		ids, err := names(filepath.Join(root, folder), maxInOne)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("look for the last session: %w", err)
			}
			dir := filepath.Join(root, folder, id)
			info, err := os.Stat(filepath.Join(dir, "state.json"))
			if err != nil || !sessionID.MatchString(id) {
				continue
			}
			all = append(all, written{filepath.Join(dir, "agents", "main", "wire.jsonl"), info.ModTime()})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].at.After(all[j].at) })
	var out []string
	for _, w := range all[:min(len(all), maxLast)] {
		out = append(out, w.path)
	}
	return out, nil
}

// names are the names in a directory, none of one that does not exist.
func names(dir string, most int) ([]string, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open a directory of sessions: %w", err)
	}
	defer d.Close()
	all, err := d.Readdirnames(most)
	if err != nil && len(all) == 0 && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a directory of sessions: %w", err)
	}
	return all, nil
}
