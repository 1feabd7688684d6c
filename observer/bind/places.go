package bind

import (
	"fmt"

	"steno/providers"
)

// places finds the place of a process.
type places struct {
	procs Processes
	panes map[uint64]*Pane // by terminal; nil value: more than one pane claims it
	led   map[uint64]bool  // the pane's own session is seen on its terminal
}

func newPlaces(procs Processes, panes []Pane) *places {
	pl := &places{procs: procs, panes: make(map[uint64]*Pane), led: make(map[uint64]bool)}
	for i := range panes {
		p := panes[i] // its own copy: a Place keeps it
		if p.Dead || p.TTY == 0 {
			// The terminal of a dead pane is closed, and its number free
			// for another one.
			continue
		}
		if other, twice := pl.panes[p.TTY]; twice && (other == nil || other.Key != p.Key) {
			pl.panes[p.TTY] = nil
			continue
		}
		pl.panes[p.TTY] = &p
	}
	for _, p := range procs.all {
		if pane := pl.panes[p.TTY]; pane != nil && pane.PID > 0 && p.SID == pane.PID {
			pl.led[p.TTY] = true
		}
	}
	return pl
}

// of returns where a process is, or why that cannot be told.
func (pl *places) of(p *providers.Process) (Place, string) {
	if p.TTY == 0 {
		return Place{
			Kind: Headless, Server: Headless, Number: uint32(p.PID),
			Key: fmt.Sprintf("pid:%d:%d", p.PID, p.StartTicks),
		}, ""
	}
	name, number := ttyName(p.TTY)
	pane, listed := pl.panes[p.TTY]
	if listed && pane == nil {
		return Place{}, "more than one pane has terminal " + name
	}
	// A container can have a terminal of the same number: where the pane's own
	// session is seen, only that session is in the pane.
	if listed && (!pl.led[p.TTY] || p.SID == pane.PID) {
		return Place{Kind: InTmux, Key: pane.Key, Server: pane.Server, Number: pane.Number, TTY: name, Pane: pane}, ""
	}
	var start uint64
	if leader := pl.procs.index[p.SID]; leader != nil {
		start = leader.StartTicks
	}
	return Place{
		Kind: InTerminal, Server: InTerminal, Number: number, TTY: name,
		Key: fmt.Sprintf("tty:%s:%d:%d", name, p.SID, start),
	}, ""
}
