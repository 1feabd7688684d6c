package tail

import (
	"bytes"
	"fmt"

	"steno/providers"
)

// First is the first complete record that is a JSON object, for what a header
// tells. It looks at most max bytes into the file (MaxRecord and its newline when
// max is not positive) and gives nil when there is none yet.
func First(path string, max int64) ([]byte, error) { return first(path, max, nil) }

func first(path string, most int64, stats *Stats) ([]byte, error) {
	h, err := open(path, stats)
	if err != nil {
		return nil, fmt.Errorf("read first record: %w", err)
	}
	defer h.close()
	if most <= 0 || most > batchMax {
		most = providers.MaxRecord + 1
	}
	most = min(most, h.size)
	var buf []byte
	var recs []providers.Record
	off := 0 // where the first line that is not yet read starts
	for int64(len(buf)) < most {
		// Headers are short as a rule: a page first, then twice as much each time.
		have := len(buf)
		next := make([]byte, min(most, max(window, 2*int64(have))))
		copy(next, buf)
		n, err := h.readAt(next[have:], int64(have))
		if err != nil {
			return nil, fmt.Errorf("read first record: %w", err)
		}
		if n == 0 {
			break
		}
		buf = next[:have+n]
		for {
			n := bytes.IndexByte(buf[off:], '\n')
			if n < 0 {
				break
			}
			recs = line(recs[:0], buf[off:off+n], int64(off), int64(off+n+1))
			off += n + 1
			for _, r := range recs {
				if r.Gap == providers.Whole {
					return bytes.Clone(r.Data), nil
				}
			}
		}
	}
	return nil, nil
}
