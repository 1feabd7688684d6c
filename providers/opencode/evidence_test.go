package opencode

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// home is a data directory with a database and a log, as processes see it.
type home struct {
	t    *testing.T
	dir  string // the home directory
	data string
	db   *sql.DB
	log  []byte
}

const work = "/home/dev/opencode/work-tui1"

func newHome(t *testing.T, name string) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir()}
	h.data = filepath.Join(h.dir, ".local", "share", "opencode")
	if err := os.MkdirAll(filepath.Join(h.data, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.db = writer(t, filepath.Join(h.data, name))
	execute(t, h.db, "BEGIN;\n"+dump(t, "tui1")+"COMMIT;")
	return h
}

// line appends to the log and gives the place of the process that wrote it.
func (h *home) line(format string, args ...any) int64 {
	h.t.Helper()
	h.log = append(fmt.Appendf(h.log, format, args...), '\n')
	if err := os.WriteFile(h.logPath(), h.log, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return int64(len(h.log))
}

func (h *home) logPath() string { return filepath.Join(h.data, "log", "opencode.log") }

// process is one that wrote last at off; negative: it has no log open.
func (h *home) process(off int64, args ...string) providers.Process {
	p := providers.Process{PID: 7, CWD: work, Started: time.UnixMilli(1796064800000), Args: append([]string{"opencode"}, args...),
		Env: map[string]string{"HOME": h.dir}, Open: []string{filepath.Join(h.data, "opencode.db")}, Positions: map[string]int64{}}
	if off >= 0 {
		p.Positions[h.logPath()] = off
	}
	return p
}

func (h *home) session(id, parent, dir string, created, updated int64) {
	h.t.Helper()
	execute(h.t, h.db, `INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated)
		VALUES(?, 'global', NULLIF(?, ''), 's', ?, 't', '1', ?, ?)`, id, parent, dir, created, updated)
}

func ask(t *testing.T, p providers.Process) string {
	t.Helper()
	ev, err := Provider{}.Evidence(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range ev {
		s := fmt.Sprintf("%d %s", e.Rank, e.Session)
		if e.Path != "" {
			s += " at " + filepath.Base(filepath.Dir(e.Path))
		}
		if e.Refused != "" {
			s += " refused: " + e.Refused
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

const stamped = "timestamp=2026-11-30T18:54:03.000Z level=INFO run=%s message=loop session.id=%s step=0"

// Two processes of one directory and one log: each is told its own session.
func TestPlaceInTheLog(t *testing.T) {
	h := newHome(t, "opencode.db")
	h.session("ses_aaa", "", work, 1796064900000, 1796064900001)
	h.line(`timestamp=2026-11-30T18:54:00.000Z level=INFO run=08e546a1 message="creating instance" directory=%s`, work)
	first := h.line(stamped, "08e546a1", tui)
	h.line(`timestamp=2026-11-30T18:54:01.000Z level=INFO run=0badcafe message=created id=ses_aaa slug=x parentID=undefined title="New session"`)
	second := h.line(`timestamp=2026-11-30T18:54:04.000Z level=INFO run=0badcafe message=init count=1`)
	h.line(stamped, "08e546a1", "ses_later")
	if got, want := ask(t, h.process(first)), "1 "+tui+" at opencode.db"; got != want {
		t.Errorf("first: %s, want %s", got, want)
	}
	if got, want := ask(t, h.process(second)), "1 ses_aaa at opencode.db"; got != want {
		t.Errorf("second: %s, want %s", got, want)
	}
	// In the middle of a line that is being written, the last whole one counts.
	if got, want := ask(t, h.process(second+30)), "1 ses_aaa at opencode.db"; got != want {
		t.Errorf("half a line: %s, want %s", got, want)
	}
	ev, err := Provider{}.Evidence(t.Context(), h.process(first), nil)
	if err != nil || ev[0].At.Format(time.TimeOnly) != "18:54:03" || ev[0].Path != filepath.Join(h.data, "opencode.db", tui) {
		t.Errorf("evidence %+v, %v", ev, err)
	}
}

func TestLogSaysNothing(t *testing.T) {
	h := newHome(t, "opencode.db")
	agreeing := "4 " + tui + " at opencode.db"
	none := h.line(`timestamp=2026-11-30T18:54:00.000Z level=INFO run=08e546a1 message=init`)
	odd := h.line(`a stack of the program`)
	quoted := h.line(`timestamp=2026-11-30T18:54:00.000Z level=INFO run=0badcafe message="typed: session.id=%s" title="run=0badcafe session.id=%s"`, tui, tui)
	for name, tt := range map[string]struct {
		p    providers.Process
		want string
	}{
		"no log open":        {h.process(-1), "1  refused: the process does not have the program's log open; " + agreeing},
		"nothing written":    {h.process(0), agreeing},
		"no session yet":     {h.process(none), agreeing},
		"not a line":         {h.process(odd), "1  refused: the log does not tell which run wrote the line of the process; " + agreeing},
		"only within values": {h.process(quoted), agreeing},
		"not looked at":      {providers.Process{CWD: work, Started: time.UnixMilli(1796064800000), Args: []string{"opencode"}, Env: map[string]string{"HOME": h.dir}}, agreeing},
	} {
		if got := ask(t, tt.p); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if err := os.Remove(h.logPath()); err != nil {
		t.Fatal(err)
	}
	if got, want := ask(t, h.process(none)), "1  refused: the program's log was removed; "+agreeing; got != want {
		t.Errorf("removed: %s, want %s", got, want)
	}
}

// What a subagent's session does, the session that started it does.
func TestChildrenStandForTheirParents(t *testing.T) {
	h := newHome(t, "opencode.db")
	h.session("ses_grand", "ses_dd22eb4dbffeZ4Cfl4kBvMDxXg", work, 1, 2)
	if got, want := ask(t, h.process(h.line(stamped, "0badcafe", "ses_grand"))), "1 "+tui+" at opencode.db"; got != want {
		t.Errorf("grandchild: %s, want %s", got, want)
	}
	h.session("ses_loop", "ses_loop", work, 1, 2)
	h.session("ses_orphan", "ses_nobody", work, 1, 2)
	for _, id := range []string{"ses_loop", "ses_orphan"} {
		if got := ask(t, h.process(h.line(stamped, "0badcafe", id))); !strings.HasPrefix(got, "1 "+id+" refused: subagent") {
			t.Errorf("%s: %s", id, got)
		}
	}
	// Not written yet: named, without a place.
	if got, want := ask(t, h.process(h.line(stamped, "0badcafe", "ses_soon"))), "1 ses_soon"; got != want {
		t.Errorf("soon: %s, want %s", got, want)
	}
}

func TestArguments(t *testing.T) {
	h := newHome(t, "opencode.db")
	for args, want := range map[string]string{
		"-s " + tui:                                "3 " + tui + " at opencode.db",
		"--session=" + tui:                         "3 " + tui + " at opencode.db",
		"-s ses_dd22eb4dbffeZ4Cfl4kBvMDxXg":        "3 " + tui + " at opencode.db",
		"-s " + tui + " --fork":                    "3 " + tui + " at opencode.db refused: the process forked this session into a new one; 4 " + tui + " at opencode.db",
		"attach http://localhost:4096 -s " + tui:   "3 " + tui + " at opencode.db",
		"attach http://localhost:4096 --dir /else": "",
	} {
		if got := ask(t, h.process(0, strings.Fields(args)...)); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	ev, err := Provider{}.Evidence(t.Context(), h.process(0, "-s", tui), nil)
	if err != nil || !ev[0].At.Equal(time.UnixMilli(1796064800000)) {
		t.Errorf("arguments are as old as the process: %+v, %v", ev, err)
	}
}

// Field list: C18. Directories are compared without symbolic links.
func TestAgreement(t *testing.T) {
	h := newHome(t, "opencode.db")
	real := filepath.Join(h.dir, "real")
	link := filepath.Join(h.dir, "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	h.session("ses_link", "", link, 1, 1796064900000)
	h.session("ses_kid", "ses_link", link, 1, 1796064900000)
	h.session("ses_old", "", real, 1, 1796064799999)
	p := h.process(0)
	p.CWD = real
	if got, want := ask(t, p), "4 ses_link at opencode.db"; got != want {
		t.Errorf("through a link: %s, want %s", got, want)
	}
	h.session("ses_two", "", real, 1, 1796064900001)
	if got := ask(t, p); got != "4 ses_link at opencode.db; 4 ses_two at opencode.db" {
		t.Errorf("two sessions: %s, want both, so that neither is bound", got)
	}
	ev, err := Provider{}.Evidence(t.Context(), p, nil)
	if err != nil || !ev[0].At.IsZero() || !ev[1].At.IsZero() {
		t.Errorf("a time would make the newer one win: %+v, %v", ev, err)
	}
	p.CWD = h.dir
	if got := ask(t, p); got != "" {
		t.Errorf("another directory: %s", got)
	}
	p.Args = []string{"opencode", "real"}
	if got := ask(t, p); !strings.HasPrefix(got, "4 ses_link") {
		t.Errorf("the directory of the command line: %s", got)
	}
}

// The database that the process has open counts, of whatever channel.
func TestChannels(t *testing.T) {
	h := newHome(t, "opencode-dev.db")
	other := writer(t, filepath.Join(h.data, "opencode.db"))
	execute(t, other, "BEGIN;\n"+dump(t, "plain")+"COMMIT;")
	p := h.process(h.line(stamped, "0badcafe", tui))
	for name, open := range map[string][]string{
		"dev": {filepath.Join(h.data, "opencode-dev.db"), filepath.Join(h.data, "opencode-dev.db-wal")}, "not told": nil,
	} {
		p.Open = open
		if got, want := ask(t, p), "1 "+tui+" at opencode-dev.db"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	p.Env["OPENCODE_DB"] = filepath.Join(h.dir, "own.sqlite")
	own := writer(t, p.Env["OPENCODE_DB"])
	execute(t, own, "BEGIN;\n"+dump(t, "tui1")+"COMMIT;")
	p.Open = []string{p.Env["OPENCODE_DB"]}
	if got, want := ask(t, p), "1 "+tui+" at own.sqlite"; got != want {
		t.Errorf("own: %s, want %s", got, want)
	}
	delete(p.Env, "OPENCODE_DB")
	// A data directory behind a link is spelled as the roots spell it.
	linked := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(h.dir, linked); err != nil {
		t.Fatal(err)
	}
	p.Env["HOME"], p.Open = linked, []string{filepath.Join(h.data, "opencode-dev.db")}
	ev, err := Provider{}.Evidence(t.Context(), p, nil)
	if want := filepath.Join(linked, ".local/share/opencode/opencode-dev.db", tui); err != nil || ev[0].Path != want {
		t.Errorf("path %+v, %v, want %s", ev, err, want)
	}
}

// What cannot be looked at now is an error, not the absence of evidence.
func TestCouldNotLook(t *testing.T) {
	h := newHome(t, "opencode.db")
	p := h.process(h.line(stamped, "0badcafe", tui))
	db := filepath.Join(h.data, "opencode.db")
	if err := os.Rename(db+"-shm", db+"-gone"); err != nil {
		t.Fatal(err)
	}
	if got, err := (Provider{}).Evidence(t.Context(), p, nil); err == nil || strings.Contains(err.Error(), h.dir) {
		t.Errorf("%v, %v, want an error without a path", got, err)
	}
	if err := os.Remove(h.logPath()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.logPath(), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := (Provider{}).Evidence(t.Context(), p, nil); err == nil {
		t.Errorf("%v, want an error", got)
	}
	h = newHome(t, "opencode.db")
	p = h.process(-1)
	p.Open, p.Env["HOME"] = nil, t.TempDir()
	if got := ask(t, p); !strings.HasPrefix(got, "1  refused") || strings.Contains(got, ";") {
		t.Errorf("no database: %s", got)
	}
}

// The log is searched for at most 1 MiB from the place backwards, in chunks
// whose borders do not matter.
func TestLogIsBounded(t *testing.T) {
	head := fmt.Sprintf(stamped, "0badcafe", "ses_1") + "\n"
	mine := "level=INFO run=0badcafe message=init\n"
	for _, fill := range []int{0, 1, maxLogChunk - len(mine), maxLogChunk - len(mine) - 1, 3*maxLogChunk + 7, maxLogBack - len(head) - len(mine) - 1} {
		text := head + strings.Repeat("x", fill) + "\n" + mine
		l, err := searchLog(bytes.NewReader([]byte(text)), int64(len(text)))
		if err != nil || l.session != "ses_1" || l.run != "0badcafe" {
			t.Errorf("%d bytes between: %+v, %v", fill, l, err)
		}
	}
	text := head + strings.Repeat("x", maxLogBack) + "\n" + mine
	if l, err := searchLog(bytes.NewReader([]byte(text)), int64(len(text))); err != nil || l.session != "" || l.run != "0badcafe" {
		t.Errorf("beyond the bound: %+v, %v", l, err)
	}
	for _, text := range []string{"", "\n", "\n\n\n", "no end", "run=\n", "=\n", `a="` + "\n"} {
		if l, err := searchLog(bytes.NewReader([]byte(text)), int64(len(text))); err != nil || l.session != "" {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
}
