package observer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"steno/providers"
)

func readerOf(t *testing.T, quiet time.Duration, recs ...fakeRecord) *reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	mustWrite(t, path, encodeRecords(t, recs...))
	return mustReader(t, path, fake{quiet: quiet}, time.Time{})
}

func mustReader(t *testing.T, path string, p fake, notBefore time.Time) *reader {
	t.Helper()
	r, err := newReader(providers.Artifact{Provider: "fake", Path: path, Session: "s1"}, p, nil, nil, notBefore, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What waits for silence goes on waiting after the question about an idle
// program.
func TestIdleKeepsWhatWaitsForSilence(t *testing.T) {
	r := readerOf(t, time.Second, records("t1")...)
	if out := r.refresh(false, now()); out.quiet != time.Second {
		t.Fatalf("refresh: %+v", out)
	}
	if out := r.idle(now()); out.quiet != time.Second {
		t.Fatalf("after idle nothing waits: %+v", out)
	}
}

// A record that comes when the silence is over has not been followed by silence
// itself.
func TestSilenceIsAfterTheLastRecord(t *testing.T) {
	r := readerOf(t, time.Second, records("t1")...)
	r.refresh(false, now())
	f, err := os.OpenFile(r.artifact.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(encodeRecords(t, records("t2")...)); err != nil {
		t.Fatal(err)
	}
	out := r.refresh(true, now())
	for _, d := range out.drafts {
		if d.Turn == "t2" && d.Kind == providers.TurnFinal {
			t.Fatal("the second turn ended without silence")
		}
	}
	if out.quiet == 0 {
		t.Fatal("nothing waits for silence")
	}
	if out = r.refresh(true, now()); len(out.drafts) != 2 {
		t.Fatalf("%d drafts after the silence", len(out.drafts))
	}
}

// A program dates its records by the millisecond, which may be the one in which
// its file was found to be another one: what it writes then is new.
func TestRecordOfTheSameMillisecond(t *testing.T) {
	r := readerOf(t, 0, records("t1")...)
	if out := r.refresh(false, now()); len(out.drafts) == 0 || out.err != nil {
		t.Fatalf("refresh: %+v", out)
	}
	mustWrite(t, r.artifact.Path, encodeRecords(t, fakeRecord{ID: "x", Do: "note"}))
	found := now().Truncate(time.Millisecond).Add(900 * time.Microsecond)
	if out := r.refresh(false, found); len(out.drafts) != 1 || out.drafts[0].Kind != providers.ObserverFailure {
		t.Fatalf("after the rewriting: %+v", out)
	}
	for i, at := range []time.Time{found.Truncate(time.Millisecond).Add(-1), found.Truncate(time.Millisecond)} {
		f, err := os.OpenFile(r.artifact.Path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(encodeRecords(t, fakeRecord{ID: fmt.Sprint("m", i), Do: "say", Text: "hello", At: at})); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if out := r.refresh(false, found.Add(time.Millisecond)); len(out.drafts) != i || out.err != nil {
			t.Errorf("a record of %v gave %d drafts, %v", at, len(out.drafts), out.err)
		}
	}
}

// Undated drafts are bounded as the others are.
func TestUndatedRecordsAreBounded(t *testing.T) {
	var recs []fakeRecord
	for i := range 12_000 {
		recs = append(recs, fakeRecord{ID: fmt.Sprint("m", i), Do: "say", Text: "x"})
	}
	r := readerOf(t, 0, recs...)
	n := 0
	for {
		out := r.refresh(false, now())
		if out.err != nil {
			t.Fatal(out.err)
		}
		if len(out.drafts) > 2*maxDrafts {
			t.Fatalf("%d drafts at once", len(out.drafts))
		}
		n += len(out.drafts)
		if !out.more {
			break
		}
	}
	if n != len(recs) {
		t.Fatalf("%d drafts of %d records", n, len(recs))
	}
}

// What was read before a transcript was moved away is decided all the same.
func TestHeldFinalOfDeletedArtifact(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{fake{quiet: 500 * time.Millisecond}} })
	r.run()
	r.start("s1")
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1")[:3])...)
	if err := os.Remove(r.path("s1")); err != nil {
		t.Fatal(err)
	}
	r.want(all([]string{available}, turn("t1"))...)
}

// A transcript that is not there when it is opened is no failure.
func TestMissingArtifactIsNoError(t *testing.T) {
	r := newRig(t)
	r.run()
	r.write("s1", fakeRecord{ID: "x", Do: "note"})
	r.until("the file is known", func() bool { return r.knows("s1") })
	if err := os.Remove(r.path("s1")); err != nil {
		t.Fatal(err)
	}
	r.start("s1")
	r.want(available)
	r.until("it was tried", func() bool { return r.jobs() > 0 || !r.knows("s1") })
	r.quiet()
	_, rows, err := r.store.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Status == "errored" {
		t.Fatalf("agents %+v", rows)
	}
	r.write("s1", records("t1")...)
	r.want(all([]string{available}, turn("t1"))...)
}

func (r *rig) knows(session string) bool {
	known := false
	err := r.obs.ask(context.Background(), func() { known = r.obs.artifacts[r.path(session)] != nil })
	return err == nil && known
}

// An exit is told although somebody goes on writing to the transcript: what is
// written after the last read has begun does not prolong it.
func TestExitOfBusySession(t *testing.T) {
	o := idleObserver(t)
	a := &artifact{agent: &agent{}, closing: true}
	o.stir(a, now())
	if !a.due.IsZero() {
		t.Error("a second last read is due")
	}
	a.busy = true
	o.stir(a, now())
	if a.dirty {
		t.Error("a second last read is owed")
	}
}

// A last read that fails for a moment is tried again before the exit is told.
func TestLastReadIsTriedAgain(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	aside := r.path("s1") + ".aside"
	if err := os.Rename(r.path("s1"), aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.path("s1"), 0o700); err != nil {
		t.Fatal(err)
	}
	touched := false
	r.until("the read fails", func() bool {
		failed := false
		err := r.obs.ask(context.Background(), func() {
			a := r.obs.artifacts[r.path("s1")]
			if failed = a != nil && a.errText != ""; !failed && !touched {
				r.obs.touch(r.path("s1"), now()) // no file, no hint
				touched = true
			}
		})
		return err == nil && failed
	})
	a.stop()
	tries := -1
	r.until("the last read has failed", func() bool {
		n, exiting := 0, false
		err := r.obs.ask(context.Background(), func() {
			n = r.obs.artifacts[r.path("s1")].refreshes
			exiting = len(r.obs.byProcess) == 0
			for _, a := range r.obs.byProcess {
				exiting = a.exiting
			}
		})
		if exiting && tries < 0 {
			tries = n
		}
		return err == nil && exiting && (n > tries || len(r.lines()) > len(want))
	})
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(encodeRecords(t, records("t3")...)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, r.path("s1"), unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	r.want(append(append(want, turn("t3")...), exited)...)
}

// A clock that is set back by a day makes new records older than their process.
// They are new all the same; history stays history.
func TestClockSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	history := fakeRecord{ID: "h", Do: "say", Text: "history", At: now().Add(-2 * time.Hour)}
	mustWrite(t, path, encodeRecords(t, append([]fakeRecord{history}, records("t1")...)...))
	const day = 24 * time.Hour
	start := now().Add(day - time.Minute) // by the clock of then
	r := mustReader(t, path, fake{}, start)
	r.wall = r.wall.Add(day)
	got := r.refresh(false, time.Now())
	if got.err != nil || len(got.drafts) != len(turn("t1")) || got.drafts[0].Kind != providers.TurnStarted {
		t.Fatalf("drafts %+v, %v", got.drafts, got.err)
	}
}
