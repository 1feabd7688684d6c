package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// post sends a request and gives the answer.
func post(t *testing.T, s *Server, path string, body any) *http.Response {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// events reads a stream to its end.
func events(t *testing.T, r io.Reader) []map[string]any {
	t.Helper()
	var out []map[string]any
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 8<<20)
	for scan.Scan() {
		data, ok := strings.CutPrefix(scan.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("event %.80q: %v", data, err)
		}
		out = append(out, e)
	}
	return out
}

// spoke joins the text of a stream of either API.
func spoke(all []map[string]any) string {
	var b strings.Builder
	for _, e := range all {
		switch d := e["delta"].(type) {
		case string:
			if e["type"] == "response.output_text.delta" {
				b.WriteString(d)
			}
		case map[string]any:
			if s, ok := d["text"].(string); ok {
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

func user(text string) object { return object{"role": "user", "content": text} }

func anthropicRequest(messages ...object) object {
	return object{"model": "m", "stream": true, "tools": []any{object{"name": "Bash"}}, "messages": messages}
}

func responsesRequest(input ...object) object {
	return object{"model": "m", "stream": true, "input": input}
}

func TestAnswersByName(t *testing.T) {
	s := start(t)
	reminder := "<system-reminder>SCENARIO:tool is not a prompt</system-reminder>"
	tool := []object{
		{"role": "assistant", "content": []object{{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": object{}}}},
		{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "toolu_1", "content": "out"}, {"type": "text", "text": reminder}}},
	}
	answered := object{"role": "assistant", "content": "PLAIN: one answer."}
	for _, c := range []struct {
		name, path string
		body       any
		want       string
	}{
		{"first", "/v1/messages", anthropicRequest(user("SCENARIO:plain please")), "PLAIN: one answer."},
		{"reminder", "/v1/messages", anthropicRequest(user("SCENARIO:plain"), user(reminder)), "PLAIN: one answer."},
		{"wrapped hook", "/v1/messages", anthropicRequest(user("SCENARIO:plain"), answered, user("<system-reminder>\nIt is a hook's.\nStop hook feedback:\nSCENARIO:again\n</system-reminder>")), "AGAIN: after all."},
		{"wrapped notice", "/v1/messages", anthropicRequest(user("SCENARIO:plain"), answered, user("<system-reminder>\nNot input.\n<task-notification>\n<status>completed</status>\n</task-notification>\n</system-reminder>")), "NOTED: the task is done."},
		{"last prompt", "/v1/messages", anthropicRequest(user("SCENARIO:tool"), user("SCENARIO:second")), "SECOND: another answer."},
		{"second step", "/v1/messages", anthropicRequest(append([]object{user("SCENARIO:tool")}, tool...)...), "TOOL: it ran."},
		{"no name", "/v1/messages", anthropicRequest(user("SCENARIO:tool"), user("hello")), "OTHER: nothing was asked by name."},
		{"unknown", "/v1/messages", anthropicRequest(user("SCENARIO:nosuch")), `UNKNOWN SCRIPT "nosuch"`},
		{"too far", "/v1/messages", anthropicRequest(append([]object{user("SCENARIO:plain")}, tool...)...), `STEP 2 OF "plain" IS NOT IN THE SCRIPT`},
		{"responses", "/v1/responses", responsesRequest(user("SCENARIO:plain")), "PLAIN: one answer."},
		{"responses, context after", "/v1/responses", responsesRequest(user("SCENARIO:plain"), user("<environment_context>SCENARIO:tool</environment_context>")), "PLAIN: one answer."},
		{"responses, parallel", "/v1/responses", responsesRequest(user("SCENARIO:tools"),
			object{"type": "function_call", "call_id": "call_s0_1"}, object{"type": "function_call_output", "call_id": "call_s0_1", "output": "a"},
			object{"type": "function_call", "call_id": "call_s0_2"}, object{"type": "function_call_output", "call_id": "call_s0_2", "output": "b"}), "TOOLS: both ran."},
		{"responses, a task of another agent", "/v1/responses", responsesRequest(user("SCENARIO:spawn"),
			object{"type": "agent_message", "content": []object{{"type": "input_text", "text": "NEW_TASK"}, {"type": "encrypted_content", "encrypted_content": "SCENARIO:plain"}}}), "PLAIN: one answer."},
		{"responses, and its report", "/v1/responses", responsesRequest(user("SCENARIO:plain"),
			object{"type": "agent_message", "content": []object{{"type": "input_text", "text": "FINAL_ANSWER"}}}), "PLAIN: one answer."},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := events(t, post(t, s, c.path, c.body).Body)
			if got := spoke(all); got != c.want {
				t.Errorf("answer = %q, want %q", got, c.want)
			}
			last := all[len(all)-1]["type"]
			if last != "message_stop" && last != "response.completed" {
				t.Errorf("the stream ends with %v", last)
			}
		})
	}
}

func TestHold(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, c := range []struct {
		path string
		body any
	}{
		{"/v1/messages", anthropicRequest(user("SCENARIO:held"))},
		{"/v1/responses", responsesRequest(user("SCENARIO:held"))},
	} {
		resp := post(t, s, c.path, c.body)
		if err := s.Held(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := spoke(events(t, resp.Body)), "HELD: first words, and the rest."; got != want {
			t.Errorf("%s = %q, want %q", c.path, got, want)
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	if s.Held(ended) == nil || s.Release(ended) == nil {
		t.Error("nothing is held, and yet it is said to be")
	}
}

func TestFailures(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		path, script string
		body         func(...object) object
		status       int
	}{
		{"/v1/messages", "529", anthropicRequest, 529},
		{"/v1/responses", "401", responsesRequest, 401},
	} {
		resp := post(t, s, c.path, c.body(user("SCENARIO:"+c.script)))
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(b), ErrorText) {
			t.Errorf("%s %s = %d %s, %v", c.path, c.script, resp.StatusCode, b, err)
		}
	}
	for _, c := range []struct {
		path string
		body any
	}{
		{"/v1/messages", anthropicRequest(user("SCENARIO:cut"))},
		{"/v1/responses", responsesRequest(user("SCENARIO:cut"))},
	} {
		if _, err := io.ReadAll(post(t, s, c.path, c.body).Body); err == nil {
			t.Errorf("%s was not cut", c.path)
		}
	}
	all := events(t, post(t, s, "/v1/responses", responsesRequest(user("SCENARIO:context"))).Body)
	if got := all[len(all)-1]["type"]; got != "response.failed" {
		t.Errorf("the stream ends with %v", got)
	}
	resp := post(t, s, "/v1/messages", "not a request")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an unreadable request is answered with %d", resp.StatusCode)
	}
}

func TestPlanFile(t *testing.T) {
	s := start(t)
	body := anthropicRequest(user("SCENARIO:plan"))
	body["system"] = "write it to /home/x/.claude/plans/quiet-owl.md now"
	all := events(t, post(t, s, "/v1/messages", body).Body)
	var in string
	for _, e := range all {
		if d, ok := e["delta"].(map[string]any); ok {
			if p, ok := d["partial_json"].(string); ok {
				in += p
			}
		}
	}
	if !strings.Contains(in, `"/home/x/.claude/plans/quiet-owl.md"`) {
		t.Errorf("input = %s", in)
	}
}

// TestScripts: every script of the table can be sent by both servers.
func TestScripts(t *testing.T) {
	for name, script := range scripts {
		for n, st := range script {
			if len(st.Blocks) == 0 && st.Status == 0 && !st.Event && st.Stop == "" {
				t.Errorf("step %d of %s says nothing", n+1, name)
			}
			for _, b := range st.Blocks {
				kinds := 0
				for _, set := range []bool{b.Text != "", b.Thinking != "", b.Tool != "", b.Hold} {
					if set {
						kinds++
					}
				}
				if kinds != 1 {
					t.Errorf("step %d of %s has a block of %d kinds", n+1, name, kinds)
				}
			}
		}
	}
}
