package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/files"
	"steno/providers/scan"
)

// Bounds of what Evidence reads.
const (
	maxRegistry = 64 << 10 // a registry record has some 600 bytes
	maxHead     = 64 << 10 // of a transcript, for the working directory
	maxAgreeing = 8        // transcripts whose head is read
	maxDirs     = 4        // configuration directories tried when the process does not tell its own
	maxFolders  = 4096     // folders of projects looked through for one of a long name
	tries       = 5
	between     = 10 * time.Millisecond
)

// Sources of evidence.
const (
	fromRegistry  = "sessions/<pid>.json"
	fromArguments = "command line"
	fromAgreement = "directory and time"
)

// Evidence reads sessions/<pid>.json in the process's own configuration
// directory (rank 1), then the command line (rank 3), then looks for sessions
// of the same directory that began after the process (rank 4).
//
// It opens nothing outside the configuration directory but the heads of known
// transcripts, and follows no link that leads out of it. An error means that
// the directory or the record could not be read.
func (pr Provider) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	var out []providers.Evidence
	exact := false
	dirs := configDirs(p, known)
	for _, dir := range dirs {
		e, found, err := registered(ctx, dir, p, known)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, e)
			exact = exact || e.Refused == ""
		}
	}
	if session, fork := resumed(p.Args); session != "" {
		e := providers.Evidence{Rank: providers.Arguments, Session: session, Source: fromArguments, At: p.Started}
		e.Path, e.Refused = transcript(known, session, p.CWD)
		if fork {
			e.Refused = "the process forked this session into a new one"
		}
		out = append(out, e)
	}
	if !exact {
		out = append(out, agreeing(p, known)...)
	}
	if len(dirs) == 0 && len(out) == 0 {
		return nil, errors.New("find configuration directory: environment of the process is not readable")
	}
	return out, nil
}

// configDirs is the process's own configuration directory. When its
// environment tells none, those of the known transcripts may hold its record:
// one that names the process and its start time is proof wherever it lies.
func configDirs(p providers.Process, known []providers.Session) []string {
	dir := configDir(p.Env["HOME"], p.Env["CLAUDE_CONFIG_DIR"])
	if dir != "" && !filepath.IsAbs(dir) && filepath.IsAbs(p.CWD) {
		dir = filepath.Join(p.CWD, dir)
	}
	if filepath.IsAbs(dir) {
		return []string{dir}
	}
	var dirs []string
	for _, s := range known {
		d := filepath.Dir(filepath.Dir(s.Path))
		if filepath.Base(d) != projects || !filepath.IsAbs(d) {
			continue
		}
		if d = filepath.Dir(d); len(dirs) < maxDirs && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// entry is a registry record (2.1.197, 2.1.332).
type entry struct {
	PID       int             `json:"pid"`
	Session   string          `json:"sessionId"`
	CWD       string          `json:"cwd"`
	ProcStart json.RawMessage `json:"procStart"` // a string of clock ticks
	Status    string          `json:"status"`
	Waiting   string          `json:"waitingFor"`
	Tmux      string          `json:"tmux"`      // "session:@2.%5" (2.1.332), where it runs in tmux
	Updated   int64           `json:"updatedAt"` // ms
	Since     int64           `json:"statusUpdatedAt"`
}

func registered(ctx context.Context, dir string, p providers.Process, known []providers.Session) (e providers.Evidence, found bool, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("open configuration directory: %w", err)
	}
	defer root.Close()
	var written time.Time
	rec, found, err := readEntry(ctx, func() ([]byte, error) {
		b, info, err := files.ReadIn(root, sessions+"/"+strconv.Itoa(p.PID)+".json", maxRegistry)
		if err == nil {
			written = info.ModTime()
		}
		return b, err
	})
	if err != nil || !found {
		return e, found, err
	}
	e = providers.Evidence{Rank: providers.Exact, Session: rec.Session, Source: fromRegistry, At: scan.Millis(rec.Updated)}
	start := string(bytes.Trim(rec.ProcStart, `"`))
	switch {
	case rec.PID != p.PID:
		e.Refused = "the record names another process"
	case start == "" || start == "null":
		e.Refused = "the record has no start time of its process"
	case start != strconv.FormatUint(p.StartTicks, 10):
		e.Refused = "the record was left by an earlier process with this pid"
	case !providers.IsUUID(rec.Session):
		e.Refused = "the record names no session"
	case p.Pane != "" && rec.Tmux != "" && !strings.HasSuffix(rec.Tmux, "."+p.Pane):
		e.Refused = "the record names another pane"
	}
	if e.Refused != "" {
		if !providers.IsUUID(rec.Session) {
			e.Session = ""
		}
		return e, true, nil
	}
	e.Path, e.Refused = transcript(known, rec.Session, rec.CWD)
	if e.Path == "" && e.Refused == "" {
		e.Path = guess(root, dir, rec.CWD, rec.Session)
	}
	// While the program draws a long answer it writes nothing: 2.1.197 wrote an
	// idle of 7 s ago, and 0.8 s later the answer. A status counts from then.
	if e.Since = scan.Millis(rec.Since); !e.Since.IsZero() && written.After(e.Since) {
		e.Since = written.UTC()
	}
	switch rec.Status {
	case "busy":
		e.Activity = providers.Busy
	case "idle", "shell":
		e.Activity = providers.Idle
	case "waiting":
		e.Activity = providers.Waiting
		switch rec.Waiting { // only the program's own words, never a text of the session
		case "permission prompt", "input needed", "dialog open":
			e.Waiting = rec.Waiting
		}
	}
	return e, true, nil
}

// readEntry reads a record that the program writes in place: a reader can see
// new bytes before an old tail, so a record that is not JSON is read again.
func readEntry(ctx context.Context, read func() ([]byte, error)) (rec entry, found bool, err error) {
	for try := 1; ; try++ {
		b, err := read()
		if errors.Is(err, fs.ErrNotExist) {
			return entry{}, false, nil
		}
		if err != nil {
			return entry{}, false, fmt.Errorf("read registry record: %w", err)
		}
		rec = entry{}
		if json.Unmarshal(b, &rec) == nil {
			return rec, true, nil
		}
		if try == tries {
			return entry{}, false, errors.New("read registry record: it is not one JSON object")
		}
		select {
		case <-ctx.Done():
			return entry{}, false, fmt.Errorf("read registry record: %w", ctx.Err())
		case <-time.After(between):
		}
	}
}

// transcript finds the known transcript of a session; of several the one in
// the folder of the working directory.
func transcript(known []providers.Session, session, cwd string) (path, refused string) {
	folder, whole := slug(cwd)
	for _, s := range known {
		if s.ID != session {
			continue
		}
		if s.Internal != "" {
			return "", "the session can own no pane: " + s.Internal
		}
		if path == "" || inFolder(s.Path, folder, whole) {
			path = s.Path
		}
	}
	return path, ""
}

func inFolder(path, folder string, whole bool) bool {
	name := filepath.Base(filepath.Dir(path))
	return name == folder || !whole && strings.HasPrefix(name, folder)
}

// guess is the transcript that is not in the list (yet) but lies where the
// program would put it. Of a folder with a hash only the first part is known:
// it must be the only one that holds the session.
func guess(root *os.Root, dir, cwd, session string) string {
	if !filepath.IsAbs(cwd) {
		return ""
	}
	folder, whole := slug(cwd)
	folders := []string{folder}
	if !whole {
		folders = longFolders(root, folder)
	}
	found := ""
	for _, name := range folders {
		rel := filepath.Join(projects, name, session+".jsonl")
		if info, err := root.Stat(rel); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if found != "" {
			return ""
		}
		found = filepath.Join(dir, rel)
	}
	return found
}

func longFolders(root *os.Root, prefix string) []string {
	d, err := root.Open(projects)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxFolders)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// agreeing lists the sessions of the process's directory that began after it.
func agreeing(p providers.Process, known []providers.Session) []providers.Evidence {
	var out []providers.Evidence
	folder, whole := slug(p.CWD)
	heads := 0
	for _, s := range known {
		if s.Internal != "" || p.CWD == "" || s.Born.IsZero() || p.Started.IsZero() || s.Born.Before(p.Started) {
			continue
		}
		if s.CWD == "" && inFolder(s.Path, folder, whole) && heads < maxAgreeing {
			heads++
			s.CWD = headCWD(s.Path)
		}
		if s.CWD == p.CWD {
			out = append(out, providers.Evidence{Rank: providers.Agreement, Session: s.ID, Path: s.Path,
				Source: fromAgreement, At: s.Born})
		}
	}
	return out
}

// headCWD is the working directory that the first records of a transcript
// tell: the very first is often one without it.
func headCWD(path string) string {
	head, _, err := files.Head(path, maxHead)
	if err != nil {
		return ""
	}
	for {
		line, rest, more := bytes.Cut(head, []byte("\n"))
		if !more {
			return ""
		}
		if cwd, _, _ := describe(line); cwd != "" {
			return cwd
		}
		head = rest
	}
}

// Describe reads the first record: its working directory and time if it has
// them (a prompt of claude -p has; the TUI begins with a title or a mode).
func (Provider) Describe(a providers.Artifact, first []byte) providers.Session {
	cwd, born, internal := describe(first)
	return providers.Session{ID: a.Session, Path: a.Path, CWD: cwd, Born: born, Internal: internal}
}

func describe(record []byte) (cwd string, born time.Time, internal string) {
	scan.Members(record, func(key, value []byte) bool {
		switch string(key) {
		case "cwd":
			cwd = scan.Text(value)
		case "timestamp":
			born = scan.Time(value)
		case "isSidechain":
			if scan.IsTrue(value) {
				internal = "subagent"
			}
		}
		return true
	})
	return cwd, born, internal
}
