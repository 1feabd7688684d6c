package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// settingFlags adds the flags of some settings to a command.
func (a *app) settingFlags(cmd *cobra.Command, keys ...string) {
	to := cmd.Flags()
	if !cmd.HasParent() && cmd.Name() == "steno" { // every command has the root's
		to = cmd.PersistentFlags()
	}
	for _, key := range keys {
		for _, s := range settings {
			if s.key == key {
				to.Var(settingFlag{a, key}, s.flag(), s.usage)
			}
		}
	}
}

// formatFlag adds --format to a command that has a form for people.
func formatFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("format", "", "`form` of the output: table or json (table on a terminal, else json)")
}

// wantsJSON decides by --json, --format and the kind of output.
func (a *app) wantsJSON(format string) (bool, error) {
	switch {
	case a.json && format == "table":
		return false, usageError{fmt.Errorf("--json and --format table contradict each other")}
	case a.json, format == "json":
		return true, nil
	case format == "table":
		return false, nil
	case format == "":
		return !a.tty, nil
	}
	return false, usageError{fmt.Errorf("--format %q: want table or json", format)}
}

// printJSON writes one object on one line in one write. For a terminal what it
// would not print is written as an escape of JSON, which is the same value.
func (a *app) printJSON(v any) error {
	if !a.tty {
		return printJSON(a.out, v, func(line string) string { return line })
	}
	return printJSON(a.out, v, escaped)
}

// printJSON writes what form makes of the line. HTML escapes are off: they would
// make a page longer than the bound it was cut to.
func printJSON(w io.Writer, v any, form func(string) string) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	if _, err := io.WriteString(w, form(b.String())); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// escaped writes the runes that clean would replace as escapes of JSON. Outside of
// its strings JSON has none but the line break at its end.
func escaped(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\n' || clean(string(r)) == string(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// table aligns columns for people. Cells are cleaned.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = clean(c)
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t table) flush() error {
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// clean makes text harmless for a terminal: escapes, control characters,
// direction changes and other invisible characters become a replacement
// character, line breaks and tabs a space.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r == '\u200d': // joins the parts of one emoji
			return r
		case r == ' ' || unicode.IsPrint(r):
			return r
		}
		return utf8.RuneError
	}, s)
}

// firstLine is the first line of a text that has something on it, cleaned, cut
// to n characters (0 is no bound).
func firstLine(s string, n int) string {
	const look = 4 << 10 // no text has to be walked to its end for one line
	if len(s) > look {
		s = s[:look]
		for !utf8.ValidString(s) && len(s) > look-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	line, more, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.TrimSpace(clean(line))
	if n > 0 && utf8.RuneCountInString(line) > n {
		return string([]rune(line)[:max(n-1, 0)]) + "…"
	}
	if more != "" {
		line += " …"
	}
	return line
}

// Colours of the event lines.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	cyan   = "36"
)

// paint colours text that was cleaned before.
func paint(on bool, colour, s string) string {
	if !on || colour == plain {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
