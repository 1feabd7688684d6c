package tail

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
)

func deep(n int) string {
	return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1)
}

// Rows of section B: what becomes of each kind of line. Text is cut to 40 bytes.
func TestLines(t *testing.T) {
	huge := `{"a":"` + strings.Repeat("x", providers.MaxRecord-8) + `"}` // exactly the limit
	if len(huge) != providers.MaxRecord {
		t.Fatalf("the longest record has %d bytes", len(huge))
	}
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"two lines", "{\"a\":1}\n{\"b\":2}\n", []string{`0-8 {"a":1}`, `8-16 {"b":2}`}},
		{"B2 partial last line stays", "{\"a\":1}\n{\"b\":", []string{`0-8 {"a":1}`}},
		{"nothing but a partial line", `{"a":1}`, nil},
		{"B15 byte order mark", "\xef\xbb\xbf{\"a\":1}\n\xef\xbb\xbf{}\n", []string{`0-11 {"a":1}`, `11-17 malformed`}},
		{"byte order mark alone", "\xef\xbb\xbf\n{}\n", []string{`4-7 {}`}},
		{"blank lines, carriage returns", "\n \t\r\n{\"a\":1}\r\n\n", []string{`5-14 {"a":1}`}},
		{"only a newline ends a record", "{\"a\":\r1}\u2028\n{}\r{}\n", []string{`0-8 {"a":` + "\r1}", `8-12 malformed`, `12-14 {}`, `14-18 {}`}},
		{"no objects", "[1]\n\"s\"\n1\nnull\n", []string{"0-4 malformed", "4-8 malformed", "8-10 malformed", "10-15 malformed"}},
		{"B10 one bad line", "{\"a\":1}\n{bad}\n{\"b\":2}\n", []string{`0-8 {"a":1}`, "8-14 malformed", `14-22 {"b":2}`}},
		{"B13 lone surrogate, broken UTF-8", "{\"a\":\"\\ud83d\"}\n{\"a\":\"\xff\xc0\"}\n", []string{`0-15 {"a":"\ud83d"}`, "15-26 {\"a\":\"\xff\xc0\"}"}},
		{"raw control character", "{\"a\":\"\x01\"}\n{}\n", []string{"0-10 malformed", "10-13 {}"}},
		{"two objects on a line", "{\"a\":1} {\"b\":2}\n", []string{`0-7 {"a":1}`, `7-16 {"b":2}`}},
		{"object and rubbish", "{\"a\":1}x\n", []string{`0-7 {"a":1}`, "7-9 malformed"}},
		{"rubbish and object: no proof", "\"}x{\"a\":1}\n", []string{"0-11 malformed"}},
		{"B7 NUL run before an object", "\x00\x00\x00{\"a\":1}\n", []string{"0-3 padding", `3-11 {"a":1}`}},
		{"B9 NUL run after an object", "{\"a\":1}\x00\x00\n", []string{`0-7 {"a":1}`, "7-10 padding"}},
		{"NUL run alone", "\x00\x00\x00\n", []string{"0-4 padding"}},
		{"NUL run without newline waits", "{}\n\x00\x00", []string{"0-3 {}"}},
		{"torn, NUL run, object", "{\"a\":\"x\x00\x00{\"b\":2}\n", []string{"0-7 malformed", "7-9 padding", `9-17 {"b":2}`}},
		{"torn inside a string", "{\"a\":1,\"b{\"c\":2}\n", []string{"0-9 malformed", `9-17 {"c":2}`}},
		{"torn after a value", "{\"a\":1{\"c\":2}\n", []string{"0-6 malformed", `6-14 {"c":2}`}},
		{"torn after a backslash", "{\"a\":\"\\{\"c\":2}\n", []string{"0-7 malformed", `7-15 {"c":2}`}},
		{"torn at a value: could be nested, no proof", "{\"a\":{\"c\":2}\n", []string{"0-13 malformed"}},
		{"cut after a nested object: no proof", "{\"t\":\"u\",\"m\":{\"r\":\"x\"}\n", []string{"0-23 malformed"}},
		{"torn, then two objects: not salvaged", "{\"b{\"c\":2}{\"d\":3}\n", []string{"0-18 malformed"}},
		{"deepest", deep(512) + "\n", []string{"0-3069 " + deep(512)}},
		{"too deep", deep(513) + "\n{}\n", []string{"0-3075 too_deep", "3075-3078 {}"}},
		{"too deep beside an object", deep(513) + "{}\n", []string{"0-3074 too_deep", "3074-3077 {}"}},
		{"very deep rubbish", strings.Repeat("[", 100_000) + "\n", []string{"0-100001 malformed"}},
		{"very deep and open", strings.Repeat(`{"a":`, 100_000) + "\n", []string{"0-500001 malformed"}},
		{"17 gaps are one", "{}" + strings.Repeat("\x00x", 9) + "\n", []string{"0-21 malformed"}},
		{"16 gaps", strings.Repeat("\x00{}", 16) + "\n", nil},
		{"too many objects", strings.Repeat("{}", piecesMax+1) + "\n", []string{"0-8195 malformed"}},
		{"B16, B18 exactly the limit", huge + "\n{}\n", []string{"0-4194305 " + huge, "4194305-4194308 {}"}},
		{"one byte more", "{}\n" + huge + " \n{}\n", []string{"0-3 {}", "3-4194309 oversized", "4194309-4194312 {}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.jsonl")
			write(t, path, []byte(tt.in))
			if tt.name == "16 gaps" {
				for i := range int64(16) {
					tt.want = append(tt.want, show(providers.Record{Start: 3 * i, End: 3*i + 1, Gap: providers.Padding}),
						show(providers.Record{Start: 3*i + 1, End: 3*i + 3 + i/15, Data: []byte("{}")}))
				}
			}
			f := New(path, Mark{})
			equal(t, "forwards", drain(t, f, 1<<20), tt.want)
			equal(t, "in small batches", drain(t, New(path, Mark{}), 100), tt.want)
			equal(t, "backwards", reversed(t, path, f.mark), tt.want)
			if want := int64(bytes.LastIndexByte([]byte(tt.in), '\n') + 1); f.Offset() != want {
				t.Errorf("Offset = %d, want %d", f.Offset(), want)
			}
		})
	}
}

// A splice is looked for near the error only, so a long line costs no square.
func TestSpliceIsBounded(t *testing.T) {
	in := []byte(`{"a":"` + strings.Repeat(`{`, 1<<20) + `"x` + strings.Repeat(`{`, 1<<20))
	if n := splice(in); n != len(in) {
		t.Errorf("splice = %d, want all %d bytes", n, len(in))
	}
}
