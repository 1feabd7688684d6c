package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ways are all ways to read the file name of dir: what was read, of at most
// 8 bytes.
func ways(t *testing.T, dir, name string) map[string]func() (string, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	path := filepath.Join(dir, name)
	text := func(b []byte, info fs.FileInfo, err error) (string, error) {
		if err == nil && (info == nil || info.Name() != name) {
			t.Errorf("info of %s = %v", name, info)
		}
		return string(b), err
	}
	return map[string]func() (string, error){
		"Head":   func() (string, error) { return text(Head(path, 8)) },
		"Read":   func() (string, error) { return text(Read(path, 8)) },
		"ReadIn": func() (string, error) { return text(ReadIn(root, name, 8)) },
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"empty": 0, "fits": 8, "long": 9} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		want string
		head error // what Head returns
		err  error // what the others return
	}{
		{"empty", "", nil, nil},
		{"fits", "xxxxxxxx", nil, nil},
		{"long", "xxxxxxxx", nil, ErrUnfit},
		{"pipe", "", ErrUnfit, ErrUnfit}, // and nobody waits for a writer
		{"directory", "", ErrUnfit, ErrUnfit},
		{"absent", "", fs.ErrNotExist, fs.ErrNotExist},
	}
	for _, tt := range tests {
		for way, read := range ways(t, dir, tt.name) {
			wantErr, want := tt.err, tt.want
			if way == "Head" {
				wantErr = tt.head
			}
			if wantErr != nil {
				want = ""
			}
			if got, err := read(); got != want || !errors.Is(err, wantErr) {
				t.Errorf("%s of %s = %q, %v, want %q, %v", way, tt.name, got, err, want, wantErr)
			}
		}
	}
}

// No link leads out of a root.
func TestLinkOutOfTheRoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(inner, "link")); err != nil {
		t.Fatal(err)
	}
	all := ways(t, inner, "link")
	if got, err := all["ReadIn"](); err == nil {
		t.Errorf("ReadIn follows a link out of the root: %q", got)
	}
}

// The time that Read gives is not older than any byte that it gives.
func TestTimeIsFromAfterTheRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, before, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	later := before.ModTime().Add(3e9)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if _, info, err := whole(f, before, nil, 8); err != nil || !info.ModTime().Equal(later) {
		t.Errorf("time %v, %v, want %v", info.ModTime(), err, later)
	}
}
