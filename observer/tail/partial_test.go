package tail

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
)

// texts are the records of the next batch.
func texts(t *testing.T, f *File) (out []string) {
	t.Helper()
	b, err := f.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	if b.Reset != providers.Same {
		t.Fatalf("reset %q", b.Reset)
	}
	for _, r := range b.Records {
		out = append(out, string(r.Data))
	}
	return out
}

// A line that is not complete is no part of the proof of identity: it may be cut
// off or written anew, as long as what comes before it stays. What is known of it
// must not hide what stands there now, as long as its last 4 KiB tell.
func TestPartialLineChanges(t *testing.T) {
	first := `{"first":1}` + "\n"
	half := `{"text":"` + strings.Repeat("x", 3*window)
	for _, before := range []string{"", first, strings.Repeat(first, 1000)} {
		for name, then := range map[string]string{
			"cut to nothing":         "",
			"cut to a byte":          "{",
			"cut within a window":    half[:window/2],
			"cut by a byte":          half[:len(half)-1],
			"another of its length":  `{"a":1}` + "\n" + strings.Repeat("y", len(half)-8),
			"two lines in its place": `{"a":1}` + "\n" + `{"b":2}` + "\n",
			"its end, and more":      half + `"}` + "\n" + `{"b":2}` + "\n",
		} {
			path := filepath.Join(t.TempDir(), "s.jsonl")
			write(t, path, []byte(before+half))
			f := New(path, Mark{})
			for f.Offset() < int64(len(before)) {
				texts(t, f)
			}
			texts(t, f) // the half line, which gives nothing
			// In place: the inode stays.
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt([]byte(then), int64(len(before))); err != nil {
				t.Fatal(err)
			}
			if err := file.Truncate(int64(len(before) + len(then))); err != nil {
				t.Fatal(err)
			}
			file.Close()
			var want []string
			if i := strings.LastIndexByte(then, '\n'); i >= 0 {
				want = strings.Split(then[:i], "\n")
			}
			var got []string
			for {
				more := texts(t, f)
				if len(more) == 0 {
					break
				}
				got = append(got, more...)
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s, after %d bytes: %.80q, want %.80q", name, len(before), got, want)
			}
		}
	}
}

// One Read looks at a bounded part of a line without an end, takes a bounded part
// of a large file, and a large batch's memory is not kept.
func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	hole := filepath.Join(dir, "hole")
	write(t, hole, nil)
	if err := os.Truncate(hole, 3*drainMax); err != nil {
		t.Fatal(err)
	}
	f := New(hole, Mark{})
	f.Stats = &Stats{}
	for round := range 2 {
		b, err := f.Read(0)
		if _, n := f.Stats.take(); err != nil || !b.More || n > drainMax+4*block {
			t.Errorf("round %d: %d bytes were read, more %v, %v", round, n, b.More, err)
		}
	}
	path := filepath.Join(dir, "large")
	write(t, path, bytes.Repeat([]byte(`{"text":"`+strings.Repeat("x", 10_000)+"\"}\n"), 3*batchMax/10_000))
	f = New(path, Mark{})
	b, err := f.Read(1 << 40)
	if size := f.Offset(); err != nil || !b.More || size > batchMax || size < batchMax/2 {
		t.Errorf("a batch of %d bytes, more %v, %v", size, b.More, err)
	}
	if _, err := f.Read(1000); err != nil || cap(f.buf) > keepMax {
		t.Errorf("%d bytes of memory are kept, %v", cap(f.buf), err)
	}
}
