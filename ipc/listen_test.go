package ipc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The directory is 0700 and the socket 0600, whatever the umask.
func TestListenModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		path := filepath.Join(shortDir(t), "a", "b", "steno.sock")
		old := syscall.Umask(mask)
		ln, err := Listen(path)
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %#o: %v", mask, err)
		}
		for name, want := range map[string]fs.FileMode{
			path:                             fs.ModeSocket | 0o600,
			path + ".lock":                   0o600,
			filepath.Dir(path):               fs.ModeDir | 0o700,
			filepath.Dir(filepath.Dir(path)): fs.ModeDir | 0o700,
		} {
			fi, err := os.Lstat(name)
			if err != nil || fi.Mode() != want {
				t.Errorf("umask %#o: %s has mode %v, %v, want %v", mask, filepath.Base(name), fi.Mode(), err, want)
			}
		}
		if _, err := os.Lstat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("umask %#o: the temporary name stays: %v", mask, err)
		}
		if err := ln.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if err := ln.Close(); err != nil {
			t.Errorf("second Close = %v", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("umask %#o: the socket stays: %v", mask, err)
		}
	}
}

// dead leaves the socket file of a daemon that was killed.
func dead(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
}

func TestListenReplacesTheDead(t *testing.T) {
	path := filepath.Join(shortDir(t), "steno.sock")
	dead(t, path)
	dead(t, path+".new")
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestListenNeverReplacesTheLiving(t *testing.T) {
	path := filepath.Join(shortDir(t), "steno.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); !errors.Is(err, ErrInUse) {
		t.Errorf("second Listen = %v, want ErrInUse", err)
	}
	ln.Close()
	// One that holds no lock of ours, say by socket activation, and whose queue
	// nobody empties.
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before, _ := os.Lstat(path)
	if _, err := Listen(path); !errors.Is(err, ErrInUse) {
		t.Errorf("Listen = %v, want ErrInUse", err)
	}
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket was touched: %v", err)
	}
}

// A daemon whose queue of clients is full does not answer at all.
func TestListenBesideAFullQueue(t *testing.T) {
	path := filepath.Join(shortDir(t), "steno.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		conn, err := d.DialContext(ctx, "unix", path)
		cancel()
		if err != nil {
			break // full
		}
		defer conn.Close()
	}
	if ln, err := Listen(path); !errors.Is(err, ErrInUse) {
		if err == nil {
			ln.Close()
		}
		t.Errorf("Listen = %v, want ErrInUse", err)
	}
}

// The lock keeps a second daemon out although the first one's socket was removed.
func TestListenWithoutTheSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "steno.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if second, err := Listen(path); !errors.Is(err, ErrInUse) {
		if err == nil {
			second.Close()
		}
		t.Errorf("Listen = %v, want ErrInUse", err)
	}
}

// Of many that start at once, one listens.
func TestListenRace(t *testing.T) {
	path := filepath.Join(shortDir(t), "d", "steno.sock")
	won := make(chan net.Listener, 16)
	var wg sync.WaitGroup
	for range cap(won) {
		wg.Go(func() {
			ln, err := Listen(path)
			if err == nil {
				won <- ln
			} else if !errors.Is(err, ErrInUse) {
				t.Errorf("Listen = %v, want ErrInUse", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d listen, want 1", len(won))
	}
	for range len(won) {
		(<-won).Close()
	}
}

// Closing does not remove what another daemon has put in the socket's place.
func TestCloseKeepsAnothersSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "steno.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := ln.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other's socket: %v", err)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := shortDir(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	must(os.WriteFile(file, []byte("mine"), 0o600))
	open := filepath.Join(dir, "open")
	must(os.Mkdir(open, 0o700))
	must(os.Chmod(open, 0o777))
	link := filepath.Join(dir, "link")
	must(os.Symlink(dir, link))
	locked := filepath.Join(dir, "linked.sock")
	must(os.Symlink(file, locked+".lock"))
	for name, path := range map[string]string{
		"a file":            file,
		"under a file":      filepath.Join(file, "s"),
		"open to others":    filepath.Join(open, "s"),
		"a linked lock":     locked,
		"too long a path":   filepath.Join(dir, strings.Repeat("x", 110)),
		"nobody may create": "/proc/none/s",
	} {
		if ln, err := Listen(path); err == nil {
			t.Errorf("%s is accepted", name)
			ln.Close()
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("the file was touched: %q, %v", b, err)
	}
	for name, path := range map[string]string{"file": file, "directory": filepath.Join(open, "s")} {
		if _, err := Listen(path); !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v, want ErrUnsafe", name, err)
		}
	}
	// Our own link is as good as a directory.
	ln, err := Listen(filepath.Join(link, "s"))
	must(err)
	ln.Close()

	if os.Getuid() != 0 {
		t.Log("needs root to make another user's files")
		return
	}
	theirs := filepath.Join(dir, "theirs")
	must(os.Mkdir(theirs, 0o700))
	must(os.Chown(theirs, 4711, 4711))
	must(os.Lchown(link, 4711, 4711))
	for name, path := range map[string]string{"directory": theirs, "link": link} {
		if _, err := Listen(filepath.Join(path, "s")); !errors.Is(err, ErrUnsafe) {
			t.Errorf("another user's %s: %v, want ErrUnsafe", name, err)
		}
	}
}
