package ipc

import (
	"sync"
	"time"
)

// limiter keeps repeated log lines apart. It knows at most 128 keys; further
// ones are never let through, so that no client can fill the log or the memory.
type limiter struct {
	now func() time.Time

	mu   sync.Mutex // guards seen
	seen map[string]*repeats
}

type repeats struct {
	last  time.Time
	count int
}

const (
	maxKeys = 128
	apart   = time.Minute
)

// pass says whether a line may be logged now, and how many like it were not
// since the last one.
func (l *limiter) pass(key string) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	r := l.seen[key]
	if r == nil {
		return 0, l.add(key, now)
	}
	if now.Sub(r.last) < apart {
		r.count++
		return 0, false
	}
	n := r.count
	r.last, r.count = now, 0
	return n, true
}

// first says whether key is seen for the first time.
func (l *limiter) first(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[key] == nil && l.add(key, l.now())
}

// add is called with mu held.
func (l *limiter) add(key string, now time.Time) bool {
	if len(l.seen) >= maxKeys {
		return false
	}
	if l.seen == nil {
		l.seen = make(map[string]*repeats)
	}
	l.seen[key] = &repeats{last: now}
	return true
}
