package ipc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"steno/owned"
)

// maxPath is the longest path of a Unix socket on Linux, in bytes.
const maxPath = 107

// Listen makes the socket at path, for this user alone. Missing directories
// are created with mode 0700 and the socket with 0600, whatever the umask. An
// existing directory must be ours, and nobody else may write in it; a symbolic
// link on the way to it must be ours or root's. If not, the error is ErrUnsafe.
//
// The socket of a dead daemon is replaced, one that is served never: that gives
// ErrInUse, as does the lock file "<path>.lock" while another daemon holds it.
// The lock file stays; removing it would let two daemons hold two of them. The
// socket is made under the name "<path>.new" and renamed when it is ready, so
// that a client never meets a half-made one. Closing the listener removes it.
func Listen(path string) (net.Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if n := len(path) + len(".new"); n > maxPath {
		return nil, fmt.Errorf("listen: path of %d bytes, a socket's has at most %d", len(path), maxPath-len(".new"))
	}
	if err := owned.MakeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ln, err := bind(path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	ln.lock = lock
	return ln, nil
}

// listener is a socket that removes its file when closed.
type listener struct {
	*net.UnixListener
	path string
	made os.FileInfo
	lock *os.File
	once sync.Once
	err  error
}

// Close stops listening and removes the socket, unless another file has taken
// its place.
func (l *listener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			l.err = os.Remove(l.path)
		}
		l.err = errors.Join(l.err, l.UnixListener.Close(), l.lock.Close())
	})
	return l.err
}

func bind(path string) (*listener, error) {
	if err := vacant(path); err != nil {
		return nil, err
	}
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // it knows the temporary name only
	err = os.Chmod(temp, 0o600)
	var made os.FileInfo
	if err == nil {
		made, err = os.Lstat(temp)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		ln.Close()
		os.Remove(temp)
		return nil, err
	}
	return &listener{UnixListener: ln, path: path, made: made}, nil
}

// vacant says whether the socket's place may be taken: nothing is there, or
// the socket of a daemon that is dead.
func vacant(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: %w: it is there and is no socket", path, ErrUnsafe)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("%s: %w", path, ErrInUse)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, context.DeadlineExceeded):
		// Alive, with a full queue of clients.
		return fmt.Errorf("%s: %w", path, ErrInUse)
	}
	return fmt.Errorf("%s: %w: %w", path, ErrUnsafe, err)
}

// lockFile takes the lock that one daemon at a time holds.
func lockFile(path string) (*os.File, error) {
	f, err := owned.OpenFile(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
