package observer

import (
	"time"

	"steno/observer/bind"
	"steno/providers"
)

// titleEvery is how often the titles of panes are listed while an agent that
// publishes its state there has an open turn.
const titleEvery = 2 * time.Second

// title is what an agent's program publishes in its terminal's title.
type title struct {
	activity providers.Activity
	waiting  string
	since    time.Time // the activity is the same since
	at       time.Time // when the panes were listed
}

// titler is the agent's provider if its program publishes its state in its
// title; nil for another one, and for an agent that is not in tmux.
func (o *Observer) titler(a *agent) providers.Titler {
	if a.owner.Place.Kind != bind.InTmux {
		return nil
	}
	for _, p := range o.opt.Providers {
		if t, ok := p.(providers.Titler); ok && p.ID() == a.row.Harness {
			return t
		}
	}
	return nil
}

// readTitle takes the agent's state from the title of its pane, as it was
// listed at that time.
func (o *Observer) readTitle(a *agent, listed time.Time) {
	t := o.titler(a)
	if t == nil || listed.IsZero() || listed.Equal(a.title.at) {
		return
	}
	state, waiting := t.TitleActivity(a.owner.Process.Title)
	if state != a.title.activity || a.title.since.IsZero() {
		a.title.since = listed
	}
	a.title.activity, a.title.waiting, a.title.at = state, waiting, listed
}

// activity is the live status of an agent: what its program publishes about
// itself, or else its title, unless records have come since that was read.
func (a *agent) activity() (providers.Activity, string) {
	if a.match.Activity != providers.NoActivity {
		return a.match.Activity, a.match.Waiting
	}
	if a.art != nil && a.title.at.Before(a.art.changed) {
		return providers.NoActivity, ""
	}
	return a.title.activity, a.title.waiting
}

// lookAt is when the process of a bound artifact has to be looked at next:
// because its projector waits for that, or because its title says what its
// records do not. Zero when nothing depends on it.
func (o *Observer) lookAt(a *artifact) time.Time {
	if a.agent == nil || a.agent.art != a || a.closing || a.reader == nil {
		return time.Time{}
	}
	var at time.Time
	if a.look > 0 {
		at = later(a.changed, a.looked).Add(a.look)
	}
	// A title that says "working" may only be late: it has to be seen to end.
	open := a.agent.turn.State == providers.WaitingOnAgent ||
		a.agent.title.activity == providers.Busy || a.agent.title.activity == providers.Waiting
	if open && o.titler(a.agent) != nil {
		if t := later(a.changed, a.agent.title.at).Add(titleEvery); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// lookDue asks for a look at the processes and their titles when some artifact
// waits for it.
func (o *Observer) lookDue(now time.Time) {
	for a := range o.live {
		if at := o.lookAt(a); !at.IsZero() && !now.Before(at) {
			o.probeTitles = true
			o.probeBy(later(now, o.probedAt.Add(probeGap)))
			return
		}
	}
}

// looks gives a fresh look to the artifacts that wait for one.
func (o *Observer) looks(p probed) {
	if !p.titled {
		return
	}
	now := time.Now()
	for a := range o.live {
		if a.look == 0 || a.closing || a.agent == nil || a.agent.art != a {
			continue
		}
		if !p.at.After(a.changed) {
			continue // it was taken before the last record
		}
		a.looked = now
		if a.busy {
			continue // records may be under way; the next look decides
		}
		w := providers.Witness{
			At: p.at, Activity: a.agent.title.activity, Since: a.agent.title.since,
			Child: p.procs.YoungestChild(a.agent.row.PID),
		}
		if m := a.agent.match; m.Activity != providers.NoActivity {
			w.Activity, w.Since = m.Activity, m.Since
		}
		a.witness = w
		o.dispatch(a, look, now)
	}
}
