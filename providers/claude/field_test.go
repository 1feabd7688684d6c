package claude

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// Records of one turn. The first hole of text is for members of its record, the
// second for members of its message.
const (
	promptRec = `{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"go"},"uuid":"u1","timestamp":"2026-11-30T10:00:01Z","promptSource":"typed"}`
	textRec   = `{"parentUuid":"u1","isSidechain":false,"type":"assistant",%s"message":{%s"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Done."}]},"uuid":"a1","timestamp":"2026-11-30T10:00:02Z"}`
	endRec    = `{"parentUuid":"a1","isSidechain":false,"type":"system","subtype":"turn_duration","durationMs":1000,"uuid":"d1","timestamp":"2026-11-30T10:00:03Z"}`
)

// tell plays records and lists their drafts.
func tell(lines ...string) (out []string) {
	recs := providertest.Split([]byte(strings.Join(lines, "\n") + "\n"))
	for _, d := range providertest.Drafts(providertest.Play(newProjector(nil), recs, providertest.Script{End: true})) {
		out = append(out, strings.TrimSpace(string(d.Kind)+" "+d.Key+" "+d.Text))
	}
	return out
}

// TestFieldRows has faults that users of other tools reported, each by its row
// in the field list.
func TestFieldRows(t *testing.T) {
	text := fmt.Sprintf(textRec, "", `"id":"m1",`)
	plain := tell(promptRec, text, endRec)
	if len(plain) != 5 {
		t.Fatalf("the turn alone gives %q", plain)
	}
	same := func(t *testing.T, lines ...string) {
		t.Helper()
		if got := tell(lines...); !slices.Equal(got, plain) {
			t.Errorf("drafts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(plain, "\n"))
		}
	}
	t.Run("A31: a block after its deltas, under another id or none", func(t *testing.T) {
		delta := `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}},"uuid":"s1","parentUuid":"u1","timestamp":"2026-11-30T10:00:01.500Z"}`
		same(t, promptRec, delta, text, endRec)
		same(t, promptRec, strings.Replace(delta, `"parentUuid":"u1",`, "", 1), delta, fmt.Sprintf(textRec, "", ""), endRec)
	})
	// Steno tells no use of a context window: what is to be seen is that no
	// form of it makes an event or takes one away.
	for name, usage := range map[string]string{
		"H1: tokens behind a compaction":          `"usage":{"input_tokens":9,"cache_read_input_tokens":0},`,
		"H2: more tokens than a model's window":   `"model":"claude-x","usage":{"input_tokens":300000},`,
		"H3: a model that nobody knows":           `"model":"claude-unknown-9","usage":{"input_tokens":70000},`,
		"H5: three kinds of input":                `"usage":{"input_tokens":50000,"cache_read_input_tokens":150000,"cache_creation_input_tokens":150000},`,
		"H17: tokens that fit two windows or one": `"model":"claude-x[1m]","usage":{"input_tokens":212959,"output_tokens":-1},`,
	} {
		t.Run(name, func(t *testing.T) {
			record := fmt.Sprintf(textRec, `"requestId":"r1",`, `"id":"m1",`+usage)
			same(t, promptRec, record, endRec)
			// A boundary of a compaction, with its tokens, in front of the answer.
			same(t, promptRec, `{"parentUuid":null,"logicalParentUuid":"u1","type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":180000,"postTokens":9},"uuid":"b1","timestamp":"2026-11-30T10:00:01.500Z"}`,
				strings.Replace(record, `"parentUuid":"u1"`, `"parentUuid":"b1"`, 1), endRec)
		})
	}
	t.Run("D7: a directory that was renamed", func(t *testing.T) { directory(t, "/home/dev/old-name", "-home-dev-new-name") })
	t.Run("D9: a worktree inside of a repository", func(t *testing.T) { directory(t, "/home/dev/repo/.git/worktrees/x", "-home-dev-repo") })
	t.Run("D16: an index of sessions", func(t *testing.T) {
		for _, root := range (Provider{}).Roots(providers.Env{Home: "/h", Getenv: func(string) string { return "" }}) {
			for _, rel := range []string{"sessions-index.json", "-home-dev/sessions-index.json"} {
				if a, ok := (Provider{}).Claim(root, rel); ok {
					t.Errorf("%s of %s is claimed as %+v", rel, root.Name, a)
				}
			}
		}
	})
}

// directory wants a session's directory to be the one that its records tell,
// whatever folder they lie in.
func directory(t *testing.T, cwd, folder string) {
	t.Helper()
	a, ok := Provider{}.Claim(providers.Root{Provider: ID, Name: projects, Dir: t.TempDir()}, folder+"/"+someID+".jsonl")
	if !ok {
		t.Fatal("not claimed")
	}
	first := bytes.Replace([]byte(promptRec), []byte(`"type"`), []byte(`"cwd":"`+cwd+`","type"`), 1)
	if s := (Provider{}).Describe(a, first); s.CWD != cwd || s.ID != someID {
		t.Errorf("Describe = %+v, want the directory %s", s, cwd)
	}
}
