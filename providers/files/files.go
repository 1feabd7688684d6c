package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrUnfit is returned for what is no regular file, and by Read and ReadIn for
// a file with more bytes than the caller wants.
var ErrUnfit = errors.New("not a small regular file")

// Open opens a regular file for reading.
func Open(path string) (*os.File, fs.FileInfo, error) {
	return regular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// OpenIn is Open for a file in a root: no link leads out of it.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return regular(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

func regular(f *os.File, err error) (*os.File, fs.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrUnfit
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// Head reads the first bytes of a file, at most most. info is from before the
// first read.
func Head(path string, most int64) (b []byte, info fs.FileInfo, err error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b, err = io.ReadAll(io.LimitReader(f, most))
	return b, info, err
}

// Read reads a file of at most most bytes. info is from after the last read: no
// byte is newer than its time.
func Read(path string, most int64) (b []byte, info fs.FileInfo, err error) {
	f, info, err := Open(path)
	return whole(f, info, err, most)
}

// ReadIn is Read for a file in a root.
func ReadIn(root *os.Root, name string, most int64) (b []byte, info fs.FileInfo, err error) {
	f, info, err := OpenIn(root, name)
	return whole(f, info, err, most)
}

func whole(f *os.File, info fs.FileInfo, err error, most int64) ([]byte, fs.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, nil, ErrUnfit
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = ErrUnfit // it has grown
	}
	if err == nil {
		info, err = f.Stat()
	}
	if err != nil {
		return nil, nil, err
	}
	return b, info, nil
}
