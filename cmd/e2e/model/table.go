package model

import "strings"

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
	// Claude Code from 2.1.332 on refuses to sleep.
	"endless": {answer(text("ENDLESS: wait."), shell("tail -F never-made")), say("ENDLESS: it was made.")},
	"midtool": {
		answer(text("MIDTOOL: before."), shell("echo mid")),
		answer(hold(), text("MIDTOOL: after.")),
	},
	"absorb": {
		answer(hold(), text("ABSORB: a tool first."), shell("echo absorbed")),
		say("ABSORB: and that too."),
	},
	"permission": {answer(text("PERMISSION: may I?"), shell("touch made-by-the-model")), say("PERMISSION: thanks.")},

	"nested": {
		answer(text("NESTED: I ask another."), shell("codex exec --skip-git-repo-check SCENARIO:plain </dev/null")),
		say("NESTED: it answered."),
	},
	"question": {
		answer(text("QUESTION: I have to know."), call(askTool, nil)),
		say("QUESTION: thanks."),
	},
	"form": {answer(call(formTool, nil)), say("FORM: thanks.")},
	"plan": {
		answer(text("PLAN: I write it down."), call(writePlanTool, nil)),
		answer(text("PLAN: it is ready."), call(exitPlanTool, nil)),
		say("PLAN: understood."),
	},
	"enterplan": {
		answer(text("PLAN: I think first."), call(enterPlanTool, nil)),
		answer(text("PLAN: I write it down."), call(writePlanTool, nil)),
		answer(text("PLAN: it is ready."), call(exitPlanTool, nil)),
		say("PLAN: understood."),
	},
	"todos": {
		answer(text("TODOS: I list them."), call(todosTool, nil)),
		answer(call(todosTool, object{"done": true})),
		say("TODOS: all done."),
	},
	"agent": {
		answer(text("AGENT: I delegate."), call(agentTool, object{"prompt": "SCENARIO:subwork"})),
		say("AGENT: it reported."),
	},
	"subwork": {answer(text("SUBWORK: on it."), shell("echo sub")), say("SUBWORK: done.")},
	"agents": {
		answer(call(agentTool, object{"prompt": "SCENARIO:subwork", "background": true})),
		say("AGENTS: it works."),
	},
	// The same, but the subagent ends when it is let go on.
	"agentsheld": {
		answer(call(agentTool, object{"prompt": "SCENARIO:silent", "background": true})),
		say("AGENTS: it works."),
	},
	"background": {
		answer(call(shellTool, object{"command": "sleep 1; echo bg", "background": true})),
		say("BACKGROUND: it runs."),
	},
	// The same, but it ends when the file "go" is there.
	"backgroundwait": {
		answer(call(shellTool, object{"command": "while [ ! -e go ]; do sleep 0.1; done", "background": true})),
		say("BACKGROUND: it runs."),
	},
	"maxtokens": {
		{Blocks: []Block{text("MAXTOKENS: cut off")}, Stop: maxTokens},
		say("MAXTOKENS: the rest."),
	},
	"refusal":   {{Blocks: []Block{text("REFUSAL: no.")}, Stop: filtered}},
	"blocked":   {{Stop: blocked}},
	"empty":     {{Stop: empty}},
	"malformed": {{Stop: malformed}},
	"toolong":   {fails(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")},

	// Errors by status, with the names that each API has for them.
	"400": {fails(400, "invalid_request_error", "")},
	"401": {fails(401, "authentication_error", "")},
	"429": {fails(429, "rate_limit_error", "")},
	"500": {fails(500, "api_error", "")},
	"503": {fails(503, "server_is_overloaded", "")},
	"529": {fails(529, "overloaded_error", "")},

	// It keeps the program waiting.
	"stubborn": {{Status: 503, Type: "server_is_overloaded", Patient: true}},

	"cut":         {{Blocks: []Block{text("CUT: said twice.")}, Cut: true}},
	"streamerror": {{Blocks: []Block{text("STREAMERROR: said twice.")}, Type: "overloaded_error", Event: true}},
	"lateerror":   {{Blocks: []Block{text("LATEERROR: all of it.")}, Type: "overloaded_error", Event: true, Late: true}},
	"limit":       {fails(429, "usage_limit_reached", "")},
	"context":     {{Type: "context_length_exceeded", Event: true}},
	"quota":       {{Type: "insufficient_quota", Event: true}},
	"policy":      {{Type: "cyber_policy", Event: true}},

	"overflow": {fails(400, "context_length_exceeded", "This model's maximum context length is 128000 tokens. However, your messages resulted in 999999 tokens.")},

	// What is good when the program asks once more.
	"flaky429": {once(fails(429, "rate_limit_error", "")), say("FLAKY: good at last.")},
	"flaky500": {once(fails(500, "api_error", "")), say("FLAKY: good at last.")},
	"flaky503": {once(fails(503, "server_is_overloaded", "")), say("FLAKY: good at last.")},
	"flaky529": {once(fails(529, "overloaded_error", "")), say("FLAKY: good at last.")},
	"flakycut": {
		once(Step{Blocks: []Block{text("FLAKY: good at")}, Cut: true}),
		say("FLAKY: good at last."),
	},
	"flakyevent": {
		once(Step{Blocks: []Block{text("FLAKY: good at")}, Type: "server_error", Event: true}),
		say("FLAKY: good at last."),
	},
	"flakytool": {
		once(fails(500, "api_error", "")),
		answer(text("FLAKY: a tool."), shell("echo flaky")),
		once(fails(500, "api_error", "")),
		say("FLAKY: good at last."),
	},

	// A conversation that is said to fill the model's window, so that the program
	// compacts it in mid-turn and goes on: most by the summary, which is "compacted".
	"fill": {
		{Blocks: []Block{text("FILL: much to read."), shell("echo much")}, Tokens: 990_000},
		say("FILL: it goes on."),
	},
	"overrun": {
		answer(text("OVERRUN: much to read."), shell("echo much")),
		fails(400, "invalid_request_error", "prompt is too long: 1250000 tokens > 1000000 maximum"),
	},
	"again":     {say("AGAIN: after all.")},
	"compacted": {say("COMPACTED: it goes on.")},

	// Records of over 4 MiB: thinking, which the screen does not show, and text.
	"overthought": {answer(think(strings.Repeat("0123456789", 430_000)), text("OVERTHOUGHT: a short answer."))},
	"bigtool": {
		answer(text("BIGTOOL: much comes."), shell("head -c 5500000 /dev/zero | tr '\\0' A")),
		say("BIGTOOL: it came."),
	},
	"lines": {say(strings.Repeat("LINES of a long answer\n", 200_000))},

	// Codex.
	"ask": {
		answer(call(askTool, nil)),
		say("ASK: thanks."),
	},
	"spawn": {
		answer(text("SPAWN: I delegate."), call(agentTool, object{"prompt": "SCENARIO:subwork"})),
		answer(call("wait_agent", object{"timeout_ms": 20000})),
		say("SPAWN: it reported."),
	},
	"proposal": {say("PROPOSAL: look.\n<proposed_plan>\n# The plan\n\n- Look\n- Leap\n</proposed_plan>\n")},
	"escalate": {
		answer(text("ESCALATE: may I?"), call("exec_command", object{
			"cmd": "echo escalated", "sandbox_permissions": "require_escalated", "justification": "May I run it outside?",
		})),
		say("ESCALATE: thanks."),
	},
}
