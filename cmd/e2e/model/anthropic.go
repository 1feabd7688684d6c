package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// message is one of a request to Anthropic Messages.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string, or a list of parts
}

type part struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Encrypted string `json:"encrypted_content"` // of a message between agents
}

// read gives the text of a message, and whether it carries results of tools.
func (m message) read() (text string, result bool) {
	if json.Unmarshal(m.Content, &text) == nil {
		return text, false
	}
	var parts []part
	_ = json.Unmarshal(m.Content, &parts) // another form has no text
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
		result = result || p.Type == "tool_result"
	}
	return strings.Join(texts, "\n"), result
}

// anthropicScript finds the script and its step: the last prompt's, and one
// step for each answer after it.
func anthropicScript(messages []message, tools int) (string, int) {
	answers, wasAssistant := 0, false
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role == "assistant" {
			if !wasAssistant {
				answers++
			}
			wasAssistant = true
			continue
		}
		wasAssistant = false
		if m.Role != "user" {
			continue
		}
		text, result := m.read()
		if strings.Contains(text, "create a detailed summary of") {
			return "compact", 0
		}
		// Claude Code 2.1.332 hands both of these on in a wrapping of its own.
		notice, hook := strings.Contains(text, "<task-notification>"), strings.Contains(text, "\nStop hook feedback:\n")
		if !hook {
			text = own(text)
		}
		switch name := named(text); {
		case notice:
			return "notification", answers
		case tools == 0: // a question of the program's own
			return "title", 0
		case name != "":
			return name, answers
		case !result && text != "" && !continues(text):
			return "other", answers
		}
	}
	return "other", answers
}

// continues tells the texts by which Claude Code makes a turn go on.
func continues(text string) bool {
	return strings.HasPrefix(text, "Output token limit hit") || strings.HasPrefix(text, "[Your previous response")
}

// messages answers as Anthropic Messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Messages []message         `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	body, ok := readJSON(w, r, &req)
	if !ok {
		return
	}
	name, n := anthropicScript(req.Messages, len(req.Tools))
	s.note(Request{Path: r.URL.Path, Script: name, Step: n, Tools: len(req.Tools)})
	a := anthropicAnswer{s: s, step: s.step(name, n), model: req.Model, size: len(body), plan: planFile(body)}
	w.Header().Set("request-id", s.id("req"))
	switch {
	case a.step.Status != 0:
		writeJSON(w, a.step.Status, object{"type": "error", "error": object{"type": a.step.Type, "message": ErrorText + " " + a.step.Message}})
	case !req.Stream:
		a.whole(w, r)
	default:
		a.stream(newStream(w), r)
	}
}

type anthropicAnswer struct {
	s     *Server
	step  Step
	model string
	size  int    // of the request
	plan  string // the path that the program named for it
}

func (a *anthropicAnswer) stop() string {
	switch {
	case a.step.Stop == blocked:
		return filtered
	case a.step.Stop != "":
		return a.step.Stop
	case a.step.calls():
		return "tool_use"
	}
	return "end_turn"
}

func (a *anthropicAnswer) usage() object {
	return object{"input_tokens": a.step.tokens(a.size), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}
}

// whole answers without a stream, as the program asks after a broken one: this
// time it is not cut.
func (a *anthropicAnswer) whole(w http.ResponseWriter, r *http.Request) {
	content := []any{}
	for _, b := range a.step.Blocks {
		if b.Hold && !a.s.hold(r.Context()) {
			return
		}
		switch {
		case b.Tool != "":
			name, in := claudeTools.call(b, a.plan)
			content = append(content, object{"type": "tool_use", "id": a.s.id("toolu"), "name": name, "input": in})
		case b.Thinking != "":
			content = append(content, object{"type": "thinking", "thinking": b.Thinking, "signature": "c2lnbmVk"})
		case b.Text != "":
			content = append(content, object{"type": "text", "text": spoken(b.Text)})
		}
	}
	writeJSON(w, http.StatusOK, object{
		"id": a.s.id("msg"), "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": a.stop(), "stop_sequence": nil, "usage": a.usage(),
	})
}

func (a *anthropicAnswer) stream(out *stream, r *http.Request) {
	out.send("message_start", object{"message": object{
		"id": a.s.id("msg"), "type": "message", "role": "assistant", "model": a.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": a.usage(),
	}})
	index := 0
	for _, b := range a.step.Blocks {
		if b.Hold {
			if !a.s.hold(r.Context()) {
				return
			}
			continue
		}
		if !a.block(r.Context(), out, index, b) {
			return
		}
		index++
	}
	if a.step.Event {
		out.send("error", object{"error": object{"type": a.step.Type, "message": ErrorText}})
		return
	}
	if a.step.Cut {
		panic(http.ErrAbortHandler)
	}
	out.send("message_delta", object{"delta": object{"stop_reason": a.stop(), "stop_sequence": nil}, "usage": a.usage()})
	out.send("message_stop", object{})
}

// block streams one block; it is false if the client went away.
func (a *anthropicAnswer) block(ctx context.Context, out *stream, index int, b Block) bool {
	start := func(v object) { out.send("content_block_start", object{"index": index, "content_block": v}) }
	delta := func(v object) { out.send("content_block_delta", object{"index": index, "delta": v}) }
	switch {
	case b.Tool != "":
		name, in := claudeTools.call(b, a.plan)
		start(object{"type": "tool_use", "id": a.s.id("toolu"), "name": name, "input": object{}})
		delta(object{"type": "input_json_delta", "partial_json": string(in)})
	case b.Thinking != "":
		start(object{"type": "thinking", "thinking": "", "signature": ""})
		delta(object{"type": "thinking_delta", "thinking": b.Thinking})
		delta(object{"type": "signature_delta", "signature": "c2lnbmVk"})
	default:
		start(object{"type": "text", "text": ""})
		if !a.s.say(ctx, b.Text, func(p string) { delta(object{"type": "text_delta", "text": p}) }) {
			return false
		}
	}
	if !a.step.breaks() {
		out.send("content_block_stop", object{"index": index})
	}
	return true
}
