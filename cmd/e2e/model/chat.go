package model

import (
	"encoding/json"
	"net/http"
	"slices"
)

// chatRequest is what matters of a request to OpenAI chat completions.
type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// talk drops what the program itself tells the model.
func (r chatRequest) talk() []line {
	var out []line
	for _, m := range r.Messages {
		who := human
		switch m.Role {
		case "system", "developer":
			continue
		case "assistant":
			who = machine
		case "tool":
			who = tool
		}
		out = append(out, line{who, plainText(m.Content)})
	}
	return out
}

// chat answers as OpenAI chat completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var req chatRequest
	body, ok := readJSON(w, r, &req)
	if !ok {
		return
	}
	name, n := asked(req.talk(), len(req.Tools))
	s.note(Request{Path: r.URL.Path, Script: name, Step: n, Tools: len(req.Tools)})
	var offered []string
	for _, t := range req.Tools {
		offered = append(offered, t.Function.Name)
	}
	a := chatAnswer{
		s: s, step: s.step(name, n), model: req.Model, size: len(body),
		program: chatProgram(offered), plan: planFile(body), id: s.id("chatcmpl"),
	}
	switch {
	case a.step.Status != 0:
		// Left alone, both wait for a minute in all.
		switch {
		case a.step.Patient:
		case slices.Contains(offered, "todowrite"): // OpenCode
			w.Header().Set("retry-after-ms", "50")
		case slices.Contains(offered, "read_bash"): // Copilot
			w.Header().Set("retry-after", "1")
		}
		writeJSON(w, a.step.Status, a.failure())
	case !req.Stream:
		a.whole(w, r)
	default:
		a.stream(newStream(w), r)
	}
}

type chatAnswer struct {
	s       *Server
	step    Step
	model   string
	size    int // of the request
	program program
	plan    string
	id      string
}

func (a *chatAnswer) failure() object {
	return object{"error": object{"message": ErrorText + " " + a.step.Message, "type": a.step.Type, "code": a.step.Type, "param": nil}}
}

func (a *chatAnswer) finish() string {
	switch a.step.Stop {
	case maxTokens:
		return "length"
	case filtered, blocked:
		return "content_filter"
	case "":
		if a.step.calls() {
			return "tool_calls"
		}
	}
	return "stop"
}

func (a *chatAnswer) usage() object {
	in := a.step.tokens(a.size)
	return object{
		"prompt_tokens": in, "completion_tokens": 10, "total_tokens": in + 10,
		"prompt_tokens_details": object{"cached_tokens": 0}, "completion_tokens_details": object{"reasoning_tokens": 0},
	}
}

// call makes a call of a tool; its index is its place among the calls.
func (a *chatAnswer) call(b Block) object {
	name, args := a.program.call(b, a.plan)
	return object{"id": a.s.id("call"), "type": "function", "function": object{"name": name, "arguments": string(args)}}
}

func (a *chatAnswer) whole(w http.ResponseWriter, r *http.Request) {
	var text, thought string
	var calls []any
	for _, b := range a.step.Blocks {
		switch {
		case b.Hold:
			if !a.s.hold(r.Context()) {
				return
			}
		case b.Tool != "":
			calls = append(calls, a.call(b))
		default:
			text, thought = text+spoken(b.Text), thought+b.Thinking
		}
	}
	m := object{"role": "assistant", "content": text}
	if thought != "" {
		m["reasoning_content"] = thought
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	writeJSON(w, http.StatusOK, object{
		"id": a.id, "object": "chat.completion", "created": 1, "model": a.model, "usage": a.usage(),
		"choices": []any{object{"index": 0, "message": m, "finish_reason": a.finish()}},
	})
}

func (a *chatAnswer) stream(out *stream, r *http.Request) {
	chunk := func(v object) {
		v["id"], v["object"], v["created"], v["model"] = a.id, "chat.completion.chunk", 1, a.model
		out.data(v)
	}
	delta := func(d object, finish any) {
		chunk(object{"choices": []any{object{"index": 0, "delta": d, "finish_reason": finish}}})
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	calls := 0
	for _, b := range a.step.Blocks {
		switch {
		case b.Hold:
			if !a.s.hold(r.Context()) {
				return
			}
		case b.Tool != "":
			c := a.call(b)
			args := c["function"].(object)["arguments"]
			c["index"], c["function"].(object)["arguments"] = calls, ""
			delta(object{"tool_calls": []any{c}}, nil)
			delta(object{"tool_calls": []any{object{"index": calls, "function": object{"arguments": args}}}}, nil)
			calls++
		case b.Thinking != "":
			for _, p := range pieces(b.Thinking) {
				delta(object{"reasoning_content": p}, nil)
			}
		default:
			if !a.s.say(r.Context(), b.Text, func(p string) { delta(object{"content": p}, nil) }) {
				return
			}
		}
	}
	switch {
	case a.step.Event:
		out.data(a.failure())
		return
	case a.step.Cut:
		panic(http.ErrAbortHandler)
	}
	delta(object{}, a.finish())
	chunk(object{"choices": []any{}, "usage": a.usage()})
	out.end()
}
