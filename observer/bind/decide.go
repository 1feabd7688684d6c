package bind

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"steno/providers"
)

// Candidate is an owner with what speaks for its sessions.
type Candidate struct {
	Owner
	Evidence []providers.Evidence
	// Remembered is what the same incarnation was bound by before, durably. It
	// counts at its rank until other evidence of that rank or a stronger one
	// is newer.
	Remembered *providers.Evidence
}

// Row is one piece of evidence and what became of it.
type Row struct {
	Evidence   providers.Evidence
	Remembered bool
	Accepted   bool   // it speaks for the session that was bound
	Reason     string // why it does not count, "" when accepted
}

// Match is the decision about one process.
type Match struct {
	PID        int
	StartTicks uint64
	Provider   string

	Bound   bool
	Session string // "" when not bound, like Path, Rank, Source and Activity
	Path    string // "" when the artifact does not exist yet
	Reason  string // why it is not bound, "" when it is

	Rank   providers.Rank
	Source string

	Activity providers.Activity
	Waiting  string
	Since    time.Time

	Rows []Row // all evidence, strongest first
}

// held is one process while it is decided.
type held struct {
	match    Match
	started  time.Time
	rows     []Row
	best     providers.Rank
	sessions []string // what its best rank names, sorted
	others   []string // what an agreement names beside the remembered session
}

// session is a session of one provider.
type session struct{ provider, id string }

// Decide binds sessions to processes. It is pure and its answer, sorted by pid,
// does not depend on the order of its input.
//
// A process's claim is what its strongest usable evidence names. More than one
// session: not bound; weaker evidence does not break the tie. A session that
// another process claims by the same rank: neither is bound; by a stronger rank:
// only the other may be. A process that was bound by an agreement stays bound
// when a second session agrees with it, too; that one is then nobody's by an
// agreement.
func Decide(candidates []Candidate) []Match {
	all := gather(candidates)
	claims := make(map[session][]*held)
	for _, c := range all {
		c.weigh()
		for _, id := range c.sessions {
			s := session{c.match.Provider, id}
			claims[s] = append(claims[s], c)
		}
		for _, id := range c.others {
			if !slices.Contains(c.sessions, id) {
				s := session{c.match.Provider, id}
				claims[s] = append(claims[s], c)
			}
		}
	}
	out := make([]Match, 0, len(all))
	for _, c := range all {
		switch len(c.sessions) {
		case 0:
			c.refuse(c.silence())
		case 1:
			id := c.sessions[0]
			why := rivals(c, claims[session{c.match.Provider, id}])
			if why == "" {
				why = c.artifacts(id)
			}
			if why != "" {
				c.refuse(why)
			} else {
				c.bind(id)
			}
		default:
			c.refuse(fmt.Sprintf("%d sessions for one process at rank %d", len(c.sessions), c.best))
		}
		c.match.Rows = c.rows
		out = append(out, c.match)
	}
	return out
}

// silence says why nothing names a session. Most programs begin one with the first
// prompt, so a process without any evidence is nothing to worry about.
func (h *held) silence() string {
	if len(h.rows) == 0 {
		return "nothing names one yet, as before a first prompt"
	}
	return "no usable evidence"
}

// gather merges candidates that are the same process and sorts everything.
func gather(candidates []Candidate) []*held {
	type id struct {
		pid   int
		start uint64
		by    string
	}
	byID := make(map[id]*held)
	var all []*held
	for _, c := range candidates {
		k := id{c.Process.PID, c.Process.StartTicks, c.Provider}
		h := byID[k]
		if h == nil {
			h = &held{match: Match{PID: k.pid, StartTicks: k.start, Provider: k.by}, started: c.Process.Started}
			byID[k] = h
			all = append(all, h)
		}
		for _, e := range c.Evidence {
			h.rows = append(h.rows, Row{Evidence: e})
		}
		if c.Remembered != nil {
			h.rows = append(h.rows, Row{Evidence: *c.Remembered, Remembered: true})
		}
	}
	for _, h := range all {
		slices.SortFunc(h.rows, compareRows)
	}
	slices.SortFunc(all, func(a, b *held) int {
		return cmp.Or(cmp.Compare(a.match.PID, b.match.PID), cmp.Compare(a.match.StartTicks, b.match.StartTicks),
			cmp.Compare(a.match.Provider, b.match.Provider))
	})
	return all
}

// compareRows is a total order, up to equal rows: strongest and newest first.
func compareRows(a, b Row) int {
	x, y := a.Evidence, b.Evidence
	return cmp.Or(cmp.Compare(x.Rank, y.Rank), y.At.Compare(x.At), cmp.Compare(x.Source, y.Source),
		cmp.Compare(x.Session, y.Session), yes(a.Remembered)-yes(b.Remembered), cmp.Compare(x.Path, y.Path),
		cmp.Compare(x.Refused, y.Refused), cmp.Compare(x.Activity, y.Activity), cmp.Compare(x.Waiting, y.Waiting),
		y.Since.Compare(x.Since))
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

// weigh drops what does not count, and finds the sessions of the best rank.
func (c *held) weigh() {
	for i := range c.rows {
		r := &c.rows[i]
		switch e := r.Evidence; {
		case e.Refused != "":
			r.Reason = e.Refused
		case e.Session == "":
			r.Reason = "names no session"
		case e.Rank < providers.Exact || e.Rank > providers.Agreement:
			r.Reason = "of a rank that is not used"
		}
	}
	c.drop("an older piece of the same record", func(r, other Row) bool {
		return !r.Remembered && !other.Remembered && r.Evidence.Rank == other.Evidence.Rank &&
			r.Evidence.Source == other.Evidence.Source && c.newer(other, r)
	})
	if !slices.ContainsFunc(c.rows, func(r Row) bool { return r.Reason == "" && r.Evidence.Rank != providers.Agreement }) {
		c.stay()
	}
	// What is read now against what is remembered: exactly one of these two
	// holds, so that the same rank never makes a tie. What has no time is read
	// now, and newer.
	c.drop("newer evidence speaks for another session", func(r, other Row) bool {
		return r.Remembered && !other.Remembered && other.Evidence.Session != r.Evidence.Session &&
			other.Evidence.Rank <= r.Evidence.Rank && !c.newer(r, other)
	})
	c.drop("older than what this process was bound by", func(r, other Row) bool {
		return !r.Remembered && other.Remembered && other.Evidence.Session != r.Evidence.Session &&
			other.Evidence.Rank <= r.Evidence.Rank && c.newer(other, r)
	})
	c.drop("a newer session of this process is proved", func(r, other Row) bool {
		return r.Evidence.Rank == providers.Arguments && other.Evidence.Session != r.Evidence.Session &&
			other.Evidence.Rank != providers.Arguments && c.newer(other, r)
	})
	for _, r := range c.rows {
		if r.Reason != "" || c.best != 0 && r.Evidence.Rank > c.best {
			continue
		}
		c.best = r.Evidence.Rank
		if !slices.Contains(c.sessions, r.Evidence.Session) {
			c.sessions = append(c.sessions, r.Evidence.Session)
		}
	}
	slices.Sort(c.sessions)
}

const besides = "what this process was bound by is named still"

// stay keeps a process that has nothing but agreements, and agrees still with the
// session it was bound to, from others of its directory: they may be another
// process's. Nobody else gets them by an agreement, because they may not.
func (c *held) stay() {
	c.drop(besides, func(r, other Row) bool {
		return !r.Remembered && !other.Remembered && other.Evidence.Session != r.Evidence.Session &&
			c.remembers(other.Evidence.Session) && !c.newer(r, other)
	})
	for _, r := range c.rows {
		if r.Reason == besides {
			c.others = append(c.others, r.Evidence.Session)
		}
	}
	slices.Sort(c.others)
	c.others = slices.Compact(c.others)
}

// remembers says whether the process was bound to the session, by what counts.
func (c *held) remembers(id string) bool {
	return slices.ContainsFunc(c.rows, func(r Row) bool {
		return r.Remembered && r.Reason == "" && r.Evidence.Session == id
	})
}

// drop gives a reason to every usable row that loses to another usable one. It
// looks at all pairs before it changes anything, so the order does not matter.
func (c *held) drop(reason string, loses func(r, other Row) bool) {
	var lost []int
	for i, r := range c.rows {
		for j, other := range c.rows {
			if i != j && r.Reason == "" && other.Reason == "" && loses(r, other) {
				lost = append(lost, i)
				break
			}
		}
	}
	for _, i := range lost {
		c.rows[i].Reason = reason
	}
}

// newer compares two pieces that both tell their time.
func (c *held) newer(a, b Row) bool {
	x, y := c.at(a), c.at(b)
	return !x.IsZero() && !y.IsZero() && x.After(y)
}

// at is the time of a piece. Arguments without one are as old as the process.
func (c *held) at(r Row) time.Time {
	if e := r.Evidence; e.Rank == providers.Arguments && e.At.IsZero() {
		return c.started
	}
	return r.Evidence.At
}

// rivals says why others' claims keep c from its session.
func rivals(c *held, claims []*held) string {
	var equal, stronger []int
	for _, other := range claims {
		switch {
		case other.best < c.best:
			stronger = append(stronger, other.match.PID)
		case other.best == c.best: // c itself is one of them
			equal = append(equal, other.match.PID)
		}
	}
	switch id := c.sessions[0]; {
	case len(stronger) > 0:
		return fmt.Sprintf("stronger evidence gives session %s to process %s", id, join(stronger))
	case len(equal) > 1:
		return fmt.Sprintf("%d live processes name session %s: %s", len(equal), id, join(equal))
	}
	return ""
}

// artifacts says whether evidence of the best rank names two files for the one
// session, and neither is newer.
func (c *held) artifacts(id string) string {
	for i, r := range c.rows {
		if !c.names(r, id) {
			continue
		}
		for _, other := range c.rows[:i] {
			if c.names(other, id) && other.Evidence.Path != r.Evidence.Path && !c.newer(other, r) && !c.newer(r, other) {
				return fmt.Sprintf("more than one file for session %s", id)
			}
		}
	}
	return ""
}

// names says whether a row that counts, read now and of the best rank, names a
// file for the session.
func (c *held) names(r Row, id string) bool {
	return r.Reason == "" && !r.Remembered && r.Evidence.Rank == c.best && r.Evidence.Session == id && r.Evidence.Path != ""
}

func (c *held) refuse(reason string) {
	c.match.Reason = reason
	for i := range c.rows {
		if c.rows[i].Reason == "" {
			c.rows[i].Reason = reason
		}
	}
}

// bind accepts the session. Weaker evidence for the same session is accepted
// too, and may add a path or a status. Rows are strongest and newest first.
func (c *held) bind(id string) {
	m := &c.match
	m.Bound, m.Session, m.Rank = true, id, c.best
	old := ""
	for i := range c.rows {
		r := &c.rows[i]
		if r.Reason != "" {
			continue
		}
		if r.Evidence.Session != id {
			r.Reason = "weaker than the evidence for another session"
			continue
		}
		r.Accepted = true
		e := r.Evidence
		if m.Source == "" {
			m.Source = e.Source
		}
		if r.Remembered {
			// Its path counts when nothing else names one; its status is
			// history.
			old = e.Path
			continue
		}
		if m.Path == "" {
			m.Path = e.Path
		}
		if e.Activity != providers.NoActivity && (m.Activity == providers.NoActivity || e.Since.After(m.Since)) {
			m.Activity, m.Waiting, m.Since = e.Activity, e.Waiting, e.Since
		}
	}
	if m.Path == "" {
		m.Path = old
	}
}
