package tail

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"steno/providers"
)

// pages is a file of three blocks of short records, then a record that is too long,
// then a short one.
func pages() (short, long, last []byte) {
	for i := 0; len(short) < 3*block; i++ {
		short = fmt.Appendf(short, "{\"n\":%d}\n", i)
	}
	long = append(bytes.Repeat([]byte("x"), providers.MaxRecord+2*block), '\n')
	return short, long, []byte("{\"last\":1}\n")
}

// backward reads from the end of a file.
func backward(t *testing.T, path string) *Backward {
	t.Helper()
	end, err := AtEnd(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Back(path, end)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file that gets shorter while it is read backwards is given up, wherever that
// is: what stands there now is another history.
func TestBackShorter(t *testing.T) {
	t.Parallel()
	short, long, last := pages()
	for _, tt := range []struct {
		name string
		file []byte
		give int // records before the file gets shorter
		most int // records after it, that are in memory
	}{
		{"among short records", short, 1, block / 9},
		{"in a long record", append(append(bytes.Clone(short), long...), last...), 1, 0},
		{"before a long record", append(bytes.Clone(long), short...), 1, block / 9},
		{"at once", append(bytes.Clone(short), long...), 0, 0},
	} {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		write(t, path, tt.file)
		b := backward(t, path)
		for range tt.give {
			if _, more, err := b.Next(); !more || err != nil {
				t.Fatalf("%s: %v, %v", tt.name, more, err)
			}
		}
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n++ {
			_, more, err := b.Next()
			if errors.Is(err, ErrChanged) {
				break
			}
			if err != nil || !more || n >= tt.most {
				t.Errorf("%s: %d records, then %v, %v; want ErrChanged", tt.name, n, more, err)
				break
			}
		}
		b.Close()
	}
}

// A limit inside a record that is too long ends the reading before it. The newline
// before a record has to be within the limit, too.
func TestBackLimitInLongRecord(t *testing.T) {
	t.Parallel()
	short, long, last := pages()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, append(append(bytes.Clone(short), long...), last...))
	size := int64(len(long) + len(last))
	for limit, want := range map[int64]int{
		int64(len(last)): 0, int64(len(last)) + 1: 1, size - block: 1, size - block/2: 1, size - 1: 1, size: 1, size + 1: 2, size + 100: 2, size + block: 2,
	} {
		b := backward(t, path)
		b.Limit = limit
		var got []providers.Record
		for {
			r, more, err := b.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !more || len(got) == 2 {
				break
			}
			got = append(got, r)
		}
		b.Close()
		if len(got) != want || want > 1 && (got[1].Gap != providers.Oversized || got[1].End-got[1].Start != int64(len(long))) {
			t.Errorf("limit %d of %d: %d records, want %d: %+v", limit, size, len(got), want, got[min(1, len(got)):])
		}
	}
}
