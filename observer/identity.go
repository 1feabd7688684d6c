package observer

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"steno/observer/bind"
	"steno/providers"
	"steno/store"
)

// identify finds the agent that a new process is (D14), or says that the
// process may still show it.
func (o *Observer) identify(w *bind.Owner, m bind.Match, now time.Time) (row store.Agent, wait bool) {
	var same, pane, session *agent // the newest of each
	var resumable bool
	for _, a := range o.agents {
		r := a.row
		if r.Harness != w.Provider {
			continue
		}
		if r.PID == w.Process.PID && r.StartTicks == w.Process.StartTicks && r.Boot == o.boot {
			same = newer(same, a) // the same incarnation, seen again
		}
		if w.Place.Kind == bind.InTmux && r.PaneKey == w.Place.Key {
			pane = newer(pane, a)
		}
		if r.Available || r.Session == "" || o.byProcess[a.process()] != nil {
			continue
		}
		resumable = true
		if m.Bound && m.Session == r.Session {
			session = newer(session, a)
		}
	}
	for _, a := range []*agent{same, pane, session} {
		if a != nil {
			return a.row, false
		}
	}
	// An age below zero is a clock that was set back: no reason to wait.
	age := now.Sub(w.Process.Started)
	if resumable && age >= 0 && age < resumeGrace && o.mayResume(w, m) {
		return store.Agent{}, true
	}
	return store.Agent{ID: newUUID(), Harness: w.Provider, CreatedAt: now}, false
}

// mayResume says whether a process may still show which session it resumes: it
// asks for one, and what it is bound to so far has no transcript yet.
func (o *Observer) mayResume(w *bind.Owner, m bind.Match) bool {
	for _, p := range o.opt.Providers {
		if r, ok := p.(providers.Resumer); ok && p.ID() == w.Provider && !r.Resumes(w.Process) {
			return false
		}
	}
	if !m.Bound {
		return true
	}
	return o.artifacts[m.Path] == nil && o.transcript(sessionKey{w.Provider, m.Session}) == nil
}

// newer is the agent that lived last; a may be nil.
func newer(a, b *agent) *agent {
	if a == nil {
		return b
	}
	order := cmp.Or(compareBool(a.row.Alive, b.row.Alive), a.row.ExitedAt.Compare(b.row.ExitedAt),
		a.row.CreatedAt.Compare(b.row.CreatedAt), cmp.Compare(a.row.ID, b.row.ID))
	if order < 0 {
		return b
	}
	return a
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Slots of the places that no multiplexer server has. They keep pane ids below
// 2^53, so that every JSON reader holds them exactly.
const (
	slotTerminal = 1<<20 - 2
	slotHeadless = 1<<20 - 1
)

// paneID is the number of a place in the catalog: server slot << 32 | number.
// A server that is new gets the next slot, which has to be committed.
func (o *Observer) paneID(p bind.Place) (uint64, []store.Server) {
	switch p.Kind {
	case bind.InTerminal:
		return slotTerminal<<32 | uint64(p.Number), nil
	case bind.Headless:
		return slotHeadless<<32 | uint64(p.Number), nil
	}
	slot, ok := o.slots[p.Server]
	if ok {
		return uint64(slot)<<32 | uint64(p.Number), nil
	}
	slot = uint32(len(o.slots)) % slotTerminal
	o.slots[p.Server] = slot
	return uint64(slot)<<32 | uint64(p.Number), []store.Server{{Key: p.Server, Slot: slot}}
}

// nameKept is how long the name of an agent that is gone is not given to
// another one: as long as the catalog lists it (D20).
const nameKept = time.Hour

// name is what people call an agent: the harness and the directory it works
// in, with a number where that is taken. An agent that comes back keeps its
// name unless another one has it by now.
func (o *Observer) name(w *bind.Owner, self *agent, now time.Time) string {
	base := w.Provider
	if dir := filepath.Base(w.Process.CWD); dir != "." && dir != "/" && dir != "" {
		base += "-" + cutTo(dir, 64)
	}
	taken := map[string]bool{}
	for _, a := range o.agents {
		if a != self && (a.row.Alive || now.Sub(a.row.ExitedAt) < nameKept) {
			taken[a.row.Name] = true
		}
	}
	if self.row.Name != "" && !taken[self.row.Name] {
		return self.row.Name
	}
	name := base
	for i := 2; taken[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

// newUUID is a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
