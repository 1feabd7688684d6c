package observer

import (
	"context"
	"fmt"
	"sort"
	"time"

	"steno/observer/bind"
	"steno/observer/mux"
	"steno/observer/tail"
	"steno/providers"
)

// probe asks who is alive and who owns which session.
type probe struct {
	recent     []providers.Artifact // transcripts that a live process may own
	remembered map[claimant]providers.Evidence
	unbound    bool // a process without a session: titles may help
	forced     bool // something happened: look at the evidence again
	namings    map[named]naming
	titles     bool // the titles of the panes are needed as they are now
}

// probed is the answer.
type probed struct {
	at       time.Time
	procs    bind.Processes
	owners   []bind.Owner
	excluded []bind.Excluded
	matches  map[process]bind.Match
	listings []mux.Listing
	muxErr   error
	listed   time.Time                   // when the panes were listed
	titled   bool                        // that was for this look
	roots    map[string][]providers.Root // by provider, from the processes' own environments
	refused  map[string]refusal          // artifacts whose binding was refused
	errs     []error                     // what could not be looked at
	err      error                       // the processes could not be listed: nothing is known
}

// prober looks at processes, panes and evidence. Its caches are its own.
type prober struct {
	in        chan probe
	out       chan probed
	scanner   *bind.Scanner
	tmux      *mux.Tmux
	providers []providers.Provider
	env       providers.Env
	extra     map[string][]string

	listings  []mux.Listing
	muxErr    error
	listed    time.Time
	retry     time.Duration // when a server that did not answer is asked again; 0 = all did
	harnesses map[harness]bool
	matches   map[process]bind.Match // last decisions; nil before the first
	described map[string]description
	arguments map[claimant][]providers.Evidence // of live processes, as first seen
	listNow   chan chan []mux.Listing           // a reader asks for fresh panes
}

type description struct {
	of      tail.Info // the file as it was read
	whole   bool      // its first record was there
	session providers.Session
}

// holds says whether it is still good for what a file is now. A first record
// that was not there may be by now, unless the file was longer than any record.
func (d description) holds(now tail.Info, framing providers.Framing) bool {
	longest := int64(providers.MaxRecord)
	if framing == providers.Document {
		longest = providers.MaxDocument
	}
	if d.of.Ino != now.Ino || d.of.Dev != now.Dev || !d.of.Born.Equal(now.Born) {
		return false
	}
	return d.whole || d.of.Size > longest && now.Size >= d.of.Size || d.of.Size == now.Size && d.of.Changed.Equal(now.Changed)
}

func (p *prober) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case reply := <-p.listNow:
			if time.Since(p.listed) > time.Second {
				p.list(ctx)
			}
			reply <- p.listings // buffered by the asker
		case q := <-p.in:
			r := p.probe(ctx, q)
			select {
			case p.out <- r:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (p *prober) probe(ctx context.Context, q probe) probed {
	out := probed{at: time.Now(), matches: map[process]bind.Match{}, roots: map[string][]providers.Root{}, refused: map[string]refusal{}}
	procs, err := p.scanner.Scan(ctx)
	if err != nil {
		out.err = fmt.Errorf("list processes: %w", err)
		return out
	}
	out.procs = procs
	changed := p.refreshPanes(ctx, procs, q)
	out.listings, out.muxErr, out.listed, out.titled = p.listings, p.muxErr, p.listed, q.titles
	out.owners, out.excluded = bind.Owners(procs, panes(p.listings), recognisers(p.providers))
	if !changed && !q.forced && !q.unbound && p.matches != nil {
		// Nothing happened that could change the evidence: a look at the
		// processes is all that an idle machine pays for.
		out.matches = p.matches
		return out
	}
	for by := range p.arguments {
		if !procs.Is(by.pid, by.start) {
			delete(p.arguments, by)
		}
	}
	was := p.described
	p.described = make(map[string]description, len(q.recent))
	for _, pv := range p.providers {
		b, ok := pv.(providers.Binder)
		if !ok {
			continue
		}
		p.decide(ctx, pv, b, q, was, &out)
	}
	p.matches = out.matches
	if len(out.errs) > 0 {
		p.matches = nil // what could not be seen is looked at again
	}
	return out
}

func recognisers(all []providers.Provider) []bind.Recogniser {
	var out []bind.Recogniser
	for _, pv := range all {
		if r, ok := pv.(bind.Recogniser); ok {
			out = append(out, r)
		}
	}
	return out
}

// claimant is a process as one provider's program.
type claimant struct {
	process
	provider string
}

// decide collects the evidence of one provider's processes and lets bind
// decide.
func (p *prober) decide(ctx context.Context, pv providers.Provider, b providers.Binder, q probe, was map[string]description, out *probed) {
	var cands []bind.Candidate
	known := p.describe(pv, b, q.recent, was)
	for i := range out.owners {
		o := &out.owners[i]
		if o.Provider != pv.ID() || o.Process.PID == 0 {
			continue
		}
		id := process{o.Process.PID, o.Process.StartTicks}
		out.roots[pv.ID()] = append(out.roots[pv.ID()], pv.Roots(p.envOf(o.Process))...)
		pr := o.Process
		sessions := known
		if b.NeedsOpen() {
			var err error
			if pr.Open, pr.Positions, err = p.scanner.Open(pr.PID); err != nil {
				out.errs = append(out.errs, fmt.Errorf("open files of %s process %d: %w", pv.ID(), pr.PID, err))
			}
			var opened []providers.Artifact
			pr.Open, opened = p.opened(pv, pr, known)
			sessions = append(sessions[:len(sessions):len(sessions)], p.describe(pv, b, opened, was)...)
		}
		ev, err := b.Evidence(ctx, pr, sessions)
		if err != nil {
			out.errs = append(out.errs, fmt.Errorf("evidence for %s process %d: %w", pv.ID(), pr.PID, err))
		}
		by := claimant{id, pv.ID()}
		ev = p.argued(by, ev)
		if n, ok := q.namings[named{pv.ID(), pr.PID}]; ok {
			if e, ok := n.evidence(pr, sessions); ok {
				doubted(pv, &e, pr, n, sessions)
				ev = append(ev, e)
			}
		}
		c := bind.Candidate{Owner: *o, Evidence: ev}
		if r, ok := q.remembered[by]; ok {
			c.Remembered = &r
		}
		cands = append(cands, c)
	}
	for _, m := range bind.Decide(cands) {
		out.matches[process{m.PID, m.StartTicks}] = m
		if !m.Bound {
			p.measure(pv, m, known, out)
		}
	}
}

// refusal is a binding that was refused: how long the artifact was, the
// strongest evidence that could not decide, and which process it spoke for.
type refusal struct {
	size    int64
	rank    providers.Rank
	by      process
	several bool // it spoke for more than one process
}

// measure notes how long the artifacts of a refused binding are: what was
// written while nobody could be named is nobody's, unless stronger evidence
// proves the owner later.
func (p *prober) measure(pv providers.Provider, m bind.Match, known []providers.Session, out *probed) {
	for _, row := range m.Rows {
		if row.Evidence.Refused != "" {
			continue
		}
		for _, a := range p.named(pv, row.Evidence, known, out.roots[pv.ID()]) {
			r, ok := out.refused[a.Path]
			if !ok {
				size, err := length(a, pv)
				if err != nil {
					continue
				}
				r = refusal{size: size, rank: row.Evidence.Rank, by: process{m.PID, m.StartTicks}}
			}
			r.several = r.several || r.by != process{m.PID, m.StartTicks}
			r.rank = min(r.rank, row.Evidence.Rank)
			out.refused[a.Path] = r
		}
	}
}

// named lists the artifacts that a piece of evidence speaks for: the files of
// its session that are known, or else the path that it names.
func (p *prober) named(pv providers.Provider, e providers.Evidence, known []providers.Session, roots []providers.Root) []providers.Artifact {
	var out []providers.Artifact
	for _, s := range known {
		if s.ID == e.Session && s.Path != "" {
			out = append(out, providers.Artifact{Provider: pv.ID(), Path: s.Path, Session: s.ID})
		}
	}
	if len(out) > 0 || e.Path == "" {
		return out
	}
	var c claimer
	c.add(pv, pv.Roots(p.ownEnv(pv.ID())), true)
	c.add(pv, roots, false)
	if a, _, ok := c.claim(e.Path); ok && a.Framing == providers.Rows {
		out = append(out, a)
	}
	return out
}

// opened spells the files that a process holds open as the observer spells
// them, and gives the artifacts among them that are not known.
func (p *prober) opened(pv providers.Provider, pr providers.Process, known []providers.Session) (open []string, unknown []providers.Artifact) {
	var c claimer
	c.add(pv, pv.Roots(p.ownEnv(pv.ID())), true)
	c.add(pv, pv.Roots(p.envOf(pr)), false)
	for _, path := range pr.Open {
		a, _, ok := c.claim(path)
		if !ok || a.Role != providers.Transcript {
			open = append(open, path)
			continue
		}
		open = append(open, a.Path)
		if !hasPath(known, a.Path) {
			unknown = append(unknown, a)
		}
	}
	return open, unknown
}

func hasPath(known []providers.Session, path string) bool {
	for _, s := range known {
		if s.Path == path {
			return true
		}
	}
	return false
}

// describe reads what the artifacts' first records tell, once for each file;
// was is what is known of them from the last time.
func (p *prober) describe(pv providers.Provider, b providers.Binder, arts []providers.Artifact, was map[string]description) []providers.Session {
	var out []providers.Session
	for _, a := range arts {
		if a.Provider != pv.ID() || a.Role != providers.Transcript {
			continue
		}
		if a.Framing == providers.Rows {
			continue // the provider looks into its database itself
		}
		info, err := tail.Stat(a.Path)
		if err != nil {
			continue
		}
		d, ok := was[a.Path]
		if !ok || !d.holds(info, a.Framing) {
			first, err := firstRecord(a)
			if err != nil {
				continue
			}
			s := b.Describe(a, first)
			s.Path = a.Path
			if s.ID == "" {
				s.ID = a.Session
			}
			if s.Born.IsZero() {
				s.Born = info.Born
			}
			d = description{of: info, whole: first != nil, session: s}
		}
		p.described[a.Path] = d
		out = append(out, d.session)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// envOf is the environment of a running agent.
func (p *prober) envOf(pr providers.Process) providers.Env {
	env := providers.Env{Home: pr.Env["HOME"], Getenv: func(k string) string { return pr.Env[k] }}
	if env.Home == "" {
		env.Home = p.env.Home
	}
	return env
}

func (p *prober) ownEnv(provider string) providers.Env {
	env := p.env
	env.Extra = p.extra[provider]
	return env
}
