package tail

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// opened is how many descriptors this process has of the files of a directory.
func opened(t *testing.T, dir string) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range names {
		// One that is gone by now was another test's.
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			n++
		}
	}
	return n
}

// No file stays open, whether it was read or refused: an agent's file that was
// deleted would keep its space, and descriptors are few.
func TestNothingStaysOpen(t *testing.T) {
	dir := t.TempDir()
	path, fifo := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "fifo")
	write(t, path, []byte("{\"a\":1}\n{\"a\":2}\n"))
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	b := backward(t, path)
	if n := opened(t, dir); n != 1 {
		t.Errorf("%d open while it is read backwards, want 1", n)
	}
	b.Close()
	b.Close()
	if _, more, err := b.Next(); more || err != nil {
		t.Errorf("after the end: %v, %v", more, err)
	}
	strange, err := AtEnd(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	strange.Tail[0]++
	for name, f := range map[string]func() error{
		"back":              func() error { _, err := Back(path, strange); return err },
		"first":             func() error { _, err := First(path, 0); return err },
		"at end":            func() error { _, err := AtEnd(path, -1); return err },
		"file":              func() error { f := New(path, Mark{}); _, err := f.Read(100); return err },
		"file that changed": func() error { f := New(path, strange); _, err := f.Read(100); return err },
		"document":          func() error { d, _ := NewDocument(path, nil); _, err := d.Read(0); return err },
		"document's end":    func() error { _, err := DocumentAtEnd(path); return err },
		"FIFO":              func() error { _, err := First(fifo, 0); return err },
		"directory":         func() error { _, err := First(dir+"/.", 0); return err },
	} {
		err := f()
		if n := opened(t, dir); n != 0 {
			t.Errorf("%s (%v): %d open", name, err, n)
		}
	}
}
