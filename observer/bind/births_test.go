package bind

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A process that is made is told of, and while none is, nothing.
func TestBirths(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	born, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- Births(ctx, "/proc", time.Millisecond, born) }()
	for end := time.Now().Add(10 * time.Second); ; {
		if err := exec.CommandContext(ctx, "true").Run(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-born:
		default:
			if time.Now().After(end) {
				t.Fatal("a new process was not told of")
			}
			continue
		}
		break
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestBirthsOfAFile(t *testing.T) {
	dir := t.TempDir()
	loadavg := func(last string) {
		t.Helper()
		tmp := filepath.Join(dir, "new")
		if err := os.WriteFile(tmp, []byte("0.12 0.34 0.56 1/234 "+last+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, "loadavg")); err != nil {
			t.Fatal(err)
		}
	}
	born, ended := make(chan struct{}, 1), make(chan error, 1)
	if err := Births(t.Context(), dir, time.Millisecond, born); err != nil {
		t.Errorf("without the file: %v", err)
	}
	loadavg("100")
	go func() { ended <- Births(t.Context(), dir, time.Millisecond, born) }()
	select {
	case <-born:
		t.Error("no process was made")
	case <-time.After(50 * time.Millisecond):
	}
	for _, last := range []string{"101", "3"} { // numbers begin again
		loadavg(last)
		select {
		case <-born:
		case <-time.After(10 * time.Second):
			t.Fatal("a new process was not told of")
		}
	}
	if err := os.Remove(filepath.Join(dir, "loadavg")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the file went away: %v", err)
	}
}
