package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// TestFieldRows has faults that users of other tools reported, each by its row
// in the field list.
func TestFieldRows(t *testing.T) {
	// Steno counts no tokens: what is to be seen is that no shape of them
	// makes an event or takes one away.
	answer := event("item_completed", turn1, `,"item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"Done."}]}`)
	turn := []string{event("task_started", turn1, ""), prompt(turn1), answer, event("task_complete", turn1, `,"last_agent_message":"Done."`)}
	const plain = "turn_started/1 waiting_on_agent/1 assistant_message/1 turn_final/1 waiting_on_user/1"
	for name, usage := range map[string][]string{
		"A16: a total that falls":                 {`{"total_token_usage":{"total_tokens":90000}}`, `{"total_token_usage":{"total_tokens":12000}}`},
		"A17: a total that is not there":          {`{"last_token_usage":{"input_tokens":7}}`, `null`},
		"H6: cached tokens within the input":      {`{"last_token_usage":{"input_tokens":70,"cached_input_tokens":60,"total_tokens":70}}`},
		"H18: reasoning tokens within the output": {`{"last_token_usage":{"output_tokens":70,"reasoning_output_tokens":60,"total_tokens":70}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for i, line := range turn {
				lines = append(lines, line, event("token_count", turn1, `,"info":`+usage[i%len(usage)]))
			}
			p := newTest()
			if got := kinds(feed(p, lines...)); got != plain {
				t.Errorf("drafts %s, want %s", got, plain)
			}
			if got := p.(providers.Surveyor).Drift(); len(got) > 0 {
				t.Errorf("Drift = %q", got)
			}
		})
	}
	t.Run("A18: tokens in a record of their own", func(t *testing.T) {
		p := newTest()
		record := `{"timestamp":"2026-11-30T10:00:00Z","type":"%s","payload":{"turn_id":"` + turn1 + `","usage":{"total_tokens":7}}}`
		lines := append(slices.Clone(turn), fmt.Sprintf(record, "token_usage_record"), fmt.Sprintf(record, "token_usage_v2"), fmt.Sprintf(record, "token_usage_v2"))
		if got := kinds(feed(p, lines...)); got != plain {
			t.Errorf("drafts %s, want %s", got, plain)
		}
		if got := p.(providers.Surveyor).Drift(); !slices.Equal(got, []string{"token_usage_v2"}) {
			t.Errorf("Drift = %q", got)
		}
	})
	t.Run("B17: a long record beside those that matter", func(t *testing.T) {
		p := newTest()
		long := event("token_count", turn1, `,"info":{"x":"`+strings.Repeat("x", 2<<20)+`"}`)
		lines := []string{turn[0], turn[1], long, turn[2], long, turn[3]}
		if got := kinds(feed(p, lines...)); got != plain {
			t.Errorf("drafts %s, want %s", got, plain)
		}
		hole := providers.Record{Start: 10, End: 30 << 20, Gap: providers.Oversized}
		if got := p.Project(hole); len(got) != 1 || !strings.Contains(got[0].Detail, fmt.Sprint(hole.End-hole.Start)) {
			t.Errorf("one that is too long gives %v, want the number of its bytes", got)
		}
	})
	t.Run("C24: a database that lists what was deleted", func(t *testing.T) {
		home := t.TempDir()
		for _, root := range (Provider{}).Roots(providers.Env{Home: home}) {
			for _, name := range []string{"state_5.sqlite", "state_5.sqlite-wal", "logs_2.sqlite", "2026/11/30/state_5.sqlite"} {
				if a, ok := (Provider{}).Claim(root, name); ok {
					t.Errorf("%s is claimed as %+v", name, a)
				}
			}
		}
		// Held open by the process, but deleted: its session owns nothing.
		path := filepath.Join(home, ".codex/sessions/2026/11/30/rollout-2026-11-30T18-55-18-"+thread+".jsonl")
		p := providers.Process{PID: 1, Env: map[string]string{"HOME": home}, CWD: "/w", Open: []string{path}}
		ev, err := Provider{}.Evidence(t.Context(), p, nil)
		if err != nil || len(ev) != 1 || ev[0].Session != thread || ev[0].Refused == "" {
			t.Errorf("Evidence = %+v, %v, want one that is refused", ev, err)
		}
	})
	t.Run("H13: what the program did not have is told", strangers)
}

func strangers(t *testing.T) {
	p := newTest()
	lines := []string{
		`{"type":"mood","payload":{}}`, `{"type":"mood","payload":{}}`, event("task_paused", turn1, ""),
		event("item_completed", turn1, `,"item":{"type":"Hologram","id":"x"}`),
		`{"type":"response_item","payload":{"type":"smell"}}`, `{"type":"two words"}`, `{"x":1}`,
	}
	for _, line := range lines {
		for _, d := range feed(p, line) {
			if d.Text != "" || strings.Contains(d.Detail, "words") {
				t.Errorf("%s gives %+v", line, d)
			}
		}
	}
	want := []string{"mood", "event_msg/task_paused", "item/Hologram", "response_item/smell", "unreadable"}
	if got := p.(providers.Surveyor).Drift(); !slices.Equal(got, want) {
		t.Errorf("Drift = %q, want %q", got, want)
	}
	if got := p.(providers.Surveyor).Drift(); got != nil {
		t.Errorf("Drift twice = %q", got)
	}
	for i := range 50 {
		feed(p, fmt.Sprintf(`{"type":"new_%d","payload":{}}`, i))
	}
	if got := p.(providers.Surveyor).Drift(); len(got) != maxDrift {
		t.Errorf("%d names at once, want %d", len(got), maxDrift)
	}
	// Nothing that was recorded is new.
	files, err := filepath.Glob(filepath.Join(corpusDir, "*", "*.jsonl"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(filepath.Dir(file)), "h-") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := newTest()
		for _, r := range providertest.Split(data) {
			p.Project(r)
		}
		if got := p.(providers.Surveyor).Drift(); got != nil {
			t.Errorf("%s: Drift = %q", filepath.Base(filepath.Dir(file)), got)
		}
	}
}
