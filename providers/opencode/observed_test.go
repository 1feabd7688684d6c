package opencode

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/providers"
	"steno/providers/observetest"
)

// observed is a running program with one session, under a running observer that
// never sweeps again: only what the kernel tells of the files wakes it.
type observed struct {
	*observetest.Observed
	path    string // of the database
	session string // no other test's: two programs of one session have none
	p       *program
	seq     int
}

func observe(t *testing.T) *observed {
	t.Helper()
	return observeIn(t, t.TempDir())
}

// observeIn takes a home that may hold something already.
func observeIn(t *testing.T, home string) *observed {
	t.Helper()
	data, cwd := filepath.Join(home, ".local", "share", "opencode"), filepath.Join(home, "work")
	for _, dir := range []string{data, cwd} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	o := &observed{path: filepath.Join(data, "opencode.db"), session: "ses_" + hex.EncodeToString(id[:])}
	o.Observed = observetest.Run(t, Provider{}, home, time.Hour, func(e wire.Event) []*string {
		return []*string{e.TurnID, e.TurnState, e.Outcome, e.Text, e.Detail}
	})
	cmd := o.Command(cwd, writerEnv+"="+o.path)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	o.p = &program{t: t, in: in, out: bufio.NewReader(out), cmd: cmd}
	t.Cleanup(o.p.end)
	o.Known(cmd.Process.Pid)
	o.p.exec(o.schema(t, cwd))
	return o
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// schema is an empty database with the session, which begins now.
func (o *observed) schema(t *testing.T, cwd string) string {
	now := time.Now().UnixMilli()
	return "BEGIN;\n" + strings.ReplaceAll(dump(t, "plain"), plainSession, o.session) + fmt.Sprintf(
		`DELETE FROM event; DELETE FROM part; DELETE FROM message;
		UPDATE session SET directory = '%s', time_created = %d, time_updated = %[2]d; COMMIT;`, cwd, now)
}

// row is the SQL of the next event.
func (o *observed) row(kind, data string) string {
	o.seq++
	return fmt.Sprintf(`INSERT INTO event VALUES('evt_%d_%s', '%[2]s', %d, '%s', '%s');`, o.seq, o.session, o.seq-1, kind, data)
}

// turn is the SQL of one turn of this name.
func (o *observed) turn(n string) string {
	now := time.Now().UnixMilli()
	r := strings.NewReplacer("NOW", fmt.Sprint(now), "N", n)
	rows := ""
	for _, d := range []string{
		`{"info":{"id":"uN","role":"user","time":{"created":NOW}}}`, `{"part":{"id":"pN","messageID":"uN","type":"text","text":"go"},"time":NOW}`,
		`{"info":{"id":"aN","role":"assistant","parentID":"uN","time":{"created":NOW}}}`,
		`{"part":{"id":"qN","messageID":"aN","type":"text","text":"Text N.","time":{"start":NOW,"end":NOW}},"time":NOW}`,
		`{"info":{"id":"aN","role":"assistant","parentID":"uN","finish":"stop","time":{"created":NOW,"completed":NOW}}}`,
	} {
		kind := "message.updated.1"
		if strings.HasPrefix(d, `{"part"`) {
			kind = "message.part.updated.1"
		}
		rows += o.row(kind, r.Replace(d))
	}
	return rows + fmt.Sprintf("UPDATE session SET time_updated = %d;", now)
}

func told(n string) []string {
	r := strings.NewReplacer("N", n)
	var out []string
	for _, s := range []string{"turn_started uN", "turn_state_changed uN waiting_on_agent", "assistant_message uN Text N.",
		"turn_final uN completed Text N.", "turn_state_changed uN waiting_on_user"} {
		out = append(out, r.Replace(s))
	}
	return out
}

// What the program appends to its log of writes wakes the observer; a row that is
// too long is a failure that names it; and a database that is locked for a while
// loses nothing.
func TestObserved(t *testing.T) {
	o := observe(t)
	o.p.exec("BEGIN;" + o.turn("1") + "COMMIT;")
	want := told("1")
	o.Want(want...)
	main, err := os.Stat(o.path)
	must(t, err)
	o.p.exec("BEGIN;" + o.turn("2") + "COMMIT;")
	want = append(want, told("2")...)
	o.Want(want...)
	if now, err := os.Stat(o.path); err != nil || now.ModTime() != main.ModTime() {
		t.Errorf("not the log of writes alone was written: %v", err)
	}

	at := o.seq
	long := `{"part":{"id":"x","messageID":"a2","type":"tool","text":"` + strings.Repeat("x", providers.MaxRecord) + `"},"time":1}`
	o.p.exec(o.row("message.part.updated.1", long))
	want = append(want, fmt.Sprintf("observer_failure opencode record in row %d is longer than 4194304 bytes: %d bytes skipped", at, len(long)))
	o.Want(want...)
	o.p.exec("BEGIN;" + o.turn("3") + "COMMIT;")
	want = append(want, told("3")...)
	o.Want(want...)

	if got := o.p.say("PRAGMA locking_mode=EXCLUSIVE"); got != "exclusive" {
		t.Fatal(got)
	}
	o.p.exec("BEGIN;" + o.turn("4") + "COMMIT;")
	if got := o.Seen(); !slices.Equal(got, want) {
		t.Fatalf("events of a locked database: %q", got[len(want):])
	}
	o.p.say("PRAGMA locking_mode=NORMAL")
	o.p.exec("UPDATE project SET time_updated = 1")
	o.Want(append(want, told("4")...)...)
}

// A database that is a symbolic link has its log of writes beside the file that it
// leads to, and that wakes the observer.
func TestObservedThroughLink(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{"disk", ".local/share/opencode"} {
		must(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	must(t, os.Symlink("../../../disk/oc.sqlite.db", filepath.Join(home, ".local/share/opencode/opencode.db")))
	o := observeIn(t, home)
	var want []string
	for _, n := range []string{"1", "2", "3"} {
		o.p.exec("BEGIN;" + o.turn(n) + "COMMIT;")
		want = append(want, told(n)...)
		o.Want(want...)
	}
}

// A database that is put in the place of the one that was read, an older copy
// or another one, is one failure and a new baseline: nothing is replayed, and
// what comes then is told. A session that is deleted says nothing, and is no
// failure.
func TestObservedDatabaseReplaced(t *testing.T) {
	o := observe(t)
	o.p.exec("BEGIN;" + o.turn("1") + o.turn("2") + "COMMIT;")
	want := append(told("1"), told("2")...)
	o.Want(want...)

	other := filepath.Join(t.TempDir(), "opencode.db")
	db := writer(t, other)
	o.seq = 0
	execute(t, db, o.schema(t, filepath.Join(filepath.Dir(o.path), "..", "..", "..", "work"))+"BEGIN;"+o.turn("1")+"COMMIT;")
	must(t, os.Remove(o.path)) // the program goes on with what it has open
	for _, suffix := range []string{"-shm", "-wal", ""} {
		must(t, os.Rename(other+suffix, o.path+suffix))
	}
	want = append(want, "observer_failure opencode artifact was replaced before row 10: observation goes on at its end")
	o.Want(want...)
	execute(t, db, "BEGIN;"+o.turn("3")+"COMMIT;")
	want = append(want, told("3")...)
	o.Want(want...)

	// What comes while the session's row is gone is told when that is back.
	execute(t, db, "CREATE TABLE aside AS SELECT * FROM session; DELETE FROM session; BEGIN;"+o.turn("4")+"COMMIT;")
	if got := o.Seen(); !slices.Equal(got, want) {
		t.Errorf("events of a deleted session: %q", got[len(want):])
	}
	execute(t, db, "INSERT INTO session SELECT * FROM aside")
	execute(t, db, "BEGIN;"+o.turn("5")+"COMMIT;")
	o.Want(append(append(want, told("4")...), told("5")...)...)
}
