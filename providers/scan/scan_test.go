package scan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// walk lists the members of an object, or the elements of an array.
func walk(b string) (got []string, whole bool) {
	whole = Members([]byte(b), func(key, value []byte) bool {
		got = append(got, string(key)+"="+string(value))
		return true
	})
	Elements([]byte(b), func(value []byte) bool {
		got = append(got, string(value))
		return true
	})
	return got, whole
}

func TestMembers(t *testing.T) {
	tests := []struct {
		in    string
		want  []string
		whole bool
	}{
		{`{}`, nil, true},
		{` { } `, nil, true},
		{`{"a":1,"b":"x","c":null}`, []string{`a=1`, `b="x"`, `c=null`}, true},
		{" { \"a\"\t: {\"b\":[1,{\"c\":\"}\"}]} ,\r\n\"d\" : [ ] } ", []string{`a={"b":[1,{"c":"}"}]}`, `d=[ ]`}, true},
		{`{"a":"quote \" and \\","b":"\\\""}`, []string{`a="quote \" and \\"`, `b="\\\""`}, true},
		{`{"a":1,"a":2}`, []string{`a=1`, `a=2`}, true},
		{`{"":0,"\"":-1.5e+3}`, []string{`=0`, `\"=-1.5e+3`}, true},
		{`{"a":1} and what follows`, []string{`a=1`}, true},
		// What is cut off.
		{`{"a":12`, []string{`a=12`}, false},
		{`{"a":1,`, []string{`a=1`}, false},
		{`{"a":1,"b":"never ends`, []string{`a=1`}, false},
		{`{"a":1,"b":"ends with \"`, []string{`a=1`}, false},
		{`{"a":1,"b":[{"c":2}`, []string{`a=1`}, false},
		{`{"a":`, nil, false}, {`{"a"`, nil, false}, {`{"`, nil, false}, {`{`, nil, false}, {``, nil, false},
		// What is no object.
		{`"{"`, nil, false}, {`{"a":}`, nil, false}, {`{"a" 1}`, nil, false}, {`{1:2}`, nil, false},
		{`{"a":1]`, []string{`a=1`}, false}, {`{"a":1 "b":2}`, []string{`a=1`}, false}, {`{"a":1,}`, []string{`a=1`}, false},
	}
	for _, tt := range tests {
		if got, whole := walk(tt.in); !slices.Equal(got, tt.want) || whole != tt.whole {
			t.Errorf("Members(%s) gives %q, %v, want %q, %v", tt.in, got, whole, tt.want, tt.whole)
		}
	}
}

func TestElements(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{`[]`, nil}, {`[ ]`, nil}, {``, nil}, {`[`, nil}, {`null`, nil},
		{` [1 , "]" ,{"a":[2]},[ ]]`, []string{`1`, `"]"`, `{"a":[2]}`, `[ ]`}},
		{`["a",null,true] "b"`, []string{`"a"`, `null`, `true`}},
		{`[1,2`, []string{`1`, `2`}},
		{`[1,"never ends`, []string{`1`}}, {`[1,[2,3`, []string{`1`}}, {`[1,,2]`, []string{`1`}}, {`[1 2]`, []string{`1`}},
	}
	for _, tt := range tests {
		if got, _ := walk(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("Elements(%s) gives %q, want %q", tt.in, got, tt.want)
		}
	}
}

// A walk ends where f says so, and that counts as whole.
func TestStop(t *testing.T) {
	n := 0
	if !Members([]byte(`{"a":1,"b":2,"c":never`), func(key, _ []byte) bool { n++; return string(key) != "b" }) || n != 2 {
		t.Errorf("Members gave %d members after a stop at the second", n)
	}
	n = 0
	Elements([]byte(`[1,2,3]`), func(value []byte) bool { n++; return string(value) != "2" })
	if n != 2 {
		t.Errorf("Elements gave %d elements after a stop at the second", n)
	}
}

func TestMember(t *testing.T) {
	const in = `{"a":{"b":1},"b":"x","a":2}`
	for name, want := range map[string]string{"a": "2", "b": `"x"`, "c": "", "": ""} {
		if got := Member([]byte(in), name); string(got) != want {
			t.Errorf("Member(%s) = %s, want %s", name, got, want)
		}
	}
	if got := Member(nil, "a"); got != nil {
		t.Errorf("Member of nothing = %q", got)
	}
}

// FuzzScan compares the walk with encoding/json on every valid value, and
// wants it to end within its bytes on everything else. Its seeds are in testdata.
func FuzzScan(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		// The slice ends where its array does, so that a read beyond it panics.
		b = slices.Clip(b)
		checkElements(t, b)
		checkMembers(t, b)
		checkValue(t, b)
	})
}

func checkElements(t *testing.T, b []byte) {
	var list []json.RawMessage
	var got [][]byte
	Elements(b, func(v []byte) bool { got = append(got, v); return true })
	if json.Unmarshal(b, &list) != nil || list == nil {
		return
	}
	if len(got) != len(list) {
		t.Fatalf("%d elements, want %d", len(got), len(list))
	}
	for i, want := range list {
		if string(got[i]) != string(want) {
			t.Fatalf("element %d = %s, want %s", i, got[i], want)
		}
		checkValue(t, got[i])
	}
}

func checkMembers(t *testing.T, b []byte) {
	last := map[string][]byte{}
	whole := Members(b, func(key, value []byte) bool {
		var name string // of what is no JSON a key may be anything
		if json.Unmarshal([]byte(`"`+string(key)+`"`), &name) == nil {
			last[name] = value
		}
		return true
	})
	var want map[string]json.RawMessage
	if json.Unmarshal(b, &want) != nil || want == nil {
		return
	}
	if !whole || len(last) != len(want) {
		t.Fatalf("%d members, whole %v, want %d", len(last), whole, len(want))
	}
	for name, value := range want {
		if string(last[name]) != string(value) {
			t.Fatalf("member %q = %s, want %s", name, last[name], value)
		}
		checkValue(t, last[name])
	}
}

// checkValue reads a value as each of its kinds.
func checkValue(t *testing.T, b []byte) {
	at, name := Time(b), NewNames(8, "-_").Read(b)
	if _, err := at.MarshalJSON(); err != nil {
		t.Fatalf("Time gives what cannot be written: %v", err)
	}
	if len(name) > 8 || strings.ContainsAny(name, `"\ `) {
		t.Fatalf("name %q", name)
	}
	if !json.Valid(b) || len(b) == 0 || b[0] <= ' ' || b[len(b)-1] <= ' ' {
		Text(b)
		return
	}
	var want any
	if err := json.Unmarshal(b, &want); err != nil {
		return // a number out of range
	}
	text, _ := want.(string)
	if got := Text(b); got != text {
		t.Fatalf("Text(%s) = %q, want %q", b, got, text)
	}
	if name != "" && name != text {
		t.Fatalf("name %q of %q", name, text)
	}
	kind := fmt.Sprintf("%T", want)
	if IsString(b) != (kind == "string") || IsObject(b) != (kind == "map[string]interface {}") ||
		IsArray(b) != (kind == "[]interface {}") || IsNull(b) != (want == nil) || IsTrue(b) != (want == true) {
		t.Fatalf("%s is taken for another kind than %s", b, kind)
	}
}
