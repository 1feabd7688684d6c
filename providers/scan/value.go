package scan

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Text decodes a JSON string; anything else is "". A lone surrogate and bytes
// that are not UTF-8 become U+FFFD.
func Text(value []byte) string {
	if !IsString(value) {
		return ""
	}
	in := value[1 : len(value)-1]
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// Is says whether value is the JSON string s, where s needs no escape.
func Is(value []byte, s string) bool {
	return len(value) == len(s)+2 && value[0] == '"' && value[len(value)-1] == '"' && string(value[1:len(value)-1]) == s
}

// IsString says whether value is a string.
func IsString(value []byte) bool {
	return len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"'
}

// IsObject says whether value is an object.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsArray says whether value is an array.
func IsArray(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// IsNull says whether value is null or is not there.
func IsNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// IsTrue says whether value is true.
func IsTrue(value []byte) bool { return string(value) == "true" }

// maxTime bounds the text of a time, in bytes. Real ones have some 30.
const maxTime = 64

// Time reads a string that holds a time of RFC 3339, as UTC; anything else is
// the zero time. So is a time whose year in UTC has not four digits: it could
// not be written again.
func Time(value []byte) time.Time {
	if len(value) > maxTime {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, Text(value))
	if t = t.UTC(); err != nil || t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// maxMillis is the last millisecond of the year 9999.
const maxMillis = 253402300799999

// Millis is the time of milliseconds since 1970, as UTC; the zero time for
// none, and for one after the year 9999.
func Millis(ms int64) time.Time {
	if ms <= 0 || ms > maxMillis {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Names is a form of the short names that a program gives to things: its ids
// and types. What has another form might be content.
type Names struct {
	max int
	fit [256]bool
}

// NewNames makes the form of 1 to max bytes that are ASCII letters, digits or
// bytes of also, none of which needs an escape in JSON.
func NewNames(max int, also string) *Names {
	n := &Names{max: max}
	for c := range 256 {
		b := byte(c)
		n.fit[c] = b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	}
	for i := range len(also) {
		n.fit[also[i]] = true
	}
	return n
}

// Read is the name in a JSON string; "" for a string of another form, and for
// anything else.
func (n *Names) Read(value []byte) string {
	if !IsString(value) || !n.Fit(value[1:len(value)-1]) {
		return ""
	}
	return string(value[1 : len(value)-1])
}

// Fit says whether b is such a name.
func (n *Names) Fit(b []byte) bool {
	if len(b) == 0 || len(b) > n.max {
		return false
	}
	for _, c := range b {
		if !n.fit[c] {
			return false
		}
	}
	return true
}
