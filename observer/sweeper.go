package observer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"steno/observer/watch"
)

// sighting is a file whose size or time differs from what the last sweep saw.
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
	missing map[string]bool   // roots that are not there
	real    map[string]string // roots without symbolic links
	took    time.Duration
}

// sweeper walks the roots and tells what changed. It stats files and never
// opens one. Its memory of the last sweep is its own.
type sweeper struct {
	in   chan []watch.Root
	out  chan sweepDone
	last map[string]seenFile
}

type seenFile struct {
	size     int64
	modified int64
	sweep    uint64
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
	done := sweepDone{missing: map[string]bool{}, real: map[string]string{}}
	for _, r := range roots {
		if _, err := os.Stat(r.Dir); errors.Is(err, fs.ErrNotExist) {
			done.missing[r.Dir] = true
		}
		done.real[r.Dir] = realPath(r.Dir)
	}
	start := time.Now()
	// The walk itself only ends early with ctx. What lies in a directory that
	// could not be read is only gone if the file itself says so.
	walked, err := watch.Walk(ctx, roots, func(path string, info fs.FileInfo) error {
		now := seenFile{size: info.Size(), modified: info.ModTime().UnixNano(), sweep: n}
		was, known := s.last[path]
		s.last[path] = now
		if known && was.size == now.size && was.modified == now.modified {
			return nil
		}
		done.changed = append(done.changed, sighting{path: path, size: now.size, modified: info.ModTime()})
		return nil
	})
	if err == nil {
		for path, f := range s.last {
			if f.sweep != n && (walked.Skipped == 0 || missing(path)) {
				delete(s.last, path)
				done.gone = append(done.gone, path)
			}
		}
	}
	done.whole = err == nil && walked.Skipped == 0
	done.took = time.Since(start)
	return done
}

// missing says whether a file is not there, and not only out of reach.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
