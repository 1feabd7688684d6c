package observer

import (
	"time"

	"steno/observer/bind"
	"steno/providers"
	"steno/store"
)

// process is a process life: a pid alone may be reused.
type process struct {
	pid   int
	start uint64
}

// agent is the live state of one agent. The loop owns it.
type agent struct {
	row   store.Agent // as last sent to the committer
	owner bind.Owner
	match bind.Match
	title title
	art   *artifact // bound transcript, nil while there is none
	turn  providers.Turn
	// draining counts the artifacts that are still read to their end for this
	// incarnation after they were let go.
	draining int
	// exiting is set once the process has ended and its last records are
	// being read.
	exiting bool
	reason  string // why it is exiting, for its unavailable event
	// sought is since when its end waits for a sweep that may find its
	// transcript; zero when it does not.
	sought time.Time
	// leaving is set while another waits for its place: nothing more is read
	// for it. Each probe decides that anew.
	leaving bool
	errored bool // the bound transcript cannot be read
	// halted is set while the incarnation is gone only because Steno ended.
	halted bool
	seen   bool // the bound transcript has given a record
	// owed is what the incarnation was reading when Steno ended, until it is
	// known what the process reads now.
	owed []debt
}

func (a *agent) process() process {
	return process{pid: a.row.PID, start: a.row.StartTicks}
}

func (a *agent) identity() identity {
	return identity{agent: a.row.ID, incarnation: a.row.Incarnation}
}

// state is what the catalog says: contract, section 3.10. A status that the
// program publishes about itself, in a record or in its title, outranks what its
// records leave open.
func (a *agent) state() (status, turn string) {
	t := a.turn.State
	if t == "" {
		t = providers.Unknown
	}
	activity, _ := a.activity()
	switch activity {
	case providers.Busy:
		t = providers.WaitingOnAgent
	case providers.Idle:
		t = providers.WaitingOnUser
	case providers.Waiting:
		t = providers.WaitingOnUser
	}
	switch {
	case !a.row.Alive:
		status = "exited"
	case a.errored:
		status = "errored"
	case activity == providers.Waiting, t == providers.WaitingOnAgent:
		status = "busy"
	case t == providers.WaitingOnUser, a.seen:
		status = "idle"
	default:
		status = "starting"
	}
	return status, string(t)
}

// refreshRow brings the row up to date and says whether it changed.
func (a *agent) refreshRow(now time.Time) bool {
	next := a.row
	next.Status, next.TurnState = a.state()
	next.Turn = a.turn.ID
	next.PaneKey, next.Place, next.TTY = a.owner.Place.Key, a.owner.Place.Kind, a.owner.Place.TTY
	if a.match.Bound {
		next.Session, next.Path = a.match.Session, a.match.Path
		next.Rank, next.Evidence = int(a.match.Rank), a.match.Source
	}
	if a.owner.Process.CWD != "" {
		next.CWD = a.owner.Process.CWD
	}
	if next == a.row {
		return false
	}
	next.ObservedAt = now
	a.row = next
	return true
}
