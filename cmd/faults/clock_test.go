package faults

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

var timestamp = regexp.MustCompile(`"timestamp":"[^"]*"`)

// Fault 6: records whose dates jump about, as when the clock of the machine is
// set while a program runs, or when it has none. They are told in the order in
// which they came, and the log keeps the last of them, not the youngest.
//
// Only the dates of the records are wild here: the clock of the machine belongs
// to others. What happens to the daemon when its own clock is set is tested with
// made-up clocks: TestClockSetBack, TestSessionAfterClockSetBack in observer and
// TestStartedFollowsTheClock in observer/bind.
func TestWildDates(t *testing.T) {
	w := newWorld(t)
	const keep = 600
	turns := pick(200, 2000)
	f := &figures{Fault: "6 clock", Unit: "turns", Tried: turns,
		How: "records dated a day ahead, in 1970, in 9999 or not at all between those of now; retention of 600 events"}
	d := w.serve("--retention-events", itoa(keep))
	s := w.read(0)
	p := w.crowd(1)[0]
	w.until("the agent", func() bool { return len(w.agents()) == 1 })
	dates := []string{
		"", "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "tomorrow", time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339Nano),
		"0000-00-00T00:00:00Z", time.Now().AddDate(100, 0, 0).UTC().Format(time.RFC3339Nano), "+292277026596-12-04T15:30:07Z",
	}
	r := dice(t)
	for n := range turns {
		began := time.Now()
		head := s.head()
		p.turnWith(t, 20, func(record []byte) []byte {
			if r.IntN(2) == 0 {
				return record
			}
			return timestamp.ReplaceAll(record, []byte(fmt.Sprintf(`"timestamp":%q`, dates[r.IntN(len(dates))])))
		})
		// A reader may not fall behind what the log keeps.
		if n%20 == 19 && !s.grown(head, 6, patience) {
			t.Fatalf("turn %d was not told", n)
		}
		if n%20 == 19 {
			f.recovered(time.Since(began))
		}
	}
	s.heard(f, []*idler{p})
	st := w.status().Store
	if st.Events > keep || st.Latest-st.Oldest+1 != st.Events {
		t.Errorf("the log has %d events, %d to %d; at most %d are kept", st.Events, st.Oldest, st.Latest, keep)
	}
	d.stop()
	f.report(t)
}
