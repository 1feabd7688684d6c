package observer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"steno/observer/tail"
	"steno/observer/watch"
)

// sighting is a file that changed since the last sweep, or may have.
type sighting struct {
	path     string
	size     int64
	modified time.Time
}

// sweepDone is what one sweep found.
type sweepDone struct {
	changed []sighting
	gone    []string
	whole   bool              // every directory could be listed
	missing map[string]bool   // roots that are not there, and are not expected back
	away    map[string]bool   // roots that are not there, or not what they were, and may come back
	real    map[string]string // roots without symbolic links
	took    time.Duration
}

// sweeper walks the roots and tells what changed. It stats files and never
// opens one. Its memory of the last sweep is its own.
type sweeper struct {
	in       chan []watch.Root
	out      chan sweepDone
	last     map[string]seenFile
	roots    map[string]seenRoot
	patience time.Duration // how long a root may be away
}

// seenRoot is a root that was there once.
type seenRoot struct {
	dev  uint64    // the file system that it was on
	away time.Time // since when it is not there, or on another one; zero when it is
}

func newSweeper(patience time.Duration) *sweeper {
	return &sweeper{
		in: make(chan []watch.Root, 1), out: make(chan sweepDone, 1),
		last: map[string]seenFile{}, roots: map[string]seenRoot{}, patience: patience,
	}
}

// seenFile is how a file looked. A file that took another one's place may have its
// size and its time of modification, as restored copies do, but not its time of
// change, which nobody can set.
type seenFile struct {
	size              int64
	modified, changed int64 // Unix nanoseconds
	young             bool  // it may change again without a trace in its times
	sweep             uint64
}

// tick is more than the kernel's clock for times of files takes for a step, which
// is 10 ms at most.
const tick = 20 * time.Millisecond

// looked is how a file looks in the sweep that began then.
func looked(info fs.FileInfo, began time.Time, sweep uint64) seenFile {
	f := seenFile{size: info.Size(), modified: info.ModTime().UnixNano(), sweep: sweep}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		f.changed = sys.Ctim.Nano()
	}
	// A time that is to come is that of another clock: it says nothing.
	f.young = f.changed > began.Add(-tick).UnixNano() && f.changed <= time.Now().UnixNano()
	return f
}

// same says whether nothing shows that the file changed since it looked so.
func (f seenFile) same(now seenFile) bool {
	return !f.young && f.size == now.size && f.modified == now.modified && f.changed == now.changed
}

func (s *sweeper) run(ctx context.Context) error {
	var n uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case roots := <-s.in:
			n++
			done := s.sweep(ctx, roots, n)
			select {
			case s.out <- done:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (s *sweeper) sweep(ctx context.Context, roots []watch.Root, n uint64) sweepDone {
	start := time.Now()
	done := sweepDone{missing: map[string]bool{}, away: map[string]bool{}, real: map[string]string{}}
	s.lookAtRoots(roots, &done, start)
	// The walk itself only ends early with ctx. What lies in a directory that
	// could not be read is only gone if the file itself says so.
	walked, err := watch.Walk(ctx, roots, func(path string, info fs.FileInfo) error {
		now := looked(info, start, n)
		was, known := s.last[path]
		s.last[path] = now
		if !known || !was.same(now) {
			done.changed = append(done.changed, sighting{path: path, size: now.size, modified: info.ModTime()})
		}
		return nil
	})
	if err == nil {
		for path, f := range s.last {
			if f.sweep != n && !below(path, done.away) && (walked.Skipped == 0 || missing(path)) {
				delete(s.last, path)
				done.gone = append(done.gone, path)
			}
		}
	}
	done.whole = err == nil && walked.Skipped == 0
	done.took = time.Since(start)
	return done
}

// lookAtRoots finds the roots that are not there. One that was there before may
// be on a disk that is unmounted for a moment, and then it may be there as an
// empty directory: what it held is not gone before patience has passed.
func (s *sweeper) lookAtRoots(roots []watch.Root, done *sweepDone, now time.Time) {
	listed := make(map[string]bool, len(roots))
	for _, r := range roots {
		listed[r.Dir] = true
		done.real[r.Dir] = realPath(r.Dir)
		info, err := tail.Stat(r.Dir)
		there := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // out of reach: the walk will say so
		}
		was, known := s.roots[r.Dir]
		switch {
		case there && (!known || was.dev == info.Dev):
			s.roots[r.Dir] = seenRoot{dev: info.Dev}
		case !known:
			done.missing[r.Dir] = true
		case was.away.IsZero():
			was.away = now
			s.roots[r.Dir] = was
			done.away[r.Dir] = true
		case now.Sub(was.away) < s.patience:
			done.away[r.Dir] = true
		case there:
			s.roots[r.Dir] = seenRoot{dev: info.Dev}
		default:
			done.missing[r.Dir] = true
		}
	}
	for dir := range s.roots {
		if !listed[dir] {
			delete(s.roots, dir)
		}
	}
}

// below says whether a path lies in one of the directories.
func below(path string, dirs map[string]bool) bool {
	for dir := range dirs {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// missing says whether a file is not there, and not only out of reach.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// sweepSoon asks for a full sweep; one that is under way may have passed the
// place already.
func (o *Observer) sweepSoon() {
	o.sweepAt = time.Now()
	o.sweepAgain = o.sweeping
}

// onSweep takes in what a sweep found.
func (o *Observer) onSweep(d sweepDone) {
	now := time.Now()
	o.sweeping = false
	o.sweeps++
	o.sweptAt = now
	for _, s := range d.changed {
		known := len(o.artifacts)
		a := o.touch(s.path, now)
		if a == nil {
			continue
		}
		delete(o.unswept, a.Path)
		a.modified, a.lost = s.modified, false
		if len(o.artifacts) > known && a.appeared.IsZero() {
			a.base = s.size
		}
	}
	for _, path := range d.gone {
		o.forget(path)
	}
	for path, since := range o.unswept {
		// A sweep tells of everything that is new to it: what it passed over
		// came and went between two sweeps.
		if d.whole && since.Before(o.sweepBegan) && !below(path, d.away) {
			delete(o.unswept, path)
			o.forget(path)
		}
	}
	o.found(now)
	for a := range o.live {
		if a.missed {
			o.stir(a, now) // it may have come back as it was
		}
	}
	for i, r := range o.claims.roots {
		if real, ok := d.real[r.Dir]; ok {
			o.claims.roots[i].real = real
		}
	}
	if o.claims.drop(o.usedRoots(), d.missing) {
		o.rewatch()
	}
	if o.sweepAgain {
		o.sweepAgain = false
		o.sweepAt = now
	}
	if !o.firstSweepDone {
		o.firstSweepDone = true
		o.probeAt = now
		close(o.swept)
	}
	o.noteWatchMode()
}

// usedRoots are the directories that live agents name by their environment.
func (o *Observer) usedRoots() map[string]bool {
	used := map[string]bool{}
	for _, a := range o.byProcess {
		for _, p := range o.opt.Providers {
			if p.ID() != a.row.Harness {
				continue
			}
			for _, r := range p.Roots(o.prober.envOf(a.owner.Process)) {
				used[filepath.Clean(r.Dir)] = true
			}
		}
	}
	return used
}

// forget drops an artifact that is gone, with its restart point, unless it is
// bound: then it may come back.
func (o *Observer) forget(path string) {
	a := o.artifacts[path]
	if a != nil && (a.agent != nil || a.busy) {
		a.lost = true // release looks at it again
		return
	}
	if a != nil {
		delete(o.artifacts, path)
		delete(o.unswept, path)
		o.unlist(a)
	}
	if _, ok := o.sources[path]; ok {
		delete(o.sources, path)
		o.send(commit{batch: dropSource(path)})
	}
}

// noteWatchMode logs, once, that watching got worse or better.
func (o *Observer) noteWatchMode() {
	h := o.watcher.Health()
	mode := string(h.Mode)
	if mode == o.watchMode && o.degraded == (h.Unwatched > 0) {
		return
	}
	o.watchMode = mode
	defer func() { o.degraded = h.Unwatched > 0 }()
	switch {
	case h.Unwatched > 0:
		o.opt.Log.Warn().Str("mode", mode).Str("reason", h.Reason).Int("unwatched", h.Unwatched).
			Dur("sweep_ms", o.opt.SweepDegraded).Msg("some directories cannot be watched and are swept instead")
	case o.degraded:
		o.opt.Log.Info().Str("mode", mode).Int("watches", h.Watches).Msg("watching works again")
	}
	if at := time.Now().Add(o.sweepEvery()); at.Before(o.sweepAt) {
		o.sweepAt = at // one that is due sooner stays so
	}
}
