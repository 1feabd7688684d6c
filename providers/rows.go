package providers

import "time"

// Reset says why what stands before a cursor is not what was read.
type Reset string

const (
	// Same is no reset.
	Same Reset = ""
	// Truncated: the same artifact became shorter than the offset.
	Truncated Reset = "truncated"
	// Rewritten: the same artifact has other content before the offset.
	Rewritten Reset = "rewritten"
	// Replaced: another artifact, with other content, has the path now.
	Replaced Reset = "replaced"
)

// Batch is what one read of an artifact found.
type Batch struct {
	Records []Record // in order; they and their Data are valid until the next Read or Release
	Reset   Reset    // when set there are no records, and Offset is the new baseline at the end
	More    bool     // another Read will find more work now
	Size    int64    // of the artifact: bytes, or one more than the newest row's sequence
}

// Cursor stands at a place in an artifact. It belongs to one goroutine at a
// time and holds nothing open between calls. An error changes no state.
type Cursor interface {
	// Read gives the next records, about max bytes of them but always at least
	// one if there is one. It wraps fs.ErrNotExist when the artifact is gone.
	Read(max int) (Batch, error)
	// Offset is the place after the last record that was read.
	Offset() int64
	// MarkAt is what a new cursor needs to go on at off, with proof that it is
	// the same artifact, at most 1 KiB: the offset, or the Start or End of a
	// record of the last batch. It reads nothing.
	MarkAt(off int64) ([]byte, error)
	// Release frees the memory of the last batch.
	Release()
}

// Backward gives records from a place back to the start, newest first.
type Backward interface {
	// Next is false when the start, or the limit of the look-back, was reached.
	// Data is valid until the next call.
	Next() (Record, bool, error)
	Close()
}

// RowReader is a Provider whose transcripts are rows of a database. It only
// reads, beside a live writer: no transaction is open for longer than 100 ms,
// and no call takes longer than 2 s. Calls come from any goroutine.
type RowReader interface {
	// Cursor goes on at a mark that MarkAt or AtEnd gave, or before the first
	// row when it is nil. It does no I/O.
	Cursor(a Artifact, mark []byte) (Cursor, error)
	// AtEnd is the mark after the newest row, or after the last row below
	// limit when limit is not negative.
	AtEnd(a Artifact, limit int64) ([]byte, error)
	// Back reads the rows before a mark; most bounds their bytes.
	Back(a Artifact, mark []byte, most int64) (Backward, error)
	// Born is when the session began; zero when it is not recorded. It wraps
	// fs.ErrNotExist when the session or its database is gone.
	Born(a Artifact) (time.Time, error)
}
