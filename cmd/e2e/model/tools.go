package model

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
)

// Tools that each program has under a name and with arguments of its own. A
// script that names another tool names one of a single program.
const (
	shellTool     = "shell"      // command; background
	askTool       = "ask"        // one question: Red or Blue
	formTool      = "form"       // two of them
	todosTool     = "todos"      // done: the state of both tasks
	enterPlanTool = "enter plan" // reason
	writePlanTool = "write plan" // the plan's text, to the file that the program named
	exitPlanTool  = "exit plan"  // shows it
	agentTool     = "agent"      // prompt; background
)

// planText is what a plan says.
const planText = "# The plan\n\n1. Look\n2. Leap\n"

var (
	colours = []any{object{"label": "Red", "description": "the red one"}, object{"label": "Blue", "description": "the blue one"}}
	sizes   = []any{object{"label": "Small", "description": "a small one"}, object{"label": "Large", "description": "a large one"}}
)

// program is how one program names its tools. What it does not have keeps the
// script's name, and the program says that there is no such tool.
type program map[string]func(in object, plan string) (name string, args object)

// questions makes a form in the shape that most programs share; several names
// the key that allows more than one choice, and more is added to each question.
func questions(several string, n int, more object) object {
	all := []any{
		object{"question": "Which colour?", "header": "Colour", "options": colours},
		object{"question": "Which sizes?", "header": "Sizes", "options": sizes},
	}[:n]
	for i, q := range all {
		q := q.(object)
		if several != "" {
			q[several] = i == 1
		}
		for k, v := range more {
			q[k] = v
		}
	}
	return object{"questions": all}
}

// todos makes a list of two tasks, where title names the key of the text and
// done the state of what is done.
func todos(in object, title, done string, more object) []any {
	states := []string{"in_progress", "pending"}
	if in["done"] == true {
		states = []string{done, done}
	}
	var all []any
	for i, s := range states {
		t := object{title: []string{"Look", "Leap"}[i], "status": s}
		for k, v := range more {
			t[k] = v
		}
		all = append(all, t)
	}
	return all
}

// with adds a key to the arguments if the script asks for the background.
func with(args, in object, key string, value any) object {
	if in["background"] == true {
		args[key] = value
	}
	return args
}

// claudeTools: Claude Code 2.1.197.
var claudeTools = program{
	shellTool: func(in object, _ string) (string, object) {
		return "Bash", with(object{"command": in["command"], "description": "a command"}, in, "run_in_background", true)
	},
	askTool:       func(object, string) (string, object) { return "AskUserQuestion", questions("multiSelect", 1, nil) },
	formTool:      func(object, string) (string, object) { return "AskUserQuestion", questions("multiSelect", 2, nil) },
	enterPlanTool: func(object, string) (string, object) { return "EnterPlanMode", object{} },
	writePlanTool: func(_ object, plan string) (string, object) {
		return "Write", object{"file_path": plan, "content": planText}
	},
	exitPlanTool: func(object, string) (string, object) { return "ExitPlanMode", object{} },
	todosTool: func(in object, _ string) (string, object) {
		return "TodoWrite", object{"todos": todos(in, "content", "completed", object{"activeForm": "Doing"})}
	},
	agentTool: func(in object, _ string) (string, object) {
		return "Agent", with(object{"description": "sub work", "prompt": in["prompt"], "subagent_type": "general-purpose"}, in, "run_in_background", true)
	},
}

// codexTools: Codex CLI 0.171.0.
var codexTools = program{
	shellTool: func(in object, _ string) (string, object) { return "exec_command", object{"cmd": in["command"]} },
	askTool: func(object, string) (string, object) {
		return "request_user_input", questions("", 1, object{"id": "colour"})
	},
	todosTool: func(in object, _ string) (string, object) {
		return "update_plan", object{"plan": todos(in, "step", "completed", nil)}
	},
	agentTool: func(in object, _ string) (string, object) {
		return "spawn_agent", object{"message": in["prompt"], "task_name": "subwork"}
	},
}

// geminiTools: Gemini CLI 0.61.0.
var geminiTools = program{
	shellTool: func(in object, _ string) (string, object) {
		return "run_shell_command", with(object{"command": in["command"], "description": "a command"}, in, "is_background", true)
	},
	askTool: func(object, string) (string, object) {
		return "ask_user", questions("multiSelect", 1, object{"type": "choice"})
	},
	formTool: func(object, string) (string, object) {
		return "ask_user", questions("multiSelect", 2, object{"type": "choice"})
	},
	todosTool: func(in object, _ string) (string, object) {
		return "write_todos", object{"todos": todos(in, "description", "completed", nil)}
	},
	enterPlanTool: func(object, string) (string, object) { return "enter_plan_mode", object{"reason": "to think first"} },
	writePlanTool: func(_ object, plan string) (string, object) {
		return "write_file", object{"file_path": plan, "content": planText}
	},
	exitPlanTool: func(_ object, plan string) (string, object) {
		return "exit_plan_mode", object{"plan_filename": path.Base(plan)}
	},
	agentTool: func(in object, _ string) (string, object) {
		return "invoke_agent", object{"agent_name": "generalist", "prompt": in["prompt"]}
	},
}

// opencodeTools: OpenCode 1.18.33.
var opencodeTools = program{
	shellTool: func(in object, _ string) (string, object) { return "bash", object{"command": in["command"]} },
	askTool:   func(object, string) (string, object) { return "question", questions("multiple", 1, nil) },
	formTool:  func(object, string) (string, object) { return "question", questions("multiple", 2, nil) },
	todosTool: func(in object, _ string) (string, object) {
		return "todowrite", object{"todos": todos(in, "content", "completed", object{"priority": "high"})}
	},
	writePlanTool: func(_ object, plan string) (string, object) {
		return "write", object{"filePath": plan, "content": planText}
	},
	exitPlanTool: func(object, string) (string, object) { return "plan_exit", object{} },
	agentTool: func(in object, _ string) (string, object) {
		return "task", with(object{"description": "sub work", "prompt": in["prompt"], "subagent_type": "general"}, in, "background", true)
	},
}

// kimiTools: Kimi Code 2.1.0.
var kimiTools = program{
	shellTool: func(in object, _ string) (string, object) {
		return "Bash", with(object{"command": in["command"], "description": "a command"}, in, "run_in_background", true)
	},
	askTool:  func(object, string) (string, object) { return "AskUserQuestion", questions("multi_select", 1, nil) },
	formTool: func(object, string) (string, object) { return "AskUserQuestion", questions("multi_select", 2, nil) },
	todosTool: func(in object, _ string) (string, object) {
		return "TodoList", object{"todos": todos(in, "title", "done", nil)}
	},
	enterPlanTool: func(object, string) (string, object) { return "EnterPlanMode", object{} },
	writePlanTool: func(_ object, plan string) (string, object) {
		return "Write", object{"path": plan, "content": planText}
	},
	exitPlanTool: func(object, string) (string, object) { return "ExitPlanMode", object{} },
	agentTool: func(in object, _ string) (string, object) {
		return "Agent", with(object{"description": "sub work", "prompt": in["prompt"], "subagent_type": "coder"}, in, "run_in_background", true)
	},
}

// copilotTools: Copilot CLI 1.0.102.
var copilotTools = program{
	shellTool: func(in object, _ string) (string, object) {
		return "bash", with(object{"command": in["command"], "description": "a command"}, in, "mode", "async")
	},
	askTool: func(object, string) (string, object) { return "ask_user", elicitation("colour") },
	formTool: func(object, string) (string, object) {
		return "ask_user", elicitation("colour", "size")
	},
	todosTool: func(in object, _ string) (string, object) {
		query := "INSERT INTO todos (id, title, status) VALUES ('a', 'Look', 'in_progress')"
		if in["done"] == true {
			query = "UPDATE todos SET status = 'done'"
		}
		return "sql", object{"description": "the tasks", "query": query}
	},
	writePlanTool: func(_ object, plan string) (string, object) {
		return "create", object{"path": plan, "file_text": planText}
	},
	exitPlanTool: func(object, string) (string, object) {
		return "exit_plan_mode", object{"summary": "- Look\n- Leap", "recommendedAction": "interactive"}
	},
	agentTool: func(in object, _ string) (string, object) {
		return "task", with(object{"agent_type": "explore", "name": "sub-work", "description": "sub work", "prompt": in["prompt"], "mode": "sync"}, in, "mode", "background")
	},
}

// elicitation is a form of choices as Copilot asks it.
func elicitation(names ...string) object {
	all := object{"colour": []string{"Red", "Blue"}, "size": []string{"Small", "Large"}}
	props := object{}
	for _, n := range names {
		props[n] = object{"type": "string", "enum": all[n]}
	}
	return object{"message": "Which colour?", "requestedSchema": object{"type": "object", "properties": props, "required": names}}
}

// chatProgram tells by the tools on offer which program asks over chat
// completions. Subagents are offered fewer, but these.
func chatProgram(offered []string) program {
	switch {
	case slices.Contains(offered, "Bash"):
		return kimiTools
	case slices.Contains(offered, "read_bash"):
		return copilotTools
	}
	return opencodeTools
}

// call gives the name and the arguments by which a program knows a tool of a
// script.
func (p program) call(b Block, plan string) (string, json.RawMessage) {
	name, in := b.Tool, b.Input
	if as, ok := p[b.Tool]; ok {
		name, in = as(b.Input, plan)
	}
	return name, json.RawMessage(compactJSON(in))
}

var (
	planPath = regexp.MustCompile(`/[^\s"'\\<>()` + "`" + `]*/plans/[A-Za-z0-9-]+\.md`)
	planDir  = regexp.MustCompile(`/[^\s"'\\<>()` + "`" + `]*/plans?(/|\.md)`)
)

// planFile finds the path that the program named for a plan in its request: the
// last file in a directory of plans, else a file in such a directory.
func planFile(body []byte) string {
	if all := planPath.FindAll(body, -1); len(all) > 0 {
		return string(all[len(all)-1])
	}
	all := planDir.FindAll(body, -1)
	if len(all) == 0 {
		return "/plan.md"
	}
	last := all[len(all)-1]
	if bytes.HasSuffix(last, []byte("/")) {
		return string(last) + "plan.md"
	}
	return string(last)
}
