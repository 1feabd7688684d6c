package observer

import (
	"context"
	"errors"
	"time"

	"steno/observer/bind"
	"steno/observer/mux"
)

// muxFresh is how long a listing of panes is good for when nothing asks for a
// new one.
const (
	muxFresh = 30 * time.Second
	muxSoon  = 2 * time.Second // also the first wait after an answer that did not come
)

// list asks for the panes. What a server does not answer stays as it was.
func (p *prober) list(ctx context.Context) {
	listings, err := p.tmux.Panes(ctx)
	p.listed, p.muxErr = time.Now(), err
	if err != nil {
		return // what was known of the panes stays
	}
	unsure := false
	for i := range listings {
		l := &listings[i]
		if l.Err == nil || errors.Is(l.Err, mux.ErrNoServer) || errors.Is(l.Err, mux.ErrSocket) {
			continue
		}
		// No answer is not "no panes".
		unsure = true
		for _, old := range p.listings {
			if old.Server.Socket == l.Server.Socket {
				l.Server, l.Panes = old.Server, old.Panes
			}
		}
	}
	p.listings = listings
	if !unsure {
		p.retry = 0
		return
	}
	p.retry = min(max(2*p.retry, muxSoon), muxFresh)
}

// refreshPanes lists panes again when a harness came or went, when titles are
// asked for or might tell of a session, or after a while. It says
// whether the harnesses are not those of the last time.
func (p *prober) refreshPanes(ctx context.Context, procs bind.Processes, q probe) bool {
	now := map[harness]bool{}
	changed := false
	for _, pr := range procs.Candidates() {
		h := harness{process{pr.PID, pr.StartTicks}, pr.Exe, pr.TPGID == pr.PGID}
		now[h] = true
		changed = changed || !p.harnesses[h]
	}
	changed = changed || len(now) != len(p.harnesses)
	p.harnesses = now
	age := time.Since(p.listed)
	if p.listed.IsZero() || changed || q.titles || age > muxFresh || (q.unbound && age > muxSoon) || (p.retry > 0 && age > p.retry) {
		p.list(ctx)
	}
	return changed
}

// harness is a process that some provider recognises, what it runs, and whether
// it has its terminal.
type harness struct {
	process
	exe        string
	foreground bool
}

// panes are the panes of all servers that answered, in the binder's terms.
func panes(listings []mux.Listing) []bind.Pane {
	var out []bind.Pane
	for _, l := range listings {
		for _, p := range l.Panes {
			tty, err := bind.TTYDevice(p.TTY)
			if err != nil {
				tty = 0 // a pane whose terminal is gone holds nobody
			}
			out = append(out, bind.Pane{
				Key:    bind.PaneKey(p.Server.Socket, p.Server.PID, p.Server.Started, p.Number),
				Server: bind.ServerKey(p.Server.Socket),
				Number: uint32(p.Number),
				TTY:    tty, PID: p.PID, Title: p.Title, Dead: p.Dead,
			})
		}
	}
	return out
}

// muxWords says in fixed words what is wrong with a server.
func muxWords(err error) string {
	for _, known := range []error{mux.ErrNoServer, mux.ErrTimeout, mux.ErrSocket, mux.ErrFormat, mux.ErrTooMuch, mux.ErrNoTmux} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return "could not be asked"
	}
	return ""
}
