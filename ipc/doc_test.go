package ipc

import (
	"os"
	"strings"
	"testing"

	"steno/ipc/wire"
	"steno/store"
)

// The conversation in the package's documentation is what happens.
func TestTranscript(t *testing.T) {
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	s := openLog(t, store.Options{})
	s.add(t, wire.AssistantMessage, "ag-7f", "Done.")
	if _, err := s.Commit(t.Context(), store.Batch{Agents: []store.Agent{{
		ID: "ag-7f", Incarnation: incA, PaneID: 3, Name: "maple", Harness: "claude", Status: wire.Idle,
		TurnState: wire.WaitingOnUser, Alive: true, ObservedAt: noon, CreatedAt: noon,
	}}}); err != nil {
		t.Fatal(err)
	}
	r := serve(t, Options{Store: s}).raw(t)
	asked, answered := 0, 0
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSuffix(line, "\n")
		if request, ok := strings.CutPrefix(line, "//\t-> "); ok {
			asked++
			r.send(request)
		}
		if want, ok := strings.CutPrefix(line, "//\t<- "); ok {
			answered++
			if got := r.line(); got != want {
				t.Errorf("answer %d is\n%s, the documentation says\n%s", answered, got, want)
			}
		}
	}
	if asked != 6 || answered != asked {
		t.Errorf("%d questions, %d answers, want 6", asked, answered)
	}
}
