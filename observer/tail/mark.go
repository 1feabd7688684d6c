package tail

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	// ErrNotRegular is returned when the path names no regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrChanged is returned by Back when the file is not the one of the mark.
	ErrChanged = errors.New("file is not the one of the mark")
	// ErrBorder is returned by MarkAt for a place that is no border of the last batch.
	ErrBorder = errors.New("not a record border of the last batch")
	// ErrMark is returned when bytes are not a mark of a known version.
	ErrMark = errors.New("not a mark")
)

const (
	window   = 4 << 10  // bytes that a hash covers
	block    = 64 << 10 // bytes of one read while draining or going backwards
	markLen  = 1 + 3*8 + 2*sha256.Size
	markForm = 1
)

// Mark is a place in a file and the proof that it is this file. The zero Mark is
// the start of any file.
type Mark struct {
	Dev, Ino uint64   // only explain a mismatch
	Offset   int64    // byte offset, a record border
	Head     [32]byte // SHA-256 of the first min(4 KiB, Offset) bytes
	Tail     [32]byte // SHA-256 of the min(4 KiB, Offset) bytes before Offset
}

// MarshalBinary gives the mark as 89 bytes, the first being the version.
func (m Mark) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, markLen)
	b = append(b, markForm)
	b = binary.BigEndian.AppendUint64(b, m.Dev)
	b = binary.BigEndian.AppendUint64(b, m.Ino)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Offset))
	b = append(b, m.Head[:]...)
	return append(b, m.Tail[:]...), nil
}

// UnmarshalBinary reads what MarshalBinary gave. On an error m is unchanged.
func (m *Mark) UnmarshalBinary(b []byte) error {
	if len(b) != markLen || b[0] != markForm {
		return fmt.Errorf("%w: %d bytes", ErrMark, len(b))
	}
	off := int64(binary.BigEndian.Uint64(b[17:]))
	if off < 0 {
		return fmt.Errorf("%w: negative offset", ErrMark)
	}
	m.Dev, m.Ino, m.Offset = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:]), off
	copy(m.Head[:], b[25:])
	copy(m.Tail[:], b[57:])
	return nil
}

// last gives the hash of the last min(4 KiB, off) bytes of b, which ends at off.
func last(b []byte, off int64) [32]byte {
	return sha256.Sum256(b[int64(len(b))-min(window, off):])
}
