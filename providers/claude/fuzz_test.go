package claude

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

// kinds are the records that a program of FuzzTurns is made of; %s is what
// belongs to the place of the record.
var kinds = []string{
	`"type":"user","promptSource":"typed","message":{"role":"user","content":"prompt %s"}`,
	`"type":"user","origin":{"kind":"task-notification"},"message":{"role":"user","content":"notice %s"}`,
	`"type":"user","message":{"role":"user","content":"<bash-input>%s</bash-input>"}`,
	`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"%s"}]}`,
	`"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"x":"%s"`,
	`"type":"user","isMeta":true,"message":{"role":"user","content":"Stop hook feedback: %s"}`,
	`"type":"assistant","message":{"id":"m1","stop_reason":"end_turn","content":[{"type":"text","text":"one %s"}]}`,
	`"type":"assistant","message":{"id":"m2","stop_reason":"end_turn","content":[{"type":"text","text":"two %s"}]}`,
	`"type":"assistant","message":{"id":"m2","stop_reason":"end_turn","content":[{"type":"thinking","thinking":"%s"}]}`,
	`"type":"assistant","message":{"id":"m3","stop_reason":"tool_use","content":[{"type":"text","text":"t %s"},{"type":"tool_use","id":"t","name":"Bash","input":{}}]}`,
	`"type":"assistant","message":{"id":"m4","stop_reason":null,"content":[{"type":"text","text":"old %s"}]}`,
	`"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","message":{"id":"e","content":[{"type":"text","text":"%s"}]}`,
	`"type":"system","subtype":"turn_duration","x":"%s"`,
	`"type":"attachment","x":"%s"`,
	`"type":"assistant","message":{"id":"m5","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t","name":"ExitPlanMode","input":{"plan":"plan %s"}}]}`,
	"", // a gap
}

// step is one record of a program and what happens after it.
type step struct {
	rec                    providers.Record
	settle, restart, idles bool
}

// program reads three bytes a record: its kind, how far back its parent is
// (0 for none; a record may hang off one that comes later), and what follows.
func program(code []byte) []step {
	var out []step
	start := int64(0)
	for n := 0; len(code) >= 3 && n < maxSeen; n, code = n+1, code[3:] {
		s := step{settle: code[2]&3 == 1, restart: code[2]&4 != 0, idles: code[2]&3 == 2}
		kind := kinds[int(code[0])%len(kinds)]
		s.rec = providers.Record{Start: start, End: start + 1000}
		start += 1000
		if kind == "" {
			s.rec.Gap = providers.Malformed
			out = append(out, s)
			continue
		}
		parent := "null"
		if back := int(code[1]%16) - 2; back != 0 {
			parent = fmt.Sprintf(`"u%d"`, n-back)
		}
		s.rec.Data = fmt.Appendf(nil, `{"uuid":"u%d","parentUuid":%s,"promptId":"p%d","timestamp":"2026-11-30T10:00:00.%03dZ",`+kind+`}`,
			n, parent, code[2]>>6, n, fmt.Sprint(n))
		out = append(out, s)
	}
	return out
}

func run(steps []step, restarts bool) []providers.Draft {
	p := newProjector(nil)
	var out []providers.Draft
	for _, s := range steps {
		out = append(out, p.Project(s.rec)...)
		if s.settle {
			out = append(out, p.Settle()...)
		}
		if s.idles {
			out = append(out, p.Idle(time.Unix(1e9, 0))...)
		}
		if restarts && s.restart && !p.Held() {
			p = newProjector(bytes.Clone(p.State()))
		}
	}
	return append(out, p.Settle()...)
}

// FuzzTurns makes chains of plausible records in any order, with silences,
// gaps and restarts, and checks what holds for the turns of every session.
func FuzzTurns(f *testing.F) {
	f.Add([]byte{0, 2, 0, 6, 3, 1, 5, 3, 4, 7, 3, 0, 12, 3, 0})
	f.Add([]byte{0, 2, 4, 9, 3, 4, 3, 3, 4, 15, 0, 0, 3, 4, 4, 7, 3, 5, 12, 3, 0})
	f.Add([]byte{7, 1, 0, 12, 3, 0, 0, 2, 0, 13, 0, 0, 2, 3, 0, 11, 3, 2, 0, 4, 2})
	f.Add([]byte{1, 2, 0, 1, 3, 0, 10, 3, 1, 12, 3, 0, 4, 3, 0, 0, 4, 2, 0, 5, 0})
	f.Add([]byte{3, 1, 5, 3, 1, 5, 0, 2, 4, 9, 3, 4, 9, 3, 0, 6, 5, 0, 12, 3, 4})
	f.Fuzz(func(t *testing.T, code []byte) {
		steps := program(code)
		drafts := run(steps, false)
		if again := run(steps, true); !reflect.DeepEqual(again, drafts) {
			t.Fatalf("with restarts\n%s\nwithout\n%s", lines(again), lines(drafts))
		}
		if err := providertest.CheckOrder(drafts); err != nil {
			t.Fatalf("%v\n%s", err, lines(drafts))
		}
		started, ended := map[string]bool{}, map[string]bool{}
		for _, d := range drafts {
			if err := providertest.CheckDraft(d); err != nil {
				t.Fatal(err)
			}
			if d.Turn == "" {
				continue
			}
			switch {
			case d.Kind == providers.TurnStarted && started[d.Turn]:
				t.Fatalf("turn %s starts twice\n%s", d.Turn, lines(drafts))
			case d.Kind == providers.TurnStarted:
				started[d.Turn] = true
			case !started[d.Turn]:
				t.Fatalf("%s of turn %s before its start\n%s", d.Kind, d.Turn, lines(drafts))
			case d.Kind == providers.TurnFinal && ended[d.Turn]:
				t.Fatalf("turn %s ends twice without going on\n%s", d.Turn, lines(drafts))
			case d.Kind == providers.TurnFinal:
				ended[d.Turn] = true
			case d.Kind == providers.TurnStateChanged && d.State == providers.WaitingOnAgent:
				ended[d.Turn] = false
			}
		}
	})
}
