package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"steno/ipc/wire"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text, ünïcode, 漢字", "plain text, ünïcode, 漢字"},
		{"\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"},
		{"\x1b]0;title\a", "\ufffd]0;title\ufffd"},
		{"\u009b31m", "\ufffd31m"}, // the C1 form of an escape
		{"a\rb\nc\td", "a b c d"},
		{"abc\u202edef\u2066", "abc\ufffddef\ufffd"}, // direction changes
		{"bad \xff\xfe bytes", "bad \ufffd\ufffd bytes"},
		{"nul\x00 del\x7f", "nul\ufffd del\ufffd"},
		{"👩\u200d🚒", "👩\u200d🚒"},
		{"line\u2028break", "line\ufffdbreak"},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 10, ""},
		{"one", 10, "one"},
		{"\n\n  one\ntwo", 10, "one …"},
		{"0123456789", 10, "0123456789"},
		{"0123456789a", 10, "012345678…"},
		{"äöüäöüäöüäö", 10, "äöüäöüäöü…"},
		{"x", 1, "x"},
		{"xy", 1, "…"},
	} {
		if got := firstLine(c.in, c.n); got != c.want {
			t.Errorf("firstLine(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
	// A long text is cut inside a character without leaving half of it.
	if got := firstLine(strings.Repeat("漢", 5000), 0); strings.ContainsRune(got, utf8.RuneError) {
		t.Error("a cut text ends in half a character")
	}
}

func TestEventLine(t *testing.T) {
	text := "Done.\x1b[2J\nMore."
	outcome := wire.Completed
	e := wire.Event{
		Kind: wire.TurnFinal, AgentID: "a", Text: &text, Outcome: &outcome,
		ObservedAt: wire.At(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	who := agentLabel{name: "maple\x1b[31m", harness: "claude", pane: "%3"}
	p := &linePrinter{width: func() int { return 0 }}
	got := p.line(who, e)
	if strings.ContainsRune(got, '\x1b') {
		t.Errorf("line %q lets an escape through", got)
	}
	for _, want := range []string{"maple", "(claude)", "%3", "turn completed", "Done."} {
		if !strings.Contains(got, want) {
			t.Errorf("line %q lacks %q", got, want)
		}
	}
	if strings.Count(got, "\n") != 1 {
		t.Errorf("line %q is not one line", got)
	}
	// Colours change nothing but colours.
	p.colour = true
	coloured := p.line(who, e)
	for _, code := range []string{dim, green} {
		coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
	}
	if coloured = strings.ReplaceAll(coloured, "\x1b[0m", ""); coloured != got {
		t.Errorf("coloured line is %q without its colours, want %q", coloured, got)
	}
	// A narrow terminal cuts the text, not the columns.
	p = &linePrinter{width: func() int { return 80 }}
	long := strings.Repeat("word ", 100)
	e.Text = &long
	if n := utf8.RuneCountInString(strings.TrimSuffix(p.line(agentLabel{"maple", "claude", "%3"}, e), "\n")); n > 80 {
		t.Errorf("line has %d columns, want at most 80", n)
	}
}

// TestPrintJSON: escaping < and & would make a page longer than its bound.
func TestPrintJSON(t *testing.T) {
	var b bytes.Buffer
	if err := (&app{out: &b}).printJSON(wire.Page{Events: nil, Status: "<&>"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"<&>"`) || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("printJSON = %q", b.String())
	}
}

// TestPrintJSONOnTerminal: a terminal gets nothing that it would act on, a program
// the text as it is, and both the same value.
func TestPrintJSONOnTerminal(t *testing.T) {
	const text = "a\x1b]0;x\a\u009b2J\x7f\u202e\u200d\U000e0041\ufeff é漢😀\n"
	for _, tty := range []bool{false, true} {
		var b bytes.Buffer
		if err := (&app{out: &b, tty: tty}).printJSON(map[string]any{"t": text, "raw": json.RawMessage(`"` + "\u009b" + `"`)}); err != nil {
			t.Fatal(err)
		}
		line, whole := strings.CutSuffix(b.String(), "\n")
		if !whole || tty && clean(line) != line || !tty && !strings.Contains(line, "\u009b") {
			t.Errorf("tty %v: %q", tty, b.String())
		}
		var got struct{ T, Raw string }
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.T != text || got.Raw != "\u009b" {
			t.Errorf("tty %v: %q, %v", tty, got, err)
		}
	}
}

func TestStripPrefix(t *testing.T) {
	for _, c := range []struct {
		in, want string
		skip     bool
	}{
		{"", "", false},
		{"agent catalog", "agent catalog", false},
		{"cli agent catalog", "agent catalog", false},
		{"--skip-config cli --prefer-mux --no-auto-start agent catalog", "agent catalog", true},
		{"--skip-config --version", "--version", true},
		{"agent cli --prefer-mux", "agent cli --prefer-mux", false},
		{"--prefer-mux agent", "--prefer-mux agent", false},
	} {
		got, skip := stripPrefix(strings.Fields(c.in))
		if strings.Join(got, " ") != c.want || skip != c.skip {
			t.Errorf("stripPrefix(%q) = %q, %v, want %q, %v", c.in, got, skip, c.want, c.skip)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"2147483648", 2 << 30, true}, {"2GiB", 2 << 30, true}, {"2 GiB", 2 << 30, true},
		{"1KiB", 1024, true}, {"4TiB", 4 << 40, true},
		{"", 0, false}, {"GiB", 0, false}, {"-1", 0, false}, {"2GB", 0, false}, {"99999999999TiB", 0, false}, {"1.5GiB", 0, false},
	} {
		got, err := parseBytes(c.in)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("parseBytes(%q) = %d, %v, want %d, %v", c.in, got, err, c.want, c.ok)
		}
	}
}

func TestThreadAgents(t *testing.T) {
	entry := func(id, harness, path string, alive bool) wire.AgentListEntry {
		e := wire.AgentListEntry{Metadata: wire.AgentMetadata{AgentID: id}}
		e.Runtime.Harness, e.Runtime.Alive = wire.Variant(harness), alive
		if path != "" {
			e.Runtime.SessionPath = &path
		}
		return e
	}
	const thread = "01a22dd0-0fa0-7262-80e0-9e5680bc5175"
	rollout := "/h/.codex/sessions/2026/11/30/rollout-2026-11-30T18-55-39-" + thread + ".jsonl"
	agents := []wire.AgentListEntry{
		entry("dead", wire.HarnessCodex, rollout, false),
		entry("other", wire.HarnessClaude, rollout, true),
		entry("unbound", wire.HarnessCodex, "", true),
		entry("it", wire.HarnessCodex, rollout, true),
	}
	if got := threadAgents(agents, thread); len(got) != 1 || got[0] != "it" {
		t.Errorf("threadAgents = %v, want [it]", got)
	}
	if got := threadAgents(agents, thread[1:]); len(got) != 0 {
		t.Errorf("threadAgents of a part of the id = %v, want none", got)
	}
}

func TestCallerFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want caller
		ok   bool
	}{
		"nothing":        {map[string]string{}, caller{}, true},
		"tmux":           {map[string]string{"TMUX": "/tmp/t/default,12,0", "TMUX_PANE": "%3"}, caller{socket: "/tmp/t/default", muxPane: "%3"}, true},
		"pane alone":     {map[string]string{"TMUX_PANE": "%3"}, caller{}, true},
		"tmux is exact":  {map[string]string{"TMUX": "/s,1,0", "TMUX_PANE": "%3", "WAKTERM_PANE": "9"}, caller{socket: "/s", muxPane: "%3"}, true},
		"thread":         {map[string]string{"CODEX_THREAD_ID": "x"}, caller{thread: "x"}, true},
		"not a number":   {map[string]string{"WAKTERM_PANE": "seven"}, caller{}, false},
		"negative":       {map[string]string{"WAKTERM_PANE": "-1"}, caller{}, false},
		"beyond 64 bits": {map[string]string{"WAKTERM_PANE": "18446744073709551616"}, caller{}, false},
	} {
		got, err := callerFromEnv(func(k string) string { return c.env[k] })
		if (err == nil) != c.ok {
			t.Errorf("%s: error %v", name, err)
		}
		if c.ok && got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	got, err := callerFromEnv(func(k string) string { return map[string]string{"WAKTERM_PANE": "7"}[k] })
	if err != nil || got.pane == nil || *got.pane != 7 {
		t.Errorf("WAKTERM_PANE=7: %+v, %v", got, err)
	}
}

// FuzzFirstLine: whatever an agent writes, a line of ours is printable, valid
// and no longer than asked.
func FuzzFirstLine(f *testing.F) {
	for _, s := range []string{"", "one\ntwo", "\x1b]0;x\a", "\xff\xfe", "\u202e", strings.Repeat("漢", 2000)} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = n&0xff + 1
		got := firstLine(s, n)
		if !utf8.ValidString(got) {
			t.Fatalf("firstLine(%q) = %q is no UTF-8", s, got)
		}
		// The mark of further lines is not counted.
		if utf8.RuneCountInString(got) > n+2 {
			t.Fatalf("firstLine(%q, %d) = %q is too long", s, n, got)
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Fatalf("firstLine(%q) = %q has %U", s, got, r)
			}
		}
	})
}
