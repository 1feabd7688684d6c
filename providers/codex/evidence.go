package codex

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/files"
)

// EnvKeys are what Roots and Evidence need of a process.
func (Provider) EnvKeys() []string { return []string{"CODEX_HOME", "CODEX_SQLITE_HOME", "HOME"} }

// NeedsOpen is true: an embedded Codex holds its rollout open.
func (Provider) NeedsOpen() bool { return true }

// Names of sources, for explanations.
const (
	fromRollout   = "rollout held open by the process"
	fromLock      = "thread writer lock held open by the process"
	fromTitle     = "thread id in the terminal title"
	fromLog       = "the program's own log of connections"
	fromArgs      = "resume argument"
	fromName      = "thread name in the terminal title"
	fromAgreement = "directory and time agree"
)

// Evidence lists what speaks for p owning a session. See the package comment
// for the ranks.
func (Provider) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	c := command(p.Args[min(1, len(p.Args)):])
	home := homeOf(p.Env["CODEX_HOME"], p.Env["HOME"])
	ev, held, err := openEvidence(ctx, home, p, c, known)
	if err != nil {
		return nil, err
	}
	ev = append(ev, titleEvidence(p.Title, known)...)
	if id := c.resumed(); id != "" {
		e := providers.Evidence{Rank: providers.Arguments, Session: id, Source: fromArgs}
		refine(&e, known)
		ev = append(ev, e)
	}
	if held || !c.daemon {
		return ev, nil
	}
	logged, err := logEvidence(ctx, logHome(home, p), p, known)
	if err != nil {
		return nil, err
	}
	ev = append(ev, logged...)
	named, err := nameEvidence(home, p, known)
	if err != nil {
		return nil, err
	}
	ev = append(ev, named...)
	// Ids are unique, but a directory and a time are not: of another home's
	// threads none counts here.
	var mine []providers.Session
	for _, s := range known {
		if home == "" || strings.HasPrefix(s.Path, filepath.Join(home, "sessions")+string(filepath.Separator)) {
			mine = append(mine, s)
		}
	}
	return append(ev, agreement(p, c, mine)...), nil
}

// logHome is where the program keeps its databases: its home, unless
// CODEX_SQLITE_HOME moves them.
func logHome(home string, p providers.Process) string {
	if dir := p.Env["CODEX_SQLITE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return home
}

// refine adds what is known of the session, and refuses internal ones.
func refine(e *providers.Evidence, known []providers.Session) {
	for _, s := range known {
		if s.ID == e.Session {
			e.Path = s.Path
			if s.Internal != "" {
				e.Refused = s.Internal
			}
			return
		}
	}
}

// openEvidence judges the rollouts and locks that the process holds open. held
// says that there is any: such a process is no client of the shared daemon.
//
// Contract 3.7 asks for the header's directory to be the agent's, because it
// goes on to choose the newest of several files. Here a single one needs no
// choice: the descriptor itself proves who writes the file, and a thread may
// well belong to another directory (-C, a resumed thread). Several user
// threads are the rule after /new, which closes neither the rollout nor the
// lock of the thread before (0.171.0): then the directory is asked, and then
// the program's own log, which of them the process started last. What is left
// over is a tie, which binds nothing.
func openEvidence(ctx context.Context, home string, p providers.Process, c call, known []providers.Session) (ev []providers.Evidence, held bool, err error) {
	rollouts, locks, err := openThreads(p, known)
	if err != nil {
		return nil, true, err
	}
	held = len(rollouts)+len(locks) > 0
	users := map[string]bool{}
	here := 0
	for _, s := range rollouts {
		delete(locks, s.ID)
		if s.Internal == "" {
			users[s.ID] = true
			if sameDir(p, c, s.CWD) {
				here++
			}
		}
	}
	var newest logged
	if len(users) > 1 {
		if newest, err = newestOpen(ctx, logHome(home, p), p, users); err != nil {
			return nil, true, err
		}
		if newest.thread == "" {
			newest.thread = titled(p.Title, users)
		}
	}
	for _, s := range rollouts {
		e := providers.Evidence{Rank: providers.Exact, Session: s.ID, Path: s.Path, Source: fromRollout, Refused: s.Internal}
		switch {
		case e.Refused != "" || len(users) < 2:
		case newest.thread == s.ID:
			e.At = newest.at
		case newest.thread != "":
			e.Refused = "the program's own log or title names another of its open threads as the newest"
		case here > 0 && !sameDir(p, c, s.CWD):
			e.Refused = "another open thread belongs to the directory of the process"
		}
		ev = append(ev, e)
	}
	for _, id := range slices.Sorted(maps.Keys(locks)) {
		e := providers.Evidence{Rank: providers.Exact, Session: id, Source: fromLock}
		refine(&e, known)
		if e.Refused == "" && len(users) > 0 {
			e.Refused = "the process holds another thread's rollout open"
		}
		ev = append(ev, e)
	}
	return ev, held, nil
}

// openThreads sorts the open files of a process, at most 64 rollouts and 64
// locks.
func openThreads(p providers.Process, known []providers.Session) ([]providers.Session, map[string]bool, error) {
	const most = 64
	locks, seen := map[string]bool{}, map[string]bool{}
	var rollouts []providers.Session
	for _, path := range p.Open {
		if m := lockPath.FindStringSubmatch(path); m != nil && len(locks) < most {
			locks[m[1]] = true
		}
		m := rolloutPath.FindStringSubmatch(path)
		if m == nil || seen[path] || len(rollouts) == most {
			continue
		}
		seen[path] = true
		s, err := describe(path, m[1], known)
		if err != nil {
			return nil, nil, err
		}
		rollouts = append(rollouts, s)
	}
	return rollouts, locks, nil
}

// sameDir says whether a thread's directory is the one that -C names, or else
// the one of the process.
func sameDir(p providers.Process, c call, cwd string) bool {
	if cwd == "" {
		return false
	}
	cwd = filepath.Clean(cwd)
	if c.dir == "" {
		return p.CWD != "" && cwd == filepath.Clean(p.CWD)
	}
	dir := c.dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.CWD, dir)
	}
	return cwd == filepath.Clean(dir)
}

// bare takes the path out of an error of package os.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// headerMax bounds the first line of a rollout: 20 to 30 KB in 0.171.0, most
// of it instructions and tool descriptions.
const headerMax = 1 << 20

// describe finds the session of an open rollout, from what is known or from
// its header.
func describe(path, id string, known []providers.Session) (providers.Session, error) {
	for _, s := range known {
		if s.Path == path || s.ID == id { // the kernel's path has no symbolic links in it
			return s, nil
		}
	}
	f, _, err := files.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return providers.Session{ID: id, Path: path, Internal: "the rollout was moved away"}, nil
	}
	if err != nil {
		return providers.Session{}, fmt.Errorf("codex: open a rollout: %w", bare(err))
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(io.LimitReader(f, headerMax), 64<<10).ReadBytes('\n')
	if err != nil && err != io.EOF {
		return providers.Session{}, fmt.Errorf("codex: read a rollout's header: %w", bare(err))
	}
	a := providers.Artifact{Provider: ID, Path: path, Role: providers.Transcript, Session: id}
	if err == io.EOF {
		return providers.Session{ID: id, Path: path, Internal: "its header is not complete yet"}, nil
	}
	return Provider{}.Describe(a, line), nil
}

// agreement finds the one user thread of the directory that was made after the
// process started. A thread's id tells when it was made; its file comes later.
func agreement(p providers.Process, c call, known []providers.Session) []providers.Evidence {
	if p.Started.IsZero() {
		return nil
	}
	var ev []providers.Evidence
	for _, s := range known {
		if s.Internal != "" || !sameDir(p, c, s.CWD) {
			continue
		}
		made := madeAt(s.ID)
		if made.IsZero() {
			made = s.Born
		}
		// The start of a process is known to a clock tick.
		if made.IsZero() || made.Before(p.Started.Add(-10*time.Millisecond)) {
			continue
		}
		ev = append(ev, providers.Evidence{Rank: providers.Agreement, Session: s.ID, Path: s.Path, Source: fromAgreement})
	}
	if len(ev) > 1 {
		for i := range ev {
			ev[i].Refused = "several threads of this directory are younger than the process"
		}
		if len(ev) > 8 {
			ev = ev[:8]
		}
	}
	return ev
}

// madeAt is the time in a UUIDv7, zero when id is none.
func madeAt(id string) time.Time {
	if !v7(id) {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
