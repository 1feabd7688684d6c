package tail

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// Very short records: a batch is bounded by their number, and the bytes of the
// file are still read only a few times.
func TestTinyRecords(t *testing.T) {
	const tiny = 300_000
	path := filepath.Join(t.TempDir(), "a.jsonl")
	usual := []byte(`{"text":"` + strings.Repeat("x", 1013) + "\"}\n")
	data := bytes.Join([][]byte{
		bytes.Repeat([]byte("{}\n"), tiny), bytes.Repeat(usual, 3000), bytes.Repeat([]byte("{}\n"), tiny),
		[]byte(strings.Repeat("{}", piecesMax) + "\n"), usual,
	}, nil)
	write(t, path, data)
	stats := new(Stats)
	f := New(path, Mark{})
	f.Stats = stats
	n, more := 0, true
	for more {
		at := f.Offset()
		b, err := f.Read(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Records) > recordsMax+piecesMax {
			t.Fatalf("%d records in a batch", len(b.Records))
		}
		for i, r := range b.Records {
			if r.Start != at {
				t.Fatalf("record %d starts at %d, want %d", n+i, r.Start, at)
			}
			at = r.End
		}
		if at != f.Offset() {
			t.Fatalf("the batch ends at %d, its records at %d", f.Offset(), at)
		}
		if _, err := f.MarkAt(at); err != nil {
			t.Fatal(err)
		}
		n, more = n+len(b.Records), b.More
	}
	if want := 2*tiny + 3000 + piecesMax + 1; n != want || f.Offset() != int64(len(data)) {
		t.Errorf("%d records up to byte %d, want %d up to %d", n, f.Offset(), want, len(data))
	}
	if _, read := stats.take(); read > 4*int64(len(data)) {
		t.Errorf("%d bytes read of a file of %d", read, len(data))
	}
}
