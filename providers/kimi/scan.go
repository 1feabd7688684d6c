package kimi

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"time"
)

// A record can hold 4 MiB of text or 70 kB of tool descriptions of which a few
// short members matter. These functions walk over one JSON value without
// decoding it and without allocating. They expect valid JSON, as
// providers.Record promises; on anything else they stop early and never read
// outside the slice.

// members calls f with the raw key (without quotes) and raw value of each
// member of the object at the start of b, until f says stop.
func members(b []byte, f func(key, value []byte) (more bool)) {
	i := blank(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	for i++; ; i++ {
		i = blank(b, i)
		if i >= len(b) || b[i] != '"' {
			return
		}
		end := endOfString(b, i)
		key := b[i+1 : max(i+1, end-1)]
		i = blank(b, end)
		if i >= len(b) || b[i] != ':' {
			return
		}
		i = blank(b, i+1)
		end = endOfValue(b, i)
		if end <= i || !f(key, b[i:end]) {
			return
		}
		i = blank(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// items calls f with each raw element of the array at the start of b.
func items(b []byte, f func(value []byte) (more bool)) {
	i := blank(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	for i++; ; i++ {
		i = blank(b, i)
		end := endOfValue(b, i)
		if end <= i || !f(b[i:end]) {
			return
		}
		i = blank(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
	}
}

func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// endOfString is the index after the closing quote of the string at i, or len(b).
func endOfString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end, slashes := i+n, 0
		for end-slashes-1 >= i && b[end-slashes-1] == '\\' {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// endOfValue is the index after the value at i; i itself when there is none.
func endOfValue(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return endOfString(b, i)
	case '{', '[':
		deep := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = endOfString(b, i)
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
// that are no UTF-8 become U+FFFD.
func text(value []byte) string {
	var s string
	if len(value) < 2 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// is says whether value is the JSON string s, where s needs no escape.
func is(value []byte, s string) bool {
	return len(value) == len(s)+2 && value[0] == '"' && string(value[1:len(value)-1]) == s
}

// maxID bounds an id that is used as it is. Real ones have up to 45 bytes.
const maxID = 64

// ident is an id as a key can hold it: as the program wrote it, or the hash of
// one that is longer or has other characters; "" when there is none.
func ident(value []byte) string {
	if len(value) < 3 || value[0] != '"' || value[len(value)-1] != '"' {
		return ""
	}
	in := value[1 : len(value)-1]
	plain := len(in) <= maxID
	for i := 0; plain && i < len(in); i++ {
		c := in[i]
		plain = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '.' || c == ':'
	}
	if plain {
		return string(in)
	}
	h := fnv.New64a()
	h.Write(in)
	return "h" + strconv.FormatUint(h.Sum64(), 16)
}

// number reads a whole number from 0 to 2^53, written as a number or, as the
// events of a step have it (2.1.0), as a string; -1 for anything else.
func number(value []byte) int64 {
	if len(value) > 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	if len(value) == 0 || len(value) > 16 {
		return -1
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return -1
		}
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n > 1<<53 {
		return -1
	}
	return n
}

// maxTime is the last millisecond of the year 9999: a later time cannot be
// written in the state.
const maxTime = 253402300799999

// instant is the time of milliseconds since 1970, zero when there is none.
func instant(ms int64) time.Time {
	if ms <= 0 || ms > maxTime {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
