package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// item is one of a request's input to OpenAI Responses.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	CallID  string          `json:"call_id"`
	Content json.RawMessage `json:"content"`
}

// callStep finds the step in the id that this server gave to a call.
var callStep = regexp.MustCompile(`^call_s(\d+)_`)

// responsesScript finds the script of the last prompt. The ids of the calls
// after it tell the step: parallel calls may come in any order.
func responsesScript(input []item) (string, int) {
	n := 0
	for i := len(input) - 1; i >= 0; i-- {
		it := input[i]
		if m := callStep.FindStringSubmatch(it.CallID); m != nil {
			if k, err := strconv.Atoi(m[1]); err == nil {
				n = max(n, k+1)
			}
		}
		if it.Type == "agent_message" { // from another agent; a task names its script
			if name := named(plainText(it.Content)); name != "" {
				return name, n
			}
			continue
		}
		if it.Role != "user" {
			continue
		}
		text := own(plainText(it.Content))
		switch name := named(text); {
		case strings.Contains(text, "CONTEXT CHECKPOINT COMPACTION"):
			return "compact", 0
		case strings.HasPrefix(text, "Generate a concise"):
			return "title", 0
		case strings.HasPrefix(text, "Review the current code changes"):
			return "review", 0
		case name != "":
			return name, n
		case text != "" && !strings.HasPrefix(text, "<") && !strings.HasPrefix(text, "# AGENTS.md"):
			return "other", n
		}
	}
	return "other", n
}

// tools is what the program offers; some stand in a namespace.
type tools []struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (t tools) namespace(tool string) string {
	for _, space := range t {
		for _, u := range space.Tools {
			if space.Type == "namespace" && u.Name == tool {
				return space.Name
			}
		}
	}
	return ""
}

// responses answers as OpenAI Responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model string `json:"model"`
		Input []item `json:"input"`
		Tools tools  `json:"tools"`
	}
	body, ok := readJSON(w, r, &req)
	if !ok {
		return
	}
	name, n := responsesScript(req.Input)
	s.note(Request{Path: r.URL.Path, Script: name, Step: n, Tools: len(req.Tools)})
	a := responsesAnswer{s: s, step: s.step(name, n), n: n, model: req.Model, size: len(body), tools: req.Tools, id: s.id("resp")}
	if st := a.step; st.Status != 0 {
		e := object{"message": ErrorText + " " + st.Message, "type": st.Type, "code": st.Type, "param": nil}
		writeJSON(w, st.Status, object{"error": e})
		return
	}
	a.out = newStream(w)
	a.stream(r)
}

type responsesAnswer struct {
	s     *Server
	step  Step
	n     int // of the step
	model string
	size  int // of the request
	tools tools
	id    string
	out   *stream
	sent  int
}

func (a *responsesAnswer) send(event string, v object) {
	v["sequence_number"] = a.sent
	a.sent++
	a.out.send(event, v)
}

func (a *responsesAnswer) state(status string) object {
	return object{"id": a.id, "object": "response", "status": status, "model": a.model, "output": []any{}, "error": nil, "usage": nil}
}

func (a *responsesAnswer) stream(r *http.Request) {
	a.send("response.created", object{"response": a.state("in_progress")})
	var items []any
	for _, b := range a.step.Blocks {
		if b.Hold {
			if !a.s.hold(r.Context()) {
				return
			}
			continue
		}
		it := a.block(r.Context(), len(items), b)
		if it == nil {
			return
		}
		items = append(items, it)
	}
	if a.step.Event {
		failed := a.state("failed")
		failed["error"] = object{"code": a.step.Type, "message": ErrorText}
		a.send("response.failed", object{"response": failed})
		return
	}
	if a.step.Cut {
		panic(http.ErrAbortHandler)
	}
	done := a.state("completed")
	done["output"] = items
	done["usage"] = object{
		"input_tokens": a.step.tokens(a.size), "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": a.step.tokens(a.size) + 10,
	}
	if reason := map[string]string{maxTokens: "max_output_tokens", filtered: "content_filter", blocked: "content_filter"}[a.step.Stop]; reason != "" {
		done["status"], done["incomplete_details"] = "incomplete", object{"reason": reason}
		a.send("response.incomplete", object{"response": done})
		return
	}
	a.send("response.completed", object{"response": done})
}

// block streams one item and returns it as it stands at the end; nil if the
// client went away.
func (a *responsesAnswer) block(ctx context.Context, index int, b Block) object {
	var begin, end object
	switch {
	case b.Tool != "":
		begin, end = a.call(b)
	case b.Thinking != "":
		id := a.s.id("rs")
		begin = object{"type": "reasoning", "id": id, "summary": []any{}}
		end = object{"type": "reasoning", "id": id, "summary": []any{object{"type": "summary_text", "text": b.Thinking}}, "content": nil, "encrypted_content": "aGlkZGVu"}
	default:
		id := a.s.id("msg")
		begin = object{"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []any{}}
		end = object{"type": "message", "id": id, "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": spoken(b.Text), "annotations": []any{}}}}
	}
	a.send("response.output_item.added", object{"output_index": index, "item": begin})
	at := func(v object) object {
		v["output_index"], v["item_id"] = index, end["id"]
		return v
	}
	switch end["type"] {
	case "reasoning":
		a.send("response.reasoning_summary_part.added", at(object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}}))
		// Only the item at the end has the whole: Codex takes very long over an event
		// of some MiB, and records nothing of these.
		some := pieces(b.Thinking)[0]
		a.send("response.reasoning_summary_text.delta", at(object{"summary_index": 0, "delta": some}))
		a.send("response.reasoning_summary_text.done", at(object{"summary_index": 0, "text": some}))
	case "message":
		a.send("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		delta := func(p string) {
			a.send("response.output_text.delta", at(object{"content_index": 0, "delta": p}))
		}
		if !a.s.say(ctx, b.Text, delta) {
			return nil
		}
		if a.step.breaks() {
			return end
		}
		a.send("response.output_text.done", at(object{"content_index": 0, "text": spoken(b.Text)}))
	}
	a.send("response.output_item.done", object{"output_index": index, "item": end})
	return end
}

// call makes the items of a call of a tool that Codex knows.
func (a *responsesAnswer) call(b Block) (begin, end object) {
	name, args := codexTools.call(b, "")
	id, callID := a.s.id("fc"), a.s.id(fmt.Sprintf("call_s%d", a.n))
	make := func(args, status string) object {
		v := object{"type": "function_call", "id": id, "call_id": callID, "name": name, "arguments": args, "status": status}
		if space := a.tools.namespace(name); space != "" {
			v["namespace"] = space
		}
		return v
	}
	return make("", "in_progress"), make(string(args), "completed")
}
