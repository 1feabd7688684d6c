package copilot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// class is what an event is to the turns.
type class uint8

const (
	other        class = iota // decides nothing
	userMessage               // a prompt, or what the program puts in a prompt's place
	loopStart                 // assistant.turn_start: a model call begins
	loopEnd                   // assistant.turn_end
	message                   // assistant.message
	toolStart                 // tool.execution_start
	toolEnd                   // tool.execution_complete
	response                  // a permission or a human's answer to a tool call
	aborted                   // abort
	failure                   // session.error
	notification              // system.notification
	complete                  // session.task_complete that was accepted
	border                    // session.shutdown and session.resume
	modeChange                // session.mode_changed
	began                     // session.start
	gap                       // no event: a gap in the file
)

// record is what is kept of one event.
type record struct {
	class       class
	id          string // of the event; of its place in the file when it has none
	named       bool   // the event has an id of its own
	at          time.Time
	interaction string // interactionId

	// userMessage
	input        string // hash of the prompt
	steering     bool   // joined the running turn
	continuation bool   // autopilot's own prompt
	injected     bool   // not typed by anybody
	autopilot    bool   // the mode is autopilot; also of modeChange

	// message, complete
	text  string
	tools bool   // asks for tool calls
	call  string // apiCallId: the chunks of one answer share it

	// toolStart, toolEnd, response
	item     string // tool call id; "" when the event has none
	plan     string // toolStart of exit_plan_mode
	approval *providers.Approval
	failed   bool // toolEnd without success

	// failure
	reason  providers.Reason
	request bool // it names the prompt whose request failed
}

// known says what each type of an event is to the turns. The list is that of
// schemas/session-events.schema.json in the package of 1.0.102, without those
// that it marks as ephemeral: they are never written. A type that is not in it
// is drift. The model.* types are in no schema; they were recorded with
// /compact (t-long).
var known = map[string]class{
	"abort": aborted, "assistant.message": message, "assistant.turn_start": loopStart, "assistant.turn_end": loopEnd,
	"human_response.recorded": response, "session.start": began, "permission.completed": response, "permission.requested": response,
	"session.error": failure, "session.mode_changed": modeChange, "session.resume": border, "session.shutdown": border,
	"session.task_complete": complete, "system.notification": notification, "tool.execution_start": toolStart,
	"tool.execution_complete": toolEnd, "user.message": userMessage,

	"assistant.fusion_phase_completed": other, "assistant.fusion_phase_failed": other, "assistant.reasoning": other,
	"external_tool.requested": other, "hook.end": other, "hook.start": other, "mcp.oauth_recovery_completed": other,
	"permission.assentDetected": other, "permission.carriedForward": other, "permission.contextualAuthorization": other,
	"permission.messageAuthorization": other, "permission.messageAuthorizationDegraded": other,
	"permission.messageAuthorizationRead": other, "session.auto_mode_resolved": other,
	"session.autopilot_objective_changed": other, "session.binary_asset": other, "session.canvas.recorded": other,
	"session.canvas.removed": other, "session.compaction_complete": other, "session.compaction_start": other,
	"session.completion_receipt": other, "session.context_changed": other, "session.context_cleared": other,
	"session.fusion_change_checkpoint": other, "session.fusion_commit_started": other, "session.fusion_completed": other,
	"session.fusion_handoff": other, "session.fusion_resolved": other, "session.fusion_route_failed": other,
	"session.handoff": other, "session.info": other, "session.mode_notice_delivered": other, "session.model_change": other,
	"session.model_deselected": other, "session.permission_recovery": other, "session.permissions_changed": other,
	"session.plan_changed": other, "session.remote_steerable_changed": other,
	"session.request_body_compression_disabled": other, "session.schedule_cancelled": other,
	"session.schedule_created": other, "session.schedule_rearmed": other, "session.session_limits_changed": other,
	"session.truncation": other, "session.usage_checkpoint": other, "session.usage_record": other,
	"session.warning": other, "session.workspace_file_changed": other, "skill.context_delivered": other,
	"skill.context_delivered_ref": other, "skill.invoked": other, "skill.invoked_ref": other, "subagent.completed": other,
	"subagent.configured": other, "subagent.deselected": other, "subagent.failed": other, "subagent.selected": other,
	"subagent.started": other, "system.message": other, "tool.user_requested": other, "tool_search.activated": other,

	"model.message": other, "model.messages_snapshot": other, "model.model_call_started": other,
	"model.model_call_success": other, "model.response": other, "model.turn_ended": other, "model.turn_started": other,
}

// parse reads an event. ok is false for one that says nothing about the main
// agent's turns: by its type, or because it is a subagent's. drift is a type,
// or a kind within it, that is not known; it is never content.
func parse(r providers.Record) (rec record, ok bool, drift string) {
	var kind string
	var data, id, at, agent []byte
	scan.Members(r.Data, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			kind = scan.Text(value[:min(len(value), maxType)])
			return kind == "" || known[kind] != other // the rest of an event that says nothing can be long
		case "data":
			data = value
		case "id":
			id = value
		case "timestamp":
			at = value
		case "agentId":
			agent = value
		}
		return true
	})
	c, listed := known[kind]
	if !listed {
		return rec, false, word(kind)
	}
	if c == other || len(agent) > 2 && agent[0] == '"' {
		return rec, false, ""
	}
	rec = record{class: c, id: ident(id)}
	if rec.named = rec.id != ""; !rec.named {
		rec.id = fmt.Sprintf("at/%d", r.Start)
	}
	rec.at = scan.Time(at)
	kindOf := rec.read(data)
	if kindOf != "" && !kinds[kind+"/"+kindOf] {
		drift = word(kind + "/" + kindOf)
	}
	return rec, rec.class != other, drift
}

// kinds are the kinds within an event that the schema of 1.0.102 lists.
var kinds = map[string]bool{
	"abort/user_initiated": true, "abort/remote_command": true, "abort/user_abort": true, "abort/autopilot_credit_limit": true,
	"user.message/idle": true, "user.message/steering": true, "user.message/queued": true,
	"session.mode_changed/interactive": true, "session.mode_changed/plan": true, "session.mode_changed/autopilot": true,
	"system.notification/agent_completed": true, "system.notification/agent_idle": true,
	"system.notification/new_inbox_message": true, "system.notification/shell_completed": true,
	"system.notification/shell_detached_completed": true, "system.notification/instruction_discovered": true,
	"system.notification/workflow_completed": true, "system.notification/unclassified": true,
	"session.task_complete/completed": true, "session.task_complete/continue": true, "session.task_complete/blocked": true,
	"human_response.recorded/ask_user": true, "human_response.recorded/user_input": true,
	"human_response.recorded/exit_plan_mode": true,
}

// read takes what matters out of an event's data; kind is what kinds lists.
func (rec *record) read(data []byte) (kind string) {
	switch rec.class {
	case userMessage:
		return rec.readPrompt(data)
	case message:
		rec.readMessage(data)
	case toolStart:
		rec.readTool(data)
	case failure:
		rec.readError(data)
	default:
		return rec.readSmall(data)
	}
	return ""
}

func (rec *record) readPrompt(data []byte) (delivery string) {
	text := ""
	scan.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			text = scan.Text(value)
		case "interactionId":
			rec.interaction = ident(value)
		case "delivery":
			delivery = ident(value)
		case "source":
			rec.injected = len(value) > 2 && value[0] == '"'
		case "isAutopilotContinuation":
			rec.continuation = scan.IsTrue(value)
		case "agentMode":
			rec.autopilot = ident(value) == "autopilot"
		}
		return true
	})
	rec.steering = delivery == "steering"
	rec.input = providers.InputHash(text)
	return delivery
}

func (rec *record) readMessage(data []byte) {
	scan.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			rec.text = strings.TrimSpace(scan.Text(value))
		case "interactionId":
			rec.interaction = ident(value)
		case "apiCallId":
			rec.call = item(value)
		case "toolRequests":
			scan.Elements(value, func([]byte) bool {
				rec.tools = true
				return false
			})
		}
		return true
	})
}

func (rec *record) readTool(data []byte) {
	var name string
	var args []byte
	scan.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "toolName":
			name = ident(value)
		case "toolCallId":
			rec.item = item(value)
		case "arguments", "args":
			args = value
		}
		return true
	})
	switch name {
	case "exit_plan_mode":
		scan.Members(args, func(key, value []byte) bool {
			if string(key) == "summary" {
				rec.plan = strings.TrimSpace(scan.Text(value))
			}
			return true
		})
	case "ask_user":
		call := rec.item
		if call == "" {
			call = rec.id
		}
		rec.approval = question(call, args)
	}
}

// readError takes the class of an error, never its message.
func (rec *record) readError(data []byte) {
	class, status := "", 0
	scan.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "errorType":
			class = ident(value)
		case "statusCode":
			status, _ = strconv.Atoi(string(value))
		case "originatingMessageId":
			rec.request = len(value) > 2 && value[0] == '"'
		}
		return true
	})
	rec.reason = reason(class, status)
}

// readSmall reads the events of which a field or two matter.
func (rec *record) readSmall(data []byte) (kind string) {
	success, inner := true, ""
	scan.Members(data, func(key, value []byte) bool {
		switch k := string(key); {
		case k == "interactionId":
			rec.interaction = ident(value)
		case k == "toolCallId":
			rec.item = item(value)
		case k == "success":
			success = string(value) != "false"
		case k == "permissionRequest":
			scan.Members(value, func(key, value []byte) bool {
				if string(key) == "toolCallId" {
					rec.item = item(value)
				}
				return true
			})
		case k == "summary" && rec.class == complete:
			rec.text = strings.TrimSpace(scan.Text(value))
		case k == "outcome" && rec.class == complete, k == "reason" && rec.class == aborted, k == "newMode":
			kind = ident(value)
		case k == "response":
			inner = "responseKind"
		case k == "kind" && rec.class == notification:
			inner = "type"
		}
		if inner != "" {
			kind, inner = member(value, inner), ""
		}
		return true
	})
	switch rec.class {
	case toolEnd:
		rec.failed = !success
	case modeChange:
		rec.autopilot = kind == "autopilot"
	case complete:
		if !success || kind != "" && kind != "completed" {
			rec.class = other
		}
	}
	return kind
}

// member is a short identifier in an object.
func member(object []byte, name string) (s string) {
	scan.Members(object, func(key, value []byte) bool {
		if string(key) == name {
			s = ident(value)
		}
		return true
	})
	return s
}

// reason is the category of a session.error. authentication and rate_limit
// were recorded with 1.0.102 ("query" is its word for all the rest); the other
// classes are those that its schema names.
func reason(class string, status int) providers.Reason {
	switch {
	case class == "authentication", class == "authorization":
		return providers.AuthenticationFailed
	case class == "rate_limit", status == 429:
		return providers.RateLimited
	case class == "quota":
		return providers.UsageLimit
	case class == "policy":
		return providers.PolicyBlocked
	case class == "context_limit":
		return providers.ContextLimit
	case status == 400, status == 404:
		return providers.InvalidRequest
	case status >= 500 && status < 600:
		return providers.ProviderUnavailable
	}
	return providers.ProviderError
}

// maxType bounds the names of types that are looked at, in bytes.
const maxType = 128

// word makes a name fit for Drift. A name that holds anything but what names
// of events have, and so might be content, is not repeated.
func word(s string) string {
	if s == "" || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") != "" {
		return "unreadable"
	}
	return s
}

// item decodes the id of a tool call or an API call. Models give them any
// form: a long one is given by its hash, one with unusual bytes too.
func item(value []byte) string {
	if s := ident(value); s != "" {
		return s
	}
	if len(value) < 3 || value[0] != '"' || bytes.IndexByte(value, '\n') >= 0 {
		return ""
	}
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:16])
}

// maxID bounds the ids that the program writes, in bytes. Real ones have 36.
const maxID = 64

var ids = scan.NewNames(maxID, "-_")

// ident is a short identifier or word of the program; a value that cannot be
// one is "".
func ident(value []byte) string { return ids.Read(value) }
