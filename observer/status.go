package observer

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"steno/ipc/wire"
	"steno/observer/bind"
	"steno/observer/mux"
	"steno/providers"
)

// errStopped is returned to askers once the loop has ended.
var errStopped = errors.New("the observer has stopped")

// ask runs f in the loop.
func (o *Observer) ask(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case o.calls <- func() { f(); close(done) }:
	case <-o.ended:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

// Status says what is watched, seen and bound. It holds nothing that an agent
// said. What the loop does not tell within 2 s is left empty.
func (o *Observer) Status() wire.Status {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var s wire.Status
	err := o.ask(ctx, func() {
		s.Version = o.opt.Version
		s.PID = os.Getpid()
		s.StartedAt = wire.At(o.began)
		h := o.watcher.Health()
		s.Watch = wire.WatchStatus{
			Mode: string(h.Mode), Reason: h.Reason, Watches: h.Watches, Budget: h.Budget,
			Unwatched: h.Unwatched, Overflows: h.Overflows, Sweeps: o.sweeps, LastSweep: wire.At(o.sweptAt),
		}
		s.Mux = o.muxStatus()
		for _, p := range o.opt.Providers {
			s.Providers = append(s.Providers, o.providerStatus(p))
		}
	})
	if err != nil {
		s.Watch.Reason = err.Error()
		return s
	}
	for i := range s.Providers {
		for j := range s.Providers[i].Roots {
			r := &s.Providers[i].Roots[j]
			info, err := os.Stat(r.Dir)
			r.Exists = err == nil && info.IsDir()
		}
	}
	return s
}

func (o *Observer) muxStatus() []wire.MuxStatus {
	out := []wire.MuxStatus{}
	for _, l := range o.last.listings {
		if errors.Is(l.Err, mux.ErrNoServer) {
			continue // a socket that was left behind is nobody's trouble
		}
		out = append(out, wire.MuxStatus{Socket: l.Server.Socket, Panes: len(l.Panes), Error: muxWords(l.Err)})
	}
	if o.last.muxErr != nil {
		out = append(out, wire.MuxStatus{Error: muxWords(o.last.muxErr)})
	}
	return out
}

func (o *Observer) providerStatus(p providers.Provider) wire.ProviderStatus {
	s := wire.ProviderStatus{ID: p.ID(), Roots: []wire.RootStatus{}, Unbound: []wire.Unbound{}, Failures: o.failures[p.ID()], Drift: o.driftOf(p.ID())}
	for _, r := range o.claims.roots {
		if r.provider.ID() == p.ID() {
			s.Roots = append(s.Roots, wire.RootStatus{Dir: r.Dir})
		}
	}
	for _, a := range o.artifacts {
		if a.Provider == p.ID() && a.Role == providers.Transcript {
			s.Artifacts++
		}
	}
	for _, a := range o.sorted() {
		if a.row.Harness != p.ID() || o.byProcess[a.process()] != a {
			continue
		}
		s.Processes++
		if a.match.Bound {
			s.Bound++
			continue
		}
		pane := a.row.PaneID // a copy: the answer leaves the loop
		s.Unbound = append(s.Unbound, wire.Unbound{PID: a.row.PID, PaneID: &pane, Reason: o.reason(a)})
	}
	for _, x := range o.last.excluded {
		if x.Provider == p.ID() && !x.Pending && !x.Helper {
			s.Unbound = append(s.Unbound, wire.Unbound{PID: x.Process.PID, Reason: x.Reason})
		}
	}
	return s
}

// reason says why an agent has no session.
func (o *Observer) reason(a *agent) string {
	if a.match.Reason != "" {
		return a.match.Reason
	}
	return "nothing names its session yet"
}

// Panes lists all panes of all multiplexer servers, and the terminals and
// processes outside of them that hold an agent. The listing is at most a
// second old.
func (o *Observer) Panes(ctx context.Context) ([]wire.Pane, error) {
	reply := make(chan []mux.Listing, 1)
	select {
	case o.prober.listNow <- reply:
	case <-o.ended:
		return nil, errStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var listings []mux.Listing
	select {
	case listings = <-reply:
	case <-o.ended:
		return nil, errStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := []wire.Pane{}
	err := o.ask(ctx, func() {
		byPane := map[string]*agent{}
		for _, a := range o.byProcess {
			if a.row.Available {
				byPane[a.owner.Place.Key] = a
			}
		}
		for _, l := range listings {
			for _, p := range l.Panes {
				key := bind.PaneKey(p.Server.Socket, p.Server.PID, p.Server.Started, p.Number)
				out = append(out, o.muxPane(p, byPane[key]))
			}
		}
		for _, a := range byPane {
			if a.owner.Place.Kind != bind.InTmux {
				out = append(out, barePane(a))
			}
		}
	})
	slices.SortFunc(out, func(x, y wire.Pane) int { return compareID(x.PaneID, y.PaneID) })
	return out, err
}

func compareID(x, y uint64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (o *Observer) muxPane(p mux.Pane, a *agent) wire.Pane {
	id, servers := o.paneID(bind.Place{Kind: bind.InTmux, Server: bind.ServerKey(p.Server.Socket), Number: uint32(p.Number)})
	if len(servers) > 0 {
		o.send(commit{batch: serverBatch(servers)})
	}
	slot := id >> 32 << 32
	out := wire.Pane{
		PaneID: id, WindowID: slot | tmuxNumber(p.Window), TabID: slot | tmuxNumber(p.Window), Workspace: p.Session,
		Title: p.Title, TTYName: p.TTY, IsActive: p.Active,
		Place: bind.InTmux, Socket: p.Server.Socket, MuxPane: "%" + strconv.Itoa(p.Number),
	}
	cwd := p.CWD
	if a != nil {
		out.AgentPID = a.row.PID
		if a.row.CWD != "" {
			cwd = a.row.CWD
		}
	}
	out.CWD = fileURL(cwd)
	// A window that a person named keeps that name; otherwise the leaf of the
	// agent's directory is what people call the place.
	out.EffectiveTitle = leaf(cwd)
	if !p.AutoName && p.WindowName != "" || out.EffectiveTitle == "" {
		out.EffectiveTitle = p.WindowName
	}
	return out
}

func barePane(a *agent) wire.Pane {
	return wire.Pane{
		PaneID: a.row.PaneID, TabID: a.row.PaneID, WindowID: a.row.PaneID, Workspace: a.owner.Place.Kind,
		Title: a.row.Name, EffectiveTitle: leaf(a.row.CWD), CWD: fileURL(a.row.CWD), TTYName: a.row.TTY,
		IsActive: true, Place: a.owner.Place.Kind, AgentPID: a.row.PID,
	}
}

// tmuxNumber is the N of "@N".
func tmuxNumber(id string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimLeft(id, "@%$"), 10, 32)
	return n
}

func leaf(dir string) string {
	if dir == "" || dir == "/" {
		return dir
	}
	return filepath.Base(dir)
}

func fileURL(dir string) string {
	if dir == "" {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return (&url.URL{Scheme: "file", Host: host, Path: dir}).String()
}

// Explain says what speaks for and against the binding of one agent. The
// target is a pane id, "%N" of tmux, an agent id, a name, or a pid.
func (o *Observer) Explain(ctx context.Context, target string) (wire.Explanation, error) {
	var out wire.Explanation
	found := false
	err := o.ask(ctx, func() {
		for _, a := range o.sorted() {
			if !a.isNamed(target) {
				continue
			}
			if found && o.byProcess[a.process()] != a {
				continue // a living one is meant before a dead one
			}
			found = true
			out = o.explain(a)
			if o.byProcess[a.process()] == a {
				return
			}
		}
		if !found {
			out, found = o.explainExcluded(target)
		}
	})
	if err == nil && !found {
		err = wire.ErrNotFound
	}
	return out, err
}

func (a *agent) isNamed(target string) bool {
	return target == a.row.ID || target == a.row.Name || target == strconv.FormatUint(a.row.PaneID, 10) ||
		target == strconv.Itoa(a.row.PID) || (strings.HasPrefix(target, "%") && strings.HasSuffix(a.row.PaneKey, ":"+target))
}

func (o *Observer) explain(a *agent) wire.Explanation {
	activity, waiting := a.activity()
	e := wire.Explanation{
		PaneID: a.row.PaneID, AgentID: a.row.ID, Name: a.row.Name, Harness: a.row.Harness, PID: a.row.PID,
		Place: a.row.PaneKey, Bound: a.match.Bound, Session: a.match.Session, Artifact: a.match.Path,
		Activity: string(activity), Waiting: waiting, Evidence: []wire.EvidenceRow{},
	}
	if a.art != nil {
		e.Artifact = a.art.Path
	}
	switch {
	case o.byProcess[a.process()] != a:
		e.Reason = "its process has ended"
	case !e.Bound:
		e.Reason = o.reason(a)
	case a.art == nil:
		e.Reason = "the session has no transcript yet"
	case a.art.errText != "":
		e.Reason = a.art.errText
	}
	for _, r := range a.match.Rows {
		reason := r.Reason
		if reason == "" {
			reason = r.Evidence.Refused
		}
		source := r.Evidence.Source
		if r.Remembered {
			source += " (remembered)"
		}
		e.Evidence = append(e.Evidence, wire.EvidenceRow{
			Rank: int(r.Evidence.Rank), Source: source, Session: r.Evidence.Session, Accepted: r.Accepted, Reason: reason,
		})
	}
	return e
}

// explainExcluded finds a harness process that owns nothing.
func (o *Observer) explainExcluded(target string) (wire.Explanation, bool) {
	for _, x := range o.last.excluded {
		if target == strconv.Itoa(x.Process.PID) || (strings.HasPrefix(target, "%") && strings.HasSuffix(x.Place.Key, ":"+target)) {
			return wire.Explanation{
				Harness: x.Provider, PID: x.Process.PID, Place: x.Place.Key, Reason: x.Reason, Evidence: []wire.EvidenceRow{},
			}, true
		}
	}
	return wire.Explanation{}, false
}
