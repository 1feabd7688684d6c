package copilot

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"steno/observer/tail"
	"steno/providers"
)

// A second turn, and what stands between two runs of the program.
const (
	prompt2Line  = `{"type":"user.message","data":{"content":"next","interactionId":"i2"},"id":"u2"}`
	text2Line    = `{"type":"assistant.message","data":{"content":"Two.","toolRequests":[],"interactionId":"i2"},"id":"m2"}`
	end2Line     = `{"type":"assistant.turn_end","data":{"turnId":"0"},"id":"e2"}`
	resumeLine   = `{"type":"session.resume","data":{"eventCount":4,"sessionWasActive":false},"id":"r1"}`
	shutdownLine = `{"type":"session.shutdown","data":{"shutdownType":"routine","modelMetrics":{"m":{"usage":{"inputTokens":237452}}}},"id":"d1"}`
)

var (
	turn1 = []string{"u1/started", "u1/working", "m1/text", "m1/final", "m1/waiting"}
	turn2 = []string{"u2/started", "u2/working", "m2/text", "m2/final", "m2/waiting"}
)

func keys(drafts []providers.Draft) (out []string) {
	for _, d := range drafts {
		out = append(out, strings.Replace(d.Key, "i1/", "u1/", 1))
	}
	for i := range out {
		out[i] = strings.Replace(out[i], "i2/", "u2/", 1)
	}
	return out
}

// TestFieldRows has faults that users of other tools reported, each by its row
// in the field list.
func TestFieldRows(t *testing.T) {
	t.Run("A26: a session that was resumed has several shutdowns", func(t *testing.T) {
		p := newProjector(nil)
		got := project(p, promptLine, textLine, endLine, shutdownLine, resumeLine, prompt2Line, text2Line, end2Line,
			strings.Replace(shutdownLine, "d1", "d2", 1))
		if got := append(keys(got), keys(p.Settle())...); !slices.Equal(got, slices.Concat(turn1, turn2)) {
			t.Errorf("drafts %q", got)
		}
	})
	t.Run("A27: a shutdown without its tables", func(t *testing.T) {
		for _, data := range []string{`{"shutdownType":"routine","modelMetrics":{}}`, `{"tokenDetails":null}`, `{}`, `null`, `7`, `"x"`} {
			p := newProjector(nil)
			got := project(p, promptLine, textLine, endLine, `{"type":"session.shutdown","data":`+data+`,"id":"d1"}`)
			if !slices.Equal(keys(got), turn1) || len(p.Drift()) > 0 {
				t.Errorf("%s: drafts %q", data, keys(got))
			}
		}
	})
	t.Run("A28: a session that was killed leaves nothing to another", func(t *testing.T) {
		killed, other := newProjector(nil), newProjector(nil)
		var got []string
		for _, line := range []string{promptLine, strings.Replace(textLine, `"toolRequests":[]`, `"toolRequests":[{}]`, 1)} {
			project(killed, line)
			got = append(got, keys(project(other, strings.NewReplacer("u1", "u2", "i1", "i2", "m1", "m9").Replace(line)))...)
		}
		got = append(got, keys(project(other, text2Line, end2Line))...)
		got = append(got, keys(other.Settle())...)
		if want := slices.Concat(turn2[:2], []string{"m9/text"}, turn2[2:]); !slices.Equal(got, want) {
			t.Errorf("drafts %q, want %q", got, want)
		}
		if turn := killed.Turn(); turn.ID != "i1" || turn.State != providers.WaitingOnAgent {
			t.Errorf("turn of the killed session = %v", turn)
		}
	})
	t.Run("A30: arguments have two names", func(t *testing.T) {
		plan := func(line string) []providers.Draft {
			p := newProjector(nil)
			project(p, promptLine, line)
			return p.Settle()
		}
		got := plan(planLine)
		if other := plan(strings.Replace(planLine, `"arguments"`, `"args"`, 1)); len(got) != 1 || got[0].Kind != providers.Plan || got[0].Text != "x" || !reflect.DeepEqual(got, other) {
			t.Errorf("arguments give %v, args %v", got, other)
		}
	})
	t.Run("B9: NUL bytes at the end of the file", trailingNULs)
	t.Run("D32: no growth is no end", func(t *testing.T) {
		p := newProjector(nil)
		project(p, promptLine, textLine, endLine, shutdownLine, resumeLine, prompt2Line)
		for range 3 {
			if got := p.Settle(); len(got) > 0 || p.Held() || p.Quiet() != 0 {
				t.Errorf("silence gives %q, held %v, quiet %v", keys(got), p.Held(), p.Quiet())
			}
		}
		if turn := p.Turn(); turn.ID != "i2" || turn.State != providers.WaitingOnAgent {
			t.Errorf("turn after a silence = %v", turn)
		}
	})
	t.Run("D33: no shutdown is written after /new", func(t *testing.T) {
		p := newProjector(nil)
		got := project(p, promptLine, textLine, endLine)
		if p.Quiet() != quiet {
			t.Errorf("the final waits for %v of silence, want %v", p.Quiet(), quiet)
		}
		if got = append(got, p.Settle()...); !slices.Equal(keys(got), turn1) {
			t.Errorf("drafts %q, want %q", keys(got), turn1)
		}
	})
	t.Run("D34: types that are named otherwise", func(t *testing.T) {
		p := newProjector(nil)
		got := project(p, strings.Replace(promptLine, "user.message", "user_message", 1), strings.Replace(textLine, "assistant.message", "assistantMessage", 1),
			strings.Replace(endLine, "assistant.turn_end", "turn.end", 1), promptLine)
		if !slices.Equal(keys(got), turn1[:2]) {
			t.Errorf("drafts %q, want %q", keys(got), turn1[:2])
		}
		if got, want := p.Drift(), []string{"user_message", "assistantMessage", "turn.end"}; !slices.Equal(got, want) {
			t.Errorf("Drift = %q, want %q", got, want)
		}
	})
	t.Run("H13: what the program did not have is told", func(t *testing.T) {
		p := newProjector(nil)
		project(p, `{"type":"session.teleported","data":{"text":"secret words"},"id":"x1"}`, `{"type":"abort","data":{"reason":"thunderstorm"},"id":"a1"}`)
		if got, want := p.Drift(), []string{"session.teleported", "abort/thunderstorm"}; !slices.Equal(got, want) {
			t.Errorf("Drift = %q, want %q", got, want)
		}
	})
}

// trailingNULs reads a file as the observer does.
func trailingNULs(t *testing.T) {
	path := filepath.Join(t.TempDir(), transcriptName)
	f, p := tail.New(path, tail.Mark{}), newProjector(nil)
	var got []providers.Draft
	text := ""
	for i, more := range []string{promptLine + "\n" + textLine + "\n" + strings.Repeat("\x00", 1728), endLine + "\n"} {
		text += more
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for again := true; again; {
			b, err := f.Read(64 << 10)
			if err != nil || b.Reset != providers.Same {
				t.Fatalf("read %d = %v, %v", i, b.Reset, err)
			}
			for _, r := range b.Records {
				if r.Gap == providers.Padding && r.End-r.Start != 1728 {
					t.Errorf("a run of %d NUL bytes", r.End-r.Start)
				}
				got = append(got, p.Project(r)...)
			}
			again = b.More
		}
		want := turn1[:3]
		if i == 1 {
			want = append(slices.Clone(want), fmt.Sprintf("gap/%d", len(promptLine)+len(textLine)+2))
		}
		if !slices.Equal(keys(got), want) {
			t.Fatalf("after write %d: drafts %q, want %q", i, keys(got), want)
		}
	}
	// Whether the turn went on inside the gap nobody knows; what follows is told
	// as ever.
	got = project(p, prompt2Line, text2Line, end2Line)
	if got = append(got, p.Settle()...); !slices.Equal(keys(got), turn2) {
		t.Errorf("after the NUL bytes: %q, want %q", keys(got), turn2)
	}
}
