package tail

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"steno/providers"
)

// docForm is the version of a document's mark; the first byte tells it from a
// Mark.
const docForm = 2

// docMark is a version of a document: how many were seen up to it, and which it
// was.
type docMark struct {
	seen int64
	sum  [32]byte // SHA-256 of its bytes; zero for one that is too long to read
}

// encode gives the mark as 41 bytes.
func (m docMark) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{docForm}, uint64(m.seen))
	return append(b, m.sum[:]...)
}

func decodeDocMark(b []byte) (docMark, error) {
	var m docMark
	if len(b) != 1+8+sha256.Size || b[0] != docForm {
		return m, fmt.Errorf("%w: %d bytes of a document", ErrMark, len(b))
	}
	m.seen = int64(binary.BigEndian.Uint64(b[1:]))
	if m.seen < 0 {
		return docMark{}, fmt.Errorf("%w: negative count", ErrMark)
	}
	copy(m.sum[:], b[9:])
	return m, nil
}

// Document reads an artifact that its program rewrites as a whole: every version
// that is one JSON object and differs from the one before is a record. It is a
// providers.Cursor. What is being written, and so is no JSON yet, is not there
// yet; the write that completes it is another change. Versions between two reads
// are not seen.
//
// Cost: a read of the whole file, at most providers.MaxDocument bytes, whenever
// its inode, size or time of change differ from the last one's, or it was that young then;
// nothing otherwise.
type Document struct {
	// Stats counts the work, when it is not nil.
	Stats *Stats

	path        string
	mark, start docMark // after and before the last batch
	last        Info    // of the version that was read last; zero for a young one

	now func() time.Time
}

// settled is how old a file's last change must be, so that the next one shows in
// its time: the kernel's clock for that has a tick of up to 10 ms.
const settled = 50 * time.Millisecond

// NewDocument makes a reader that goes on behind the version of a mark, or
// before the first one when it is nil. It does no I/O.
func NewDocument(path string, mark []byte) (*Document, error) {
	d := &Document{path: path, now: time.Now}
	if mark == nil {
		return d, nil
	}
	m, err := decodeDocMark(mark)
	if err != nil {
		return nil, err
	}
	d.mark, d.start = m, m
	return d, nil
}

// Offset is how many versions were seen.
func (d *Document) Offset() int64 { return d.mark.seen }

// Release has nothing to free: a document is not kept.
func (d *Document) Release() { d.start = d.mark }

// MarkAt is the mark before or after the last version that was read.
func (d *Document) MarkAt(off int64) ([]byte, error) {
	switch off {
	case d.mark.seen:
		return d.mark.encode(), nil
	case d.start.seen:
		return d.start.encode(), nil
	}
	return nil, fmt.Errorf("mark at version %d: %w", off, ErrBorder)
}

// Read gives the version that is there now if it was not read before.
func (d *Document) Read(int) (providers.Batch, error) {
	d.start = d.mark
	read := d.now()
	info, err := Stat(d.path)
	if err != nil {
		return providers.Batch{}, err
	}
	if same(info, d.last) {
		return providers.Batch{Size: info.Size}, nil
	}
	r, sum, err := document(d.path, d.Stats)
	if err != nil {
		return providers.Batch{}, err
	}
	// The file's state before it was read: a later write differs, unless it is of
	// the same tick. Of a time that is to come nothing is known.
	if d.last = info; read.Sub(info.Changed).Abs() < settled {
		d.last = Info{}
	}
	if r == nil || d.mark.seen > 0 && sum == d.mark.sum {
		return providers.Batch{Size: info.Size}, nil
	}
	r.Start, r.End = d.mark.seen, d.mark.seen+1
	d.mark = docMark{seen: r.End, sum: sum}
	return providers.Batch{Records: []providers.Record{*r}, Size: info.Size}, nil
}

func same(a, b Info) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Changed.Equal(b.Changed) && !b.Changed.IsZero()
}

// document reads the version that is there; nil when it is not complete. The
// sum is that of the bytes, zero where they are too many.
func document(path string, stats *Stats) (*providers.Record, [32]byte, error) {
	h, err := open(path, stats)
	if err != nil {
		return nil, [32]byte{}, fmt.Errorf("read document: %w", err)
	}
	defer h.close()
	if h.size > providers.MaxDocument {
		return &providers.Record{Framing: providers.Document, Gap: providers.Oversized}, [32]byte{}, nil
	}
	data := make([]byte, h.size)
	n, err := h.readAt(data, 0)
	if err != nil {
		return nil, [32]byte{}, fmt.Errorf("read document: %w", err)
	}
	data = data[:n]
	text := bytes.Trim(bytes.TrimPrefix(data, bom), " \t\r\n")
	n, gap := object(text)
	if n != len(text) || n == 0 {
		return nil, [32]byte{}, nil
	}
	r := &providers.Record{Framing: providers.Document, Gap: gap}
	if gap == providers.Whole {
		r.Data = text
	}
	return r, sha256.Sum256(data), nil
}

// DocumentAtEnd is the mark behind the version that is there now.
func DocumentAtEnd(path string) ([]byte, error) {
	r, sum, err := document(path, nil)
	if err != nil {
		return nil, err
	}
	m := docMark{}
	if r != nil {
		m = docMark{seen: 1, sum: sum}
	}
	return m.encode(), nil
}

// DocumentBack gives the version of a mark, if it is still there, as the one
// record before it.
func DocumentBack(path string, mark []byte) (providers.Backward, error) {
	m, err := decodeDocMark(mark)
	if err != nil {
		return nil, err
	}
	r, sum, err := document(path, nil)
	switch {
	case err != nil:
		return nil, err
	case m.seen == 0:
		return &onlyRecord{}, nil
	case r == nil || sum != m.sum:
		return nil, fmt.Errorf("read document: %w", ErrChanged)
	}
	r.Start, r.End = m.seen-1, m.seen
	return &onlyRecord{r}, nil
}

// onlyRecord is the way back from a document's one version.
type onlyRecord struct{ r *providers.Record }

func (o *onlyRecord) Next() (providers.Record, bool, error) {
	r := o.r
	if o.r = nil; r == nil {
		return providers.Record{}, false, nil
	}
	return *r, true, nil
}

func (o *onlyRecord) Close() { o.r = nil }

// WholeDocument is the version that is there now, for what its header tells;
// nil while it is not complete or longer than providers.MaxDocument.
func WholeDocument(path string) ([]byte, error) {
	r, _, err := document(path, nil)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Data, nil
}

var _ providers.Cursor = (*Document)(nil)
