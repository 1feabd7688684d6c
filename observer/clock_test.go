package observer

import (
	"testing"
	"time"

	"steno/observer/bind"
)

// A session that begins after the clock was set back by a day is older than
// everything that Steno knows; it is read from its start all the same. One that
// was there before the process is not.
func TestSessionAfterClockSetBack(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		back   time.Duration // by how much the clock was set back
		began  time.Duration // how long ago the process began
		drafts int
	}{
		{"not set", 0, 30 * time.Second, len(turn("t1"))},
		{"set back", day, 30 * time.Second, len(turn("t1"))},
		{"set forth", -day, 30 * time.Second, len(turn("t1"))},
		{"a file from before the process", day, -time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			o, err := New(r.opt)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(o.exits.Close)
			at := time.Now()
			o.began = at.Add(tt.back - time.Minute) // a minute ago, by the clock of then
			o.clock = clock{wall: o.began.Round(0), mono: at.Add(-time.Minute)}
			o.addOwnRoots()
			r.write("s1", records("t1")...)
			a := &agent{match: bind.Match{Bound: true, Session: "s1"}}
			a.row.Since = at.Add(tt.back - 30*time.Second)
			a.owner.Process.Started = at.Add(-tt.began)
			art := o.touch(r.path("s1"), at)
			art.agent = a
			read, err := o.attachment(art).open()
			if err != nil {
				t.Fatal(err)
			}
			if out := read.refresh(false, time.Now()); out.err != nil || len(out.drafts) != tt.drafts {
				t.Errorf("%d drafts, %v; want %d", len(out.drafts), out.err, tt.drafts)
			}
		})
	}
}

// Fault 6: records of any date are told in the order in which they came.
func TestRecordsOfAnyDate(t *testing.T) {
	r := newRig(t)
	r.run()
	r.start("s1")
	r.want(available)
	day := 24 * time.Hour
	var recs []fakeRecord
	var want []string
	for _, at := range []time.Time{
		now(), now().Add(day), now(), now().AddDate(100, 0, 0), time.Unix(0, 0), {}, now(),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), now(),
	} {
		id := string(rune('a' + len(recs)))
		recs = append(recs, fakeRecord{ID: id, Do: "say", Text: id, At: at})
		want = append(want, "assistant_message "+id)
	}
	r.write("s1", recs...)
	r.want(append([]string{available}, want...)...)
	var last int64
	for _, e := range r.events() {
		if e.ObservedAt.IsZero() || int64(e.Sequence) <= last {
			t.Errorf("event %d after %d, at %v", e.Sequence, last, e.ObservedAt)
		}
		last = int64(e.Sequence)
	}
}
