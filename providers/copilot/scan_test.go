package copilot

import (
	"bytes"
	"encoding/json"
	"testing"
)

func members(b []byte) map[string]string {
	got := map[string]string{}
	fields(b, func(key, value []byte) bool {
		got[string(key)] = string(value)
		return true
	})
	return got
}

func TestFields(t *testing.T) {
	tests := []struct {
		in   string
		want map[string]string
	}{
		{`{}`, nil},
		{`{"a":1,"b":"x","c":null}`, map[string]string{"a": "1", "b": `"x"`, "c": "null"}},
		{` { "a" : {"b":[1,{"c":"}"}]} , "d" : [ ] } `, map[string]string{"a": `{"b":[1,{"c":"}"}]}`, "d": "[ ]"}},
		{`{"a":"quote \" and \\","b":"\\\""}`, map[string]string{"a": `"quote \" and \\"`, "b": `"\\\""`}},
		{`{"a":1`, map[string]string{"a": "1"}},
		{`{"a":"never ends`, map[string]string{"a": `"never ends`}},
		{`{"a":`, nil}, {`{"a"`, nil}, {`{"`, nil}, {`{`, nil}, {``, nil}, {`[1]`, nil}, {`"{"`, nil}, {`{"a":}`, nil},
	}
	for _, tt := range tests {
		got := members([]byte(tt.in))
		if len(got) != len(tt.want) {
			t.Errorf("fields(%s) = %v, want %v", tt.in, got, tt.want)
		}
		for k, v := range tt.want {
			if got[k] != v {
				t.Errorf("fields(%s)[%s] = %s, want %s", tt.in, k, got[k], v)
			}
		}
	}
}

func TestIdent(t *testing.T) {
	for in, want := range map[string]string{
		`"end_turn"`: "end_turn", `"0a884aad-f3bb"`: "0a884aad-f3bb", `""`: "", `"`: "", `null`: "", `7`: "",
		`"a b"`: "", `"a\u0041"`: "", `"é"`: "", `"` + string(bytes.Repeat([]byte("x"), maxID+1)) + `"`: "",
	} {
		if got := ident([]byte(in)); got != want {
			t.Errorf("ident(%s) = %q, want %q", in, got, want)
		}
	}
}

// FuzzScan compares the walk with encoding/json on every valid object, and
// wants it to end within its bytes on everything else.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":{"b":"\\\"}"},"c":[1,"]",{}]}`, `{"é":-1e5,"x":true}`, `{"a":"`, `[{"a":1},2]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var list []json.RawMessage
		n := 0
		elements(b, func(v []byte) bool { n++; return true })
		if json.Unmarshal(b, &list) == nil && list != nil && n != len(list) {
			t.Fatalf("elements gave %d, want %d", n, len(list))
		}
		var raw []string
		got := map[string]string{}
		fields(b, func(key, value []byte) bool {
			raw = append(raw, string(key))
			got[string(key)] = string(value)
			return true
		})
		var want map[string]json.RawMessage
		if !json.Valid(b) || json.Unmarshal(b, &want) != nil || want == nil {
			return
		}
		for _, k := range raw { // keys with escapes are compared by their raw form only
			var plain string
			if json.Unmarshal([]byte(`"`+k+`"`), &plain) == nil && plain == k {
				if got[k] != string(want[k]) {
					t.Fatalf("member %q = %s, want %s", k, got[k], want[k])
				}
			}
		}
		if len(raw) < len(want) {
			t.Fatalf("%d members, want at least %d", len(raw), len(want))
		}
	})
}
