package observer

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"steno/providers"
)

// artifact is what a provider claims: a file, or the rows of a session. The
// loop owns it; while busy,
// its reader belongs to a worker.
type artifact struct {
	providers.Artifact
	provider providers.Provider
	// base is where observation would begin at the tail: the file's size when
	// it was first seen, or when a binding was refused.
	base int64
	// refused is the last binding of this artifact that was refused; rank 0
	// when there was none. A binding by no stronger evidence begins where the
	// artifact ended then, also in an artifact that is new.
	refused refusal
	// appeared is when it came up under observation; zero when the first
	// sweep of its root found it.
	appeared time.Time
	modified time.Time // as the last sweep or hint saw it

	agent   *agent   // whose records these are, nil while unbound
	id      identity // of the agent when it was bound
	reader  *reader
	busy    bool // a job or its commit is under way
	dirty   bool // something happened since the job was sent
	more    bool // the last job left something to read
	weight  int  // bytes in memory: of its batch, and of events that are not committed
	closing bool // detach once everything is read
	idled   bool // Idle was asked since the last change
	lost    bool // a sweep did not find the file any more while it was bound
	missed  bool // the last read did not find it
	last    time.Time
	due     time.Time     // next refresh; zero = none
	settle  time.Time     // when silence decides; zero = nothing waits
	changed time.Time     // when new records came last
	backoff time.Duration // after an I/O error
	errText string        // last I/O error, so that it is logged once
	// look is how often the process is to be looked at while the projector
	// waits for that; zero when it does not. looked is when it was last, and
	// witness what was seen.
	look    time.Duration
	looked  time.Time
	witness providers.Witness
	// refreshes counts the jobs so far: the work-count tests read it.
	refreshes int
	asked     time.Duration // how long probes for this unbound artifact are put off
	askAt     time.Time
}

// claimer finds the provider whose artifact a path is.
type claimer struct {
	roots []claimRoot
}

type claimRoot struct {
	providers.Root
	provider providers.Provider
	// real is Dir without symbolic links, as of the last look; Dir itself where
	// it does not exist.
	real string
	// own roots come from the daemon's environment and configuration; the
	// others were found in the environment of a running agent.
	own bool
}

// maxAdopted bounds the roots that are not the daemon's own.
const maxAdopted = 64

// add takes roots that are not known yet and says whether there were any.
func (c *claimer) add(p providers.Provider, roots []providers.Root, own bool) bool {
	added := false
	for _, r := range roots {
		r.Dir = filepath.Clean(r.Dir)
		if c.has(p.ID(), r) {
			continue
		}
		c.roots = append(c.roots, claimRoot{Root: r, provider: p, own: own, real: realPath(r.Dir)})
		added = true
	}
	return added
}

// drop forgets adopted roots that no live agent uses: those whose directory is
// gone, and the oldest ones over maxAdopted. It says whether there were any.
func (c *claimer) drop(used map[string]bool, missing map[string]bool) bool {
	adopted := 0
	for _, r := range c.roots {
		if !r.own {
			adopted++
		}
	}
	before := len(c.roots)
	c.roots = slices.DeleteFunc(c.roots, func(r claimRoot) bool {
		if r.own || used[r.Dir] || (!missing[r.Dir] && adopted <= maxAdopted) {
			return false
		}
		adopted--
		return true
	})
	return len(c.roots) < before
}

func (c *claimer) has(id string, r providers.Root) bool {
	for _, have := range c.roots {
		if have.provider.ID() == id && have.Dir == r.Dir && have.Name == r.Name {
			return true
		}
	}
	return false
}

// realPath is dir without symbolic links, or dir where that cannot be told.
func realPath(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// claim asks the providers whose roots hold the path. A root may be reached by
// several names; the artifact's path is spelled by the first of them, so that
// one file is one artifact.
func (c *claimer) claim(path string) (providers.Artifact, providers.Provider, bool) {
	for _, r := range c.roots {
		rel, ok := r.below(path)
		if !ok {
			continue
		}
		if a, ok := r.provider.Claim(r.Root, filepath.ToSlash(rel)); ok {
			dir := c.spelling(r)
			a.Path, a.Provider = filepath.Join(dir, rel), r.provider.ID()
			if a.Of != "" {
				a.Of = filepath.Join(dir, a.Of)
			}
			return a, r.provider, true
		}
	}
	return providers.Artifact{}, nil, false
}

// below is the path relative to the root, by either of its names.
func (r claimRoot) below(path string) (rel string, ok bool) {
	if rel, ok = strings.CutPrefix(path, r.Dir+"/"); ok {
		return rel, true
	}
	return strings.CutPrefix(path, r.real+"/")
}

// spelling is the directory by which the first root that is the same place is
// named.
func (c *claimer) spelling(r claimRoot) string {
	for _, other := range c.roots {
		if other.real == r.real && other.Name == r.Name && other.provider.ID() == r.provider.ID() {
			return other.Dir
		}
	}
	return r.Dir
}
