package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFoldKey: a key is kept only if it is a name.
func TestFoldKey(t *testing.T) {
	for key, want := range map[string]string{
		"type":                                 "type",
		"parentUuid":                           "parentUuid",
		"cache_read_input_tokens":              "cache_read_input_tokens",
		"ephemeral_5m_input_tokens":            "ephemeral_5m_input_tokens",
		"input_sha256":                         "input_sha256",
		"$set":                                 "$set",
		"stop-hook":                            "stop-hook",
		"deadbeef":                             "deadbeef", // no digit: as good a name as facade
		"5e550000-0000-4000-8000-000000000001": "*",
		"0":                                    "*",
		"1796082583":                           "*",
		"d41d8cd98f00b204":                     "*",
		"abc1defa":                             "*",
		"toolu_000000000000000000000001":       "*",
		"call_V0L8CpjkKmK0o3I5vfJPeGHK":        "*",
		"/tmp/e2e1/work":                       "*",
		"~/notes":                              "*",
		"made-by-the-model.txt":                "*",
		"gpt-5.5":                              "*",
		"claude-model-20250101":                "*",
		"Which colour?":                        "*",
		"漢字":                                   "*",
		"":                                     "*",
		strings.Repeat("a", 60):                "*",
	} {
		if got := foldKey(key); got != want {
			t.Errorf("foldKey(%q) = %q, want %q", key, got, want)
		}
	}
}

// TestFoldType: the value of a type is the only one that is kept, if it names one.
func TestFoldType(t *testing.T) {
	for name, want := range map[string]string{
		"tool_use": "tool_use", "turn.ended": "turn.ended", "queue-operation": "queue-operation", "a:b": "a:b",
		"a secret": "*", "/etc/passwd": "*", "": "*", "5e550000-0000-4000-8000-000000000001": "*", "x\ny": "*",
	} {
		if got := foldType(name); got != want {
			t.Errorf("foldType(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestShapes: records give their types and fields, and nothing of what they say.
func TestShapes(t *testing.T) {
	got := shapes{}
	for _, c := range []struct {
		kind  string
		types []string
		raw   string
	}{
		{"", []string{"type", "subtype"}, `{"type":"user","message":{"role":"user","content":"SECRET"},"uuid":"5e55"}`},
		{"", []string{"type", "subtype"}, `{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"SECRET"}]},{"type":"text"}]}}`},
		{"", []string{"type", "subtype"}, `{"type":"system","subtype":"turn_duration","empty":{},"none":[],"null":null}`},
		{"", []string{"type", "subtype"}, `{"type":"SECRET words","files":{"/a/SECRET.txt":{"size":1},"/b":{"size":2,"mode":3}}}`},
		{"", []string{"type", "payload.type"}, `{"type":"item","payload":{"type":"message","content":[{"type":"output_text","text":"SECRET"}]}}`},
		{"tool", nil, `{"schema":{"type":"object","properties":{"SECRET":{"type":"string"}}},"other":{"$schema":"u","type":"array"},"properties":{"a":1}}`},
		{"registry", nil, `{"type":"session","pid":12}`},
		{"", nil, `[1,[2,{"a":true}]]`},
		{"", nil, `"SECRET"`},
	} {
		var v any
		if err := json.Unmarshal([]byte(c.raw), &v); err != nil {
			t.Fatal(err)
		}
		got.record(c.kind, c.types, v)
	}
	want := `*
	files.*.mode
	files.*.size
	type
item/message
	payload.content.*(output_text).text
	payload.content.*(output_text).type
	payload.type
	type
record
	*
	*.*
	*.*.a
registry
	pid
	type
system/turn_duration
	empty
	none
	null
	subtype
	type
tool
	other
	properties.a
	schema
user
	message.content
	message.content.*(text).type
	message.content.*(tool_result).content.*(text).text
	message.content.*(tool_result).content.*(text).type
	message.content.*(tool_result).type
	message.role
	type
	uuid
`
	if got.String() != want {
		t.Errorf("shapes =\n%swant\n%s", got, want)
	}
	if back := parseShapes("# a comment\n\n" + got.String()); back.String() != want {
		t.Errorf("read back =\n%s", back)
	}
}

// TestShapesDeep: a record that nests without end costs a bounded path.
func TestShapesDeep(t *testing.T) {
	var v any = "SECRET"
	for range 10 * deepest {
		v = map[string]any{"a": v}
	}
	got := shapes{}
	got.record("", nil, v)
	if n := len(got.String()); n > 3*deepest+20 {
		t.Errorf("%d bytes", n)
	}
}

// TestShapesWithout: what is new is told, what was there is not.
func TestShapesWithout(t *testing.T) {
	old := parseShapes("a\n\tx\n\ty\nb\n")
	now := parseShapes("a\n\tx\n\tz\nc\n\tx\nb\n")
	if got, want := now.without(old).String(), "a\n\tz\nc\n\tx\n"; got != want {
		t.Errorf("new = %q, want %q", got, want)
	}
	if got, want := old.without(now).String(), "a\n\ty\n"; got != want {
		t.Errorf("gone = %q, want %q", got, want)
	}
	old.merge(now)
	if got, want := old.String(), "a\n\tx\n\ty\n\tz\nb\nc\n\tx\n"; got != want {
		t.Errorf("both = %q, want %q", got, want)
	}
}
