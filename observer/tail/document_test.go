package tail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

// put writes a document so that its time differs from the last one's.
func put(t *testing.T, path, text string, step int) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2026, 1, 2, 3, 4, step, 0, time.UTC)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

func changedAt(t *testing.T, path string) time.Time {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return time.Unix(st.Ctim.Unix())
}

func read1(t *testing.T, d *Document) string {
	t.Helper()
	b, err := d.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case b.Reset != providers.Same || b.More:
		t.Fatalf("Read = %+v", b)
	case len(b.Records) == 0:
		return ""
	case b.Records[0].Gap != providers.Whole:
		return string(b.Records[0].Gap)
	}
	if r := b.Records[0]; r.Start != d.Offset()-1 || r.End != d.Offset() || r.Framing != providers.Document {
		t.Fatalf("record %d..%d (%v) at offset %d", r.Start, r.End, r.Framing, d.Offset())
	}
	return string(b.Records[0].Data)
}

// Field list: C26, C27.
func TestDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.json")
	d, err := NewDocument(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Read without a file = %v", err)
	}
	deep := strings.Repeat(`{"a":`, depthMax+1) + "1" + strings.Repeat("}", depthMax+1)
	for i, step := range []struct{ text, want string }{
		{``, ``},
		{`{"a":1`, ``}, // being written
		{"\xef\xbb\xbf{\n \"a\": 1\n}\n", "{\n \"a\": 1\n}"},
		{"\xef\xbb\xbf{\n \"a\": 1\n}\n", ``}, // written again as it was
		{`{"a":1,"b":[2]}`, `{"a":1,"b":[2]}`},
		{`{"a":1} {"a":2}`, ``}, // not one object
		{`[1]`, ``},
		{`{"a":1,"b":[2]}`, ``},
		{deep, string(providers.TooDeep)},
		{`{}`, `{}`},
	} {
		put(t, path, step.text, i)
		if got := read1(t, d); got != step.want {
			t.Errorf("step %d: Read = %q, want %q", i, got, step.want)
		}
		if got := read1(t, d); got != "" {
			t.Errorf("step %d: the same version again: %q", i, got)
		}
	}
}

// A version that was young when it was read is looked at again: another one of its
// size in the same tick of the kernel's clock would not show. One whose time is long
// past, or far ahead, is read once.
func TestDocumentOfOneTick(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.json")
	for _, tt := range []struct {
		age   time.Duration
		young bool
	}{{0, true}, {settled - 1, true}, {1 - settled, true}, {settled, false}, {time.Hour, false}, {-time.Hour, false}} {
		d, err := NewDocument(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var changed time.Time
		d.Stats, d.now = &Stats{}, func() time.Time { return changed.Add(tt.age) }
		for i, text := range []string{`{"v":1}`, `{"v":2}`, `{"v":3}`} {
			was := changed
			for first := true; first || !tt.young && !changed.After(was); first = false { // the kernel's clock goes on
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				changed = changedAt(t, path)
			}
			for range 3 {
				if got := read1(t, d); got != text {
					t.Errorf("age %v, version %d: %q, want %q", tt.age, i+1, got, text)
				}
				text = ""
			}
		}
		want := int64(3)
		if tt.young {
			want = 9
		}
		if n := d.Stats.Opens.Load(); n != want {
			t.Errorf("age %v: %d reads, want %d", tt.age, n, want)
		}
	}
}

// A version of the same size that was given the modification time of the one
// before is told.
//
// Field list: C26, C27.
func TestDocumentWithTheSameTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.json")
	d, err := NewDocument(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.now = func() time.Time { return time.Now().Add(time.Hour) } // it is settled
	var changed time.Time
	for i, text := range []string{`{"v":1}`, `{"v":2}`, `{"v":3}`} {
		for was := changed; !changed.After(was); { // the kernel's clock goes on
			put(t, path, text, 1)
			changed = changedAt(t, path)
		}
		if got := read1(t, d); got != text {
			t.Errorf("version %d: %q", i+1, got)
		}
	}
}

// Another file of the same size and time takes the document's place.
func TestDocumentReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.json")
	d, err := NewDocument(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"v":1}`, `{"v":2}`, `{"v":1}`} {
		put(t, path+".new", text, 1)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if got := read1(t, d); got != text {
			t.Errorf("Read = %q, want %q", got, text)
		}
	}
}

// A mark goes on behind its version, and takes back one that was not saved.
func TestDocumentMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.json")
	put(t, path, `{"v":1}`, 1)
	d, err := NewDocument(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read1(t, d); got != `{"v":1}` {
		t.Fatalf("Read = %q", got)
	}
	after, err := d.MarkAt(1)
	if err != nil {
		t.Fatal(err)
	}
	before, err := d.MarkAt(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.MarkAt(2); !errors.Is(err, ErrBorder) {
		t.Errorf("MarkAt(2) = %v", err)
	}
	for _, tt := range []struct {
		name string
		mark []byte
		want string
	}{{"after", after, ""}, {"before", before, `{"v":1}`}} {
		again, err := NewDocument(path, tt.mark)
		if err != nil {
			t.Fatal(err)
		}
		if got := read1(t, again); got != tt.want {
			t.Errorf("%s: Read = %q, want %q", tt.name, got, tt.want)
		}
	}
	end, err := DocumentAtEnd(path)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DocumentBack(path, end)
	if err != nil {
		t.Fatal(err)
	}
	r, ok, err := back.Next()
	if !ok || err != nil || string(r.Data) != `{"v":1}` {
		t.Errorf("Next = %+v, %v, %v", r, ok, err)
	}
	if _, ok, _ := back.Next(); ok {
		t.Error("there is only one version to go back to")
	}
	put(t, path, `{"v":2}`, 2)
	if _, err := DocumentBack(path, end); !errors.Is(err, ErrChanged) {
		t.Errorf("DocumentBack of another version = %v", err)
	}
	for _, bad := range [][]byte{{}, {docForm}, []byte("x"), append([]byte{markForm}, after[1:]...), append([]byte{docForm, 0xff}, after[2:]...)} {
		if _, err := NewDocument(path, bad); !errors.Is(err, ErrMark) {
			t.Errorf("NewDocument of mark %q = %v", bad, err)
		}
	}
}

// A document that is too long is one gap, however often it is written.
func TestDocumentTooLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.json")
	d, err := NewDocument(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, `{}`, 0)
	if err := os.Truncate(path, providers.MaxDocument+1); err != nil {
		t.Fatal(err)
	}
	if got := read1(t, d); got != string(providers.Oversized) {
		t.Fatalf("Read = %q", got)
	}
	if err := os.Truncate(path, providers.MaxDocument+2); err != nil {
		t.Fatal(err)
	}
	if got := read1(t, d); got != "" {
		t.Fatalf("Read of the next long version = %q", got)
	}
	put(t, path, `{"short":1}`, 3)
	if got := read1(t, d); got != `{"short":1}` {
		t.Errorf("Read = %q", got)
	}
}
