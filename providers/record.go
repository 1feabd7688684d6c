package providers

import "fmt"

const (
	// MaxRecord is the longest record of Lines and Rows that is read, in bytes
	// without its newline. A longer one is skipped and reported as a gap.
	MaxRecord = 4 << 20
	// MaxDocument is the same for Document.
	MaxDocument = 64 << 20
)

// Gap says why a part of an artifact could not become a record.
type Gap string

const (
	// Whole is no gap: Data holds the record.
	Whole Gap = ""
	// Oversized is a record over MaxRecord, or MaxDocument.
	Oversized Gap = "oversized"
	// Malformed is a complete line, or row, that is not a JSON object.
	Malformed Gap = "malformed"
	// TooDeep is JSON nested deeper than 512 levels.
	TooDeep Gap = "too_deep"
	// Padding is a run of NUL bytes, as a crash leaves it.
	Padding Gap = "padding"
)

// Record is one raw unit of an artifact, or the gap where one should be.
type Record struct {
	// Start and End are the byte range in the artifact, newline included; of
	// Rows they are the sequence of the row and the next one.
	Start, End int64
	Data       []byte // one valid JSON object, without its newline; nil for a gap. Only valid during the call
	Gap        Gap
	Framing    Framing
	Size       int64 // bytes of a row that is a gap; 0 otherwise
}

// Failure is the observer_failure draft for a gap. Its text names the kind, the
// provider and the byte range or row, never a path and never content.
func (r Record) Failure(provider string) Draft {
	return Draft{
		Key:         fmt.Sprintf("gap/%d", r.Start),
		Kind:        ObserverFailure,
		Recoverable: true,
		Detail:      r.what(provider),
	}
}

func (r Record) what(provider string) string {
	n := r.End - r.Start
	switch {
	case r.Framing == Rows && r.Gap == Oversized:
		return fmt.Sprintf("%s record in row %d is longer than %d bytes: %d bytes skipped", provider, r.Start, MaxRecord, r.Size)
	case r.Framing == Rows && r.Gap == TooDeep:
		return fmt.Sprintf("%s record in row %d is nested too deeply: %d bytes skipped", provider, r.Start, r.Size)
	case r.Framing == Rows:
		return fmt.Sprintf("%s record in row %d is not a JSON object: %d bytes skipped", provider, r.Start, r.Size)
	case r.Framing == Document && r.Gap == Oversized:
		return fmt.Sprintf("%s document is longer than %d bytes: not read", provider, MaxDocument)
	case r.Framing == Document:
		return fmt.Sprintf("%s document is nested too deeply: not read", provider)
	case r.Gap == Oversized:
		return fmt.Sprintf("%s record at byte %d is longer than %d bytes: %d bytes skipped", provider, r.Start, MaxRecord, n)
	case r.Gap == TooDeep:
		return fmt.Sprintf("%s record at byte %d is nested too deeply: %d bytes skipped", provider, r.Start, n)
	case r.Gap == Padding:
		return fmt.Sprintf("%s artifact has a run of %d NUL bytes at byte %d: skipped", provider, n, r.Start)
	}
	return fmt.Sprintf("%s record at byte %d is not a JSON object: %d bytes skipped", provider, r.Start, n)
}
