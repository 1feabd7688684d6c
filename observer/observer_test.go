package observer

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"steno/providers"
)

const (
	available = "agent_lifecycle available"
	exited    = "agent_lifecycle unavailable process_exited"
	restarted = "agent_lifecycle unavailable mux_restarted"
)

func turn(id string) []string {
	return []string{
		"turn_started " + id, "turn_state_changed " + id + " waiting_on_agent",
		"assistant_message " + id + " said " + id,
		"turn_final " + id + " completed said " + id, "turn_state_changed " + id + " waiting_on_user",
	}
}

func records(id string) []fakeRecord {
	return []fakeRecord{
		{ID: id, Do: "start", At: now()},
		{ID: id + "-m", Do: "say", Text: "said " + id, At: now()},
		{ID: id + "-f", Do: "final", Text: "said " + id, At: now()},
	}
}

func all(parts ...[]string) []string { return slices.Concat(parts...) }

func TestTurnOfNewSession(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.want(available)
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	r.write("s1", records("t2")...)
	r.want(all([]string{available}, turn("t1"), turn("t2"))...)
	a.stop()
	r.want(all([]string{available}, turn("t1"), turn("t2"), []string{exited})...)
}

// The first reply of a session that is complete before anybody looks is not
// lost, and neither is what a process writes right before it ends.
//
// Field list: B23.
func TestShortHeadlessRun(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	r.until("the process is seen", func() bool { return len(r.events()) > 0 })
	r.write("s1", records("t2")...)
	a.stop()
	r.want(all([]string{available}, turn("t1"), turn("t2"), []string{exited})...)
}

// D11: an artifact that was there before starts at its tail.
//
// Field list: F5, G1.
func TestHistoryIsNotReplayed(t *testing.T) {
	r := newRig(t)
	r.write("s1", records("old")...)
	r.write("s1", fakeRecord{ID: "open", Do: "start", At: now()})
	r.age()
	a := r.start("s1")
	r.run()
	r.want(available)
	r.until("the open turn is known", func() bool {
		_, agents, err := r.store.Agents(t.Context())
		return err == nil && len(agents) == 1 && agents[0].Turn == "open" && agents[0].Status == "busy"
	})
	r.write("s1", fakeRecord{ID: "m", Do: "say", Text: "hello", At: now()})
	r.want(available, "assistant_message open hello")
	a.stop()
	r.want(available, "assistant_message open hello", exited)
}

// D11: what a live process wrote before anybody ever looked is history, too: its
// artifact came up under nobody's observation.
func TestWrittenBeforeTheFirstLook(t *testing.T) {
	r := newRig(t)
	r.start("s1")
	r.write("s1", append(records("old"), fakeRecord{ID: "open", Do: "start", At: now()})...)
	r.age()
	r.run()
	r.want(available)
	r.until("the open turn is known", func() bool {
		_, agents, err := r.store.Agents(t.Context())
		return err == nil && len(agents) == 1 && agents[0].Turn == "open"
	})
	r.write("s1", fakeRecord{ID: "m", Do: "say", Text: "hello", At: now()})
	r.want(available, "assistant_message open hello")
}

// D11: records that a fork copied are history, by their own dates; one without
// a date goes with the next dated one.
//
// Field list: A6, D31.
func TestCopiedHistoryGivesNoEvent(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("fork")
	r.want(available)
	old := now().Add(-time.Hour)
	r.write("fork", append([]fakeRecord{
		{ID: "o1", Do: "start", At: old},
		{ID: "o2", Do: "say", Text: "old, undated"},
		{ID: "o3", Do: "say", Text: "old", At: old},
		{ID: "o4", Do: "final", Text: "old", At: old},
		{ID: "o5", Do: "say", Text: "new, undated"},
	}, records("n")...)...)
	want := append([]string{available, "assistant_message o1 new, undated"}, turn("n")...)
	r.want(want...)
}

// D12: what was written while nobody watched comes once, after available.
func TestRestart(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	first := all([]string{available}, turn("t1"))
	r.want(first...)
	id := r.events()[0].IncarnationID
	r.halt()
	r.write("s1", records("t2")...)
	r.run()
	r.want(all(first, []string{restarted, available}, turn("t2"))...)
	for _, e := range r.events() {
		if e.IncarnationID != id {
			t.Fatalf("incarnation %s, want %s", e.IncarnationID, id)
		}
	}
	// A session that began while nobody watched is new as well.
	r.halt()
	r.write("s2", records("t3")...)
	a.register(fakeRegistry{Session: "s2"})
	r.run()
	r.want(all(first, []string{restarted, available}, turn("t2"), []string{restarted, available}, turn("t3"))...)
	// A process that is gone stays unavailable.
	r.halt()
	a.stop()
	r.run()
	r.want(all(first, []string{restarted, available}, turn("t2"), []string{restarted, available}, turn("t3"), []string{restarted})...)
}

// Invariant 13: a crash between a held record and its release reads it again.
//
// Field list: H12.
func TestHeldFinalSurvivesRestart(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{fake{quiet: time.Hour}} })
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1")[:3])...)
	r.halt()
	r.opt.Providers = []providers.Provider{fake{quiet: 10 * time.Millisecond}}
	r.run()
	r.want(all([]string{available}, turn("t1")[:3], []string{restarted, available}, turn("t1")[3:])...)
	// The end of the process decides what waits for silence.
	r.halt()
	r.opt.Providers = []providers.Provider{fake{quiet: time.Hour}}
	r.run()
	r.until("the process is seen again", func() bool { return len(r.events()) == 10 })
	r.write("s1", records("t2")...)
	a.stop()
	got := all([]string{available}, turn("t1")[:3], []string{restarted, available}, turn("t1")[3:],
		[]string{restarted, available}, turn("t2"), []string{exited})
	r.want(got...)
}

// Field list: F1, F2, A28.
func TestSessionSwitch(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	a.register(fakeRegistry{Session: "s2"})
	r.write("s2", records("t2")...)
	r.want(all([]string{available}, turn("t1"), turn("t2"))...)
	// Back again: the first session goes on where it was left.
	a.register(fakeRegistry{Session: "s1"})
	r.write("s1", records("t3")...)
	r.want(all([]string{available}, turn("t1"), turn("t2"), turn("t3"))...)
}

// D15: two live processes that name one session get no events, and the words
// say so.
//
// Field list: F4, F6, F11.
func TestAmbiguityBindsNobody(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	b := r.start("s1")
	r.until("the reason is told", func() bool {
		s := r.obs.Status()
		return len(s.Providers) == 1 && len(s.Providers[0].Unbound) == 2
	})
	e, err := r.obs.Explain(t.Context(), r.obs.Status().Providers[0].Unbound[0].Reason)
	if err == nil {
		t.Fatalf("a reason is not a name: %+v", e)
	}
	r.write("s1", records("t1")...)
	r.until("s1 was looked at", func() bool {
		refused := false
		size := int64(len(encodeRecords(t, records("t1")...)))
		err := r.obs.ask(t.Context(), func() {
			a := r.obs.artifacts[r.path("s1")]
			refused = a != nil && a.refused.rank > 0 && a.refused.size >= size-100 // dates differ in length
		})
		return err == nil && refused
	})
	b.register(fakeRegistry{Session: "other"})
	r.write("s1", records("t2")...)
	r.until("the second turn is there", func() bool { return slices.Contains(r.lines(), turn("t2")[4]) })
	for _, l := range r.lines() {
		if l == turn("t1")[4] {
			t.Fatal("what was written while two processes named the session was attributed")
		}
	}
	a.stop()
}

// D14: a process that resumes the session of an agent that is gone is that
// agent, with another incarnation.
//
// Field list: D3, D4.
func TestAgentIDFollowsSession(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	a.stop()
	r.want(all([]string{available}, turn("t1"), []string{exited})...)
	r.start("s1")
	r.want(all([]string{available}, turn("t1"), []string{exited, available})...)
	r.write("s1", records("t2")...)
	r.want(all([]string{available}, turn("t1"), []string{exited, available}, turn("t2"))...)
	ev := r.events()
	first, last := ev[0], ev[len(ev)-1]
	if first.AgentID != last.AgentID || first.IncarnationID == last.IncarnationID {
		t.Fatalf("agent %s %s, then %s %s", first.AgentID, first.IncarnationID, last.AgentID, last.IncarnationID)
	}
}

// Pitfall 22: truncation, rewriting and replacement give one failure each and
// no replay; two of them are two events.
//
// Field list: C1, C6, C8.
func TestRewrittenArtifact(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	for _, rewrite := range []func(b []byte){
		func(b []byte) { // shorter
			if err := os.Truncate(r.path("s1"), int64(bytes.LastIndexByte(b[:len(b)-1], '\n')+1)); err != nil {
				t.Fatal(err)
			}
		},
		func(b []byte) { // longer, in place, with one write
			f, err := os.OpenFile(r.path("s1"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Write(append(encodeRecords(t, records("x")...), b...)); err != nil {
				t.Fatal(err)
			}
		},
		func(b []byte) {
			mustWrite(t, r.path("s1")+".new", encodeRecords(t, append(records("y"), records("z")...)...))
			if err := os.Rename(r.path("s1")+".new", r.path("s1")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		b, err := os.ReadFile(r.path("s1"))
		if err != nil {
			t.Fatal(err)
		}
		rewrite(b)
		want = append(want, "observer_failure")
		r.want(want...)
	}
	if ev := r.events(); *ev[len(ev)-1].Recoverable != true || *ev[len(ev)-1].Detail == "" {
		t.Fatalf("failure %+v", ev[len(ev)-1])
	}
	r.write("s1", records("t9")...)
	r.want(append(want, turn("t9")...)...)
}

func mustWrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A turn that an idle program never answered is closed once.
//
// Field list: G10, B24.
func TestNoReply(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", fakeRecord{ID: "t1", Do: "start", At: now()})
	r.want(all([]string{available}, turn("t1")[:2])...)
	a.register(fakeRegistry{Session: "s1", Activity: "idle", Since: now()})
	began := time.Now()
	r.want(all([]string{available}, turn("t1")[:2], []string{
		"turn_final t1 aborted no_reply", "turn_state_changed t1 waiting_on_user"})...)
	if took := time.Since(began); took < idleAfter-100*time.Millisecond {
		t.Fatalf("closed after %v", took)
	}
	r.write("s1", records("t2")...)
	r.want(all([]string{available}, turn("t1")[:2], []string{
		"turn_final t1 aborted no_reply", "turn_state_changed t1 waiting_on_user"}, turn("t2"))...)
}

// Field list: C20, C21.
func TestArtifactMovedAway(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
	if err := os.Rename(r.path("s1"), r.path("s1")+".zst"); err != nil {
		t.Fatal(err)
	}
	r.write("s2", fakeRecord{ID: "x", Do: "note"})
	r.until("the move was seen", func() bool { return r.obs.Status().Providers[0].Artifacts > 1 })
	r.want(all([]string{available}, turn("t1"))...)
}
