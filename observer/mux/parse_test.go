package mux

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const word = "0123456789abcdef01234567"

// line builds a record; over maps a field's name to its text.
func line(over map[string]string) string {
	plain := map[string]string{
		"pane_id": "%7", "pane_tty": "/dev/pts/3", "pane_pid": "4711", "pane_dead": "0", "pane_active": "1",
		"window_active": "1", "pane_in_mode": "0", "window_id": "@2", "window_index": "1", "pane_index": "0",
		"automatic-rename": "1", "pid": "900", "start_time": "1796072331", "pane_current_command": "node",
		"session_name": "main", "window_name": "node", "pane_title": "title", "pane_current_path": "/home/u",
	}
	var b strings.Builder
	for _, f := range fields {
		text, ok := over[f]
		if !ok {
			text = plain[f]
		}
		b.WriteString(word + text)
	}
	return b.String() + word + "\n"
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse([]byte(line(nil)), word, "/s")
	want := Pane{
		Server: Server{"/s", 900, 1796072331}, Number: 7, TTY: "/dev/pts/3", PID: 4711, Session: "main", Window: "@2",
		WindowIndex: 1, WindowName: "node", AutoName: true, Title: "title", CWD: "/home/u", Command: "node", Active: true,
	}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Fatalf("parse = %+v, %v, want %+v", got, err, want)
	}

	texts := []string{
		"", "a\tb", "a\nb", "a\n%1\t/dev/pts/9\n", "#{pid}", "%7", "\x1b[31m", "\x1f\x00\x01", `\037`, `"$(x)'`,
		"\u2028é漢", strings.Repeat("x", maxField), word[:23], "0123456789ABCDEF01234567",
	}
	for _, text := range texts {
		for _, f := range []string{"pane_title", "pane_current_path", "window_name", "session_name", "pane_current_command"} {
			got, err := parse([]byte(line(map[string]string{f: text})+line(map[string]string{"pane_id": "%8"})), word, "/s")
			if err != nil || len(got) != 2 || got[1].Number != 8 {
				t.Fatalf("parse with %s %q = %+v, %v", f, text, got, err)
			}
			p := got[0]
			have := map[string]string{
				"pane_title": p.Title, "pane_current_path": p.CWD, "window_name": p.WindowName,
				"session_name": p.Session, "pane_current_command": p.Command,
			}[f]
			if have != text {
				t.Errorf("%s = %q, want %q", f, have, text)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(map[string]string{"pane_id": fmt.Sprintf("%%%d", i)}))
		}
		return b.String()
	}
	for _, c := range []struct {
		name, data string
		want       error
	}{
		{"no mark", "7\t/dev/pts/3\n", ErrFormat},
		{"text before", "x" + line(nil), ErrFormat},
		{"cut line", line(nil)[:100], ErrFormat},
		{"no newline", strings.TrimSuffix(line(nil), "\n"), ErrFormat},
		{"text after", line(nil) + "lost server\n", ErrFormat},
		{"one field more", strings.TrimSuffix(line(nil), "\n") + "x" + word + "\n", ErrFormat},
		{"pane id", line(map[string]string{"pane_id": "7"}), ErrFormat},
		{"pane number", line(map[string]string{"pane_id": "%-7"}), ErrFormat},
		{"pane number too big", line(map[string]string{"pane_id": "%4294967296"}), ErrFormat},
		{"pid", line(map[string]string{"pane_pid": ""}), ErrFormat},
		{"server pid", line(map[string]string{"pid": "x"}), ErrFormat},
		{"start", line(map[string]string{"start_time": "-1"}), ErrFormat},
		{"start text", line(map[string]string{"start_time": "Mon"}), ErrFormat},
		{"two servers", line(nil) + line(map[string]string{"pane_id": "%8", "pid": "901"}), ErrFormat},
		{"too many", many(maxPanes + 1), ErrTooMuch},
	} {
		if got, err := parse([]byte(c.data), word, "/s"); got != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: parse = %d panes, %v, want %v", c.name, len(got), err, c.want)
		}
	}
	if got, err := parse([]byte(many(maxPanes)), word, "/s"); err != nil || len(got) != maxPanes {
		t.Errorf("parse of %d panes = %d, %v", maxPanes, len(got), err)
	}
	if got, err := parse(nil, word, "/s"); err != nil || got != nil {
		t.Errorf("parse of nothing = %v, %v", got, err)
	}
}

// A window linked into two sessions is active if it is in one of them.
func TestParseLinkedWindow(t *testing.T) {
	t.Parallel()
	data := line(map[string]string{"window_active": "0", "pane_id": "%9"}) + line(nil) +
		line(map[string]string{"session_name": "other", "pane_id": "%9"})
	got, err := parse([]byte(data), word, "/s")
	if err != nil || len(got) != 2 || got[0].Number != 7 || got[1].Number != 9 || !got[1].Active || got[1].Session != "main" {
		t.Fatalf("parse = %+v, %v", got, err)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"\xff", "\uFFFD"},
		{strings.Repeat("x", maxField-1) + "é", strings.Repeat("x", maxField-1)},
		{strings.Repeat("x", maxField-2) + "é", strings.Repeat("x", maxField-2) + "é"},
		{strings.Repeat("x", maxField-3) + "𝄞", strings.Repeat("x", maxField-3)},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("clean(%.8q, %d bytes) = %d bytes ending in %q", c.in, len(c.in), len(got), got[max(0, len(got)-4):])
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(line(nil)))
	f.Add([]byte(line(nil) + line(map[string]string{"pane_id": "%8", "pane_title": "\n\xff"})))
	f.Add([]byte(line(map[string]string{"pane_current_path": word})))
	f.Add([]byte(word))
	f.Fuzz(func(t *testing.T, data []byte) {
		panes, err := parse(data, word, "/s")
		if err != nil && panes != nil {
			t.Fatal("panes beside an error")
		}
		for i, p := range panes {
			if i > 0 && panes[i-1].Number >= p.Number {
				t.Fatalf("numbers not ascending: %d, %d", panes[i-1].Number, p.Number)
			}
			for _, s := range []string{p.TTY, p.Session, p.Window, p.WindowName, p.Title, p.CWD, p.Command} {
				// An invalid byte grows to three when it is replaced.
				if !utf8.ValidString(s) || len(s) > 3*maxField {
					t.Fatalf("field of %d bytes, valid %v", len(s), utf8.ValidString(s))
				}
			}
		}
	})
}
