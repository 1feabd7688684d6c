package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// entries read from a directory at once
const listSize = 256

// Walked counts what a Walk did.
type Walked struct {
	Dirs    int // directories listed
	Files   int // files given to fn
	Skipped int // directories that could not be read to the end
}

// Walk gives every regular file of the roots to fn, with what stat (not lstat)
// says about it, in no special order. It opens directories only. A directory or
// a file that is reached twice, by links or by nested roots, is given once, under
// the path that came first, so that links in a circle end; what is missing is
// passed over, what cannot be read is counted. Memory is 24 bytes or so for each
// file, to know it again.
//
// The error is ctx's, or fn's, which ends the walk.
func Walk(ctx context.Context, roots []Root, fn func(path string, info fs.FileInfo) error) (Walked, error) {
	v := visit{ctx: ctx, fn: fn, dirs: map[inode]int{}, files: map[inode]struct{}{}}
	for _, r := range roots {
		if err := v.dir(filepath.Clean(r.Dir), max(0, r.Depth)); err != nil {
			return v.n, err
		}
	}
	return v.n, nil
}

type visit struct {
	ctx   context.Context
	fn    func(string, fs.FileInfo) error
	dirs  map[inode]int // how many levels below it were asked for
	files map[inode]struct{}
	n     Walked
}

func (v *visit) dir(path string, left int) error {
	if err := v.ctx.Err(); err != nil {
		return fmt.Errorf("walk roots: %w", err)
	}
	var below []string
	err := list(path, func(fi fs.FileInfo) bool {
		id := inodeOf(fi)
		seen, ok := v.dirs[id]
		if ok && seen >= left {
			return false
		}
		v.dirs[id] = left
		return true
	}, func(name string, _ fs.DirEntry) error {
		fi, err := os.Stat(name)
		switch {
		case err != nil: // gone, or a link to nowhere
		case fi.IsDir():
			if left > 0 {
				below = append(below, name)
			}
		case fi.Mode().IsRegular():
			id := inodeOf(fi)
			if _, ok := v.files[id]; ok {
				return nil
			}
			v.files[id] = struct{}{}
			v.n.Files++
			return v.fn(name, fi)
		}
		return nil
	})
	var stop *stopped
	switch {
	case errors.As(err, &stop):
		return stop.err
	case err == nil:
		v.n.Dirs++
	case !errors.Is(err, errSeen) && !errors.Is(err, fs.ErrNotExist):
		v.n.Skipped++
	}
	for _, name := range below {
		if err := v.dir(name, left-1); err != nil {
			return err
		}
	}
	return nil
}

// errSeen is returned by list when the directory was not wanted.
var errSeen = errors.New("directory was visited before")

// stopped is an error of the callback, to tell it from those of the listing.
type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }

// list opens a directory, asks enter whether it wants the one that was opened,
// and gives each entry with its path.
func list(path string, enter func(fs.FileInfo) bool, each func(path string, e fs.DirEntry) error) error {
	f, err := openDir(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !enter(fi) {
		return errSeen
	}
	for {
		entries, err := f.ReadDir(listSize)
		for _, e := range entries {
			if err := each(filepath.Join(path, e.Name()), e); err != nil {
				return &stopped{err}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
