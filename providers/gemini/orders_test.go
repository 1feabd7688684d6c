package gemini

import (
	"fmt"
	"strings"
	"testing"

	"steno/providers"
)

func infoLine(kind, id string, at float64, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":%q,"content":%q}`, id, stamp(at), kind, text)
}

// Orders of records that were not recorded, each of which decides something.
func TestOrders(t *testing.T) {
	const start, finals = "turn_started waiting_on_agent ", "turn_final:recorded waiting_on_user "
	const refusal, context = `[API Error: {"error":{"code":429}}]`, "<session_context>\nx"
	result := func(id string, at float64) string {
		return fmt.Sprintf(`{"id":%q,"timestamp":%q,"type":"user","content":[{"functionResponse":{"id":"c1","name":"x","response":{}}}]}`, id, stamp(at))
	}
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		// History that is written again ends with what the program says itself.
		{"a cancel ends history", []string{userLine("u1", 1, "one"), userLine("r0", 2, context), infoLine("info", "i1", 2.1, cancelText)}, start + finals},
		{"an error ends history", []string{userLine("u1", 1, "one"), userLine("r0", 2, context), infoLine("error", "e1", 2.1, refusal)}, start + "observer_failure waiting_on_user"},
		{"an answer ends history", []string{userLine("u1", 1, "one"), userLine("r0", 2, context), geminiLine("g1", 2.1, "One.", "")}, start + "assistant_message"},
		{"a pause ends history", []string{userLine("u1", 1, "one"), userLine("r0", 2, context), replayLine("r1", 2), userLine("u2", 4, "two")}, start + start},
		{"no pause does not", []string{userLine("u1", 1, "one"), userLine("r0", 2, context), replayLine("r1", 2), userLine("u2", 2.5, "two")}, start},

		// A tool's result proves that the answer before it was not the last one,
		// also where its calls are not seen.
		{"a result withdraws", []string{userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""), result("f1", 3), userLine("u2", 9, "two")}, start + "assistant_message " + start},
		{"calls withdraw", []string{userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""), geminiLine("g1", 2, "One.", calls), userLine("u2", 9, "two")}, start + "assistant_message " + start},

		// A rollback without an error is decided by what follows.
		{"an answer after a rollback", []string{userLine("u1", 1, "one"), setMessages(3, userLine("c", 0, context)), geminiLine("g1", 4, "One.", "")},
			start + "observer_failure waiting_on_user waiting_on_agent assistant_message"},
		{"an error after a rollback", []string{userLine("u1", 1, "one"), setMessages(3, userLine("c", 0, context)), infoLine("error", "e1", 3, refusal)}, start + "observer_failure waiting_on_user"},

		// Without a turn there is nothing that an error could be of.
		{"an error alone", []string{infoLine("error", "e1", 1, refusal)}, ""},
		{"an error after the final", []string{userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""), `{"$rewindTo":"u1"}`, infoLine("error", "e1", 3, refusal)},
			start + "assistant_message " + finals},
		{"an error after a cancel", []string{userLine("u1", 1, "one"), infoLine("info", "i1", 2, cancelText), infoLine("error", "e1", 3, refusal)}, start + finals},
		{"warnings", []string{userLine("u1", 1, "one"), infoLine("warning", "w1", 2, refusal), infoLine("info", "i1", 2, "")}, start},

		// A cancel that stands before the prompt it cancels is for a second.
		{"a cancel just before", []string{infoLine("info", "i1", 1, cancelText), userLine("u1", 1.9, "one")}, start + finals},
		{"a cancel long before", []string{infoLine("info", "i1", 1, cancelText), userLine("u1", 2.1, "one")}, start},
		{"a cancel for the one prompt", []string{infoLine("info", "i1", 1, cancelText), userLine("u1", 1.5, "one"), userLine("u2", 1.8, "two")}, start + finals + start},
		{"cancelled calls and their cancel", []string{userLine("u1", 1, "one"), geminiLine("g1", 2, "", strings.Replace(calls, "success", "cancelled", 1)), infoLine("info", "i1", 3, cancelText), userLine("u2", 3.5, "two")}, start + finals + start},
		{"cancelled calls and, later, another cancel", []string{userLine("u1", 1, "one"), geminiLine("g1", 2, "", strings.Replace(calls, "success", "cancelled", 1)), infoLine("info", "i1", 3, cancelText), infoLine("info", "i2", 8, cancelText), userLine("u2", 8.5, "two")},
			start + finals + start + finals},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, want := kinds(play(fresh(), tt.lines...)), strings.TrimSpace(tt.want); got != want {
				t.Errorf("gave %q, want %q", got, want)
			}
		})
	}
}

// What no person wrote starts no turn, whatever it stands in: before the first
// prompt, in an open turn, and after its end.
func TestNoPersonsWords(t *testing.T) {
	for name, text := range map[string]string{
		"context": "<session_context>\nx", "hook": "<hook_context>\nx",
		"loop":             "System: Potential loop detected. Details: x",
		"shell command":    "I ran the following shell command:\n```sh\nls\n```",
		"workspace":        "- **Workspace Directories:**\n  - /w",
		"end of plan mode": "User has manually exited Plan Mode. Switching to Default mode.",
		"editor":           "Here is the user's editor context as a JSON object. x",
		"change in editor": "Here is a summary of changes in the user's editor context, in JSON format. x",
	} {
		for i, before := range [][]string{nil, {userLine("u1", 1, "one")}, {userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""), `{"$rewindTo":"none"}`}} {
			p := fresh()
			play(p, before...)
			for _, d := range play(p, userLine("x", 3, text)) {
				if d.Kind == providers.TurnStarted {
					t.Errorf("%s after %d records starts a turn", name, len(before))
				}
			}
			if turn := p.Turn().ID; i > 0 && turn != "u1" {
				t.Errorf("%s after %d records: turn %q", name, len(before), turn)
			}
		}
	}
}

// A subagent's document says nothing either.
func TestSubagentsDocument(t *testing.T) {
	doc := strings.Replace(document(userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", "")), `"projectHash"`, `"kind":"subagent","projectHash"`, 1)
	p := newProjector(providers.Artifact{Path: "/w/chats/session-x.json"}, nil, nil)
	if got := p.Project(providers.Record{Framing: providers.Document, Data: []byte(doc)}); len(got) != 0 || p.Held() {
		t.Errorf("gave %s, held %v", kinds(got), p.Held())
	}
}

// Whose plan it is, a file without a header says in an update.
func TestSessionOfAnUpdate(t *testing.T) {
	var asked []string
	p := newProjector(mainArtifact, nil, func(_, session, file string) string {
		asked = append(asked, session+" "+file)
		return "plan"
	})
	plan := `,"toolCalls":[{"id":"c1","name":"exit_plan_mode","args":{"plan_filename":"p.md"},"status":"success"}]`
	got := kinds(play(p, `{"$set":{"sessionId":"`+sid+`"}}`, userLine("u1", 1, "one"), geminiLine("g1", 2, "", plan)))
	if got != "turn_started waiting_on_agent plan" || len(asked) != 1 || asked[0] != sid+" p.md" {
		t.Errorf("gave %q of %q", got, asked)
	}
}
