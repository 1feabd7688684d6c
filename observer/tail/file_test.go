package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

// long is a file of n lines, whose first 4 KiB and last 4 KiB do not overlap.
func long(n int, word string) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "{\"n\":%d,\"w\":%q}\n", i, word)
	}
	return b.Bytes()
}

// The file-identity probe, and C1, C3, C5, C6, C7, C8, B5: what is the same file.
func TestIdentity(t *testing.T) {
	old := long(1000, "old")
	head := old[:window+100]
	cut := bytes.LastIndexByte(head, '\n') + 1
	over := func(t *testing.T, path string, data []byte) {
		write(t, path+".tmp", data)
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	more := []byte("{\"more\":1}\n")
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, path string)
		want   providers.Reset
	}{
		{"append", func(t *testing.T, p string) { add(t, p, more) }, providers.Same},
		{"touched only", func(t *testing.T, p string) { os.Chtimes(p, time.Now(), time.Now()) }, providers.Same},
		{"C8 renamed over, same content and more", func(t *testing.T, p string) { over(t, p, join(old, more)) }, providers.Same},
		{"C6 truncated to nothing", func(t *testing.T, p string) { write(t, p, nil) }, providers.Truncated},
		{"truncated, shorter", func(t *testing.T, p string) { os.Truncate(p, int64(cut)) }, providers.Truncated},
		{"B5 truncated inside a line", func(t *testing.T, p string) { os.Truncate(p, int64(len(old)-3)) }, providers.Truncated},
		{"C1 rewritten, shorter", func(t *testing.T, p string) { write(t, p, long(900, "new")) }, providers.Rewritten},
		{"C1 rewritten, same size", func(t *testing.T, p string) { write(t, p, long(1000, "new")) }, providers.Rewritten},
		{"C7 truncated, then longer with the same head", func(t *testing.T, p string) { write(t, p, join(head, long(2000, "new"))) }, providers.Rewritten},
		{"renamed over, same head, longer", func(t *testing.T, p string) { over(t, p, join(head, long(2000, "new"))) }, providers.Replaced},
		{"renamed over, shorter", func(t *testing.T, p string) { over(t, p, long(3, "new")) }, providers.Replaced},
		{"C3 removed, made again", func(t *testing.T, p string) { os.Remove(p); write(t, p, long(1200, "new")) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.jsonl")
			write(t, path, old)
			f := New(path, Mark{})
			drain(t, f, 1<<20)
			m, err := f.MarkAt(f.Offset())
			if err != nil {
				t.Fatal(err)
			}
			tt.change(t, path)
			for _, f := range []*File{f, New(path, m)} {
				b, err := f.Read(1 << 20)
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(tt.name, "C3") { // the inode may come back or not
					if b.Reset != providers.Rewritten && b.Reset != providers.Replaced {
						t.Fatalf("Reset = %q", b.Reset)
					}
				} else if b.Reset != tt.want {
					t.Fatalf("Reset = %q, want %q", b.Reset, tt.want)
				}
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if end := int64(bytes.LastIndexByte(data, '\n') + 1); f.Offset() != end || b.Size != int64(len(data)) {
					t.Errorf("Offset = %d, Size = %d; want %d, %d", f.Offset(), b.Size, end, len(data))
				}
				if b.Reset != providers.Same && len(b.Records) > 0 {
					t.Errorf("%d records with a reset", len(b.Records))
				}
			}
			// Nothing is replayed, and what comes now is read, once.
			whole := New(path, f.mark)
			if f.Offset() != f.scanned {
				t.Fatalf("scanned = %d beyond %d", f.scanned, f.Offset())
			}
			data, _ := os.ReadFile(path)
			if n := len(data); n > 0 && data[n-1] != '\n' {
				add(t, path, []byte("\n"))
				drain(t, f, 1<<20)
				drain(t, whole, 1<<20)
			}
			add(t, path, []byte("{\"next\":1}\n"))
			for _, f := range []*File{f, whole} {
				got := drain(t, f, 1<<20)
				if len(got) != 1 || !strings.HasSuffix(got[0], ` {"next":1}`) {
					t.Errorf("after it: %q, want the next record", got)
				}
			}
		})
	}
}

// B5: half a line, truncated, a new line: nothing of the half stays.
func TestHalfLineThenTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	first := []byte("{\"a\":1}\n")
	write(t, path, append(bytes.Clone(first), []byte(`{"half":"`+strings.Repeat("x", 9000))...))
	f := New(path, Mark{})
	drain(t, f, 1<<20)
	if err := os.Truncate(path, int64(len(first))); err != nil {
		t.Fatal(err)
	}
	add(t, path, []byte("{\"b\":2}\n"+strings.Repeat("{\"c\":3}\n", 2000)))
	got := drain(t, f, 1<<20)
	if len(got) != 2001 || got[0] != `8-16 {"b":2}` {
		t.Errorf("%d records, first %q; want 2001 from the new line on", len(got), got[0])
	}
}

func TestGoneAndNotAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	write(t, path, []byte("{}\n"))
	f := New(path, Mark{})
	drain(t, f, 100)
	m := f.mark
	os.Remove(path)
	if _, err := f.Read(100); !errors.Is(err, fs.ErrNotExist) || f.mark != m {
		t.Errorf("Read = %v, mark changed: %v; want not exist and the same mark", err, f.mark != m)
	}
	// A FIFO that is named like a session: nobody writes, and nothing blocks.
	fifo := filepath.Join(dir, "b.jsonl")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{fifo, dir} {
		if _, err := New(p, Mark{}).Read(100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read = %v, want ErrNotRegular", err)
		}
		if _, err := AtEnd(p, -1); !errors.Is(err, ErrNotRegular) {
			t.Errorf("AtEnd = %v, want ErrNotRegular", err)
		}
		if _, err := Back(p, Mark{}); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Back = %v, want ErrNotRegular", err)
		}
		if _, err := First(p, 0); !errors.Is(err, ErrNotRegular) {
			t.Errorf("First = %v, want ErrNotRegular", err)
		}
		if in, err := Stat(p); err != nil || in.Regular {
			t.Errorf("Stat = %+v, %v; want not regular", in, err)
		}
	}
}

func TestMarkAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	data := long(1000, "w")
	write(t, path, data)
	f := New(path, Mark{})
	f.Read(5000)
	start := f.Offset()
	b, err := f.Read(5000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Records {
		m, err := f.MarkAt(r.End)
		if err != nil {
			t.Fatal(err)
		}
		want, err := AtEnd(path, r.End) // reads the file instead
		if err != nil || m != want {
			t.Fatalf("MarkAt(%d) = %+v, want %+v (%v)", r.End, m, want, err)
		}
	}
	if _, err := f.MarkAt(start); err != nil {
		t.Errorf("MarkAt(start) = %v", err)
	}
	for _, off := range []int64{start + 1, 0, -1, 1 << 40} {
		if _, err := f.MarkAt(off); !errors.Is(err, ErrBorder) {
			t.Errorf("MarkAt(%d) = %v, want ErrBorder", off, err)
		}
	}
	f.Release()
	if _, err := f.MarkAt(start); !errors.Is(err, ErrBorder) {
		t.Errorf("MarkAt(start) after Release = %v, want ErrBorder", err)
	}
	if m, err := f.MarkAt(f.Offset()); err != nil || m != f.mark {
		t.Errorf("MarkAt(Offset) after Release = %v", err)
	}
	if got := drain(t, f, 1<<20); len(got) == 0 {
		t.Error("nothing after Release")
	}
}

func TestMarkBinary(t *testing.T) {
	m := Mark{Dev: 1 << 63, Ino: 7, Offset: 1 << 40, Head: [32]byte{1}, Tail: [32]byte{31: 2}}
	b, err := m.MarshalBinary()
	if err != nil || len(b) > 256 {
		t.Fatalf("MarshalBinary = %d bytes, %v", len(b), err)
	}
	var got Mark
	if err := got.UnmarshalBinary(b); err != nil || got != m {
		t.Fatalf("UnmarshalBinary = %+v, %v; want %+v", got, err, m)
	}
	bad := map[string][]byte{"empty": nil, "short": b[:88], "long": append(bytes.Clone(b), 0), "version": append([]byte{9}, b[1:]...)}
	bad["negative"] = bytes.Clone(b)
	bad["negative"][17] = 0xff
	for name, b := range bad {
		if err := got.UnmarshalBinary(b); !errors.Is(err, ErrMark) || got != m {
			t.Errorf("%s: UnmarshalBinary = %v, want ErrMark and no change", name, err)
		}
	}
}

func TestAtEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	big := strings.Repeat("x", 3*block)
	write(t, path, []byte("{}\n{}\n"+big))
	for limit, want := range map[int64]int64{-1: 6, 0: 0, 2: 0, 3: 3, 5: 3, 6: 6, 7: 6, block + 7: 6, 1 << 40: 6} {
		if m, err := AtEnd(path, limit); err != nil || m.Offset != want {
			t.Errorf("AtEnd(%d) = %d, %v; want %d", limit, m.Offset, err, want)
		}
	}
	m, err := AtEnd(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	add(t, path, []byte("\n{\"a\":1}\n"))
	equal(t, "from the baseline", drain(t, New(path, m), 100), []string{
		show(providers.Record{Start: 6, End: 7 + 3*block, Gap: providers.Malformed}),
		fmt.Sprintf(`%d-%d {"a":1}`, 7+3*block, 15+3*block),
	})
}

func TestFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	for _, tt := range []struct {
		in   string
		max  int64
		want string
	}{
		{"", 0, ""},
		{`{"a":1}`, 0, ""},
		{"{\"a\":1}\n", 0, `{"a":1}`},
		{"{\"a\":1}\n", 8, `{"a":1}`},
		{"{\"a\":1}\n", 7, ""},
		{"\xef\xbb\xbf\n[1]\nx\n{\"a\":1}\n{}\n", 0, `{"a":1}`},
		{strings.Repeat(" ", 100_000) + "\n{\"a\":1}\n", 0, `{"a":1}`},
		{strings.Repeat(" ", 100_000) + "\n{\"a\":1}\n", 1000, ""},
	} {
		write(t, path, []byte(tt.in))
		if got, err := First(path, tt.max); err != nil || string(got) != tt.want {
			t.Errorf("First(%.20q, %d) = %q, %v; want %q", tt.in, tt.max, got, err, tt.want)
		}
	}
}

func TestStat(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	write(t, path, []byte("12345"))
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	in, err := Stat(link)
	if err != nil || !in.Regular || in.Size != 5 {
		t.Fatalf("Stat = %+v, %v; want the file of 5 bytes", in, err)
	}
	plain, err := plainStat(path)
	if err != nil || in.Dev != plain.Dev || in.Ino != plain.Ino || !in.Changed.Equal(plain.Changed) || in.Changed.IsZero() || !plain.Regular {
		t.Errorf("statx says %+v, stat %+v, %v", in, plain, err)
	}
	if !in.Born.IsZero() && in.Born.After(in.Changed.Add(time.Second)) {
		t.Errorf("born %v, after its change %v", in.Born, in.Changed)
	}
	if _, err := Stat(filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat = %v, want not exist", err)
	}
	h, err := open(link, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if h.dev != in.Dev || h.ino != in.Ino {
		t.Errorf("open says %d:%d, Stat %d:%d", h.dev, h.ino, in.Dev, in.Ino)
	}
}
