package observer

import "time"

// clock is one instant, by the clock that people set and by the one that nobody
// sets.
type clock struct{ wall, mono time.Time }

func clockAt(now time.Time) clock { return clock{wall: now.Round(0), mono: now} }

// back is by how much the clock was set back since then; zero when it was not.
func (c clock) back(now time.Time) time.Duration {
	if back := now.Sub(c.mono) - now.Round(0).Sub(c.wall); back > time.Second {
		return back
	}
	return 0
}
