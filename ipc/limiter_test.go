package ipc

import (
	"fmt"
	"testing"
	"time"
)

// A key passes once, then once a minute with the number of those between; too
// many keys pass no more, so that nobody can fill the log or the memory.
func TestLimiter(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := limiter{now: func() time.Time { return now }}
	pass := func(key string, repeats int, ok bool) {
		t.Helper()
		if n, got := l.pass(key); n != repeats || got != ok {
			t.Errorf("%s at %v: %d %v, want %d %v", key, now.Unix(), n, got, repeats, ok)
		}
	}
	pass("a", 0, true)
	pass("a", 0, false)
	pass("b", 0, true)
	now = now.Add(apart - 1)
	pass("a", 0, false)
	now = now.Add(1)
	pass("a", 2, true)
	pass("a", 0, false)
	now = now.Add(apart)
	pass("a", 1, true)
	if l.first("a") || !l.first("c") || l.first("c") {
		t.Error("first is not the first time")
	}
	for i := len(l.seen); i < maxKeys; i++ {
		pass(fmt.Sprint("key ", i), 0, true)
	}
	pass("one too many", 0, false)
	if l.first("another") || len(l.seen) != maxKeys {
		t.Errorf("%d keys are known, at most %d", len(l.seen), maxKeys)
	}
	now = now.Add(apart)
	pass("a", 0, true)
}
