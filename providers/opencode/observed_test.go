package opencode

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"steno/ipc/wire"
	"steno/observer"
	"steno/providers"
	"steno/store"
)

// observed is a running program with one session, under a running observer that
// never sweeps again: only what the kernel tells of the files wakes it.
type observed struct {
	t       *testing.T
	store   *store.Store
	path    string // of the database
	session string // no other test's: two programs of one session have none
	agent   string // what the observer calls the program
	p       *program
	seq     int
}

func observe(t *testing.T) *observed {
	t.Helper()
	home := t.TempDir()
	data, cwd, bin := filepath.Join(home, ".local", "share", "opencode"), filepath.Join(home, "work"), filepath.Join(home, "bin")
	for _, dir := range []string{data, cwd, bin} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	o := &observed{t: t, path: filepath.Join(data, "opencode.db"), session: "ses_" + hex.EncodeToString(id[:])}
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(home, "state", "events.db")})
	must(t, err)
	o.store = s
	obs, err := observer.New(observer.Options{
		Store: s, Providers: []providers.Provider{Provider{}},
		Env:      providers.Env{Home: home, Getenv: func(string) string { return "" }},
		TmuxPath: filepath.Join(home, "no-tmux"), Sweep: time.Hour, Log: zerolog.Nop(),
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- obs.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-obs.Swept():
	case <-time.After(30 * time.Second):
		t.Fatal("no first sweep")
	}
	self, err := os.Executable()
	must(t, err)
	b, err := os.ReadFile(self)
	must(t, err)
	exe := filepath.Join(bin, ID)
	must(t, os.WriteFile(exe, b, 0o700))
	cmd := exec.Command(exe)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{"HOME=" + home, writerEnv + "=" + o.path}, cwd, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	o.p = &program{t: t, in: in, out: bufio.NewReader(out), cmd: cmd}
	t.Cleanup(o.p.end)
	// What is written once the program is known is dated after its start.
	o.until("the program is known", func() bool {
		_, agents, err := s.Agents(t.Context())
		must(t, err)
		for _, a := range agents {
			if a.PID == cmd.Process.Pid && a.Available {
				o.agent = a.ID
			}
		}
		return o.agent != ""
	})
	o.p.exec(o.schema(t, cwd))
	return o
}

// until waits for a commit after which ok is true.
func (o *observed) until(what string, ok func() bool) {
	o.t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		changed := o.store.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			o.t.Fatalf("%s: not within 30 s", what)
		}
	}
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

// seen are the events of the program so far but its lifecycle: others of this name
// may run on this machine.
func (o *observed) seen() (out []string) {
	o.t.Helper()
	for after := store.Seq(0); ; {
		page, err := o.store.Page(o.t.Context(), store.Query{After: after, Limit: 1000})
		must(o.t, err)
		if len(page.Events) == 0 {
			return out
		}
		after = page.Next
		for _, b := range page.Events {
			var e wire.Event
			must(o.t, json.Unmarshal(b, &e))
			if e.AgentID != o.agent || e.Kind == wire.AgentLifecycle {
				continue
			}
			line := e.Kind
			for _, s := range []*string{e.TurnID, e.TurnState, e.Outcome, e.Text, e.Detail} {
				if s != nil {
					line += " " + *s
				}
			}
			out = append(out, line)
		}
	}
}

// want waits until the events are exactly these.
func (o *observed) want(want ...string) {
	o.t.Helper()
	var got []string
	defer func() {
		if o.t.Failed() {
			o.t.Logf("events:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}()
	o.until("the events", func() bool { got = o.seen(); return slices.Equal(got, want) })
}

// What the program appends to its log of writes wakes the observer; a row that is
// too long is a failure that names it; and a database that is locked for a while
// loses nothing.
func TestObserved(t *testing.T) {
	o := observe(t)
	o.p.exec("BEGIN;" + o.turn("1") + "COMMIT;")
	want := told("1")
	o.want(want...)
	main, err := os.Stat(o.path)
	must(t, err)
	o.p.exec("BEGIN;" + o.turn("2") + "COMMIT;")
	want = append(want, told("2")...)
	o.want(want...)
	if now, err := os.Stat(o.path); err != nil || now.ModTime() != main.ModTime() {
		t.Errorf("not the log of writes alone was written: %v", err)
	}

	at := o.seq
	long := `{"part":{"id":"x","messageID":"a2","type":"tool","text":"` + strings.Repeat("x", providers.MaxRecord) + `"},"time":1}`
	o.p.exec(o.row("message.part.updated.1", long))
	want = append(want, fmt.Sprintf("observer_failure opencode record in row %d is longer than 4194304 bytes: %d bytes skipped", at, len(long)))
	o.want(want...)
	o.p.exec("BEGIN;" + o.turn("3") + "COMMIT;")
	want = append(want, told("3")...)
	o.want(want...)

	if got := o.p.say("PRAGMA locking_mode=EXCLUSIVE"); got != "exclusive" {
		t.Fatal(got)
	}
	o.p.exec("BEGIN;" + o.turn("4") + "COMMIT;")
	if got := o.seen(); !slices.Equal(got, want) {
		t.Fatalf("events of a locked database: %q", got[len(want):])
	}
	o.p.say("PRAGMA locking_mode=NORMAL")
	o.p.exec("UPDATE project SET time_updated = 1")
	o.want(append(want, told("4")...)...)
}

// A database that is put in the place of the one that was read, an older copy
// or another one, is one failure and a new baseline: nothing is replayed, and
// what comes then is told. A session that is deleted says nothing, and is no
// failure.
func TestObservedDatabaseReplaced(t *testing.T) {
	o := observe(t)
	o.p.exec("BEGIN;" + o.turn("1") + o.turn("2") + "COMMIT;")
	want := append(told("1"), told("2")...)
	o.want(want...)

	other := filepath.Join(t.TempDir(), "opencode.db")
	db := writer(t, other)
	o.seq = 0
	execute(t, db, o.schema(t, filepath.Join(filepath.Dir(o.path), "..", "..", "..", "work"))+"BEGIN;"+o.turn("1")+"COMMIT;")
	must(t, os.Remove(o.path)) // the program goes on with what it has open
	for _, suffix := range []string{"-shm", "-wal", ""} {
		must(t, os.Rename(other+suffix, o.path+suffix))
	}
	want = append(want, "observer_failure opencode artifact was replaced before row 10: observation goes on at its end")
	o.want(want...)
	execute(t, db, "BEGIN;"+o.turn("3")+"COMMIT;")
	want = append(want, told("3")...)
	o.want(want...)

	// What comes while the session's row is gone is told when that is back.
	execute(t, db, "CREATE TABLE aside AS SELECT * FROM session; DELETE FROM session; BEGIN;"+o.turn("4")+"COMMIT;")
	if got := o.seen(); !slices.Equal(got, want) {
		t.Errorf("events of a deleted session: %q", got[len(want):])
	}
	execute(t, db, "INSERT INTO session SELECT * FROM aside")
	execute(t, db, "BEGIN;"+o.turn("5")+"COMMIT;")
	o.want(append(append(want, told("4")...), told("5")...)...)
}
