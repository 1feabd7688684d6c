// Package owned makes the directories and the lock files of one user, in places
// where other users may have left something. What it makes has its mode whatever
// the umask, and no symbolic link of another user is followed on the way.
package owned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrUnsafe is returned for a place that is not this user's alone.
var ErrUnsafe = errors.New("not a safe place")

// maxLinks is how many symbolic links a path may lead through, as in the kernel.
const maxLinks = 40

// maxTries bounds how often a directory is looked for and made again, because
// somebody else makes and removes its name.
const maxTries = 100

// MakeDir makes dir and what is missing above it, with mode 0700. A directory that
// is there has to be ours, and nobody else may write in it; a symbolic link on the
// way to it has to be ours or root's. If not, the error is ErrUnsafe.
func MakeDir(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	fi, err := makeDir(dir)
	if err != nil {
		return err
	}
	return check(dir, fi)
}

// Check says whether a directory is ours, and nobody else may write in it; if not,
// the error is ErrUnsafe.
func Check(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return check(dir, fi)
}

func check(dir string, fi fs.FileInfo) error {
	switch {
	case !fi.IsDir():
		return fmt.Errorf("%s: %w: not a directory", dir, ErrUnsafe)
	case owner(fi) != os.Geteuid():
		return fmt.Errorf("%s: %w: it belongs to user %d", dir, ErrUnsafe, owner(fi))
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s: %w: others may write in it (mode %#o)", dir, ErrUnsafe, fi.Mode().Perm())
	}
	return nil
}

// makeDir makes dir, unless something is there, and tells what is there. It never
// looks twice at one name to decide: between two looks another user may put a
// link there.
func makeDir(dir string) (fs.FileInfo, error) {
	for try := 1; ; try++ {
		w := walk{left: maxLinks}
		err := w.follow(dir)
		if err != nil {
			return nil, err
		}
		if !w.missing {
			return w.last, nil
		}
		if up := filepath.Dir(dir); up != dir {
			if _, err := makeDir(up); err != nil {
				return nil, err
			}
		}
		err = os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) && try < maxTries {
			continue // somebody else was faster
		}
		if err != nil {
			return nil, err
		}
		// A umask may have taken even our own rights. What we made stays ours.
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
		return os.Lstat(dir)
	}
}

// walk follows a path as the kernel does, link by link.
type walk struct {
	left    int         // how many more links there may be
	last    fs.FileInfo // of what stands at the end, never a link
	missing bool        // there is nothing at the end, or on the way to it
}

// follow walks an absolute path. A link that is not ours or root's is ErrUnsafe.
func (w *walk) follow(path string) (err error) {
	at := "/"
	if w.last, err = os.Lstat(at); err != nil {
		return err
	}
	for _, name := range strings.Split(path, "/") {
		switch name {
		case "", ".":
			continue
		case "..": // of a link's target: from where the links led
			real, err := filepath.EvalSymlinks(at)
			if err != nil {
				return err
			}
			at = filepath.Dir(real)
		default:
			at = filepath.Join(at, name)
		}
		fi, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			w.missing = true
			return nil
		}
		if err != nil {
			return err
		}
		if w.last = fi; fi.Mode().Type() != fs.ModeSymlink {
			continue
		}
		if by := owner(fi); by != os.Geteuid() && by != 0 {
			return fmt.Errorf("%s: %w: a link made by user %d", at, ErrUnsafe, by)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		if w.left--; w.left < 0 {
			return fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Dir(at) + "/" + target
		}
		if err := w.follow(target); err != nil || w.missing {
			return err
		}
	}
	return nil
}

// OpenFile opens a file for reading and writing, and makes it where it is missing.
// It has mode 0600 afterwards. A symbolic link in its place is an error, as is
// a file of another user.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		// An earlier one may have been made under a umask that took our rights.
		if fi, e := os.Lstat(path); e == nil && fi.Mode().IsRegular() && owner(fi) == os.Geteuid() && os.Chmod(path, 0o600) == nil {
			f, err = os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
	case !fi.Mode().IsRegular():
		err = fmt.Errorf("%s: %w: not a file", path, ErrUnsafe)
	case owner(fi) != os.Geteuid():
		err = fmt.Errorf("%s: %w: it belongs to user %d", path, ErrUnsafe, owner(fi))
	default:
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// owner is the uid of a file, or -1.
func owner(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
