//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowest is how many scenarios the summary names.
const slowest = 10

// ran is a scenario that was run.
type ran struct {
	program, name string
	took          time.Duration
}

// tallied counts the scenarios of a run.
type tallied struct {
	mu     sync.Mutex // guards the rest
	ran    []ran
	known  int
	second []string // scenarios that were played again
}

// secondTries is how many scenarios of one run may be played again.
const secondTries = 5

// again says whether a scenario that failed may be played once more.
func (t *tallied) again(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.second) == secondTries {
		return false
	}
	t.second = append(t.second, name)
	return true
}

var tally tallied

func (t *tallied) add(r ran) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran = append(t.ran, r)
}

func (t *tallied) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known++
}

// print says how many scenarios ran and what they took, and gives how many ran or
// were skipped. Several run at once, so that their times add up to more than
// that of the run.
func (t *tallied) print(all time.Duration) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Printf("e2e: %d scenarios ran in %.0f s, %d are known not to hold and were skipped\n", len(t.ran), all.Seconds(), t.known)
	if len(t.second) > 0 {
		fmt.Printf("e2e: NOT HELD AT FIRST, played again: %s\n", strings.Join(t.second, ", "))
	}
	var parts []string
	for _, p := range programs() {
		var n int
		var took time.Duration
		for _, r := range t.ran {
			if r.program == p.name {
				n++
				took += r.took
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d in %.0f s (%.1f s each)", p.name, n, took.Seconds(), took.Seconds()/float64(n)))
		}
	}
	if parts != nil {
		fmt.Printf("e2e: %s\n", strings.Join(parts, ", "))
	}
	slices.SortStableFunc(t.ran, func(a, b ran) int { return cmp.Compare(b.took, a.took) })
	parts = nil
	for _, r := range t.ran[:min(slowest, len(t.ran))] {
		parts = append(parts, fmt.Sprintf("%s/%s %.0f s", r.program, r.name, r.took.Seconds()))
	}
	if parts != nil {
		fmt.Printf("e2e: slowest: %s\n", strings.Join(parts, ", "))
	}
	return len(t.ran) + t.known
}
