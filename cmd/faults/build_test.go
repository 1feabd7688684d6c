package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// built is the directory of built programs, "" when there is none.
var built string

func removeBuilt() {
	if built != "" {
		_ = os.RemoveAll(built) // left-overs of a test are no failure
	}
}

// stenoBinary builds the daemon once, with the race detector where that can be.
var stenoBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "steno-faults-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "steno")
	args := []string{"build", "-buildvcs=false", "-o", path}
	cgo := "0"
	for _, cc := range []string{"gcc", "cc", "clang"} {
		if _, err := exec.LookPath(cc); err == nil {
			args, cgo = append(args, "-race"), "1"
			break
		}
	}
	cmd := exec.Command("go", append(args, "steno/cmd/steno")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build steno: %w: %s", err, out)
	}
	return path, nil
})

// agentBinary is a copy of this program under an agent's name.
func agentBinary(dir, harness string) (string, error) {
	path := filepath.Join(dir, "bin", harness)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	return path, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o700))
}
