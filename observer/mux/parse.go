package mux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields are what a line of the listing holds, in this order.
var fields = [...]string{
	"pane_id", "pane_tty", "pane_pid", "pane_dead", "pane_active", "window_active", "pane_in_mode",
	"window_id", "window_index", "pane_index", "automatic-rename", "pid", "start_time",
	"pane_current_command", "session_name", "window_name", "pane_title", "pane_current_path",
}

// format builds the -F argument: sep stands before every field and after the
// last, so that a newline in a directory does not end a record. sep is lower
// case hex: tmux gives it no meaning.
func format(sep string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(sep)
		b.WriteString("#{")
		b.WriteString(f)
		b.WriteString("}")
	}
	b.WriteString(sep)
	return b.String()
}

// parse reads a listing. It returns every pane or an error.
func parse(data []byte, sep, socket string) ([]Pane, error) {
	text := string(data)
	var panes []Pane
	at := make(map[int]int) // pane number -> index in panes
	for text != "" {
		if len(panes) == maxPanes {
			return nil, fmt.Errorf("list panes: more than %d: %w", maxPanes, ErrTooMuch)
		}
		rest, ok := strings.CutPrefix(text, sep)
		if !ok {
			return nil, fmt.Errorf("list panes: record without its mark: %w", ErrFormat)
		}
		var f [len(fields)]string
		for i := range f {
			if f[i], rest, ok = strings.Cut(rest, sep); !ok {
				return nil, fmt.Errorf("list panes: field %s missing: %w", fields[i], ErrFormat)
			}
		}
		if text, ok = strings.CutPrefix(rest, "\n"); !ok {
			return nil, fmt.Errorf("list panes: record without end: %w", ErrFormat)
		}
		p, err := pane(f, socket)
		if err != nil {
			return nil, err
		}
		if len(panes) > 0 && p.Server != panes[0].Server {
			return nil, fmt.Errorf("list panes: two servers on one socket: %w", ErrFormat)
		}
		if i, dup := at[p.Number]; dup { // a window linked into several sessions
			panes[i].Active = panes[i].Active || p.Active
			continue
		}
		at[p.Number] = len(panes)
		panes = append(panes, p)
	}
	slices.SortFunc(panes, func(a, b Pane) int { return a.Number - b.Number })
	return panes, nil
}

func pane(f [len(fields)]string, socket string) (Pane, error) {
	p := Pane{
		TTY: clean(f[1]), Window: clean(f[7]), Command: clean(f[13]), Session: clean(f[14]),
		WindowName: clean(f[15]), Title: clean(f[16]), CWD: clean(f[17]),
		Dead: flag(f[3]), Active: flag(f[4]) && flag(f[5]), InMode: flag(f[6]), AutoName: flag(f[10]),
	}
	p.Server.Socket = socket
	id, ok := strings.CutPrefix(f[0], "%")
	if !ok {
		return Pane{}, fmt.Errorf("list panes: bad pane_id: %w", ErrFormat)
	}
	for _, n := range []struct {
		text, name string
		to         *int
	}{
		{id, "pane_id", &p.Number}, {f[2], "pane_pid", &p.PID}, {f[8], "window_index", &p.WindowIndex},
		{f[9], "pane_index", &p.PaneIndex}, {f[11], "pid", &p.Server.PID},
	} {
		v, err := strconv.ParseUint(n.text, 10, 31)
		if err != nil {
			return Pane{}, fmt.Errorf("list panes: bad %s: %w", n.name, ErrFormat)
		}
		*n.to = int(v)
	}
	started, err := strconv.ParseInt(f[12], 10, 64)
	if err != nil || started < 0 {
		return Pane{}, fmt.Errorf("list panes: bad start_time: %w", ErrFormat)
	}
	p.Server.Started = started
	return p, nil
}

// flag: some flags are counts, such as the number of modes.
func flag(s string) bool { return s != "" && s != "0" }

// clean makes valid UTF-8 of at most maxField bytes.
func clean(s string) string {
	if len(s) > maxField {
		s = s[:maxField]
		// Take back a rune that the cut went through.
		for i := 0; i < utf8.UTFMax-1 && len(s) > 0; i++ {
			if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
