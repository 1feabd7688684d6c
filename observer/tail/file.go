package tail

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"steno/providers"
)

const (
	batchMin = 64 << 10  // Read's max when it is not positive
	batchMax = 8 << 20   // Read's largest max
	drainMax = 64 << 20  // bytes of an over-long line that one Read looks at
	keepMax  = 512 << 10 // a larger buffer is not kept for the next batch

	recordsMax = 16 << 10 // records of a batch, besides those of its last line
)

// File reads one artifact forward. It belongs to one goroutine at a time and
// holds no descriptor between calls.
type File struct {
	// Stats counts the work, when it is not nil.
	Stats *Stats

	path string
	mark Mark // after the last record returned

	// No newline stands in [mark.Offset, scanned). probe is the hash of the
	// min(4 KiB, scanned) bytes before scanned; it is the proof while scanned is
	// ahead of the offset, so that a growing line is not read again and again.
	scanned int64
	probe   [32]byte

	// dense is how many bytes to read at most where records are so short that a
	// batch has enough of them before its bytes are used up; 0 = not known to be.
	dense int64

	// The last batch: the mark before it, its records, and the file's bytes from
	// base, which start 4 KiB before it (or at byte 0).
	start Mark
	recs  []providers.Record
	base  int64
	data  []byte
	buf   []byte
}

// New makes a reader that goes on at m. It does no I/O.
func New(path string, m Mark) *File {
	return &File{path: path, mark: m, start: m, scanned: m.Offset}
}

// Offset is the byte offset after the last record returned, and after the blank
// lines that followed it.
func (f *File) Offset() int64 { return f.mark.Offset }

// Release frees the memory of the last batch, whose records become invalid. Of
// the borders that MarkAt takes, the current offset remains.
func (f *File) Release() {
	f.start, f.recs, f.data, f.buf = f.mark, nil, nil, nil
}

// Read gives the next complete records, about max bytes of them but always at
// least one if there is one (64 KiB when max is not positive, at most 8 MiB). A
// batch without records may still have moved the offset over blank lines. An
// error leaves the place as it was; it wraps fs.ErrNotExist when the file is
// gone, and ErrNotRegular when the path names something else than a file.
func (f *File) Read(max int) (providers.Batch, error) {
	h, err := open(f.path, f.Stats)
	if err != nil {
		return providers.Batch{}, fmt.Errorf("read artifact: %w", err)
	}
	defer h.close()
	if max <= 0 {
		max = batchMin
	}
	f.start, f.recs, f.data = f.mark, f.recs[:0], nil
	if cap(f.buf) > keepMax {
		f.buf, f.recs = nil, nil
	}
	want := int64(min(max, batchMax))
	if f.dense >= want {
		f.dense = 0
	} else if f.dense > 0 {
		want = f.dense
	}
	b, err := f.read(h, want)
	if err != nil {
		return providers.Batch{}, fmt.Errorf("read artifact at byte %d: %w", f.mark.Offset, err)
	}
	return b, nil
}

func (f *File) read(h *handle, want int64) (providers.Batch, error) {
	if h.size < f.mark.Offset {
		return f.reset(h)
	}
	if f.scanned > h.size {
		f.scanned = f.mark.Offset
	}
	// The second round reads a line whose end the first one found. A third is
	// only needed when the file changes meanwhile.
	for range 3 {
		if f.scanned > f.mark.Offset {
			b, end, err := f.find(h)
			if err != nil || b != nil {
				return deref(b), err
			}
			want = max(want, end-f.mark.Offset)
		}
		b, err := f.lines(h, want)
		if err != nil || b != nil {
			return deref(b), err
		}
	}
	return providers.Batch{Size: h.size, More: true}, nil
}

func deref(b *providers.Batch) providers.Batch {
	if b == nil {
		return providers.Batch{}
	}
	return *b
}

// lines reads want bytes from the offset and takes the complete lines among
// them. It gives no batch when the first line is longer than that.
func (f *File) lines(h *handle, want int64) (*providers.Batch, error) {
	off := f.mark.Offset
	win := min(window, off)
	buf := f.room(win + min(want, h.size-off))
	n, err := h.readAt(buf, off-win)
	if err != nil {
		return nil, err
	}
	buf = buf[:n]
	if int64(n) < win || (win > 0 && sha256.Sum256(buf[:win]) != f.mark.Tail) {
		b, err := f.reset(h)
		return &b, err
	}
	f.mark.Dev, f.mark.Ino = h.dev, h.ino
	seen := off - win + int64(n)
	all := seen >= h.size || int64(n) < win+min(want, h.size-off)

	if i := bytes.LastIndexByte(buf[win:], '\n'); i >= 0 {
		f.base, f.data = off-win, buf[:win+int64(i)+1]
		var end int64
		f.recs, end = split(f.recs, f.data[win:], off)
		if f.dense *= 2; end < off+int64(i)+1 {
			f.data, f.dense, all = f.data[:end-f.base], end-off, false
		}
		f.mark = f.at(end)
	} else if !all {
		f.saw(buf, seen)
		return nil, nil
	}
	f.scanned = f.mark.Offset
	if all {
		f.saw(buf, seen)
	}
	return &providers.Batch{Records: f.recs, More: !all, Size: h.size}, nil
}

// saw remembers that b, which ends at byte seen, has no newline after the offset.
func (f *File) saw(b []byte, seen int64) {
	f.scanned, f.probe = seen, last(b, seen)
}

// find looks for the end of a line that is known up to scanned. It gives the
// offset after its newline, or a batch: nothing yet, or the gap when the line is
// too long to be a record. When the bytes before scanned have changed it goes
// back to the offset, where the tail hash decides.
func (f *File) find(h *handle) (*providers.Batch, int64, error) {
	at := f.scanned
	win := min(window, at)
	buf := f.room(window + block)
	for first := true; ; first = false {
		// What is before at stands in buf[:win] after the first round.
		have := win
		if first {
			have = 0
		}
		n, err := h.readAt(buf[have:win+min(block, h.size-at)], at-win+have)
		if err != nil {
			return nil, 0, err
		}
		got := have + int64(n)
		if first && (got < win || sha256.Sum256(buf[:win]) != f.probe) {
			f.scanned = f.mark.Offset
			return nil, f.mark.Offset, nil
		}
		piece := buf[win:got]
		if i := bytes.IndexByte(piece, '\n'); i >= 0 {
			end := at + int64(i) + 1
			if end-1-f.mark.Offset > providers.MaxRecord {
				b, err := f.skip(h, buf[:win+int64(i)+1], end)
				return b, 0, err
			}
			return nil, end, nil
		}
		at += int64(len(piece))
		keep := min(window, got)
		copy(buf, buf[got-keep:got])
		win = keep
		done := len(piece) == 0 || at >= h.size
		if done || at-f.scanned >= drainMax {
			f.saw(buf[:win], at)
			return &providers.Batch{More: !done, Size: h.size}, 0, nil
		}
	}
}

// skip steps over a line that is too long. b ends with its newline, at end.
func (f *File) skip(h *handle, b []byte, end int64) (*providers.Batch, error) {
	m := Mark{Dev: h.dev, Ino: h.ino, Offset: end, Head: f.mark.Head, Tail: last(b, end)}
	if f.mark.Offset < window {
		head, err := h.head(end)
		if err != nil {
			return nil, err
		}
		m.Head = head
	}
	f.recs = append(f.recs, providers.Record{Start: f.mark.Offset, End: end, Gap: providers.Oversized})
	f.mark, f.scanned = m, end
	return &providers.Batch{Records: f.recs, More: end < h.size, Size: h.size}, nil
}

// reset finds the word for what happened and goes to the new baseline.
func (f *File) reset(h *handle) (providers.Batch, error) {
	if err := h.stat(); err != nil {
		return providers.Batch{}, err
	}
	word := providers.Rewritten
	switch {
	case h.dev != f.mark.Dev || h.ino != f.mark.Ino:
		word = providers.Replaced
	case h.size < f.mark.Offset:
		word = providers.Truncated
		if h.size >= min(window, f.mark.Offset) {
			head, err := h.head(f.mark.Offset)
			if err != nil {
				return providers.Batch{}, err
			}
			if head != f.mark.Head {
				word = providers.Rewritten
			}
		}
	}
	off, err := h.lineEnd(h.size)
	if err != nil {
		return providers.Batch{}, err
	}
	m, err := h.mark(off)
	if err != nil {
		return providers.Batch{}, err
	}
	f.mark, f.start, f.scanned = m, m, off
	return providers.Batch{Reset: word, Size: h.size}, nil
}

// MarkAt is the mark at off: the current offset, or a border (Start or End of a
// record) of the last batch. It reads nothing. On a line with several records the
// borders inside it count too: reading on from there gives the records after it.
func (f *File) MarkAt(off int64) (Mark, error) {
	switch off {
	case f.mark.Offset:
		return f.mark, nil
	case f.start.Offset:
		return f.start, nil
	}
	if f.data != nil {
		for i := range f.recs {
			if f.recs[i].Start == off || f.recs[i].End == off {
				return f.at(off), nil
			}
		}
	}
	return Mark{}, fmt.Errorf("mark at byte %d: %w", off, ErrBorder)
}

// at makes the mark of a place in the bytes at hand. They start at byte 0 if the
// batch started before 4 KiB, so that the head is there as long as it can change.
func (f *File) at(off int64) Mark {
	m := Mark{Dev: f.mark.Dev, Ino: f.mark.Ino, Offset: off, Head: f.start.Head}
	m.Tail = last(f.data[:off-f.base], off)
	if f.base == 0 {
		m.Head = sha256.Sum256(f.data[:min(window, off)])
	}
	return m
}

// room gives a buffer of n bytes, with the old one's memory if it is enough.
func (f *File) room(n int64) []byte {
	if int64(cap(f.buf)) < n {
		f.buf = make([]byte, n)
	}
	return f.buf[:n]
}
