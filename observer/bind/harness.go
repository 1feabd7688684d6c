package bind

import (
	"fmt"

	"steno/providers"
)

// role is what one provider says of a process.
type role struct {
	provider string
	part     providers.Part
	proc     providers.Process
}

// harnesses are the recognised processes of a table.
type harnesses struct {
	procs    Processes
	order    []int // pids, sorted
	roles    map[int]role
	excluded []Excluded
}

func newHarnesses(procs Processes, recognisers []Recogniser) *harnesses {
	h := &harnesses{procs: procs, roles: make(map[int]role)}
	for _, p := range procs.candidates {
		if dead(p.State) {
			continue
		}
		var found role
		claims := 0
		for _, r := range recognisers {
			if part := r.Recognise(p); part != providers.NotMine {
				claims++
				if claims == 1 || r.ID() < found.provider {
					found = role{r.ID(), part, p}
				}
			}
		}
		switch {
		case claims == 0:
			continue
		case claims > 1:
			// It must not own, and what it starts is still nested.
			found.part = providers.Helper
			h.excluded = append(h.excluded, Excluded{Process: p, Reason: "more than one provider recognises this process"})
		case found.part == providers.Helper:
			h.excluded = append(h.excluded, Excluded{Provider: found.provider, Process: p, Helper: true, Reason: "helper of the program"})
		}
		h.order = append(h.order, p.PID)
		h.roles[p.PID] = found
	}
	return h
}

// above is the nearest harness process above a process.
func (h *harnesses) above(pid int) (role, bool) {
	for _, up := range h.procs.Ancestors(pid) {
		if r, ok := h.roles[up]; ok {
			return r, true
		}
	}
	return role{}, false
}

// units lists the harnesses that no harness started. A launcher and its worker
// are one: the worker is below the launcher with no other harness between, and
// in its process group.
func (h *harnesses) units() []unit {
	roots := make(map[int]*unit) // by pid of the launcher
	var workers []unit
	var waiting []int // pids of launchers, in order

	for _, pid := range h.order {
		r := h.roles[pid]
		if r.part != providers.Launcher {
			continue
		}
		if up, nested := h.above(pid); nested {
			h.nested(r, up)
			continue
		}
		proc := r.proc
		roots[pid] = &unit{provider: r.provider, launcher: &proc}
		waiting = append(waiting, pid)
	}
	children := make(map[int][]role) // launcher -> its workers
	for _, pid := range h.order {
		r := h.roles[pid]
		if r.part != providers.Worker {
			continue
		}
		up, below := h.above(pid)
		switch {
		case !below:
			proc := r.proc
			workers = append(workers, unit{provider: r.provider, worker: &proc})
		case roots[up.proc.PID] != nil && up.provider == r.provider && up.proc.PGID == r.proc.PGID:
			children[up.proc.PID] = append(children[up.proc.PID], r)
		default:
			h.nested(r, up)
		}
	}
	for _, pid := range waiting {
		u := *roots[pid]
		mine := children[pid]
		if len(mine) > 1 {
			for _, r := range mine {
				h.excluded = append(h.excluded, Excluded{
					Provider: r.provider, Process: r.proc,
					Reason: fmt.Sprintf("launcher %d has %d workers", pid, len(mine)),
				})
			}
			continue
		}
		if len(mine) == 1 {
			u.worker = &mine[0].proc
		}
		workers = append(workers, u)
	}
	return workers
}

func (h *harnesses) nested(r, up role) {
	h.excluded = append(h.excluded, Excluded{
		Provider: r.provider, Process: r.proc,
		Reason: fmt.Sprintf("started by %s process %d", up.provider, up.proc.PID),
	})
}
