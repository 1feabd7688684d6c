package observer

import (
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"steno/observer/tail"
	"steno/observer/watch"
	"steno/providers"
	"steno/store"
)

// Bounds and intervals of the pipeline.
const (
	// maxDrafts is the most drafts that one refresh of an artifact gives
	// before its result is committed.
	maxDrafts = 512
	// maxUndated is about how many bytes of drafts without a date wait for one.
	maxUndated = 4 << 20
	// readChunk is about how many bytes one refresh reads before its drafts
	// are committed.
	readChunk = 1 << 20
	// maxPending is about how many bytes of batches and events may be in memory
	// before no other artifact is read: what was begun is finished first.
	maxPending = 16 << 20
	// lookBack bounds the search for the open turn at first sight, in bytes.
	// The cost follows the length of the open turn, not of the transcript.
	lookBack = 64 << 20
	// idleAfter is how long a status "idle" and its artifact have to be
	// unchanged before an unanswered turn counts as given up.
	idleAfter = 5 * time.Second
	// scanEvery is how often processes are looked at when nothing asks for it
	// sooner: a stat for each process of the system.
	scanEvery = 2 * time.Second
	// birthGap is the longest time until a process that was made is looked at: some
	// overwrite their arguments, which say what session they go on with (Kimi Code
	// 2.1.0 after 0.8 s on a fast machine). Where none is made, one small file is read.
	birthGap = 250 * time.Millisecond
	// probeGap is the shortest time between two looks at the processes, and
	// probeGapMax the longest that an unbound artifact that is written to all
	// the time is put off.
	// It is put off by newcomerGap at most while a process of its program that
	// has just begun has no session: "opencode run" that fails lives for a
	// second and half of it with a session, and writes no log (1.18.33).
	probeGap    = 40 * time.Millisecond
	probeGapMax = 2 * time.Second
	newcomerGap = 100 * time.Millisecond
	// looksAtOnce is how many looks all artifacts that nobody owns may ask for
	// one after the other, and lookEvery how often they get one after that.
	looksAtOnce = 25
	lookEvery   = 250 * time.Millisecond
	// resumeGrace is how long a new process may take to show which session it
	// resumes, when a resumed session would decide its agent id.
	resumeGrace = 8 * time.Second
	// recheckFor is how long every scan looks at all evidence after something
	// new appeared: what a program logs about itself may come seconds later
	// (Codex 0.171.0 writes its log in batches).
	recheckFor = 20 * time.Second
	// resumeLook is how often such a process is looked at.
	resumeLook = 100 * time.Millisecond
	// closeTime is about how long the last read of an artifact is tried.
	closeTime = 3 * time.Second
	// drainTime bounds the orderly end.
	drainTime = 5 * time.Second
	// maxQueue is how many commits may wait for a store that does not work
	// before the observer stops taking in new facts.
	maxQueue = 4096
)

// Options configure an Observer. Zero values mean the documented defaults.
type Options struct {
	Store     *store.Store
	Providers []providers.Provider
	// Env is the daemon's own environment; Extra has further roots for each
	// provider id. Both feed Provider.Roots.
	Env   providers.Env
	Extra map[string][]string
	// TmuxPath is the tmux program (default "tmux" from PATH); TmuxSockets
	// are sockets beside those in the user's tmux directory.
	TmuxPath    string
	TmuxSockets []string
	// Proc is where the process file system is mounted (default /proc).
	Proc string
	// Sweep is the time between two full sweeps while watching works
	// (default 30 s); SweepDegraded while it does not (default 2 s).
	Sweep, SweepDegraded time.Duration
	// Throttle is the shortest time between two refreshes of one artifact
	// (default 2 ms).
	Throttle time.Duration
	// Workers is how many artifacts are read at once (default min(4, CPUs)).
	Workers int
	// Watch configures the watcher: budget of watches, seams for tests.
	Watch watch.Options
	// Stats, when set, counts the files that were opened and the bytes that were
	// read of bound artifacts.
	Stats *tail.Stats
	// Heartbeat is called by the committer, which is the end of the pipeline,
	// at least every second while it makes progress. For a watchdog.
	Heartbeat func()
	Version   string
	Log       zerolog.Logger

	// rootPatience is how long a root that was there may be away before what it
	// held counts as gone. A seam for tests.
	rootPatience time.Duration
}

func (o *Options) setDefaults() {
	if o.Sweep <= 0 {
		o.Sweep = 30 * time.Second
	}
	if o.SweepDegraded <= 0 {
		o.SweepDegraded = 2 * time.Second
	}
	if o.rootPatience <= 0 {
		o.rootPatience = time.Hour
	}
	if o.Throttle <= 0 {
		o.Throttle = 2 * time.Millisecond
	}
	if o.Workers <= 0 {
		o.Workers = min(4, runtime.NumCPU())
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Heartbeat == nil {
		o.Heartbeat = func() {}
	}
	if o.Env.Getenv == nil {
		o.Env.Getenv = func(string) string { return "" }
	}
}
