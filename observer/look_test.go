package observer

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"steno/providers"
)

// attendFake holds every final until a look shows that the program is idle, or
// its process ends. Its program says so in its title.
type attendFake struct{ fake }

func (attendFake) TitleActivity(title string) (providers.Activity, string) {
	switch title {
	case "ready":
		return providers.Idle, ""
	case "working":
		return providers.Busy, ""
	}
	return providers.NoActivity, ""
}

func (attendFake) Projector(a providers.Artifact, state []byte) providers.Projector {
	p := &attendProjector{fakeProjector{quiet: time.Hour}}
	_ = json.Unmarshal(state, &p.s)
	return p
}

type attendProjector struct{ fakeProjector }

func (p *attendProjector) Quiet() time.Duration { return 0 } // silence alone decides nothing
func (p *attendProjector) Look() time.Duration {
	if p.Held() {
		return 100 * time.Millisecond
	}
	return 0
}

func (p *attendProjector) See(w providers.Witness, quiet time.Duration) []providers.Draft {
	if w.Activity == providers.Idle && quiet > 0 && w.Child.IsZero() {
		return p.release()
	}
	return nil
}

// title sets the title of the one pane.
func (r *rig) title(text string) {
	r.t.Helper()
	path := filepath.Join(r.home, "panes.json")
	b, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	var s struct {
		Socket string
		Panes  []map[string]string
	}
	if err := json.Unmarshal(b, &s); err != nil {
		r.t.Fatal(err)
	}
	s.Panes[0]["pane_title"] = text
	if b, err = json.Marshal(s); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
}

// looked waits until the held final was looked at, n times more.
func (r *rig) looked(n int) {
	r.t.Helper()
	var seen time.Time
	r.until("the process is looked at", func() bool {
		err := r.obs.ask(context.Background(), func() {
			for a := range r.obs.live {
				if a.looked.After(seen) {
					seen = a.looked
					n--
				}
			}
		})
		return err == nil && n < 0
	})
}

func heldTurn(id string) (before, after []string) {
	all := turn(id)
	return all[:3], all[3:]
}

// A final that waits for what its process shows is given when the title says
// that the program is ready, and not before; it survives a restart; and the end
// of the process decides it as well.
func TestLook(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{attendFake{}} })
	term := r.terminal()
	r.tmux(term)
	r.title("working")
	r.run()
	a := term.run("s1")
	r.write("s1", records("t1")...)
	before, after := heldTurn("t1")
	want := all([]string{available}, before)
	r.want(want...)
	r.looked(3)
	r.want(want...)
	r.title("ready")
	want = all(want, after)
	r.want(want...)

	// Between two restarts nothing decides it.
	r.title("working")
	r.write("s1", records("t2")...)
	before, after = heldTurn("t2")
	want = all(want, before)
	r.want(want...)
	r.halt()
	r.run()
	want = append(want, restarted, available)
	r.want(want...)
	r.looked(2)
	r.want(want...)
	r.title("ready")
	want = all(want, after)
	r.want(want...)

	// The next record decides as for every holder, and so does the end.
	r.title("working")
	r.write("s1", records("t3")...)
	before, after = heldTurn("t3")
	want = all(want, before)
	r.want(want...)
	term.do("quit", a.pid())
	want = all(want, after, []string{exited})
	r.want(want...)
}

// So is a final whose file was deleted meanwhile; then nobody looks any more.
func TestLookOfDeletedArtifact(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{attendFake{}} })
	term := r.terminal()
	r.tmux(term)
	r.title("working")
	r.run()
	term.run("s1")
	r.write("s1", records("t1")...)
	before, after := heldTurn("t1")
	r.want(all([]string{available}, before)...)
	if err := os.Remove(r.path("s1")); err != nil {
		t.Fatal(err)
	}
	r.looked(3)
	r.want(all([]string{available}, before)...)
	r.title("ready")
	r.want(all([]string{available}, before, after)...)
	r.until("nobody looks", func() bool {
		looks := false
		err := r.obs.ask(context.Background(), func() {
			for a := range r.obs.live {
				looks = looks || a.look > 0
			}
		})
		return err == nil && !looks
	})
}

// A title is the live status until records come that are newer.
//
// Field list: G11.
func TestTitleIsLiveStatus(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{attendFake{}} })
	term := r.terminal()
	r.tmux(term)
	r.title("ready")
	r.run()
	term.run("s1")
	r.want(available)
	status := func() string {
		out := ""
		_ = r.obs.ask(context.Background(), func() {
			for _, a := range r.obs.byProcess {
				s, turn := a.state()
				out = s + " " + turn
			}
		})
		return out
	}
	r.until("the title counts", func() bool { return status() == "idle waiting_on_user" })
	r.write("s1", fakeRecord{ID: "t1", Do: "start", At: now()})
	r.want(available, "turn_started t1", "turn_state_changed t1 waiting_on_agent")
	if got := status(); got != "busy waiting_on_agent" {
		t.Errorf("status = %q while a record is newer than the title", got)
	}
	// While a turn is open its title is read again.
	r.until("the title counts again", func() bool { return status() == "idle waiting_on_user" })
	r.title("working")
	r.until("the title counts again", func() bool { return status() == "busy waiting_on_agent" })
	// A title that comes behind the end of its turn is seen to end, too.
	r.write("s1", fakeRecord{ID: "n", Do: "final", Text: "done", At: now()}, fakeRecord{ID: "n2", Do: "note", At: now()})
	r.until("the turn ends", func() bool { return len(r.lines()) == 5 })
	r.until("the late title counts", func() bool { return status() == "busy waiting_on_agent" })
	r.title("ready")
	r.until("the title is read again", func() bool { return status() == "idle waiting_on_user" })
}

// nameFake tells by the names of files which process writes for which session.
type nameFake struct{ fake }

func (nameFake) Names(root providers.Root, rel string) (providers.Naming, bool) {
	var n providers.Naming
	if root.Name != "log" || filepath.Ext(rel) != ".naming" {
		return n, false
	}
	ok := json.Unmarshal([]byte(rel[:len(rel)-len(".naming")]), &n) == nil
	return n, ok
}

// What a file's name tells is remembered when the file is gone, and the newest
// name counts.
func TestNaming(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{nameFake{}} })
	r.run()
	a := r.start("")
	r.want(available)
	name := func(session string, age time.Duration) {
		t.Helper()
		b, err := json.Marshal(providers.Naming{PID: a.cmd.Process.Pid, Session: session, Source: "name of a file"})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(r.home, "fake/log", string(b)+".naming")
		if age > 0 { // left behind
			old := filepath.Join(r.home, "old")
			mustWrite(t, old, nil)
			when := time.Now().Add(-age)
			if err := os.Chtimes(old, when, when); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(old, path); err != nil {
				t.Fatal(err)
			}
			return
		}
		mustWrite(t, path, nil)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	name("s1", 0)
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	name("s2", 0)
	r.write("s2", records("t2")...)
	want = all(want, turn("t2"))
	r.want(want...)
	name("s1", time.Hour) // a crash left it: it says nothing of today's process
	r.write("s2", records("t3")...)
	want = all(want, turn("t3"))
	r.want(want...)

	r.halt()
	r.write("s2", records("t4")...)
	r.run()
	r.want(all(want, []string{restarted, available}, turn("t4"))...)
}

type doubtFake struct{ nameFake }

func (doubtFake) Doubt(_ providers.Process, n providers.Naming, _ time.Time, _ []providers.Session) string {
	if n.Session == "s2" {
		return "it only made this session"
	}
	return ""
}

// A naming that the provider doubts binds nothing, and leaves what was bound.
func TestDoubtedNaming(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{doubtFake{}} })
	r.run()
	a := r.start("")
	r.want(available)
	r.named(a, "s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	r.named(a, "s2")
	r.write("s2", records("t2")...)
	r.write("s1", records("t3")...)
	r.want(all(want, turn("t3"))...)
}

// named makes a file, for a moment, whose name names the process's session.
func (r *rig) named(a *agentProcess, session string) {
	r.t.Helper()
	b, err := json.Marshal(providers.Naming{PID: a.cmd.Process.Pid, Session: session, Source: "name of a file"})
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.home, "fake/log", string(b)+".naming")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		r.t.Fatal(err)
	}
}
