package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// root of the module, from this package's directory.
const moduleRoot = "../.."

// partVar makes this binary play a part in another process: a key of parts.
const partVar = "STENO_FAULTS_PART"

// parts are what this binary does in other processes. A file adds its own in an
// init function. Arguments come from the environment.
var parts = map[string]func() error{}

// TestMain makes this binary an agent where it is named like one.
func TestMain(m *testing.M) {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults: find own executable:", err)
		os.Exit(1)
	}
	part := parts[os.Getenv(partVar)]
	if part == nil {
		if name := filepath.Base(self); harnesses[name] != nil {
			part = func() error { return playAgent(name) }
		}
	}
	if part != nil {
		if err := part(); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	removeBuilt()
	os.Exit(code)
}
