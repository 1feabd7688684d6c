package faults

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Variables that a person may set.
const (
	formVar     = "STENO_FAULTS"          // long
	soakVar     = "STENO_SOAK"            // length of the soak
	seedVar     = "STENO_FAULTS_SEED"     // a number that was printed
	reportVar   = "STENO_FAULTS_REPORT"   // file that figures are appended to
	requiredVar = "STENO_FAULTS_REQUIRED" // not empty: what is missing is a failure
	keepVar     = "STENO_FAULTS_KEEP"     // not empty: the directory of a test that fails stays
	patienceVar = "STENO_FAULTS_PATIENCE" // multiplies patience
)

var long = os.Getenv(formVar) == "long"

// pick chooses by the form of the run.
func pick[T any](short, inLong T) T {
	if long {
		return inLong
	}
	return short
}

// patience bounds every wait for a condition.
var patience = time.Minute * time.Duration(max(1, atoi(os.Getenv(patienceVar))))

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

// dice are the random choices of a test. The seed is printed on a failure.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the choices of this run: %s=%d", seedVar, seed)
		}
	})
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// tracer is strace, where it may trace.
func tracer(t *testing.T) string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		missing(t, "strace is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), strace, "-f", "-qq", "--seccomp-bpf", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("strace cannot trace here: %v: %s", err, out))
	}
	return strace
}

// missing skips a test whose tool is not there, or fails it where nothing may
// be missing.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv(requiredVar) != "" {
		t.Fatalf("%s, and %s is set", what, requiredVar)
	}
	t.Skip(what)
}

// figures are what one fault came to: a row of RELIABILITY.md.
type figures struct {
	Fault string `json:"fault"` // number of the fault and a name, "1 kill -9"
	How   string `json:"how"`
	Tried int    `json:"tried"`
	Unit  string `json:"unit"` // of tried, in the plural
	// Lost are complete records without their event, Repeated events that came
	// twice, Reused sequences that named two events.
	Lost     int    `json:"lost"`
	Repeated int    `json:"repeated"`
	Reused   int    `json:"reused"`
	Note     string `json:"note,omitempty"`

	recovery []time.Duration
}

// recovered adds one time of recovery.
func (f *figures) recovered(d time.Duration) { f.recovery = append(f.recovery, d) }

// report prints the figures, keeps them for the table, and fails the test when
// anything was lost, repeated or reused.
func (f *figures) report(t *testing.T) {
	t.Helper()
	type row struct {
		*figures
		Form   string `json:"form"`
		Median int64  `json:"recovery_median_ms"`
		Max    int64  `json:"recovery_max_ms"`
	}
	r := row{figures: f, Form: pick("short", "long"), Median: -1, Max: -1}
	if n := len(f.recovery); n > 0 {
		slices.Sort(f.recovery)
		r.Median, r.Max = f.recovery[n/2].Milliseconds(), f.recovery[n-1].Milliseconds()
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("fault %s", line)
	if f.Lost+f.Repeated+f.Reused > 0 {
		t.Errorf("%s: %d lost, %d repeated, %d reused, want none", f.Fault, f.Lost, f.Repeated, f.Reused)
	}
	path := os.Getenv(reportVar)
	if path == "" || t.Failed() {
		return
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
		t.Fatal(err)
	}
}
