package gemini

import (
	"bytes"
	"encoding/json"
)

// A record can be 4 MiB of tool output, and a document 64 MiB, of which a few
// short fields matter. These functions walk over one JSON value without
// decoding it. They expect valid JSON, as providers.Record promises; on
// anything else they stop early and never read outside the slice.

// members calls f with the key (as written, without quotes) and the raw value
// of each member of the object at the start of b, until f says stop.
func members(b []byte, f func(key, value []byte) (more bool)) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	for i++; ; i++ {
		i = space(b, i)
		if i >= len(b) || b[i] != '"' {
			return
		}
		end := stringEnd(b, i)
		key := b[i+1 : max(i+1, end-1)]
		i = space(b, end)
		if i >= len(b) || b[i] != ':' {
			return
		}
		i = space(b, i+1)
		end = valueEnd(b, i)
		if end <= i || !f(key, b[i:end]) {
			return
		}
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// elements calls f with each raw element of the array at the start of b.
func elements(b []byte, f func(value []byte) (more bool)) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	for i++; ; i++ {
		i = space(b, i)
		end := valueEnd(b, i)
		if end <= i || !f(b[i:end]) {
			return
		}
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// stringEnd is the index after the closing quote of the string at i, or len(b).
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end, back := i+n, 0
		for end-back-1 >= i && b[end-back-1] == '\\' {
			back++
		}
		i = end + 1
		if back%2 == 0 {
			return i
		}
	}
	return len(b)
}

// valueEnd is the index after the value at i; i itself when there is none.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		deep := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = stringEnd(b, i)
				continue
			case '{', '[':
				deep++
			case '}', ']':
				if deep--; deep == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// text decodes a JSON string; anything else is "". Lone surrogates and bytes
// that are not UTF-8 become U+FFFD.
func text(value []byte) string {
	if !isString(value) {
		return ""
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

func isString(value []byte) bool { return len(value) >= 2 && value[0] == '"' }
func isArray(value []byte) bool  { return len(value) > 0 && value[0] == '[' }
func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// word decodes a short name that the program chose: letters, digits and
// "_-.$", at most 40 bytes. Anything else is "".
func word(value []byte) string {
	if len(value) < 3 || len(value) > 42 || !isString(value) || !plain(value[1:len(value)-1]) {
		return ""
	}
	return string(value[1 : len(value)-1])
}

func plain(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '.' && c != '$' {
			return false
		}
	}
	return len(b) > 0
}
