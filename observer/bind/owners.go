package bind

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"steno/providers"
)

// patience is how long a launcher may live without its worker before that is
// called a fault.
const patience = 10 * time.Second

// Kinds of Place, and the slot keys of those that are not in a multiplexer.
const (
	InTmux     = "tmux"
	InTerminal = "terminal"
	Headless   = "headless"
)

// Pane is what Owners has to know of a multiplexer's pane.
type Pane struct {
	Key    string // see PaneKey
	Server string // slot key of its server, see ServerKey
	Number uint32
	TTY    uint64 // see TTYDevice; 0 = not known
	PID    int    // leader of the pane's session
	Title  string
	Dead   bool
}

// ServerKey is the slot key of a tmux server: it is the same after a restart of
// that server.
func ServerKey(socket string) string { return "tmux:" + socket }

// PaneKey is the key of a pane of one life of a tmux server.
func PaneKey(socket string, pid int, started int64, number int) string {
	return fmt.Sprintf("tmux:%s:%d:%d:%%%d", socket, pid, started, number)
}

// Place is where a harness runs.
type Place struct {
	Kind string // InTmux, InTerminal, Headless
	// Key is stable as long as the place is: PaneKey; "tty:<name>:<leader's
	// pid>:<its start ticks>", since terminal names are used again; or
	// "pid:<pid>:<start ticks>".
	Key    string
	Server string // slot key: ServerKey, InTerminal or Headless
	Number uint32 // unique among live places of the slot: pane, pts number, pid
	TTY    string // name of its terminal, "/dev/pts/3"; "" for a headless one
	Pane   *Pane  // nil outside a multiplexer
}

// Owner is a harness that may own a session.
type Owner struct {
	Provider string
	Process  providers.Process // the worker, with Title and Pane
	Launcher int               // pid of the process that started it and waits, 0 = none
	Place    Place
	// Foreground is false for a harness that is stopped or in the background
	// of its terminal: it keeps an incarnation that is known, and starts none.
	// True for a headless one.
	Foreground bool
}

// Excluded is a harness process that owns nothing, and why.
type Excluded struct {
	Provider string
	Process  providers.Process
	Place    Place // zero when that does not matter
	Helper   bool  // it belongs to the program and is not meant to own anything
	Pending  bool  // it may become an owner without anything going wrong
	Reason   string
}

// unit is a worker with its launcher, or a launcher that waits for its worker.
type unit struct {
	provider string
	worker   *providers.Process
	launcher *providers.Process
}

// lead is the process that the unit is known by.
func (u unit) lead() *providers.Process {
	if u.worker != nil {
		return u.worker
	}
	return u.launcher
}

// Owners finds the owners among the candidates of a scan: for each pane and each
// other terminal the unique outermost harness of the foreground job, the
// harnesses in its background, and every headless harness. It is pure. Both
// lists are by pid.
func Owners(procs Processes, panes []Pane, recognisers []Recogniser) ([]Owner, []Excluded) {
	h := newHarnesses(procs, recognisers)
	units := h.units()
	places := newPlaces(procs, panes)

	type job struct {
		kind string // a container's terminal can have the number of a pane's
		tty  uint64
	}
	jobs := make(map[job][]unit) // foreground units of one terminal
	var owners []Owner
	for _, u := range units {
		p := u.lead()
		place, reason := places.of(p)
		switch {
		case reason != "":
			h.exclude(u, place, false, reason)
		case place.Kind != Headless && p.TPGID > 0 && p.PGID == p.TPGID:
			k := job{place.Kind, p.TTY}
			jobs[k] = append(jobs[k], u)
		default:
			owners = h.own(owners, u, place, place.Kind == Headless)
		}
	}
	for _, fg := range jobs {
		if len(fg) > 1 {
			for _, u := range fg {
				place, _ := places.of(u.lead())
				h.exclude(u, place, false, fmt.Sprintf("%d harnesses in the foreground job of one terminal: %s", len(fg), pidsOf(fg)))
			}
			continue
		}
		place, _ := places.of(fg[0].lead())
		owners = h.own(owners, fg[0], place, true)
	}
	slices.SortFunc(owners, func(a, b Owner) int { return cmp.Compare(a.Process.PID, b.Process.PID) })
	slices.SortFunc(h.excluded, func(a, b Excluded) int {
		return cmp.Or(cmp.Compare(a.Process.PID, b.Process.PID), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Reason, b.Reason))
	})
	return owners, h.excluded
}

// own makes an owner of a unit that has a worker.
func (h *harnesses) own(owners []Owner, u unit, place Place, foreground bool) []Owner {
	if u.worker == nil {
		if h.procs.At.Sub(u.launcher.Started) < patience {
			h.exclude(u, place, true, "launcher has not started its worker yet")
		} else {
			h.exclude(u, place, false, "launcher has lived 10 s without a worker")
		}
		return owners
	}
	o := Owner{Provider: u.provider, Process: *u.worker, Place: place, Foreground: foreground}
	if u.launcher != nil {
		o.Launcher = u.launcher.PID
	}
	if place.Pane != nil {
		o.Process.Title = place.Pane.Title
		o.Process.Pane = "%" + strconv.FormatUint(uint64(place.Number), 10)
	}
	return append(owners, o)
}

func (h *harnesses) exclude(u unit, place Place, pending bool, reason string) {
	h.excluded = append(h.excluded, Excluded{
		Provider: u.provider, Process: *u.lead(), Place: place, Pending: pending, Reason: reason,
	})
}

func pidsOf(units []unit) string {
	var pids []int
	for _, u := range units {
		pids = append(pids, u.lead().PID)
	}
	return join(pids)
}

// join writes numbers in order: "3, 14, 15".
func join(pids []int) string {
	slices.Sort(pids)
	var b []byte
	for i, pid := range pids {
		if i == 8 { // enough for a person
			return string(b) + ", ..."
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(pid), 10)
	}
	return string(b)
}
