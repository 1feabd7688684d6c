package observer

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// A final that waits for silence is told although its file is rewritten
// meanwhile, unless the new file shows that the turn goes on.
func TestHeldFinalOfRewrittenArtifact(t *testing.T) {
	late := now().Add(time.Minute) // dated after the discovery
	for _, tt := range []struct {
		name   string
		now    []fakeRecord // what the file holds afterwards
		drafts int          // of the old file
	}{
		{"another turn", records("t2"), 2},
		{"nothing", nil, 2},
		{"another turn is open", []fakeRecord{{ID: "t2", Do: "start", At: now()}}, 2},
		{"the turn goes on", []fakeRecord{{ID: "t1", Do: "start", At: now()}, {ID: "m", Do: "say", At: now()}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readerOf(t, time.Second, records("t1")...)
			if out := r.refresh(false, now()); out.quiet != time.Second || len(out.drafts) != 3 {
				t.Fatalf("%d drafts, quiet %v", len(out.drafts), out.quiet)
			}
			mustWrite(t, r.artifact.Path+".new", encodeRecords(t, tt.now...))
			if err := os.Rename(r.artifact.Path+".new", r.artifact.Path); err != nil {
				t.Fatal(err)
			}
			out := r.refresh(false, now())
			n := len(out.drafts)
			if out.err != nil || n != tt.drafts+1 || out.drafts[n-1].Kind != providers.ObserverFailure {
				t.Fatalf("%v, drafts %+v; want %d of the turn and a failure", out.err, out.drafts, tt.drafts)
			}
			if n > 1 && (out.drafts[0].Kind != providers.TurnFinal || out.drafts[0].Turn != "t1") {
				t.Errorf("first draft %+v", out.drafts[0])
			}
			if out.source == nil || out.source.Offset != r.file.Offset() {
				t.Errorf("restart point %+v, want the end of the file", out.source)
			}
			if out = r.refresh(true, now()); len(out.drafts) != 0 {
				t.Errorf("drafts once more: %+v", out.drafts)
			}
			appendTo(t, r.artifact.Path, fakeRecord{ID: "f", Do: "final", At: late})
			r.refresh(false, late)
			if out = r.refresh(true, late); len(out.drafts) != 2 || tt.drafts == 0 && out.drafts[0].Turn != "t1" {
				t.Errorf("after the next final: %+v", out.drafts)
			}
		})
	}
}

// What waits for the date of a record that will never come is told as new.
func TestUndatedOfRewrittenArtifact(t *testing.T) {
	r := readerOf(t, 0, fakeRecord{ID: "t1", Do: "start", At: now()})
	r.refresh(false, now())
	r.undated = []providers.Draft{{Key: "u", Kind: providers.ObserverFailure}}
	mustWrite(t, r.artifact.Path, nil)
	if out := r.refresh(false, now()); len(out.drafts) != 2 || out.drafts[0].Key != "u" {
		t.Fatalf("drafts %+v", out.drafts)
	}
}

// A projector that could not learn from the new file learns before it reads on.
func TestLearnsLater(t *testing.T) {
	r := readerOf(t, 0, records("t1")...)
	r.refresh(false, now())
	mustWrite(t, r.artifact.Path, encodeRecords(t, fakeRecord{ID: "t2", Do: "start", At: now()}))
	r.refresh(false, now())
	r.proj, r.blank = r.provider.Projector(r.artifact, nil), true // as after a rewind without descriptors
	restore := noDescriptors(t)
	out := r.refresh(false, now())
	restore()
	if out.err == nil || !r.blank {
		t.Fatalf("%+v", out)
	}
	appendTo(t, r.artifact.Path, fakeRecord{ID: "m", Do: "say", At: now().Add(time.Minute)})
	if out = r.refresh(false, now()); out.err != nil || len(out.drafts) != 1 || out.drafts[0].Turn != "t2" {
		t.Fatalf("%v, drafts %+v; want one of the open turn", out.err, out.drafts)
	}
}

func appendTo(t *testing.T, path string, recs ...fakeRecord) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(encodeRecords(t, recs...)); err != nil {
		t.Fatal(err)
	}
}

// Drafts without a date are bounded by their bytes too: a batch of them may be
// some MiB, and there may be many batches before a date.
func TestUndatedBytesAreBounded(t *testing.T) {
	var recs []fakeRecord
	for i := range 64 {
		recs = append(recs, fakeRecord{ID: fmt.Sprint("m", i), Do: "say", Text: strings.Repeat("x", 1<<20)})
	}
	r := readerOf(t, 0, recs...)
	n, more := 0, true
	for more {
		out := r.refresh(false, now())
		if out.err != nil {
			t.Fatal(out.err)
		}
		n, more = n+len(out.drafts), out.more
		if len(r.undated) > maxUndated>>20 {
			t.Fatalf("%d drafts of 1 MiB wait for a date", len(r.undated))
		}
	}
	if n != len(recs) {
		t.Fatalf("%d drafts of %d records", n, len(recs))
	}
}

// revertFake takes back a turn that its file does not have any more.
type revertFake struct{ fake }

func (f revertFake) Projector(a providers.Artifact, state []byte) providers.Projector {
	return &revertProjector{*f.fake.Projector(a, state).(*fakeProjector)}
}

type revertProjector struct{ fakeProjector }

func (p *revertProjector) Reverted(now providers.Turn) []providers.Draft {
	if p.s.State != string(providers.WaitingOnAgent) || now.ID == p.s.Turn {
		return nil
	}
	return []providers.Draft{{Key: p.s.Turn + "/reverted", Kind: providers.TurnFinal, Turn: p.s.Turn, Outcome: providers.Aborted}}
}

// A turn that a program takes back by writing its file anew has an end.
func TestRevertedTurn(t *testing.T) {
	open := fakeRecord{ID: "t2", Do: "start", At: now()}
	for _, tt := range []struct {
		name string
		now  []fakeRecord
		want int
	}{
		{"taken back", records("t1"), 2},
		{"still there", append(records("t0"), open), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readerOf(t, 0, append(records("t1"), open)...)
			r.provider, r.proj = revertFake{}, revertFake{}.Projector(r.artifact, nil)
			r.refresh(false, now())
			mustWrite(t, r.artifact.Path+".new", encodeRecords(t, tt.now...))
			if err := os.Rename(r.artifact.Path+".new", r.artifact.Path); err != nil {
				t.Fatal(err)
			}
			out := r.refresh(false, now())
			if out.err != nil || len(out.drafts) != tt.want || out.drafts[tt.want-1].Kind != providers.ObserverFailure {
				t.Fatalf("%v, drafts %+v", out.err, out.drafts)
			}
			if d := out.drafts[0]; tt.want == 2 && (d.Kind != providers.TurnFinal || d.Turn != "t2" || d.Outcome != providers.Aborted) {
				t.Errorf("draft %+v", d)
			}
		})
	}
}
