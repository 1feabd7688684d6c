package watch

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// source gives the events of directories.
type source interface {
	Add(dir string) error
	Remove(dir string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

type inotify struct{ *fsnotify.Watcher }

func (s inotify) Events() <-chan fsnotify.Event { return s.Watcher.Events }
func (s inotify) Errors() <-chan error          { return s.Watcher.Errors }

func openInotify() (source, error) {
	f, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return inotify{f}, nil
}

// errEnded is the trouble of a source that closed by itself.
var errEnded = errors.New("source has ended")

// pump takes every event until the source closes, or reports more while it is being
// closed. It calls nothing of the source: fsnotify may send an error while it holds
// the lock that Add takes, so whoever adds watches must not be the one who receives.
func (w *Watcher) pump(s source, closing *atomic.Bool) {
	events, errs := s.Events(), s.Errors()
	for events != nil || errs != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if closing.Load() {
				return
			}
			w.event(ev)
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			if closing.Load() {
				return
			}
			w.trouble(err)
		}
	}
}

// trouble handles what the source reports instead of an event.
func (w *Watcher) trouble(err error) {
	switch {
	case errors.Is(err, unix.EINVAL):
		return // a watch that was to be removed went away by itself
	case errors.Is(err, fsnotify.ErrEventOverflow):
		w.mu.Lock()
		w.health.Overflows++
		w.rescan = true // the Sweep comes when it is done
		w.mu.Unlock()
	default:
		w.mu.Lock()
		w.broken, w.rescan = true, true
		w.mu.Unlock()
	}
	flag(w.wake)
}

// event sorts one event: a file is dirty, a directory has changed, or it is
// about nothing of ours.
func (w *Watcher) event(ev fsnotify.Event) {
	if ev.Name == "" || ev.Op == fsnotify.Chmod {
		return
	}
	parent := filepath.Dir(ev.Name)
	w.mu.Lock()
	self := w.nodes[ev.Name]
	up := w.nodes[parent]
	ours := up != nil && up.left >= 0
	deeper := ours && up.left > 0
	if ours {
		up.touched = time.Now().UnixNano()
	}
	leads := w.leads(ev.Name)
	w.mu.Unlock()

	gone := ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)
	switch {
	case self != nil && (gone || ev.Has(fsnotify.Create)), leads && (gone || ev.Has(fsnotify.Create)):
		w.resync(ev.Name)
	case !ours:
	case ev.Has(fsnotify.Create):
		// A link to a directory counts as a directory.
		if fi, err := os.Stat(ev.Name); err == nil && fi.IsDir() {
			if deeper {
				w.resync(ev.Name)
			}
			return
		}
		w.mark(ev.Name)
	case self == nil:
		w.mark(ev.Name)
	}
}

// leads says whether path is a root or lies above one. w.mu is held.
func (w *Watcher) leads(path string) bool {
	for _, r := range w.roots {
		if r.Dir == path || under(r.Dir, path) {
			return true
		}
	}
	return false
}

// resync has Run look at a directory again.
func (w *Watcher) resync(dir string) {
	w.mu.Lock()
	switch n := len(w.changed); {
	case n > 0 && w.changed[n-1] == dir: // waits already
	case n < w.opt.MaxDirty:
		w.changed = append(w.changed, dir)
	default:
		w.rescan = true
	}
	w.mu.Unlock()
	flag(w.wake)
}
