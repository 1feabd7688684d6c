//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// patienceVar multiplies every bound of time, for a machine that is slower than
// the bounds were made for.
const patienceVar = "STENO_E2E_PATIENCE"

// factor is what patienceVar says, at least 1.
var factor = 1

// times is a bound on this machine.
func times(d time.Duration) time.Duration { return time.Duration(factor) * d }

// Bounds of time, for factor 1.
var (
	patience = 60 * time.Second // of every wait
	lifetime = 5 * time.Minute  // of a scenario
)

// bePatient reads patienceVar.
func bePatient() error {
	v := os.Getenv(patienceVar)
	if v == "" {
		return nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100 {
		return fmt.Errorf("%s is a number from 1 to 100, not %q", patienceVar, v)
	}
	factor = n
	patience, lifetime = times(patience), times(lifetime)
	return nil
}
