package tail

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
)

// Stats counts the work done on files. It may be shared.
type Stats struct {
	Opens atomic.Int64 // files opened
	Bytes atomic.Int64 // bytes read
}

// handle is an open artifact. The identity and the size are those of the open
// file, not of whatever the path names by now.
type handle struct {
	f        *os.File
	stats    *Stats
	dev, ino uint64
	size     int64
}

// open never blocks: a FIFO that is named like an artifact opens at once and is
// refused.
func open(path string, stats *Stats) (*handle, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	h := &handle{f: f, stats: stats}
	if stats != nil {
		stats.Opens.Add(1)
	}
	if err := h.stat(); err != nil {
		f.Close()
		return nil, err
	}
	return h, nil
}

func (h *handle) stat() error {
	fi, err := h.f.Stat()
	if err != nil {
		return err
	}
	sys, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", h.f.Name(), ErrNotRegular)
	}
	h.dev, h.ino, h.size = uint64(sys.Dev), sys.Ino, fi.Size()
	return nil
}

// readAt fills as much of p as the file has. The end of the file is no error.
func (h *handle) readAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := h.f.ReadAt(p, off)
	if h.stats != nil {
		h.stats.Bytes.Add(int64(n))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (h *handle) close() { h.f.Close() } // opened for reading: nothing to lose

// head hashes the first min(4 KiB, off) bytes, or fewer where the file is shorter.
func (h *handle) head(off int64) ([32]byte, error) {
	b := make([]byte, min(window, off))
	n, err := h.readAt(b, 0)
	return sha256.Sum256(b[:n]), err
}

// mark makes the mark at off by reading the hashed parts.
func (h *handle) mark(off int64) (Mark, error) {
	m := Mark{Dev: h.dev, Ino: h.ino, Offset: off}
	b := make([]byte, min(window, off))
	n, err := h.readAt(b, off-int64(len(b)))
	if err != nil {
		return Mark{}, err
	}
	m.Tail = sha256.Sum256(b[:n])
	if off <= window {
		m.Head = m.Tail
		return m, nil
	}
	m.Head, err = h.head(off)
	return m, err
}

// lineEnd is the offset after the last newline before limit, 0 when there is none.
func (h *handle) lineEnd(limit int64) (int64, error) {
	b := make([]byte, min(block, limit))
	for at := limit; at > 0; {
		n := min(block, at)
		got, err := h.readAt(b[:n], at-n)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:got], '\n'); i >= 0 {
			return at - n + int64(i) + 1, nil
		}
		at -= n
	}
	return 0, nil
}

// AtEnd is the tail baseline of a file: the mark after the last newline at or
// before limit, or before its end when limit is negative or beyond it. It reads
// the partial last line, if there is one, in 64 KiB blocks, and at most 8 KiB more.
func AtEnd(path string, limit int64) (Mark, error) { return atEnd(path, limit, nil) }

func atEnd(path string, limit int64, stats *Stats) (Mark, error) {
	h, err := open(path, stats)
	if err != nil {
		return Mark{}, fmt.Errorf("find end of artifact: %w", err)
	}
	defer h.close()
	if limit < 0 || limit > h.size {
		limit = h.size
	}
	off, err := h.lineEnd(limit)
	if err != nil {
		return Mark{}, fmt.Errorf("find end of artifact: %w", err)
	}
	m, err := h.mark(off)
	if err != nil {
		return Mark{}, fmt.Errorf("mark end of artifact: %w", err)
	}
	return m, nil
}
