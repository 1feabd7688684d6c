package model

import (
	"fmt"
	"strings"
)

// Block is one piece of an answer; exactly one of Text, Thinking, Tool is set,
// or only Hold.
type Block struct {
	Text     string // the stream stops at each pause in it until Release
	Thinking string
	Tool     string         // name of a tool of the program
	Input    map[string]any // of the tool
	Hold     bool           // stop before this block until Release
}

// Step is the answer to one request of a turn.
type Step struct {
	Blocks []Block
	Stop   string // stop reason; "" is the usual one

	Status  int    // answer with this HTTP status instead
	Type    string // of the error, also of one in the stream
	Message string // of the error
	Event   bool   // the error comes in the stream, after the blocks
	Cut     bool   // drop the connection after the blocks
}

// Script is what the model says in one turn.
type Script []Step

func answer(blocks ...Block) Step { return Step{Blocks: blocks} }
func text(s string) Block         { return Block{Text: s} }
func think(s string) Block        { return Block{Thinking: s} }

// pause in a text is where its stream stops.
const pause = "\x00"

func hold() Block       { return Block{Hold: true} }
func say(s string) Step { return answer(text(s)) }

func call(tool string, input map[string]any) Block { return Block{Tool: tool, Input: input} }

// shellTool stands for the shell of the program that asks.
const shellTool = "shell"

func shell(command string) Block {
	return call(shellTool, map[string]any{"command": command})
}

func fails(status int, kind, message string) Step {
	return Step{Status: status, Type: kind, Message: message}
}

// ErrorText is in the text of every error that this server sends. No event of
// Steno may have it.
const ErrorText = "raw-provider-text"

var colours = []any{
	map[string]any{"label": "Red", "description": "the red one"},
	map[string]any{"label": "Blue", "description": "the blue one"},
}

var sizes = []any{
	map[string]any{"label": "Small", "description": "a small one"},
	map[string]any{"label": "Large", "description": "a large one"},
}

// scripts are the turns that a prompt can ask for by name.
var scripts = map[string]Script{
	"plain":   {say("PLAIN: one answer.")},
	"second":  {say("SECOND: another answer.")},
	"unicode": {say("UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash")},
	"texts":   {answer(text("FIRST text."), text("SECOND text."), text("THIRD text."))},
	"thinking": {
		answer(think("let me see"), text("THINKING: the answer is 42.")),
	},
	"tool":     {answer(text("TOOL: I run it."), shell("echo tool-output")), say("TOOL: it ran.")},
	"tools":    {answer(text("TOOLS: two at once."), shell("echo one"), shell("echo two")), say("TOOLS: both ran.")},
	"toolfail": {answer(shell("ls no-such-file")), say("TOOLFAIL: it failed.")},
	"held":     {say("HELD: first words, " + pause + "and the rest.")},
	"silent":   {answer(hold(), text("SILENT: at last."))},
	"slowtool": {answer(text("SLOWTOOL: wait."), shell("sleep 300")), say("SLOWTOOL: it slept.")},
	"midtool": {
		answer(text("MIDTOOL: before."), shell("echo mid")),
		answer(hold(), text("MIDTOOL: after.")),
	},
	"absorb": {
		answer(hold(), text("ABSORB: a tool first."), shell("echo absorbed")),
		say("ABSORB: and that too."),
	},
	"permission": {answer(text("PERMISSION: may I?"), shell("touch made-by-the-model")), say("PERMISSION: thanks.")},

	// Claude Code.
	"nested": {
		answer(text("NESTED: I ask another."), shell("codex exec --skip-git-repo-check SCENARIO:plain </dev/null")),
		say("NESTED: it answered."),
	},
	"question": {
		answer(text("QUESTION: I have to know."), call("AskUserQuestion", map[string]any{"questions": []any{map[string]any{
			"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": colours,
		}}})),
		say("QUESTION: thanks."),
	},
	"form": {
		answer(call("AskUserQuestion", map[string]any{"questions": []any{
			map[string]any{"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": colours},
			map[string]any{"question": "Which sizes?", "header": "Sizes", "multiSelect": true, "options": sizes},
		}})),
		say("FORM: thanks."),
	},
	"plan": {
		answer(text("PLAN: I write it down."), call("Write", map[string]any{"file_path": planFile, "content": "# The plan\n\n1. Look\n2. Leap\n"})),
		answer(text("PLAN: it is ready."), call("ExitPlanMode", map[string]any{})),
		say("PLAN: understood."),
	},
	"agent": {
		answer(text("AGENT: I delegate."), call("Agent", map[string]any{
			"description": "sub work", "prompt": "SCENARIO:subwork", "subagent_type": "general-purpose",
		})),
		say("AGENT: it reported."),
	},
	"subwork": {answer(text("SUBWORK: on it."), shell("echo sub")), say("SUBWORK: done.")},
	"agents": {
		answer(call("Agent", map[string]any{
			"description": "sub work", "prompt": "SCENARIO:subwork", "subagent_type": "general-purpose", "run_in_background": true,
		})),
		say("AGENTS: it works."),
	},
	"background": {
		answer(call("Bash", map[string]any{"command": "sleep 1; echo bg", "description": "bg", "run_in_background": true})),
		say("BACKGROUND: it runs."),
	},
	"maxtokens": {
		{Blocks: []Block{text("MAXTOKENS: cut off")}, Stop: "max_tokens"},
		say("MAXTOKENS: the rest."),
	},
	"refusal": {{Blocks: []Block{text("REFUSAL: no.")}, Stop: "refusal"}},
	"toolong": {fails(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")},

	// Errors by status, with the names that each API has for them.
	"400": {fails(400, "invalid_request_error", "")},
	"401": {fails(401, "authentication_error", "")},
	"429": {fails(429, "rate_limit_error", "")},
	"500": {fails(500, "api_error", "")},
	"503": {fails(503, "server_is_overloaded", "")},
	"529": {fails(529, "overloaded_error", "")},

	"cut":     {{Blocks: []Block{text("CUT: said twice.")}, Cut: true}},
	"limit":   {fails(429, "usage_limit_reached", "")},
	"context": {{Type: "context_length_exceeded", Event: true}},
	"quota":   {{Type: "insufficient_quota", Event: true}},
	"policy":  {{Type: "cyber_policy", Event: true}},

	// Records of over 4 MiB: thinking, which the screen does not show, and text.
	"overthought": {answer(think(strings.Repeat("0123456789", 500_000)), text("OVERTHOUGHT: a short answer."))},
	"lines":       {say(strings.Repeat("LINES of a long answer\n", 200_000))},

	// Codex.
	"ask": {
		answer(call("request_user_input", map[string]any{"questions": []any{map[string]any{
			"id": "colour", "header": "Colour", "question": "Which colour?", "options": colours,
		}}})),
		say("ASK: thanks."),
	},
	"spawn": {
		answer(text("SPAWN: I delegate."), call("spawn_agent", map[string]any{"message": "SCENARIO:subwork", "task_name": "subwork"})),
		answer(call("wait_agent", map[string]any{"timeout_ms": 20000})),
		say("SPAWN: it reported."),
	},
	"proposal": {say("PROPOSAL: look.\n<proposed_plan>\n# The plan\n\n- Look\n- Leap\n</proposed_plan>\n")},
	"escalate": {
		answer(text("ESCALATE: may I?"), call("exec_command", map[string]any{
			"cmd": "echo escalated", "sandbox_permissions": "require_escalated", "justification": "May I run it outside?",
		})),
		say("ESCALATE: thanks."),
	},
}

// planFile in a tool's input stands for the path that the program told the
// model to write its plan to.
const planFile = "@plan-file@"

// Names of the answers that no prompt asks for.
var fixed = map[string]Script{
	"compact":      {say("<analysis>looked</analysis>\n<summary>\nSUMMARY: they talked.\n</summary>")},
	"title":        {say(`{"title":"A title"}`)},
	"notification": {say("NOTED: the task is done.")},
	"other":        {say("OTHER: nothing was asked by name.")},
}

// step gives the answer number n of a script.
func step(name string, n int) Step {
	s, ok := scripts[name]
	if !ok {
		s, ok = fixed[name]
	}
	switch {
	case !ok:
		return say(fmt.Sprintf("UNKNOWN SCRIPT %q", name))
	case n >= len(s) && s[len(s)-1].Status == 0 && !s[len(s)-1].Cut && !s[len(s)-1].Event:
		return say(fmt.Sprintf("STEP %d OF %q IS NOT IN THE SCRIPT", n+1, name))
	}
	return s[min(n, len(s)-1)]
}
