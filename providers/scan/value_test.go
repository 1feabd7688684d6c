package scan

import (
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`"a b"`: "a b", `""`: "", `"é\u00e9\n"`: "éé\n", `"\ud83d\ude00"`: "😀",
		`"\ud83d alone"`: "\ufffd alone", "\"\xff\"": "\ufffd", // field list: B13
		`"`: "", ``: "", `null`: "", `7`: "", `{"a":"b"}`: "", `["a"]`: "", `"cut off`: "", `"cut \"`: "", `"\q"`: "",
	} {
		if got := Text([]byte(in)); got != want {
			t.Errorf("Text(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestQuestions(t *testing.T) {
	for _, tt := range []struct {
		in                                              string
		is, isString, isObject, isArray, isNull, isTrue bool
	}{
		{`"word"`, true, true, false, false, false, false},
		{`"wor\u0064"`, false, true, false, false, false, false},
		{`"words"`, false, true, false, false, false, false},
		{`"word`, false, false, false, false, false, false},
		{`"wordx`, false, false, false, false, false, false},
		{`"`, false, false, false, false, false, false},
		{`word`, false, false, false, false, false, false},
		{`{"word":1}`, false, false, true, false, false, false},
		{`["word"]`, false, false, false, true, false, false},
		{`null`, false, false, false, false, true, false},
		{``, false, false, false, false, true, false},
		{`true`, false, false, false, false, false, true},
		{`false`, false, false, false, false, false, false},
	} {
		b := []byte(tt.in)
		got := []bool{Is(b, "word"), IsString(b), IsObject(b), IsArray(b), IsNull(b), IsTrue(b)}
		for i, want := range []bool{tt.is, tt.isString, tt.isObject, tt.isArray, tt.isNull, tt.isTrue} {
			if got[i] != want {
				t.Errorf("%s: question %d gives %v", tt.in, i, got[i])
			}
		}
	}
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 11, 30, 18, 50, 0, 123e6, time.UTC)
	for in, want := range map[string]time.Time{
		`"2026-11-30T18:50:00.123Z"`:      at,
		`"2026-11-30T20:50:00.123+02:00"`: at, // field list: H8
		`"2026\u002d11-30T18:50:00.123Z"`: at,
		`"9999-12-31T23:59:59Z"`:          time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		`"9999-12-31T23:59:59-23:59"`:     {}, // in UTC it has a year of five digits
		`"0000-01-01T00:00:00+23:59"`:     {},
		`"2026-11-30"`:                    {},
		`"2026-11-30T18:50:00.123Z`:       {},
		`1764528600123`:                   {},
		`"yesterday"`:                     {},
		`""`:                              {},
		``:                                {},
		`"2026-11-30T18:50:00.` + strings.Repeat("0", 60) + `Z"`: {},
	} {
		if got := Time([]byte(in)); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("Time(%s) = %v, want %v", in, got, want)
		}
	}
}

func TestMillis(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	for in, want := range map[int64]time.Time{
		1:                    time.UnixMilli(1).UTC(),
		last.UnixMilli():     last,
		last.UnixMilli() + 1: {},
		0:                    {},
		-1:                   {},
		1<<63 - 1:            {},
	} {
		if got := Millis(in); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("Millis(%d) = %v, want %v", in, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	names := NewNames(8, "-_")
	for in, want := range map[string]string{
		`"end_turn"`: "end_turn", `"0a884-X"`: "0a884-X", `"a"`: "a", `""`: "", `"`: "", `null`: "", `7`: "", `12345`: "",
		`"123456789"`: "", `"a b"`: "", `"a.b"`: "", `"a\u0041"`: "", `"é"`: "", `"cut`: "", `"a"b"`: "",
	} {
		if got := names.Read([]byte(in)); got != want {
			t.Errorf("Read(%s) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]bool{"a.b": true, "": false, "a-b": false, "abcd": true, "abcde": false} {
		if got := NewNames(4, ".").Fit([]byte(in)); got != want {
			t.Errorf("Fit(%s) = %v, want %v", in, got, want)
		}
	}
}
