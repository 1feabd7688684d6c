package gemini

import (
	"strings"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// class of a message: its type, and what a user's message is.
type class uint8

const (
	other        class = iota
	prompt             // a person's: it starts a turn
	continuation       // the program's own, for the open turn (a detected loop)
	history            // the first message of every history
	remark             // the program's or a hook's remark, or a shell-mode command: starts nothing
	result             // has the answer of a tool
	answer             // type gemini
	info
	failure // type error
)

// message is one message, as far as it matters here.
type message struct {
	id    string
	class class
	at    time.Time
	list  bool   // content is an array
	body  string // content that is a string, of answer, info and failure

	input   string // prompt: hash of what was typed; "" when it is not known
	display string // prompt: the same of displayContent, where there is one
	single  bool   // prompt: one text part

	counted   bool   // answer: it has the tokens of a request
	calls     int    // answer: tool calls
	cancelled int    // of them
	plans     []call // of them: exit_plan_mode
	drift     []string
}

// call is one presentation of a plan.
type call struct{ id, file string }

// maxPlans bounds the plans of one message.
const maxPlans = 8

// Texts by which the program marks what no person wrote (0.61.0).
const (
	contextMark  = "<session_context>"
	hookMark     = "<hook_context>"
	loopMark     = "System: Potential loop detected. Details: "
	continueText = "Please continue."
	cancelText   = "Request cancelled."
	apiErrorMark = "[API Error"
)

// notes begin messages of type user that start nothing: a command of shell
// mode, a new workspace directory, the end of plan mode, the editor's state.
var notes = []string{
	"I ran the following shell command:\n```sh\n",
	"- **Workspace Directories:**\n",
	"User has manually exited Plan Mode. Switching to ",
	"Here is the user's editor context as a JSON object.",
	"Here is a summary of changes in the user's editor context, in JSON format.",
}

func parseMessage(b []byte) message {
	var m message
	var typ, content, display, tokens, calls []byte
	scan.Members(b, func(key, value []byte) bool {
		switch string(key) {
		case "id":
			m.id = ident(value)
		case "timestamp":
			m.at = instant(value)
		case "type":
			typ = value
		case "content":
			content = value
		case "displayContent":
			display = value
		case "tokens":
			tokens = value
		case "toolCalls":
			calls = value
		}
		return true
	})
	m.list = scan.IsArray(content)
	switch words.Read(typ) {
	case "user":
		m.user(content, display)
	case "gemini":
		m.class, m.body, m.counted = answer, scan.Text(content), scan.IsObject(tokens)
		m.toolCalls(calls)
	case "info":
		m.class, m.body = info, scan.Text(content)
	case "error":
		m.class, m.body = failure, scan.Text(content)
	case "warning":
	default:
		m.drift = drifted(m.drift, "message", trimQuotes(typ))
	}
	return m
}

func trimQuotes(value []byte) []byte {
	if scan.IsString(value) {
		return value[1 : len(value)-1]
	}
	return nil
}

// user tells what a message of type user is.
func (m *message) user(content, display []byte) {
	var parts []string
	response := false
	if scan.IsString(content) {
		parts = append(parts, scan.Text(content))
	}
	scan.Elements(content, func(part []byte) bool {
		if scan.IsString(part) {
			parts = append(parts, scan.Text(part))
		}
		scan.Members(part, func(key, value []byte) bool {
			switch string(key) {
			case "functionResponse":
				response = true
			case "text":
				parts = append(parts, scan.Text(value))
			}
			if !knownParts[string(key)] {
				m.drift = drifted(m.drift, "part", key)
			}
			return true
		})
		return true
	})
	m.class = result
	if response {
		return
	}
	m.class = classify(parts)
	if m.class != prompt && m.class != continuation {
		return
	}
	typed := parts[:0:0]
	for _, s := range parts {
		if !strings.HasPrefix(s, hookMark) { // a hook adds its own after the person's
			typed = append(typed, s)
		}
	}
	m.single = len(typed) == 1
	m.input = providers.InputHash(strings.Join(typed, ""))
	if shown := shownText(display); shown != "" {
		m.display = providers.InputHash(shown)
		if m.single && typed[0] == continueText && m.display != m.input {
			m.class = continuation
		}
	}
}

// classify tells a person's text from the program's.
func classify(parts []string) class {
	if len(parts) == 0 {
		return remark
	}
	first, hooks := parts[0], 0
	for _, s := range parts {
		if strings.HasPrefix(s, hookMark) || strings.TrimSpace(s) == "" {
			hooks++
		}
	}
	switch {
	case strings.HasPrefix(first, contextMark):
		return history
	case strings.HasPrefix(first, loopMark):
		return continuation
	case hooks == len(parts):
		return remark
	}
	for _, mark := range notes {
		if strings.HasPrefix(first, mark) {
			return remark
		}
	}
	return prompt
}

// shownText is displayContent as one text: what was typed, where the program
// sent something else (files in its place, a continuation).
func shownText(display []byte) string {
	if scan.IsString(display) {
		return scan.Text(display)
	}
	var b strings.Builder
	scan.Elements(display, func(part []byte) bool {
		b.WriteString(scan.Text(part))
		scan.Members(part, func(key, value []byte) bool {
			if string(key) == "text" {
				b.WriteString(scan.Text(value))
			}
			return true
		})
		return true
	})
	return b.String()
}

func (m *message) toolCalls(calls []byte) {
	scan.Elements(calls, func(v []byte) bool {
		var id, name, status, args []byte
		scan.Members(v, func(key, value []byte) bool {
			switch string(key) {
			case "id":
				id = value
			case "name":
				name = value
			case "status":
				status = value
			case "args":
				args = value
			}
			return true
		})
		m.calls++
		switch s := words.Read(status); {
		case s == "cancelled":
			m.cancelled++
		case !knownStatuses[s]:
			m.drift = drifted(m.drift, "status", trimQuotes(status))
		}
		if words.Read(name) == "exit_plan_mode" && len(m.plans) < maxPlans {
			m.plans = append(m.plans, call{id: ident(id), file: planFile(args)})
		}
		return true
	})
}

func planFile(args []byte) string {
	file := ""
	scan.Members(args, func(key, value []byte) bool {
		if string(key) == "plan_filename" && len(value) <= 1024 {
			file = scan.Text(value)
		}
		return true
	})
	return file
}
