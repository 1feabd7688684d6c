package watch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func walked(t *testing.T, roots ...Root) ([]string, Walked) {
	t.Helper()
	var out []string
	n, err := Walk(t.Context(), roots, func(p string, fi fs.FileInfo) error {
		if !fi.Mode().IsRegular() {
			t.Errorf("%s is no regular file", p)
		}
		out = append(out, p)
		return nil
	})
	if err != nil {
		t.Fatalf("Walk: %v", err)
	}
	slices.Sort(out)
	return out, n
}

// C17: links to directories, to files, in circles and to nowhere; hard links.
func TestWalkLinks(t *testing.T) {
	base := t.TempDir()
	at := func(s string) string { return filepath.Join(base, s) }
	put(t, at("a/f"))
	put(t, at("a/b/g"))
	put(t, at("out/h"))
	for name, to := range map[string]string{
		"a/loop":   "..",
		"a/self":   ".",
		"a/b/up":   "../..",
		"a/file":   "../out/h",
		"a/none":   "nowhere",
		"a/me":     "me",
		"linked":   "a",
		"a/b/also": "../f",
	} {
		must(t, os.Symlink(to, at(name)))
	}
	must(t, os.Link(at("a/b/g"), at("a/b/hard")))

	got, n := walked(t, Root{at("a"), 9})
	// There are four directories; one that is reached deeper first is listed again.
	if len(got) != 3 || n.Files != 3 || n.Skipped != 0 || n.Dirs < 4 || n.Dirs > 8 {
		t.Errorf("Walk = %v, %+v; want the files f, g and h once each, and no circle", got, n)
	}
	one, _ := walked(t, Root{at("linked"), 9})
	two, _ := walked(t, Root{at("linked"), 9}, Root{at("a"), 9}, Root{at("a/b"), 0})
	if len(one) != 3 || len(two) != 3 {
		t.Errorf("Walk = %v by a link, %v by three roots; want three files", one, two)
	}
}

func TestWalkDepth(t *testing.T) {
	base := t.TempDir()
	at := func(s string) string { return filepath.Join(base, s) }
	put(t, at("f"))
	put(t, at("a/f"))
	put(t, at("a/b/f"))
	for depth, want := range [][]string{{at("f")}, {at("a/f"), at("f")}, {at("a/b/f"), at("a/f"), at("f")}} {
		if got, _ := walked(t, Root{base, depth}); !slices.Equal(got, want) {
			t.Errorf("Walk at depth %d = %v, want %v", depth, got, want)
		}
	}
	// A directory that a second root wants deeper is looked at again.
	must(t, os.Symlink("a", at("link")))
	got, _ := walked(t, Root{at("link"), 0}, Root{at("a"), 1})
	if want := []string{at("a/b/f"), at("link/f")}; !slices.Equal(got, want) {
		t.Errorf("Walk = %v, want %v", got, want)
	}
}

func TestWalkOpensNoFile(t *testing.T) {
	base := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(base, "rollout-x.jsonl"), 0o600))
	p := filepath.Join(base, "secret")
	put(t, p)
	must(t, os.Chmod(p, 0))
	// To open a FIFO would let its writer go on.
	seen, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(seen)
	for _, name := range []string{filepath.Join(base, "rollout-x.jsonl"), p} {
		_, err := unix.InotifyAddWatch(seen, name, unix.IN_OPEN)
		must(t, err)
	}
	defer func() {
		if n, err := unix.Read(seen, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("something was opened: %d bytes of events, %v", n, err)
		}
	}()
	// A root that is a FIFO, a file, missing or relative to nothing.
	got, n := walked(t, Root{base, 0}, Root{filepath.Join(base, "rollout-x.jsonl"), 1}, Root{p, 1}, Root{filepath.Join(base, "no"), 1})
	if !slices.Equal(got, []string{p}) || n.Dirs != 1 || n.Skipped != 2 {
		t.Errorf("Walk = %v, %+v; want the one file, and two roots skipped that are no directories", got, n)
	}
}

func TestWalkUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	base := t.TempDir()
	put(t, filepath.Join(base, "a", "f"))
	put(t, filepath.Join(base, "b", "f"))
	must(t, os.Chmod(filepath.Join(base, "a"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(base, "a"), 0o700) })
	got, n := walked(t, Root{base, 1})
	if len(got) != 1 || n.Skipped != 1 {
		t.Errorf("Walk = %v, %+v; want one file and one directory skipped", got, n)
	}
}

func TestWalkEnds(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "a"))
	put(t, filepath.Join(base, "b"))
	stop := errors.New("stop")
	calls := 0
	_, err := Walk(t.Context(), []Root{{base, 0}}, func(string, fs.FileInfo) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("Walk = %v after %d calls, want the callback's error after one", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Walk(ctx, []Root{{base, 0}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Walk = %v, want canceled", err)
	}
}
