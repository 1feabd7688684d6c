package providers

import "fmt"

// MaxRecord is the longest record that is read, in bytes without its newline.
// A longer one is skipped and reported as a gap.
const MaxRecord = 4 << 20

// Gap says why bytes of an artifact could not become a record.
type Gap string

const (
	// Whole is no gap: Data holds the record.
	Whole Gap = ""
	// Oversized is a record over MaxRecord.
	Oversized Gap = "oversized"
	// Malformed is a complete line that is not a JSON object.
	Malformed Gap = "malformed"
	// TooDeep is JSON nested deeper than 512 levels.
	TooDeep Gap = "too_deep"
	// Padding is a run of NUL bytes, as a crash leaves it.
	Padding Gap = "padding"
)

// Record is one raw unit of an artifact, or the gap where one should be.
type Record struct {
	Start, End int64  // byte range in the artifact, newline included
	Data       []byte // one valid JSON object, without its newline; nil for a gap. Only valid during the call
	Gap        Gap
}

// Failure is the observer_failure draft for a gap. Its text names the kind, the
// provider and the byte range, never a path and never content.
func (r Record) Failure(provider string) Draft {
	n := r.End - r.Start
	var what string
	switch r.Gap {
	case Oversized:
		what = fmt.Sprintf("%s record at byte %d is longer than %d bytes: %d bytes skipped", provider, r.Start, MaxRecord, n)
	case TooDeep:
		what = fmt.Sprintf("%s record at byte %d is nested too deeply: %d bytes skipped", provider, r.Start, n)
	case Padding:
		what = fmt.Sprintf("%s artifact has a run of %d NUL bytes at byte %d: skipped", provider, n, r.Start)
	default:
		what = fmt.Sprintf("%s record at byte %d is not a JSON object: %d bytes skipped", provider, r.Start, n)
	}
	return Draft{
		Key:         fmt.Sprintf("gap/%d", r.Start),
		Kind:        ObserverFailure,
		Recoverable: true,
		Detail:      what,
	}
}
