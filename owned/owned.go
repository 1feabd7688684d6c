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

// MakeDir makes dir and what is missing above it, with mode 0700. A directory that
// is there has to be ours, and nobody else may write in it; a symbolic link on the
// way to it has to be ours or root's. If not, the error is ErrUnsafe.
func MakeDir(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	return Check(dir)
}

// Check says whether a directory is ours, and nobody else may write in it; if not,
// the error is ErrUnsafe.
func Check(dir string) error {
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return fmt.Errorf("%s: %w: not a directory", dir, ErrUnsafe)
	case owner(fi) != os.Geteuid():
		return fmt.Errorf("%s: %w: it belongs to user %d", dir, ErrUnsafe, owner(fi))
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s: %w: others may write in it (mode %#o)", dir, ErrUnsafe, fi.Mode().Perm())
	}
	return nil
}

// makeDir makes dir, unless something is there.
func makeDir(dir string) error {
	if _, err := follow(dir, maxLinks); err != nil {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if up := filepath.Dir(dir); up != dir {
		if err := makeDir(up); err != nil {
			return err
		}
	}
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist): // somebody else was faster
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, 0o700) // a umask may have taken even our own rights
}

// follow says whether every link that the path leads through is ours or root's,
// and how many more there might have been.
func follow(path string, left int) (int, error) {
	at := "/"
	for _, name := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if name == "" || name == "." {
			continue
		}
		// ".." of a target is taken as the kernel does: from where the links led.
		if name == ".." {
			real, err := filepath.EvalSymlinks(at)
			if err != nil {
				return left, nil // the caller's own call says what is wrong with it
			}
			at = filepath.Dir(real)
			continue
		}
		at = filepath.Join(at, name)
		fi, err := os.Lstat(at)
		if err != nil {
			return left, nil // missing, or out of reach
		}
		if fi.Mode().Type() != fs.ModeSymlink {
			continue
		}
		if by := owner(fi); by != os.Geteuid() && by != 0 {
			return left, fmt.Errorf("%s: %w: a link made by user %d", at, ErrUnsafe, by)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return left, nil
		}
		if left--; left < 0 {
			return left, fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Dir(at) + "/" + target
		}
		if left, err = follow(target, left); err != nil {
			return left, err
		}
	}
	return left, nil
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
