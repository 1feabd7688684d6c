package model

import (
	"encoding/json"
	"net/http"
	"strings"
)

// geminiRequest is what matters of a request to Gemini generateContent.
type geminiRequest struct {
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text             string          `json:"text"`
			Thought          bool            `json:"thought"`
			FunctionResponse json.RawMessage `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		Functions []struct {
			Name       string `json:"name"`
			Schema     schema `json:"parametersJsonSchema"`
			Parameters schema `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Schema     *schema `json:"responseJsonSchema"`
		OpenSchema *schema `json:"responseSchema"`
	} `json:"generationConfig"`
}

func (r geminiRequest) talk() []line {
	var out []line
	for _, c := range r.Contents {
		l := line{who: human}
		if c.Role == "model" {
			l.who = machine
		}
		var texts []string
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				l.who = tool
			}
			texts = append(texts, p.Text)
		}
		l.text = strings.Join(texts, "\n")
		out = append(out, l)
	}
	return out
}

// count tells how many tools are offered, and gives the one by which a
// subagent reports.
func (r geminiRequest) count() (n int, report *schema) {
	for _, t := range r.Tools {
		n += len(t.Functions)
		for _, f := range t.Functions {
			if f.Name != "complete_task" {
				continue
			}
			report = &f.Schema
			if f.Schema.Type == "" {
				report = &f.Parameters
			}
		}
	}
	return n, report
}

// gemini answers POST /v1beta/models/<model>:<method>.
func (s *Server) gemini(w http.ResponseWriter, r *http.Request) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	var req geminiRequest
	body, ok := readJSON(w, r, &req)
	if !ok {
		return
	}
	switch method {
	case "countTokens": // an estimate will do
		writeJSON(w, http.StatusOK, object{"totalTokens": len(body) / 4})
		return
	case "generateContent", "streamGenerateContent":
	default:
		s.note(Request{Path: r.URL.Path})
		writeJSON(w, http.StatusNotFound, object{"error": object{"code": http.StatusNotFound, "status": "NOT_FOUND", "message": "not found"}})
		return
	}
	tools, report := req.count()
	name, n := asked(req.talk(), tools)
	form := req.Config.Schema
	if form == nil {
		form = req.Config.OpenSchema
	}
	if form != nil { // a question of the program's own, to be read by it
		name, n = "form", 0
	}
	s.note(Request{Path: r.URL.Path, Script: name, Step: n, Tools: tools})
	a := geminiAnswer{s: s, model: model, size: len(body), plan: planFile(body), id: s.id("resp")}
	switch {
	case form != nil:
		a.step = say(compactJSON(form.fill("")))
	case name == "compact":
		a.step = say("<state_snapshot>" + spoken(fixed["compact"][0].Blocks[0].Text) + "</state_snapshot>")
	default:
		a.step = s.step(name, n)
	}
	a.reports(report)
	switch {
	case a.step.Status != 0:
		writeJSON(w, a.step.Status, a.failure())
	case method == "generateContent":
		a.whole(w, r)
	default:
		a.stream(newStream(w), r)
	}
}

type geminiAnswer struct {
	s     *Server
	step  Step
	model string
	size  int // of the request
	plan  string
	id    string
}

// reports makes a subagent's last words a call of the tool that ends it.
func (a *geminiAnswer) reports(report *schema) {
	if report == nil || a.step.calls() || a.step.Status != 0 || a.step.Event || a.step.Cut {
		return
	}
	var said string
	for _, b := range a.step.Blocks {
		said += spoken(b.Text)
	}
	args, ok := report.fill(said).(object)
	if !ok {
		return
	}
	delete(args, "wait_for_previous")
	a.step.Blocks = append(append([]Block(nil), a.step.Blocks...), call("complete_task", args))
}

// states are the names that Gemini has for HTTP statuses.
var states = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 529: "UNAVAILABLE",
}

func (a *geminiAnswer) failure() object {
	status := a.step.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	e := object{"code": status, "message": ErrorText + " " + a.step.Message, "status": states[status]}
	const google = "type.googleapis.com/google.rpc."
	switch {
	case a.step.Type == "usage_limit_reached": // of a day: the program does not ask again
		e["details"] = []any{
			object{"@type": google + "QuotaFailure", "violations": []any{object{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}}},
			object{"@type": google + "ErrorInfo", "reason": "QUOTA_EXHAUSTED", "domain": "cloudcode-pa.googleapis.com"},
		}
	case status == http.StatusTooManyRequests:
		e["details"] = []any{object{"@type": google + "ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED", "domain": "googleapis.com"}}
	}
	return object{"error": e}
}

func (a *geminiAnswer) finish() string {
	switch a.step.Stop {
	case maxTokens:
		return "MAX_TOKENS"
	case filtered:
		return "SAFETY"
	case malformed:
		return "MALFORMED_FUNCTION_CALL"
	}
	return "STOP"
}

// envelope is what every chunk has around its parts.
func (a *geminiAnswer) envelope(parts []any, finish string) object {
	in := a.step.tokens(a.size)
	v := object{
		"modelVersion": a.model, "responseId": a.id,
		"usageMetadata": object{"promptTokenCount": in, "candidatesTokenCount": 10, "totalTokenCount": in + 10},
	}
	if a.step.Stop == blocked {
		v["promptFeedback"] = object{"blockReason": "PROHIBITED_CONTENT"}
		return v
	}
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	v["candidates"] = []any{candidate}
	return v
}

func (a *geminiAnswer) call(b Block) object {
	name, args := geminiTools.call(b, a.plan)
	return object{"functionCall": object{"id": a.s.id("fc"), "name": name, "args": args}, "thoughtSignature": "c2lnbmVk"}
}

func (a *geminiAnswer) whole(w http.ResponseWriter, r *http.Request) {
	parts := []any{}
	for _, b := range a.step.Blocks {
		switch {
		case b.Hold:
			if !a.s.hold(r.Context()) {
				return
			}
		case b.Tool != "":
			parts = append(parts, a.call(b))
		case b.Thinking != "":
			parts = append(parts, object{"text": b.Thinking, "thought": true})
		default:
			parts = append(parts, object{"text": spoken(b.Text)})
		}
	}
	writeJSON(w, http.StatusOK, a.envelope(parts, a.finish()))
}

func (a *geminiAnswer) stream(out *stream, r *http.Request) {
	send := func(p object) { out.data(a.envelope([]any{p}, "")) }
	for _, b := range a.step.Blocks {
		switch {
		case b.Hold:
			if !a.s.hold(r.Context()) {
				return
			}
		case b.Tool != "":
			send(a.call(b))
		case b.Thinking != "":
			send(object{"text": b.Thinking, "thought": true})
		default:
			if !a.s.say(r.Context(), b.Text, func(p string) { send(object{"text": p}) }) {
				return
			}
		}
	}
	switch {
	case a.step.Event:
		out.data(a.failure())
	case a.step.Cut:
		panic(http.ErrAbortHandler)
	default:
		out.data(a.envelope([]any{object{"text": ""}}, a.finish()))
	}
}
