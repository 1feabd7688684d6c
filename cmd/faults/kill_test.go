package faults

import (
	"fmt"
	"testing"
	"time"
)

// Fault 1: the daemon is killed at any moment, while 8 agents write records
// from 100 bytes to 5 MiB, in pieces, and begin new sessions.
func TestKill(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	w := newWorld(t)
	r := dice(t)
	kills := pick(50, 500)
	f := &figures{Fault: "1 kill -9", Tried: kills, Unit: "kills",
		How: "SIGKILL at any moment, also while starting; 8 sessions, records of 100 B to 5 MiB, partial writes, /clear and /new"}
	w.serve().kill() // the log is there
	s := w.read(0)
	var agents []*agent
	for i := range 8 {
		agents = append(agents, w.agent([]string{"claude", "codex"}[i%2], fmt.Sprint("agent", i)))
	}
	// Each is seen before the killing begins: what a process wrote that no
	// Steno ever saw is not promised.
	d := w.serve()
	w.until("every agent", func() bool { return len(w.agents()) == len(agents) })
	for _, a := range agents {
		a.mark = a.do("mark")
		a.do("go %d 80ms", r.Uint64())
	}
	sessions := len(agents)
	plain := plain(t)
	for life := range kills {
		if r.IntN(4) == 0 {
			// Any moment of a start, from the first instruction on.
			time.Sleep(time.Duration(r.Int64N(int64(400 * time.Millisecond))))
		} else if s.more(1, patience) {
			if life > 0 && life%3 != 0 {
				f.recovered(time.Since(d.started)) // as its users know it
			}
			s.more(1+r.IntN(60), time.Duration(r.Int64N(int64(300*time.Millisecond))))
		}
		// A session that no Steno ever saw can be anybody's: so a process goes
		// on to another one only when something of the present was told.
		if a := agents[r.IntN(len(agents))]; s.tells(a.mark) && r.IntN(3) == 0 {
			a.mark = a.do("clear")
			sessions++
		}
		d.kill()
		// Every third life has the race detector; the others are quicker.
		if (life+1)%3 == 0 {
			d = w.start()
		} else {
			d = w.startWith(plain)
		}
	}
	d.ready()
	for _, a := range agents {
		a.do("stop")
	}
	s.verdict(f, agents...)
	d.stop()
	f.Note = fmt.Sprintf("%d sessions, %d events", sessions, s.head())
	f.report(t)
}
