package bind

import (
	"maps"
	"slices"
	"time"

	"steno/providers"
)

// maxAncestors bounds a walk towards the root. It also ends a circle, which a
// table can hold when a pid was reused while it was read.
const maxAncestors = 64

// Processes are the processes of one uid at one time. It does not change.
type Processes struct {
	At time.Time // when it was read

	all        []*providers.Process // by pid
	index      map[int]*providers.Process
	candidates []providers.Process // what some recogniser claimed, by pid
	foreign    map[int]int         // pid -> parent, for ancestors that belong to others
}

// NewProcesses makes a table of processes that are all candidates.
func NewProcesses(at time.Time, list ...providers.Process) Processes {
	p := Processes{At: at, index: make(map[int]*providers.Process)}
	for _, proc := range list {
		p.index[proc.PID] = &proc
	}
	for _, pid := range slices.Sorted(maps.Keys(p.index)) {
		p.all = append(p.all, p.index[pid])
		p.candidates = append(p.candidates, *p.index[pid])
	}
	return p
}

// Len is the number of processes.
func (p Processes) Len() int { return len(p.all) }

// Get finds a process by pid. Its Exe, Args, CWD and Env are only filled for a
// candidate.
func (p Processes) Get(pid int) (providers.Process, bool) {
	if proc := p.index[pid]; proc != nil {
		return *proc, true
	}
	return providers.Process{}, false
}

// Is says whether exactly this process still exists.
func (p Processes) Is(pid int, start uint64) bool {
	proc := p.index[pid]
	return proc != nil && proc.StartTicks == start && !dead(proc.State)
}

// Candidates are the processes that some recogniser claimed, by pid.
func (p Processes) Candidates() []providers.Process { return slices.Clone(p.candidates) }

// Children lists the pids of a process's children.
func (p Processes) Children(pid int) []int {
	var kids []int
	for _, proc := range p.all {
		if proc.PPID == pid {
			kids = append(kids, proc.PID)
		}
	}
	return kids
}

// YoungestChild is when the last of a process's children began; zero when it
// has none.
func (p Processes) YoungestChild(pid int) time.Time {
	var last time.Time
	for _, proc := range p.all {
		if proc.PPID == pid && !dead(proc.State) && proc.Started.After(last) {
			last = proc.Started
		}
	}
	return last
}

// Ancestors lists the pids of parent, grandparent and so on, at most 64. Those
// of other users are among them where they could be read.
func (p Processes) Ancestors(pid int) []int {
	var up []int
	for len(up) < maxAncestors {
		next, ok := p.parent(pid)
		if !ok || next <= 0 || slices.Contains(up, next) {
			break
		}
		up = append(up, next)
		pid = next
	}
	return up
}

func (p Processes) parent(pid int) (int, bool) {
	if proc := p.index[pid]; proc != nil {
		return proc.PPID, true
	}
	parent, ok := p.foreign[pid]
	return parent, ok
}

// dead is a process that only waits to be collected.
func dead(state byte) bool { return state == 'Z' || state == 'X' || state == 'x' }
