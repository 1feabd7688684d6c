package model

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chatRequestOf makes a request to chat completions that offers the tools.
func chatRequestOf(tools []string, messages ...object) object {
	var offered []any
	for _, t := range tools {
		offered = append(offered, object{"type": "function", "function": object{"name": t}})
	}
	return object{"model": "m", "stream": true, "tools": offered, "messages": messages}
}

// geminiRequestOf is the same for Gemini.
func geminiRequestOf(functions []object, contents ...object) object {
	return object{"tools": []any{object{"functionDeclarations": functions}}, "contents": contents}
}

func content(role string, parts ...object) object { return object{"role": role, "parts": parts} }

var oneFunction = []object{{"name": "run_shell_command"}}

const stream1 = "/v1beta/models/m:streamGenerateContent?alt=sse"

// heard is what a stream of chat completions or Gemini said.
type heard struct {
	text, thought, finish, tool, args string
	usage, failed                     bool
}

func listen(all []map[string]any) (h heard) {
	for _, e := range all {
		h.failed = h.failed || e["error"] != nil
		h.usage = h.usage || e["usage"] != nil || e["usageMetadata"] != nil
		if e["promptFeedback"] != nil {
			h.finish = "blocked"
		}
		h.chat(e)
		h.gemini(e)
	}
	return h
}

func (h *heard) chat(e map[string]any) {
	choices, _ := e["choices"].([]any)
	for _, c := range choices {
		c := c.(map[string]any)
		if f, ok := c["finish_reason"].(string); ok {
			h.finish = f
		}
		d := c["delta"].(map[string]any)
		if s, ok := d["content"].(string); ok {
			h.text += s
		}
		if s, ok := d["reasoning_content"].(string); ok {
			h.thought += s
		}
		calls, _ := d["tool_calls"].([]any)
		for _, c := range calls {
			f := c.(map[string]any)["function"].(map[string]any)
			if s, ok := f["name"].(string); ok {
				h.tool += s + " "
			}
			h.args += f["arguments"].(string)
		}
	}
}

func (h *heard) gemini(e map[string]any) {
	candidates, _ := e["candidates"].([]any)
	for _, c := range candidates {
		c := c.(map[string]any)
		if f, ok := c["finishReason"].(string); ok {
			h.finish = f
		}
		for _, p := range c["content"].(map[string]any)["parts"].([]any) {
			p := p.(map[string]any)
			text, _ := p["text"].(string)
			if p["thought"] == true {
				h.thought += text
			} else {
				h.text += text
			}
			if f, ok := p["functionCall"].(map[string]any); ok {
				h.tool += f["name"].(string) + " "
				h.args += compactJSON(f["args"])
			}
		}
	}
}

// data drops the line that ends a stream of chat completions.
func data(t *testing.T, resp *http.Response) []map[string]any {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return events(t, strings.NewReader(strings.ReplaceAll(string(b), "data: [DONE]", "")))
}

// TestTalks: what a conversation asks for, over chat completions and Gemini.
func TestTalks(t *testing.T) {
	model := func(s string) object { return object{"role": "assistant", "content": s} }
	for _, c := range []struct {
		name string
		talk []object
		want string
	}{
		{"prompt", []object{user("SCENARIO:plain")}, "PLAIN: one answer."},
		{"in parts", []object{{"role": "user", "content": []object{{"type": "text", "text": "SCENARIO:plain"}}}}, "PLAIN: one answer."},
		{"second prompt", []object{user("SCENARIO:tool"), model("x"), user("SCENARIO:second")}, "SECOND: another answer."},
		{"what the program adds", []object{user("SCENARIO:plain"), user("<system-reminder>SCENARIO:tool</system-reminder>")}, "PLAIN: one answer."},
		{"and says first", []object{user("<session_context>SCENARIO:tool</session_context>\nSCENARIO:plain")}, "PLAIN: one answer."},
		{"second step", []object{user("SCENARIO:tool"), model("x"), {"role": "tool", "content": "SCENARIO:plain"}}, "TOOL: it ran."},
		{"two messages are one answer", []object{user("SCENARIO:tool"), model("x"), model("y"), {"role": "tool", "content": "out"}}, "TOOL: it ran."},
		{"the program goes on", []object{user("SCENARIO:tool"), model("x"), user("Please continue.")}, "TOOL: it ran."},
		{"no name", []object{user("SCENARIO:tool"), model("x"), user("hello")}, "OTHER: nothing was asked by name."},
		{"background", []object{user("SCENARIO:background"), model("x"), model("y"), user("<notification id=\"1\">SCENARIO:plain</notification>")}, "NOTED: the task is done."},
		{"background, as OpenCode", []object{user("SCENARIO:agents"), model("x"), user("<task id=\"ses_1\" state=\"completed\">SCENARIO:plain</task>")}, "NOTED: the task is done."},
		{"a plan is approved, as OpenCode", []object{user("SCENARIO:plan"), model("x"), model("y"), {"role": "tool", "content": "out"}, model("z"), user("The plan at a/plan.md has been approved, you can now edit files.")}, "PLAN: understood."},
		{"compaction", []object{user("SCENARIO:tool"), model("x"), user("Create a handoff summary for the model.")}, "SUMMARY: they talked."},
		{"compaction of a text", []object{user("SCENARIO:tool"), model("x"), user("Now generate the <state_snapshot>.")}, "SUMMARY: they talked."},
		{"after it, as OpenCode", []object{user("What did we do so far?"), model("SCENARIO:compacted"), user("Continue if you have next steps.")}, "COMPACTED: it goes on."},
		{"after it", []object{user("summary: SCENARIO:compacted")}, "COMPACTED: it goes on."},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t)
			if got := listen(data(t, post(t, s, "/v1/chat/completions", chatRequestOf([]string{"bash"}, c.talk...)))); !strings.Contains(got.text, c.want) || !got.usage {
				t.Errorf("chat: %+v, want %q", got, c.want)
			}
			var contents []object
			for _, m := range c.talk {
				text := plainText(json.RawMessage(compactJSON(m["content"])))
				switch m["role"] {
				case "assistant":
					contents = append(contents, content("model", object{"text": text}))
				case "tool":
					contents = append(contents, content("user", object{"functionResponse": object{"name": "x", "response": object{"output": text}}}))
				default:
					contents = append(contents, content("user", object{"text": text}))
				}
			}
			if got := listen(data(t, post(t, s, stream1, geminiRequestOf(oneFunction, contents...)))); !strings.Contains(got.text, c.want) || !got.usage {
				t.Errorf("gemini: %+v, want %q", got, c.want)
			}
		})
	}
}

// TestEnds: how both APIs say that an answer ended, and how it did not.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		script, chat, gemini string
	}{
		{"plain", "stop", "STOP"},
		{"tool", "tool_calls", "STOP"},
		{"maxtokens", "length", "MAX_TOKENS"},
		{"refusal", "content_filter", "SAFETY"},
		{"blocked", "content_filter", "blocked"},
		{"empty", "stop", "STOP"},
		{"malformed", "stop", "MALFORMED_FUNCTION_CALL"},
	} {
		s := start(t)
		chat := listen(data(t, post(t, s, "/v1/chat/completions", chatRequestOf([]string{"bash"}, user("SCENARIO:"+c.script)))))
		gemini := listen(data(t, post(t, s, stream1, geminiRequestOf(oneFunction, content("user", object{"text": "SCENARIO:" + c.script})))))
		if chat.finish != c.chat || gemini.finish != c.gemini {
			t.Errorf("%s ends with %q and %q, want %q and %q", c.script, chat.finish, gemini.finish, c.chat, c.gemini)
		}
	}
	s := start(t)
	for path, body := range map[string]object{
		"/v1/chat/completions": chatRequestOf([]string{"bash"}, user("SCENARIO:cut")),
		stream1:                geminiRequestOf(oneFunction, content("user", object{"text": "SCENARIO:cut"})),
	} {
		if _, err := io.ReadAll(post(t, s, path, body).Body); err == nil {
			t.Errorf("%s was not cut", path)
		}
	}
	for path, body := range map[string]func(string) object{
		"/v1/chat/completions": func(p string) object { return chatRequestOf([]string{"bash"}, user(p)) },
		stream1:                func(p string) object { return geminiRequestOf(oneFunction, content("user", object{"text": p})) },
	} {
		if got := listen(data(t, post(t, s, path, body("SCENARIO:streamerror")))); !got.failed || got.finish != "" || got.text == "" {
			t.Errorf("%s: %+v", path, got)
		}
		for _, status := range []int{400, 401, 429, 500, 503, 529} {

			resp := post(t, s, path, body("SCENARIO:"+strconv.Itoa(status)))
			b, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != status || !strings.Contains(string(b), ErrorText) {
				t.Errorf("%s %d = %d %s, %v", path, status, resp.StatusCode, b, err)
			}
		}
	}
}

// TestSoon: OpenCode and Copilot are told to ask again soon, so that their retries
// do not take a minute; nobody else is, and not where it has to wait.
func TestSoon(t *testing.T) {
	for _, c := range []struct {
		script  string
		tools   []string
		millis  string
		seconds string
	}{
		{"500", []string{"bash", "todowrite"}, "50", ""},
		{"500", []string{"bash", "read_bash"}, "", "1"},
		{"500", []string{"Bash", "TodoList"}, "", ""},
		{"stubborn", []string{"bash", "todowrite"}, "", ""},
		{"stubborn", []string{"bash", "read_bash"}, "", ""},
		{"plain", []string{"bash", "todowrite"}, "", ""},
	} {
		resp := post(t, start(t), "/v1/chat/completions", chatRequestOf(c.tools, user("SCENARIO:"+c.script)))
		for name, want := range map[string]string{"retry-after-ms": c.millis, "retry-after": c.seconds} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s to %s: %s is %q, want %q", c.script, c.tools[1], name, got, want)
			}
		}
	}
}

// TestTools: every program gets its tools by their names, with arguments that
// name what the program needs.
func TestTools(t *testing.T) {
	chat := func(offered ...string) func(*testing.T, *Server, string) heard {
		return func(t *testing.T, s *Server, p string) heard {
			return listen(data(t, post(t, s, "/v1/chat/completions", chatRequestOf(offered, user(p)))))
		}
	}
	gemini := func(t *testing.T, s *Server, p string) heard {
		return listen(data(t, post(t, s, stream1, geminiRequestOf(oneFunction, content("user", object{"text": p})))))
	}
	opencode, kimi, copilot := chat("bash", "task"), chat("Bash", "Agent"), chat("bash", "read_bash")
	for _, c := range []struct {
		ask          func(*testing.T, *Server, string) heard
		script, tool string
		args         string // a part of them
	}{
		{gemini, "tool", "run_shell_command ", `"command":"echo tool-output"`},
		{opencode, "tool", "bash ", `{"command":"echo tool-output"}`},
		{kimi, "tool", "Bash ", `"command":"echo tool-output"`},
		{copilot, "tool", "bash ", `"command":"echo tool-output"`},
		{gemini, "tools", "run_shell_command run_shell_command ", "echo two"},
		{opencode, "tools", "bash bash ", "echo two"},
		{gemini, "background", "run_shell_command ", `"is_background":true`},
		{kimi, "background", "Bash ", `"run_in_background":true`},
		{copilot, "background", "bash ", `"mode":"async"`},
		{gemini, "question", "ask_user ", `"type":"choice"`},
		{opencode, "question", "question ", `"multiple":false`},
		{kimi, "question", "AskUserQuestion ", `"multi_select":false`},
		{copilot, "question", "ask_user ", `"enum":["Red","Blue"]`},
		{opencode, "form", "question ", `"multiple":true`},
		{gemini, "todos", "write_todos ", `"description":"Leap","status":"pending"`},
		{opencode, "todos", "todowrite ", `"content":"Leap","priority":"high","status":"pending"`},
		{kimi, "todos", "TodoList ", `"status":"pending","title":"Leap"`},
		{copilot, "todos", "sql ", "INSERT INTO todos"},
		{gemini, "agent", "invoke_agent ", `"prompt":"SCENARIO:subwork"`},
		{opencode, "agent", "task ", `"subagent_type":"general"`},
		{kimi, "agent", "Agent ", `"subagent_type":"coder"`},
		{copilot, "agent", "task ", `"agent_type":"explore"`},
		{gemini, "enterplan", "enter_plan_mode ", `"reason"`},
		{kimi, "enterplan", "EnterPlanMode ", `{}`},
		{gemini, "plan /h/.gemini/tmp/w/plans/ is for plans", "write_file ", `"/h/.gemini/tmp/w/plans/plan.md"`},
		{kimi, "plan /h/old/plans/a-b.md and /h/agents/main/plans/c-d.md", "Write ", `"path":"/h/agents/main/plans/c-d.md"`},
		{copilot, "plan in /h/.copilot/session-state/1/plan.md", "create ", `"path":"/h/.copilot/session-state/1/plan.md"`},
	} {
		got := c.ask(t, start(t), "SCENARIO:"+c.script)
		if got.tool != c.tool || !strings.Contains(got.args, c.args) {
			t.Errorf("%s: %q with %s, want %q with %s", c.script, got.tool, got.args, c.tool, c.args)
		}
	}
	if tool, _ := opencodeTools.call(call("enter plan", object{}), ""); tool != "enter plan" {
		t.Errorf("what a program does not have is called %q", tool)
	}
}

// TestOwnQuestions: what the programs ask for themselves uses up no step.
func TestOwnQuestions(t *testing.T) {
	s := start(t)
	prompt := content("user", object{"text": "SCENARIO:flaky500"})
	next := geminiRequestOf(nil, prompt)
	next["generationConfig"] = object{"responseJsonSchema": object{"type": "object", "properties": object{
		"next_speaker": object{"type": "string", "enum": []string{"user", "model"}}, "sure": object{"type": "boolean"}, "n": object{"type": "integer"}, "all": object{"type": "array"},
	}}}
	got := listen(data(t, post(t, s, stream1, next)))
	if want := `{"all":[],"n":0,"next_speaker":"user","sure":false}`; got.text != want {
		t.Errorf("answer = %s, want %s", got.text, want)
	}
	if got := listen(data(t, post(t, s, "/v1/chat/completions", chatRequestOf(nil, user("SCENARIO:flaky500"))))); !strings.Contains(got.text, "A title") {
		t.Errorf("title = %+v", got)
	}
	if got := listen(data(t, post(t, s, "/v1/chat/completions", chatRequestOf(nil, user("<conversation>SCENARIO:flaky500</conversation> Create a new anchored summary."))))); !strings.Contains(got.text, "SUMMARY") {
		t.Errorf("summary = %+v", got)
	}
	resp := post(t, s, "/v1beta/models/m:countTokens", geminiRequestOf(nil, prompt))
	var n struct{ TotalTokens int }
	if err := json.NewDecoder(resp.Body).Decode(&n); err != nil || n.TotalTokens == 0 {
		t.Errorf("tokens = %+v, %v", n, err)
	}
	if resp := post(t, s, "/v1beta/models/m:embedContent", object{}); resp.StatusCode != http.StatusNotFound {
		t.Errorf("what is not served is answered with %d", resp.StatusCode)
	}
	// No step was used: the first request of the script still fails.
	body := geminiRequestOf(oneFunction, prompt)
	if resp := post(t, s, stream1, body); resp.StatusCode != 500 {
		t.Errorf("the first request is answered with %d", resp.StatusCode)
	}
	if got := listen(data(t, post(t, s, stream1, body))); got.text != "FLAKY: good at last." {
		t.Errorf("the second request is answered with %+v", got)
	}
	report := []object{{"name": "complete_task", "parametersJsonSchema": object{"type": "object", "properties": object{
		"result": object{"type": "object", "properties": object{"response": object{"type": "string"}}}, "wait_for_previous": object{"type": "boolean"},
	}}}}
	got = listen(data(t, post(t, s, stream1, geminiRequestOf(report, content("user", object{"text": "SCENARIO:plain"})))))
	if want := `{"result":{"response":"PLAIN: one answer."}}`; got.tool != "complete_task " || got.args != want {
		t.Errorf("a subagent ends with %+v", got)
	}
}

// TestTimes: a step that is given once, before and between others.
func TestTimes(t *testing.T) {
	s := start(t)
	for i, c := range []struct {
		n      int
		failed bool
		text   string
	}{
		{0, true, ""}, {0, false, "FLAKY: a tool."}, {0, false, "FLAKY: a tool."}, {1, true, ""}, {1, false, "FLAKY: good at last."},
		{2, false, "FLAKY: good at last."},
	} {
		got := s.step("flakytool", c.n)
		text := ""
		if len(got.Blocks) > 0 {
			text = got.Blocks[0].Text
		}
		if got.fails() != c.failed || text != c.text {
			t.Errorf("request %d: %+v", i+1, got)
		}
	}
}

// TestWhole: both APIs answer without a stream, too.
func TestWhole(t *testing.T) {
	s := start(t)
	body := chatRequestOf([]string{"bash"}, user("SCENARIO:thinking"))
	body["stream"] = false
	var chat struct {
		Choices []struct {
			Message struct {
				Content   string `json:"content"`
				Reasoning string `json:"reasoning_content"`
			}
		}
	}
	if err := json.NewDecoder(post(t, s, "/v1/chat/completions", body).Body).Decode(&chat); err != nil {
		t.Fatal(err)
	}
	if m := chat.Choices[0].Message; m.Content != "THINKING: the answer is 42." || m.Reasoning != "let me see" {
		t.Errorf("chat = %+v", m)
	}
	var whole map[string]any
	if err := json.NewDecoder(post(t, s, "/v1beta/models/m:generateContent", geminiRequestOf(oneFunction, content("user", object{"text": "SCENARIO:thinking"}))).Body).Decode(&whole); err != nil {
		t.Fatal(err)
	}
	if h := listen([]map[string]any{whole}); h.text != "THINKING: the answer is 42." || h.thought != "let me see" || h.finish != "STOP" {
		t.Errorf("gemini = %+v", h)
	}
}

// TestPrograms: a program's table has no tool that no script can ask for.
func TestPrograms(t *testing.T) {
	known := []string{shellTool, askTool, formTool, todosTool, enterPlanTool, writePlanTool, exitPlanTool, agentTool}
	for i, p := range []program{claudeTools, codexTools, geminiTools, opencodeTools, kimiTools, copilotTools} {
		for _, name := range slices.Sorted(maps.Keys(p)) {
			if tool, args := p.call(call(name, object{"prompt": "p", "command": "c"}), "/plan.md"); !slices.Contains(known, name) || tool == "" || !json.Valid(args) {
				t.Errorf("program %d: %s is %s with %s", i, name, tool, args)
			}
		}
	}
}
