package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"steno/ipc/wire"
	"steno/observer/bind"
	"steno/observer/mux"
	"steno/observer/watch"
	"steno/providers"
	"steno/store"
)

// Observer is the pipeline from artifacts to the store. Make it with New and
// run it once with Run.
type Observer struct {
	opt     Options
	boot    string
	began   time.Time // when watching began; watch first, then scan
	clock             // the same
	swept   chan struct{}
	ended   chan struct{} // closed when the loop has ended
	calls   chan func()
	watcher *watch.Watcher
	exits   *bind.Exits
	births  chan struct{}
	prober  *prober
	sweeper *sweeper
	commits *committer
	jobs    chan *job
	results chan *job

	// Everything below belongs to the loop.

	claims    claimer
	artifacts map[string]*artifact
	// bySession has several where a file was copied.
	bySession map[sessionKey][]*artifact
	unswept   map[string]time.Time // artifacts that hints told of and no sweep saw yet
	live      map[*artifact]bool   // bound or closing
	agents    map[string]*agent    // by agent id
	byProcess map[process]*agent
	dead      map[process]time.Time      // ended since the newest look began, and when
	namings   map[named]naming           // what names of files told of processes
	sources   map[string]store.Source    // durable restart points
	slots     map[string]uint32          // multiplexer server -> upper half of its pane ids
	queue     []*job                     // waiting for a worker, oldest first
	out       []commit                   // waiting for the committer, oldest first
	sent      int                        // commits so far: the work-count tests read it
	pending   int                        // sum of the artifacts' weights, in bytes
	failures  map[string]uint64          // observer failures by provider
	drift     map[string]map[string]bool // unknown record types by provider
	last      probed                     // newest answer of the prober
	watchMode string
	degraded  bool // some directories are not watched, and the log says so

	sweeping, sweepAgain bool
	probing              bool
	recheckUntil         time.Time
	probeForced          bool // something happened that may change who owns what
	probeTitles          bool // something waits for the titles as they are now
	firstSweepDone       bool
	sweepAt, probeAt     time.Time
	sweepBegan           time.Time
	probedAt, sweptAt    time.Time
	lookedFor            time.Time // looks for artifacts that nobody owns are paid for up to here
	sweeps               uint64
	watchRoots           []watch.Root
	stopping             bool
	probeWarned          time.Time // when trouble of the prober was last logged
}

// sessionKey is a session of one provider.
type sessionKey struct{ provider, session string }

// New prepares an Observer. It reads nothing but the boot id.
func New(opt Options) (*Observer, error) {
	opt.setDefaults()
	if opt.Store == nil {
		return nil, errors.New("observer: no store")
	}
	boot, err := bind.Boot()
	if err != nil {
		return nil, fmt.Errorf("read boot id: %w", err)
	}
	var keys []string
	for _, p := range opt.Providers {
		if b, ok := p.(providers.Binder); ok {
			keys = append(keys, b.EnvKeys()...)
		}
	}
	keys = append(keys, "HOME")
	exits, err := bind.NewExits()
	if err != nil {
		return nil, err
	}
	o := &Observer{
		opt: opt, boot: boot,
		swept: make(chan struct{}), ended: make(chan struct{}), calls: make(chan func()),
		births:  make(chan struct{}, 1),
		watcher: watch.New(opt.Watch), exits: exits,
		// One job a worker is under way; the rest waits in the loop's queue,
		// oldest first.
		jobs: make(chan *job), results: make(chan *job, opt.Workers),
		artifacts: map[string]*artifact{}, bySession: map[sessionKey][]*artifact{}, live: map[*artifact]bool{},
		unswept: map[string]time.Time{},
		agents:  map[string]*agent{}, byProcess: map[process]*agent{}, dead: map[process]time.Time{},
		sources: map[string]store.Source{}, slots: map[string]uint32{}, failures: map[string]uint64{},
		drift: map[string]map[string]bool{}, namings: map[named]naming{},
	}
	o.prober = &prober{
		in: make(chan probe, 1), out: make(chan probed, 1),
		scanner:   bind.NewScanner(bind.Options{Proc: opt.Proc, EnvKeys: keys, Recognisers: recognisers(opt.Providers)}),
		tmux:      &mux.Tmux{Path: opt.TmuxPath, Sockets: opt.TmuxSockets},
		providers: opt.Providers, env: opt.Env, extra: opt.Extra,
		described: map[string]description{}, arguments: map[claimant][]providers.Evidence{}, listNow: make(chan chan []mux.Listing),
	}
	o.sweeper = newSweeper(opt.rootPatience)
	o.commits = &committer{
		store: opt.Store, in: make(chan commit), acks: make(chan []*artifact, 64),
		beat: opt.Heartbeat, log: opt.Log,
	}
	return o, nil
}

// Swept is closed after the first sweep.
func (o *Observer) Swept() <-chan struct{} { return o.swept }

// Run observes until ctx ends, then reads and commits what is under way. It
// returns an error when the store is broken for good or watching cannot start.
func (o *Observer) Run(ctx context.Context) error {
	if err := o.load(ctx); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	// The committer and the workers outlive gctx: they end when the loop
	// closes their channels, after the drain.
	helpers, stop := context.WithCancel(gctx)
	defer stop()
	o.began = time.Now()
	o.clock = clockAt(o.began)
	g.Go(func() error { return ended(helpers, o.watcher.Run(helpers)) })
	g.Go(func() error { return ended(helpers, o.exits.Run(helpers)) })
	g.Go(func() error { return bind.Births(helpers, o.opt.Proc, birthGap, o.births) })
	g.Go(func() error { return o.sweeper.run(helpers) })
	g.Go(func() error { return o.prober.run(helpers) })
	g.Go(func() error { return o.commits.run(gctx) })
	for range o.opt.Workers {
		g.Go(o.work)
	}
	g.Go(func() error {
		defer stop()
		return o.loop(gctx)
	})
	return g.Wait()
}

// ended drops the error that only says that ctx ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// maxSources bounds the restart points that are kept; those of the sessions
// that were quiet the longest are dropped at the next start.
const maxSources = 10_000

// load takes over what the store knows and makes every incarnation that was
// available unavailable: it is only available again once it is seen.
func (o *Observer) load(ctx context.Context) error {
	_, rows, err := o.opt.Store.Agents(ctx)
	if err != nil {
		return fmt.Errorf("load agents: %w", err)
	}
	sources, err := o.opt.Store.Sources(ctx)
	if err != nil {
		return fmt.Errorf("load sources: %w", err)
	}
	servers, err := o.opt.Store.Servers(ctx)
	if err != nil {
		return fmt.Errorf("load servers: %w", err)
	}
	var b store.Batch
	slices.SortFunc(sources, func(x, y store.Source) int { return y.Updated.Compare(x.Updated) })
	for i, s := range sources {
		if i < maxSources {
			o.sources[s.Path] = s
			continue
		}
		if len(b.DropSources) < store.MaxBatch {
			b.DropSources = append(b.DropSources, s.Path)
		}
	}
	for _, s := range servers {
		o.slots[s.Key] = s.Slot
	}
	now := time.Now()
	for _, row := range rows {
		a := &agent{row: row}
		o.agents[row.ID] = a
		if !row.Available && !row.Alive {
			continue
		}
		if row.Available {
			if err := a.leave(&b, wire.MuxRestarted, now); err != nil {
				return err
			}
			a.halted = true
		}
		a.row.Alive, a.row.Status = false, "exited"
		a.row.ExitedAt = now
		b.Agents = append(b.Agents, a.row)
	}
	o.owe()
	if len(b.Agents) == 0 && len(b.DropSources) == 0 {
		return nil
	}
	// A disk that is full now need not stay so.
	if err := o.commits.write(ctx, b); err != nil {
		return fmt.Errorf("mark restarted agents: %w", err)
	}
	return nil
}
