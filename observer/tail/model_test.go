package tail

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"steno/providers"
)

// show is a record as text, so that tables and comparisons read well.
func show(r providers.Record) string {
	if r.Gap != providers.Whole {
		return fmt.Sprintf("%d-%d %s", r.Start, r.End, r.Gap)
	}
	return fmt.Sprintf("%d-%d %s", r.Start, r.End, r.Data)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, path string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
}

// drain reads until there is no more, and fails on a reset.
func drain(t testing.TB, f *File, max int) []string {
	t.Helper()
	var out []string
	for i := 0; ; i++ {
		b, err := f.Read(max)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		if b.Reset != providers.Same {
			t.Fatalf("Read: reset %q", b.Reset)
		}
		for _, r := range b.Records {
			out = append(out, show(r))
		}
		if !b.More {
			return out
		}
		if i > 1<<20 {
			t.Fatal("Read never ends")
		}
	}
}

func reversed(t testing.TB, path string, m Mark) []string {
	t.Helper()
	b, err := Back(path, m)
	if err != nil {
		t.Fatalf("Back: %v", err)
	}
	defer b.Close()
	var out []string
	for {
		r, ok, err := b.Next()
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		if !ok {
			break
		}
		out = append(out, show(r))
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d\n got %.2000q\nwant %.2000q", what, len(got), len(want), got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: record %d = %.200q, want %.200q", what, i, got[i], want[i])
		}
	}
}

// FuzzRead: however the bytes come and however they are read, the records are
// the same, forwards and backwards, from the start and from each border (B2, B4).
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"{\"a\":1}\n{\"b\":2}\n",
		"\xef\xbb\xbf{\"a\":1}\r\n\n \t\n{\"b\":2}",
		"{\"a\":1}{\"b\":2}\n",
		"{\"a\":1,\"b{\"c\":2}\n{\"d\":3}\n",
		"\x00\x00\x00{\"a\":1}\n{\"x\":\"y\x00\x00\n",
		"{\"a\":1}\x00{\"t\":\"q\x00\x00{\"b\":2}\n",
		"nonsense\n[1]\n\"s\"\n{\"s\":\"\\ud83d\"}\n{\"s\":\"\xff\"}\n",
	} {
		f.Add([]byte(s), uint64(7), uint8(9))
	}
	f.Fuzz(func(t *testing.T, data []byte, cuts uint64, max uint8) {
		dir := t.TempDir()
		whole := filepath.Join(dir, "whole.jsonl")
		write(t, whole, data)
		one := New(whole, Mark{})
		want := drain(t, one, 8<<20)
		if got, end := one.Offset(), int64(bytes.LastIndexByte(data, '\n')+1); got != end {
			t.Fatalf("offset %d, want the last line end %d", got, end)
		}
		equal(t, "backwards", reversed(t, whole, one.mark), want)
		equal(t, "small batches", drain(t, New(whole, Mark{}), int(max)+1), want)
		grow(t, filepath.Join(dir, "grown.jsonl"), data, cuts, int(max)+1, want)
		borders(t, whole, want)
	})
}

// grow appends the data in pieces, reads after each, and restarts now and then.
func grow(t *testing.T, path string, data []byte, cuts uint64, max int, want []string) {
	t.Helper()
	f := New(path, Mark{})
	var got []string
	for i := 0; len(data) > 0; i++ {
		cuts = cuts*6364136223846793005 + 1442695040888963407
		n := int(1 + (cuts>>33)%uint64(min(len(data), 1+len(data)/4+3)))
		n = min(n, len(data))
		add(t, path, data[:n])
		data = data[n:]
		got = append(got, drain(t, f, max)...)
		if cuts>>62 == 0 {
			m, err := f.MarkAt(f.Offset())
			if err != nil {
				t.Fatalf("MarkAt(%d): %v", f.Offset(), err)
			}
			f = New(path, m)
		}
	}
	equal(t, "grown", got, want)
}

// borders goes on from each border of the whole file.
func borders(t *testing.T, path string, want []string) {
	t.Helper()
	f := New(path, Mark{})
	b, err := f.Read(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range min(len(b.Records), 16) {
		for _, off := range []int64{b.Records[i].Start, b.Records[i].End} {
			m, err := f.MarkAt(off)
			if err != nil {
				t.Fatalf("MarkAt(%d): %v", off, err)
			}
			rest := want[i:]
			if off == b.Records[i].End {
				rest = want[i+1:]
			}
			equal(t, fmt.Sprintf("from byte %d", off), drain(t, New(path, m), 1<<20), rest)
			equal(t, fmt.Sprintf("back from byte %d", off), reversed(t, path, m), want[:len(want)-len(rest)])
		}
	}
}
