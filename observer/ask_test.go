package observer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// Artifacts that nobody owns cost few looks at the processes however many of
// them are written to, and one that is new is looked at at once.
func TestUnownedArtifactsAskSeldom(t *testing.T) {
	const files, every, span = 400, 20 * time.Millisecond, time.Minute
	o := idleObserver(t)
	at := time.Now()
	o.probeAt = at.Add(time.Hour)
	looks := 0
	var last time.Time
	look := func() { // what startDue and onProbe do about it
		if !at.Before(o.probeAt) {
			looks, last = looks+1, at
			o.probeForced = false
			o.probedAt, o.probeAt = at, at.Add(time.Hour)
		}
	}
	made := 0
	unowned := func() *artifact {
		made++
		return &artifact{Artifact: providers.Artifact{Provider: "fake", Session: fmt.Sprint(made)}}
	}
	var all []*artifact
	for range files {
		all = append(all, unowned())
	}
	for end := at.Add(span); at.Before(end); at = at.Add(every) {
		for _, a := range all {
			o.stir(a, at)
		}
		look()
	}
	if most := looksAtOnce + int(span/lookEvery) + 1; looks > most || looks < int(span/probeGapMax) {
		t.Errorf("%d looks in %v, want %d to %d", looks, span, span/probeGapMax, most)
	}
	// A file that comes up among them waits for its turn, and no longer.
	came := at
	o.stir(unowned(), at)
	for !last.After(came) {
		at = at.Add(time.Millisecond)
		look()
	}
	if wait := last.Sub(came); wait > lookEvery {
		t.Errorf("looked at after %v", wait)
	}
	// In peace it does not wait.
	at = at.Add(span)
	came = at
	o.stir(unowned(), at)
	for !last.After(came) && at.Before(came.Add(time.Second)) {
		look()
		at = at.Add(time.Millisecond)
	}
	if wait := last.Sub(came); last != came {
		t.Errorf("looked at after %v", wait)
	}
}

// While a process that has just begun has no session, what it may be writing to is
// looked at soon, however long others have been writing there.
func TestNewcomerIsAwaited(t *testing.T) {
	for _, tt := range []struct {
		provider string
		bound    bool
		age      time.Duration
		awaited  bool
	}{
		{"fake", false, 0, true},
		{"fake", false, recheckFor - time.Second, true},
		{"fake", false, recheckFor, false},
		{"fake", true, 0, false},
		{"other", false, 0, false},
	} {
		o := idleObserver(t)
		at := time.Now()
		shared := &artifact{Artifact: providers.Artifact{Provider: "fake", Role: providers.Carrier}}
		var last time.Time
		write := func() {
			at = at.Add(10 * time.Millisecond)
			o.stir(shared, at)
			if !at.Before(o.probeAt) {
				last = at
				o.probeForced = false
				o.probedAt, o.probeAt = at, at.Add(time.Hour)
			}
		}
		o.probeAt = at.Add(time.Hour)
		for range 1000 {
			write()
		}
		for at.Sub(last) > 20*time.Millisecond { // just looked: the next one is far
			write()
		}
		a := &agent{}
		a.row.Harness, a.row.Since, a.match.Bound = tt.provider, at.Add(-tt.age), tt.bound
		o.byProcess[process{7, 7}] = a
		o.recheckUntil = a.row.Since.Add(recheckFor)
		var most time.Duration
		for end := at.Add(500 * time.Millisecond); at.Before(end); {
			was := last
			write()
			most = max(most, at.Sub(was))
		}
		if limit := newcomerGap + probeGap; (most <= limit) != tt.awaited {
			t.Errorf("%+v: %v without a look", tt, most)
		}
	}
}

// What asks for a look while one is under way gets the next one, not at once and
// not before its time.
func TestLookAskedForDuringALook(t *testing.T) {
	o := idleObserver(t)
	at := time.Now()
	for _, tt := range []struct{ in, least, most time.Duration }{
		{0, probeGap, 2 * probeGap},
		{time.Second, time.Second - probeGap, time.Second},
	} {
		o.probing, o.probeAt = true, at.Add(scanEvery)
		o.probeBy(at.Add(tt.in))
		before := time.Now()
		o.onProbe(probed{at: at})
		if wait := o.probeAt.Sub(before); wait < tt.least-time.Since(at) || wait > tt.most+time.Since(before) {
			t.Errorf("asked for in %v: the next look is in %v", tt.in, wait)
		}
	}
}

// A process that writes nothing is seen soon after it began, and not only when
// processes are looked at anyway, up to two seconds later.
func TestNewProcessIsSeenSoon(t *testing.T) {
	const processes = 10
	r := newRig(t)
	r.run()
	var all time.Duration
	for i := range processes {
		began := time.Now()
		a := r.start("")
		r.until("it is available", func() bool { return strings.Count(strings.Join(r.lines(), "\n"), available) > i })
		all += time.Since(began)
		a.stop()
		r.until("it is gone", func() bool { return strings.Count(strings.Join(r.lines(), "\n"), exited) > i })
	}
	if mean := all / processes; mean > scanEvery/3 {
		t.Errorf("seen after %v in the mean", mean)
	}
}
