package tail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
)

// C5, B6: a writer appends, in pieces, and now and then renames another file over
// the artifact or rewrites it in place, while we read. Whatever the reader meets,
// it gives whole records of one generation in their order, none twice, and after
// the last change it is at the end.
func TestRotationDuringRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, nil)
	done := make(chan error, 1)
	go func() { done <- rotate(path) }() // ends by itself; joined below
	f := New(path, Mark{})
	gen, last, resets := 0, 0, 0
	read := func() (more bool) {
		b, err := f.Read(3000)
		if errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		if b.Reset != providers.Same {
			resets++
		}
		for _, r := range b.Records {
			var v struct{ Gen, N int }
			if r.Gap != "" {
				continue // bytes of two generations may meet when a file is rewritten under a read
			}
			if err := json.Unmarshal(r.Data, &v); err != nil {
				t.Fatalf("record at byte %d: %v", r.Start, err)
			}
			if v.Gen < gen || (v.Gen == gen && v.N <= last) {
				t.Fatalf("record %d of generation %d after %d of %d", v.N, v.Gen, last, gen)
			}
			gen, last = v.Gen, v.N
		}
		if m, err := f.MarkAt(f.Offset()); err != nil || m.Offset != f.Offset() {
			t.Fatalf("MarkAt = %+v, %v", m, err)
		}
		return b.More
	}
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
			read()
		}
	}
	for read() {
	}
	if resets == 0 {
		t.Error("the reader met no reset")
	}
	add(t, path, []byte("{\"gen\":1000,\"n\":1}\n"))
	for read() {
	}
	if gen != 1000 {
		t.Errorf("the last record is of generation %d", gen)
	}
}

func rotate(path string) error {
	pad := strings.Repeat("x", 200)
	for gen := 1; gen <= 20; gen++ {
		var body strings.Builder
		for n := 1; n <= 50; n++ {
			fmt.Fprintf(&body, "{\"gen\":%d,\"n\":%d,\"pad\":%q}\n", gen, n, pad)
		}
		next := path + ".next"
		if gen%3 == 0 {
			next = path // rewritten in place
		}
		if err := os.WriteFile(next, []byte(body.String()), 0o600); err != nil {
			return err
		}
		if next != path {
			if err := os.Rename(next, path); err != nil {
				return err
			}
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		for n := 51; n <= 100; n++ {
			line := fmt.Sprintf("{\"gen\":%d,\"n\":%d,\"pad\":%q}\n", gen, n, pad)
			for _, part := range []string{line[:n], line[n:]} {
				if _, err := f.WriteString(part); err != nil {
					f.Close()
					return err
				}
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
