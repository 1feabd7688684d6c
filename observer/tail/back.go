package tail

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"steno/providers"
)

// lookBack is how many bytes a Backward reads unless Limit says otherwise.
const lookBack = 64 << 20

// Backward reads the complete records before a mark, newest first. It holds one
// descriptor until Close and belongs to one goroutine.
type Backward struct {
	// Limit bounds the look-back in bytes before the mark; 64 MiB when it is not
	// positive. It is set before the first Next.
	Limit int64

	h     *handle
	from  int64 // offset of the mark
	end   int64 // everything at or after it was given
	buf   []byte
	lo    int                // buf[lo:] holds the file's bytes from pos
	pos   int64              // file offset of buf[lo]
	recs  []providers.Record // of the current line, still to be given from the end
	ended bool
}

// Back opens the file to read what stands before m. It fails with ErrChanged
// when the file is not the one of the mark.
func Back(path string, m Mark) (*Backward, error) { return back(path, m, nil) }

func back(path string, m Mark, stats *Stats) (*Backward, error) {
	h, err := open(path, stats)
	if err != nil {
		return nil, fmt.Errorf("read artifact backwards: %w", err)
	}
	b := make([]byte, min(window, m.Offset))
	n, err := h.readAt(b, m.Offset-int64(len(b)))
	if err == nil && (n < len(b) || (n > 0 && sha256.Sum256(b) != m.Tail)) {
		err = ErrChanged
	}
	if err != nil {
		h.close()
		return nil, fmt.Errorf("read artifact backwards from byte %d: %w", m.Offset, err)
	}
	return &Backward{h: h, from: m.Offset, end: m.Offset, pos: m.Offset}, nil
}

// Close ends the reading. Records given become invalid.
func (b *Backward) Close() {
	if b.h != nil {
		b.h.close()
	}
	b.h, b.buf, b.recs, b.ended = nil, nil, nil, true
}

// Next gives the next older record or gap, and false when the start of the file
// or the limit was reached. Data is valid until the next call.
func (b *Backward) Next() (providers.Record, bool, error) {
	for len(b.recs) == 0 {
		if b.ended || b.end == 0 {
			return providers.Record{}, false, nil
		}
		if err := b.older(); err != nil {
			return providers.Record{}, false, fmt.Errorf("read artifact backwards from byte %d: %w", b.end, err)
		}
	}
	r := b.recs[len(b.recs)-1]
	b.recs = b.recs[:len(b.recs)-1]
	return r, true, nil
}

// older finds the line that ends at end, and its records.
func (b *Backward) older() error {
	// The last byte is the line's own newline, unless the mark is inside a line.
	own := 0
	if err := b.load(b.end - 1); err != nil || b.ended {
		return err
	}
	if b.at(b.end-1) == '\n' {
		own = 1
	}
	text := b.end - int64(own) // where the line's text ends
	for to := text; ; {        // everything from to is free of newlines
		if i := bytes.LastIndexByte(b.buf[b.lo:b.lo+int(to-b.pos)], '\n'); i >= 0 {
			return b.take(b.pos+int64(i)+1, text)
		}
		to = b.pos
		if to == 0 {
			return b.take(0, text)
		}
		if text-to > providers.MaxRecord {
			return b.over(to, text)
		}
		if err := b.load(to - 1); err != nil || b.ended {
			return err
		}
	}
}

// take gives the line whose text is [start, text).
func (b *Backward) take(start, text int64) error {
	i := b.lo + int(start-b.pos)
	b.recs = line(b.recs[:0], b.buf[i:i+int(text-start)], start, b.end)
	b.end = start
	return nil
}

// over looks for the start of a line that is too long, with one block of memory.
// Everything from to on is free of newlines.
func (b *Backward) over(to, text int64) error {
	b.buf = b.buf[:block]
	for {
		n := min(block, to-b.floor())
		if n <= 0 {
			b.ended = true
			return nil
		}
		got, err := b.h.readAt(b.buf[:n], to-n)
		if err != nil {
			return err
		}
		if int64(got) < n {
			return ErrChanged
		}
		i := bytes.LastIndexByte(b.buf[:n], '\n')
		if i < 0 && to-n > 0 {
			to -= n
			continue
		}
		start := to - n + int64(i) + 1
		b.recs = append(b.recs[:0], providers.Record{Start: start, End: b.end, Gap: providers.Oversized})
		b.buf, b.lo, b.pos, b.end = nil, 0, start, start
		return nil
	}
}

// load makes buf reach back to a block that has the byte at off.
func (b *Backward) load(off int64) error {
	if off >= b.pos && b.pos < b.end {
		return nil
	}
	// What is at or after end is not needed any more.
	used := b.buf[b.lo:]
	used = used[:max(0, b.end-b.pos)]
	n := int(min(block, b.pos-b.floor()))
	if n <= 0 {
		b.ended = true
		return nil
	}
	if b.lo < n {
		// Move what is needed to the end of the memory: lines grow to the front.
		next := b.buf[:cap(b.buf)]
		if len(next) < len(used)+n {
			next = make([]byte, max(2*block, 2*(len(used)+n)))
		}
		copy(next[len(next)-len(used):], used)
		b.buf, b.lo = next, len(next)-len(used)
	} else {
		b.buf = b.buf[:b.lo+len(used)]
	}
	got, err := b.h.readAt(b.buf[b.lo-n:b.lo], b.pos-int64(n))
	if err != nil {
		return err
	}
	if got < n {
		return ErrChanged
	}
	b.lo -= n
	b.pos -= int64(n)
	return nil
}

func (b *Backward) at(off int64) byte { return b.buf[b.lo+int(off-b.pos)] }

// floor is the first byte that the limit lets us read.
func (b *Backward) floor() int64 {
	most := b.Limit
	if most <= 0 {
		most = lookBack
	}
	return max(0, b.from-most)
}
