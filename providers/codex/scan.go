package codex

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// The records are walked, not decoded: a rollout line holds up to 4 MiB of
// tool output of which not one byte is needed. Walking passes over a value
// without looking inside it and allocates nothing.

// members calls f for each member of a JSON object, with the key's bytes as
// written and the value's bytes. It says whether the object was whole. f stops
// the walk by returning false, which counts as whole.
func members(obj []byte, f func(key, val []byte) bool) bool {
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return false
	}
	i = space(obj, i+1)
	if i < len(obj) && obj[i] == '}' {
		return true
	}
	for {
		if i >= len(obj) || obj[i] != '"' {
			return false
		}
		end := stringEnd(obj, i)
		if end < 0 {
			return false
		}
		key := obj[i+1 : end-1]
		i = space(obj, end)
		if i >= len(obj) || obj[i] != ':' {
			return false
		}
		i = space(obj, i+1)
		end = valueEnd(obj, i)
		if end < 0 {
			return false
		}
		if !f(key, obj[i:end]) {
			return true
		}
		i = space(obj, end)
		if i >= len(obj) {
			return false
		}
		if obj[i] == '}' {
			return true
		}
		if obj[i] != ',' {
			return false
		}
		i = space(obj, i+1)
	}
}

// elements calls f for each element of a JSON array, at most 4096 of them.
func elements(arr []byte, f func(val []byte)) {
	i := space(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return
	}
	i = space(arr, i+1)
	for n := 0; n < 4096; n++ {
		end := valueEnd(arr, i)
		if end < 0 {
			return
		}
		f(arr[i:end])
		i = space(arr, end)
		if i >= len(arr) || arr[i] != ',' {
			return
		}
		i = space(arr, i+1)
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the index after the closing quote of the string at b[i], or -1.
func stringEnd(b []byte, i int) int {
	for j := i + 1; ; {
		n := bytes.IndexByte(b[j:], '"')
		if n < 0 {
			return -1
		}
		j += n
		slashes := 0
		for k := j - 1; k > i && b[k] == '\\'; k-- {
			slashes++
		}
		j++
		if slashes%2 == 0 {
			return j
		}
	}
}

// valueEnd is the index after the value that starts at b[i], or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = stringEnd(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	case '}', ']', ',', ':':
		return -1
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// text is the string that a JSON value holds, "" when it is not a string. A
// lone surrogate and a byte that is no UTF-8 become U+FFFD.
func text(val []byte) string {
	if len(val) < 2 || val[0] != '"' {
		return ""
	}
	in := val[1 : len(val)-1]
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in)
	}
	var s string
	if json.Unmarshal(val, &s) != nil {
		return ""
	}
	return s
}

// is says whether val is the JSON string s, where s needs no escape.
func is(val []byte, s string) bool {
	return len(val) == len(s)+2 && val[0] == '"' && string(val[1:len(val)-1]) == s
}

func isNull(val []byte) bool { return len(val) == 0 || string(val) == "null" }

func isObject(val []byte) bool { return len(val) > 0 && val[0] == '{' }

// instant is the time in val, zero when there is none.
func instant(val []byte) time.Time {
	if len(val) < 2 || len(val) > 64 {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text(val))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// ident is an id that the program wrote, "" when it is missing or not usable
// as one: 1 to 64 bytes of letters, digits and "._:-". The bound keeps the
// projector's state small whatever the file says.
func ident(val []byte) string {
	if len(val) < 3 || len(val) > 66 || val[0] != '"' {
		return ""
	}
	in := val[1 : len(val)-1]
	for _, c := range in {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '-', c == '_', c == '.', c == ':':
		default:
			return ""
		}
	}
	return string(in)
}
