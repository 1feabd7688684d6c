package tail

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"steno/providers"
)

func (s *Stats) take() (opens, n int64) { return s.Opens.Swap(0), s.Bytes.Swap(0) }

// Invariant 11, C15, C16: the cost is that of the appended bytes, whatever the size.
func TestCostIsTheAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	one := []byte(`{"text":"` + strings.Repeat("x", 1013) + "\"}\n")
	data := bytes.Repeat(one, 50<<20/len(one))
	write(t, path, data)
	m, err := AtEnd(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	stats := new(Stats)
	f := New(path, m)
	f.Stats = stats
	check := func(what string, records int, opens, most int64) {
		t.Helper()
		b, err := f.Read(1 << 20)
		if err != nil || len(b.Records) != records || b.More {
			t.Fatalf("%s: %d records, more %v, %v; want %d", what, len(b.Records), b.More, err, records)
		}
		if o, n := stats.take(); o != opens || n > most {
			t.Errorf("%s: %d opens and %d bytes, want %d and at most %d", what, o, n, opens, most)
		}
	}
	check("nothing new", 0, 1, window)
	n := int64(len(one))
	for range 3 {
		add(t, path, one)
		check("one record", 1, 1, n+window)
	}
	add(t, path, bytes.Repeat(one, 100))
	check("a hundred", 100, 1, 100*n+window)
	// A line in pieces: each costs itself, and the whole once more at its end.
	for range 5 {
		add(t, path, []byte(strings.Repeat("x", 50_000)))
		check("a piece", 0, 1, 50_000+window)
	}
	add(t, path, []byte("\n"))
	check("its end", 1, 1, 250_002+2*window)

	// The whole file, in order: each batch reads at most its cut last line twice.
	f = New(path, Mark{})
	f.Stats = stats
	drain(t, f, 1<<20)
	opens, bytesRead := stats.take()
	size := f.Offset()
	if most := size + opens*(window+n) + 260_000; bytesRead > most {
		t.Errorf("the whole file of %d bytes: %d read, want at most %d", size, bytesRead, most)
	}

	// Backwards: a block, and what the mark needs.
	b, err := back(path, f.mark, stats)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 3 {
		if _, ok, err := b.Next(); !ok || err != nil {
			t.Fatalf("Next = %v, %v", ok, err)
		}
	}
	if _, n := stats.take(); n > 250_000+2*block+window {
		t.Errorf("three records backwards: %d bytes read", n)
	}
	if _, err := first(path, 0, stats); err != nil {
		t.Fatal(err)
	}
	if _, n := stats.take(); n > window {
		t.Errorf("First: %d bytes read", n)
	}
}

// Pitfalls 23, 24: a line without end waits at its start, is never read twice,
// and costs constant memory; with its end it is one gap.
func TestEndlessLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, []byte("{\"a\":1}\n"))
	const size = 1 << 30
	if err := os.Truncate(path, size); err != nil {
		t.Skipf("no sparse files: %v", err)
	}
	stats := new(Stats)
	f := New(path, Mark{})
	f.Stats = stats
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := drain(t, f, 1<<20); len(got) != 1 || f.Offset() != 8 {
		t.Fatalf("records %q, offset %d; want the first and 8", got, f.Offset())
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	opens, n := stats.take()
	if n > size+opens*(window+1<<20) {
		t.Errorf("first time: %d bytes read", n)
	}
	if b, err := f.Read(1 << 20); err != nil || b.More || len(b.Records) > 0 {
		t.Fatalf("Read = %+v, %v", b, err)
	}
	if o, n := stats.take(); o != 1 || n > window {
		t.Errorf("second time: %d opens, %d bytes read", o, n)
	}
	add(t, path, []byte("x\n{\"b\":2}\n"))
	got := drain(t, f, 1<<20)
	gap := show(providers.Record{Start: 8, End: size + 2, Gap: providers.Oversized})
	if len(got) != 2 || got[0] != gap {
		t.Errorf("records %q, want %q and one more", got, gap)
	}
	if _, n := stats.take(); n > 4*window {
		t.Errorf("the end of the line: %d bytes read", n)
	}
	m, err := AtEnd(path, -1)
	if err != nil || m != f.mark {
		t.Errorf("mark %+v, want %+v (%v)", f.mark, m, err)
	}

	runtime.ReadMemStats(&before)
	b, err := Back(path, f.mark)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.Limit = 2 << 30
	for i, want := range []string{got[1], gap, `0-8 {"a":1}`} {
		r, ok, err := b.Next()
		if err != nil || !ok || show(r) != want {
			t.Fatalf("Next %d = %q, %v, %v; want %q", i, show(r), ok, err, want)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 {
		t.Errorf("backwards: %d bytes allocated", n)
	}
}

// Field list: B20.
func TestBackLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, bytes.Repeat([]byte("{\"a\":1}\n"), 100_000))
	m, err := AtEnd(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]int{1: 0, 8: 0, 9: 1, 80: 9, block: block/8 - 1, block + 16: block/8 + 1, 800_000: 100_000, 1 << 40: 100_000} {
		b, err := Back(path, m)
		if err != nil {
			t.Fatal(err)
		}
		b.Limit = limit
		n := 0
		for {
			_, ok, err := b.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			n++
		}
		b.Close()
		if n != want {
			t.Errorf("limit %d: %d records, want %d", limit, n, want)
		}
	}
	write(t, path, []byte("other\n"))
	if _, err := Back(path, m); err == nil {
		t.Error("Back took another file")
	}
}
