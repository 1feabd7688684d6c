package providertest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// Format writes a draft as one line. A uuid is shortened to its first eight
// characters, a text over 100 bytes to its first 60 characters and its length and hash.
func Format(d providers.Draft) string {
	var b strings.Builder
	b.WriteString(string(d.Kind))
	put := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	put("key", short(d.Key))
	put("turn", short(d.Turn))
	if !d.At.IsZero() {
		put("at", d.At.UTC().Format("15:04:05.000"))
	}
	put("state", string(d.State))
	put("outcome", string(d.Outcome))
	put("completion", d.Completion)
	put("reason", string(d.Reason))
	if d.Detail != "" && d.Detail != d.Reason.Detail() {
		put("detail", strconv.Quote(d.Detail))
	}
	put("input", cut(d.InputSHA256))
	if d.Text != "" {
		put("text", text(d.Text))
	}
	if a := d.Approval; a != nil {
		put("kind", a.Kind)
		put("item", a.Item)
		put("prompt", text(a.Prompt))
		put("reason", text(a.Reason))
		if a.Command != "" {
			put("command", text(a.Command))
		}
		if a.CWD != "" {
			put("cwd", text(a.CWD))
		}
		for _, c := range a.Choices {
			put(c.ID, text(c.Label))
		}
		for _, q := range a.Questions {
			put("question", fmt.Sprintf("%d/%q/%s/%v/%d", q.Index, q.Header, text(q.Question), q.MultiSelect, len(q.Options)))
		}
	}
	return b.String()
}

func short(s string) string {
	parts := strings.Split(s, "/")
	for i, p := range parts {
		if len(p) == 36 && strings.Count(p, "-") == 4 {
			parts[i] = p[:8]
		}
	}
	return strings.Join(parts, "/")
}

func cut(s string) string { return s[:min(len(s), 12)] }

func text(s string) string {
	if len(s) <= 100 {
		return strconv.Quote(s)
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s...%d/%s", strconv.Quote(string([]rune(s)[:60])), len(s), hex.EncodeToString(sum[:4]))
}

// Golden plays an artifact as the golden file says and compares. The file:
//
//	# why something is as it is
//	! settle 7            the artifact was silent after record 7 (the first is 0)
//	! idle 9 <RFC 3339>   the program said idle after record 9
//	! look 9 busy 300ms   the process was looked at after record 9, which was that long ago:
//	                      idle, busy, waiting or none; a time (RFC 3339) after it is when its
//	                      youngest child process began
//	4 turn_started ...    record 4 gave this draft, as Format writes it
//	7s turn_final ...     the silence after record 7 gave this draft
//	9i turn_final ...     so did the idle status
//	9l turn_final ...     so did a look
//
// input="..." stands for the hash of that text. A last silence after the last
// record is always there.
func Golden(t *testing.T, prov providers.Provider, c Case, file string) {
	t.Helper()
	want, script := readGolden(t, file)
	var got []string
	for _, s := range Play(prov.Projector(c.Artifact, nil), Records(c), script) {
		mark := map[string]string{FromSettle: "s", FromIdle: "i", FromLook: "l"}[s.What]
		for _, d := range s.Drafts {
			got = append(got, fmt.Sprintf("%d%s %s", s.After, mark, Format(d)))
		}
	}
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("%s: draft %d\n got %s\nwant %s", file, i, g, w)
		}
	}
}

func readGolden(t *testing.T, file string) ([]string, Script) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatalf("open golden: %v", err)
	}
	defer f.Close()
	script := Script{Settle: map[int]bool{}, Idle: map[int]time.Time{}, Looks: map[int][]Look{}, End: true}
	var want []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "!"):
			fields := strings.Fields(line[1:])
			if len(fields) < 2 {
				t.Fatalf("%s: directive %q", file, line)
			}
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatalf("%s: directive %q: %v", file, line, err)
			}
			switch {
			case fields[0] == "settle":
				script.Settle[n] = true
			case fields[0] == "idle" && len(fields) == 3:
				at, err := time.Parse(time.RFC3339, fields[2])
				if err != nil {
					t.Fatalf("%s: directive %q: %v", file, line, err)
				}
				script.Idle[n] = at
			case fields[0] == "look" && len(fields) >= 4:
				look, err := parseLook(fields[2:])
				if err != nil {
					t.Fatalf("%s: directive %q: %v", file, line, err)
				}
				script.Looks[n] = append(script.Looks[n], look)
			default:
				t.Fatalf("%s: directive %q", file, line)
			}
		default:
			want = append(want, hashInput(t, line))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read golden: %v", err)
	}
	return want, script
}

// parseLook reads the state, the silence and the child of a look.
func parseLook(fields []string) (Look, error) {
	states := map[string]providers.Activity{"none": providers.NoActivity, "idle": providers.Idle,
		"busy": providers.Busy, "waiting": providers.Waiting}
	state, ok := states[fields[0]]
	if !ok {
		return Look{}, fmt.Errorf("state %q", fields[0])
	}
	quiet, err := time.ParseDuration(fields[1])
	if err != nil {
		return Look{}, err
	}
	look := Look{Activity: state, Quiet: quiet}
	if len(fields) > 2 {
		look.Child, err = time.Parse(time.RFC3339, fields[2])
	}
	return look, err
}

func hashInput(t *testing.T, line string) string {
	t.Helper()
	const mark = ` input="`
	at := strings.Index(line, mark)
	if at < 0 {
		return line
	}
	quoted := line[at+len(mark)-1:]
	prefix, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		t.Fatalf("golden line %q: %v", line, err)
	}
	in, err := strconv.Unquote(prefix)
	if err != nil {
		t.Fatalf("golden line %q: %v", line, err)
	}
	sum := sha256.Sum256([]byte(in))
	return line[:at] + " input=" + cut(hex.EncodeToString(sum[:])) + quoted[len(prefix):]
}
