package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"steno/ipc/wire"
)

func ptr[T any](v T) *T { return &v }

func hashOf(s string) *string {
	sum := sha256.Sum256([]byte(s))
	return ptr(hex.EncodeToString(sum[:]))
}

// TestRows: the suite is only as good as how it spells what came.
func TestRows(t *testing.T) {
	prompts := []string{"do it"}
	long := strings.Repeat("x", 200)
	question := &wire.Approval{
		Kind: "user_question", RequestID: strings.Repeat("a", 24), AgentID: "a", IncarnationID: "i1", TurnID: "t2",
		Prompt: ptr("Which?"), Reason: ptr("R"), Choices: []wire.Choice{{Label: "Red"}, {Label: "Blue"}},
	}
	tell := newTeller(&prompts)
	for _, c := range []struct {
		e    wire.Event
		want string
	}{
		{wire.Event{Kind: wire.AgentLifecycle, Lifecycle: ptr("available")}, "available"},
		{wire.Event{Kind: wire.TurnStarted, TurnID: ptr("t1"), InputSHA256: hashOf("do it")}, `started A "do it"`},
		{wire.Event{Kind: wire.TurnStarted, TurnID: ptr("t2"), InputSHA256: hashOf("do that")}, "started B something that was not typed"},
		{wire.Event{Kind: wire.TurnStarted, TurnID: ptr("t3")}, "started C"},
		{wire.Event{Kind: wire.TurnStateChanged, TurnID: ptr("t1"), TurnState: ptr("waiting_on_agent")}, "working A"},
		{wire.Event{Kind: wire.TurnStateChanged, TurnID: ptr("t2"), TurnState: ptr("waiting_on_user")}, "waiting B"},
		{wire.Event{Kind: wire.TurnStateChanged, TurnID: ptr("t2"), TurnState: ptr("lost")}, "in state lost B"},
		{wire.Event{Kind: wire.AssistantMessage, Text: ptr("a \"b\"\n")}, `message - "a \"b\"\n"`},
		{wire.Event{Kind: wire.AssistantMessage, TurnID: ptr("t1"), Text: &long}, fmt.Sprintf("message A %q... 200 of 200 bytes", long[:40])},
		{wire.Event{Kind: wire.AssistantMessage, TurnID: ptr("t1"), Text: &long, TextBytes: 900}, fmt.Sprintf("message A %q... 200 of 900 bytes", long[:40])},
		{wire.Event{Kind: wire.Plan, TurnID: ptr("t1"), Text: ptr("# P")}, `plan A "# P"`},
		{wire.Event{Kind: wire.TurnFinal, TurnID: ptr("t1"), Outcome: ptr("completed"), Text: ptr("ok")}, `final A completed "ok"`},
		{wire.Event{Kind: wire.TurnFinal, TurnID: ptr("t1"), Outcome: ptr("aborted"), Reason: ptr("rate_limited")}, "final A aborted rate_limited"},
		{wire.Event{Kind: wire.ObserverFailure, TurnID: ptr("t1"), Recoverable: ptr(true), Detail: ptr("d"), Reason: ptr("r")}, "failure A r"},
		{wire.Event{Kind: wire.ObserverFailure, Recoverable: ptr(true)}, "failure - without what a failure needs"},
		{wire.Event{Kind: wire.ApprovalRequested, AgentID: "a", TurnID: ptr("t2"), Approval: question}, `question B user_question "R" "Which?" Red|Blue`},
		{wire.Event{Kind: wire.ApprovalRequested, AgentID: "a", TurnID: ptr("t1"), Approval: question}, "question A that does not agree with its event"},
		{wire.Event{Kind: wire.TurnFinal, TurnID: ptr("t1"), IncarnationID: "i2"}, "of another incarnation: final A"},
		{wire.Event{Kind: wire.AgentLifecycle, Lifecycle: ptr("unavailable"), Reason: ptr("process_exited")}, "unavailable process_exited"},
		{wire.Event{Kind: wire.AgentLifecycle, Lifecycle: ptr("available")}, "available again"},
		{wire.Event{Kind: wire.AgentLifecycle, Lifecycle: ptr("available"), IncarnationID: "i2"}, "available as another incarnation"},
		{wire.Event{Kind: "new_kind", IncarnationID: "i2"}, "new_kind"},
	} {
		if c.e.IncarnationID == "" {
			c.e.IncarnationID = "i1"
		}
		if got := tell.row(c.e); got != c.want {
			t.Errorf("row = %s, want %s", got, c.want)
		}
	}
}

// TestTextless: a report says what came, and not what was said.
func TestTextless(t *testing.T) {
	for row, want := range map[string]string{
		`message A "said \"so\""`:                "message A",
		`started A "typed"`:                      "started A",
		"started B something that was not typed": "started B",
		`question A user_question "C" "W?" X|Y`:  "question A user_question",
		"final A aborted no_reply":               "final A aborted no_reply",
	} {
		if got := textlessRows([]string{row}); len(got) != 1 || got[0] != want {
			t.Errorf("textless(%s) = %q, want %q", row, got, want)
		}
	}
}

// TestCompare: what is missing waits, what is wrong or too much fails.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		got, want string
		done, bad bool
	}{
		{"", "", true, false},
		{"available", "available\nworking A", false, false},
		{"available\nworking A", "available\nworking A", true, false},
		{"available\nworking B", "available\nworking A", false, true},
		{"available\nworking A", "available", false, true},
		{"working A", "left: working A", false, true},
	} {
		done, err := compare(split(c.got)["work"], split(c.want)["work"])
		if done != c.done || (err != nil) != c.bad {
			t.Errorf("compare(%q, %q) = %v, %v", c.got, c.want, done, err)
		}
	}
	rows := split("left: message A \"x\"\nmessage A \"a: b\"")
	if got := fmt.Sprint(rows); got != `map[left:[message A "x"] work:[message A "a: b"]]` {
		t.Errorf("split = %s", got)
	}
}
