package bind

import (
	"testing"
	"time"

	"steno/providers"
)

// The start of a process is told by the clock that people set. It never becomes
// later; when the clock is set back it becomes earlier.
func TestStartedFollowsTheClock(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	f := newTable(t)
	f.put(row{pid: 20, ppid: 1, start: 98000, comm: "agent", exe: "/opt/agent", args: "agent\x00"})
	var set time.Duration
	s := NewScanner(Options{
		Proc: f.dir, Recognisers: []Recogniser{byName{"x", map[string]providers.Part{"agent": providers.Worker}}},
		Now:    func() time.Time { return epoch.Add(f.up + set) },
		Uptime: func() (time.Duration, error) { return f.up, nil },
	})
	began := epoch.Add(980 * time.Second)
	for _, tt := range []struct{ set, moved time.Duration }{
		{0, 0}, {300 * time.Millisecond, 0}, {-300 * time.Millisecond, 0}, {day, 0}, {-day, -day}, {0, -day}, {-2 * day, -2 * day}, {day, -2 * day},
	} {
		f.up += time.Second
		set = tt.set
		p := scan(t, s)
		if got := p.Candidates()[0].Started; !got.Equal(began.Add(tt.moved)) {
			t.Errorf("clock set by %v: started %v, want %v later", tt.set, got.Sub(began), tt.moved)
		}
	}
}
