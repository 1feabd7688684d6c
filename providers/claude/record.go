package claude

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// class is what a record is to the turns.
type class uint8

const (
	other        class = iota // belongs to the turn of its parent and says nothing
	prompt                    // a human's prompt: starts a turn
	notification              // a background task's result: starts a turn
	echo                      // a command or ! line that the model may answer
	marker                    // "[Request interrupted by user]"
	result                    // tool results
	feedback                  // a Stop hook makes the turn go on
	assistant                 // one block of an API message
	failure                   // an API error
	partial                   // text of the program itself: only with a marker behind it an answer that was cut off
	duration                  // system/turn_duration: the turn has ended
)

// record is what is kept of one record: all of a user's words are gone but
// their hash.
type record struct {
	start  int64
	class  class
	uuid   string
	parent string // "" for a root
	at     time.Time

	promptID string
	input    string // hash of the prompt
	message  string // API message id
	stop     string // its stop_reason
	tool     bool   // has a tool call
	blocks   []block
	reason   providers.Reason
	cuts     bool   // an error that cut off the answer it hangs off (2.1.332)
	size     int    // bytes of text in blocks
	missing  uint64 // hash of the parent, when it was taken without it
}

// starts says whether the record begins a turn, whatever it hangs off.
func (rec *record) starts() bool {
	return rec.class == prompt || rec.class == notification || rec.class == echo
}

// block is a part of an API message that gives a draft.
type block struct {
	kind     providers.Kind
	text     string
	approval *providers.Approval
}

// Types that are written often or long and say nothing about turns. They have
// no uuid, so nothing hangs off them.
var ignored = map[string]bool{
	"ai-title": true, "custom-title": true, "agent-name": true, "mode": true, "permission-mode": true,
	"last-prompt": true, "file-history-snapshot": true, "file-history-delta": true, "queue-operation": true,
	"api-request": true, "api-request-shape": true, "api-request-blob": true, "atis-latch": true,
	"tools-used": true, "cost-state": true, "summary": true,
}

// raw are the members of a record that matter, undecoded.
type raw struct {
	kind, uuid, parent, logical, at, message, subtype                         []byte
	meta, side, compact, onlyVisible, apiError, truncated, errorClass, status []byte
	promptID, source, origin, requestID                                       []byte
}

func (w *raw) read(key, value []byte) bool {
	switch string(key) {
	case "type":
		w.kind = value
		return !ignored[id(value)]
	case "uuid":
		w.uuid = value
	case "parentUuid":
		w.parent = value
	case "logicalParentUuid":
		w.logical = value
	case "timestamp":
		w.at = value
	case "message":
		w.message = value
	case "subtype":
		w.subtype = value
	case "isMeta":
		w.meta = value
	case "isSidechain":
		w.side = value
	case "isCompactSummary":
		w.compact = value
	case "isVisibleInTranscriptOnly":
		w.onlyVisible = value
	case "isApiErrorMessage":
		w.apiError = value
	case "truncatedAfterOutput":
		w.truncated = value
	case "error":
		w.errorClass = value
	case "apiErrorStatus":
		w.status = value
	case "promptId":
		w.promptID = value
	case "promptSource":
		w.source = value
	case "origin":
		w.origin = value
	case "requestId":
		w.requestID = value
	}
	return true
}

// parse reads a record. ok is false for one that has no part in the chain of
// the main session; broken says that it should have had one.
func parse(r providers.Record) (rec record, ok, broken bool) {
	var w raw
	scan.Members(r.Data, w.read)
	kind := id(w.kind)
	if ignored[kind] || scan.IsTrue(w.side) {
		return rec, false, false
	}
	rec = record{start: r.Start, uuid: id(w.uuid), parent: id(w.parent), promptID: id(w.promptID)}
	if rec.uuid == "" {
		return rec, false, (kind == "user" || kind == "assistant") && len(w.message) > 0
	}
	rec.at = scan.Time(w.at)
	switch kind {
	case "user":
		rec.readUser(&w)
	case "assistant":
		rec.readAssistant(&w)
	case "system":
		switch id(w.subtype) {
		case "turn_duration":
			rec.class = duration
		case "compact_boundary":
			if rec.parent == "" {
				rec.parent = id(w.logical)
			}
		}
	}
	return rec, true, false
}

func (rec *record) readUser(w *raw) {
	var content []byte
	scan.Members(w.message, func(key, value []byte) bool {
		if string(key) == "content" {
			content = value
		}
		return true
	})
	text, hasResult, hasOther := "", false, false
	if len(content) > 0 && content[0] == '"' {
		text = scan.Text(content)
	} else {
		var texts []string
		scan.Elements(content, func(b []byte) bool {
			kind, t := "", ""
			scan.Members(b, func(key, value []byte) bool {
				switch string(key) {
				case "type":
					kind = id(value)
				case "text":
					t = scan.Text(value)
				}
				return kind != "tool_result"
			})
			switch kind {
			case "tool_result":
				hasResult = true
			case "text":
				texts = append(texts, t)
			default:
				hasOther = true
			}
			return true
		})
		text = strings.Join(texts, "\n")
	}
	text = strings.TrimSpace(text)
	origin := ""
	scan.Members(w.origin, func(key, value []byte) bool {
		if string(key) == "kind" {
			origin = id(value)
		}
		return true
	})
	if scan.IsTrue(w.compact) || scan.IsTrue(w.onlyVisible) {
		return
	}
	rec.class = classify(text, origin, id(w.source), scan.IsTrue(w.meta), hasResult, hasOther)
	if rec.class == prompt || rec.class == notification {
		rec.input = inputHash(text)
	}
}

// Tags of echo records (2.1.197, 2.1.332): the first names what was typed, the
// second what a local command answered.
var (
	typedTags  = []string{"command-name", "command-message", "bash-input"}
	outputTags = []string{"local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-stdout", "bash-stderr"}
)

// classify decides what a user record is. A human may type any of the
// program's own texts, so those count only where the record is not marked as a
// human's or another client's prompt. An echo counts even then: its start is
// only late, and a command that nobody answers must not start a turn.
func classify(text, origin, source string, meta, hasResult, hasOther bool) class {
	interrupted := text == "[Request interrupted by user]" || text == "[Request interrupted by user for tool use]"
	switch {
	case hasResult && interrupted:
		return marker
	case hasResult:
		return result
	case meta:
		if strings.HasPrefix(text, "Stop hook feedback") {
			return feedback
		}
		return other
	case origin == "task-notification":
		return notification
	case isEcho(text):
		return echo
	case origin == "human" || source == "typed" || source == "queued" || source == "sdk":
		return prompt
	case strings.HasPrefix(text, "<task-notification>"):
		return notification
	case interrupted:
		return marker
	case isOutput(text), text == "" && !hasOther:
		return other
	}
	return prompt
}

func isEcho(text string) bool {
	for _, tag := range typedTags {
		if rest, ok := strings.CutPrefix(text, "<"+tag+">"); ok && strings.Contains(rest, "</"+tag+">") {
			return true
		}
	}
	return false
}

func isOutput(text string) bool {
	for _, tag := range outputTags {
		if strings.HasPrefix(text, "<"+tag+">") {
			return true
		}
	}
	return false
}

// inputHash is the hash by which a prompt is recognised: of the trimmed text,
// without a wrapper that holds all of it. "" for a prompt without text.
func inputHash(text string) string {
	return providers.InputHash(unwrap(text))
}

// unwrap removes what the program puts around a long paste (2.1.332: five lines
// or some 2,000 characters), if it is around all of the text.
func unwrap(text string) string {
	rest, ok := strings.CutPrefix(text, `<pasted_content id="`)
	if !ok {
		return text
	}
	name, rest, ok := strings.Cut(rest, `">`)
	if !ok {
		return text
	}
	body, ok := strings.CutSuffix(rest, `</pasted_content id="`+name+`">`)
	if !ok {
		body, ok = strings.CutSuffix(rest, `</pasted_content>`)
	}
	if !ok || strings.Contains(body, "<pasted_content ") {
		return text
	}
	return strings.TrimSpace(body)
}

func (rec *record) readAssistant(w *raw) {
	rec.class = assistant
	var content []byte
	model := ""
	scan.Members(w.message, func(key, value []byte) bool {
		switch string(key) {
		case "id":
			rec.message = id(value)
		case "model":
			model = scan.Text(value)
		case "stop_reason":
			rec.stop = id(value)
		case "content":
			content = value
		}
		return true
	})
	if rec.message == "" {
		rec.message = id(w.requestID)
	}
	if rec.message == "" {
		rec.message = rec.uuid
	}
	if scan.IsTrue(w.apiError) {
		rec.class, rec.cuts = failure, scan.IsTrue(w.truncated)
		status, _ := strconv.Atoi(string(w.status))
		rec.reason = reason(id(w.errorClass), rec.stop, status, firstText(content))
		return
	}
	if model == "<synthetic>" {
		rec.class = partial
	}
	if len(content) > 0 && content[0] == '"' {
		rec.addText(scan.Text(content))
		return
	}
	scan.Elements(content, func(b []byte) bool {
		rec.readBlock(b)
		return true
	})
}

func (rec *record) readBlock(b []byte) {
	var kind, name, item string
	var text, input []byte
	scan.Members(b, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			kind = id(value)
		case "name":
			name = id(value)
		case "id":
			item = id(value)
		case "text":
			text = value
		case "input":
			input = value
		}
		return true
	})
	switch kind {
	case "text":
		rec.addText(scan.Text(text))
	case "tool_use":
		rec.tool = true
		switch name {
		case "ExitPlanMode":
			if plan := strings.TrimSpace(planText(input)); plan != "" {
				rec.blocks = append(rec.blocks, block{kind: providers.Plan, text: plan})
				rec.size += len(plan)
			}
		case "AskUserQuestion":
			if a := question(item, input); a != nil {
				rec.blocks = append(rec.blocks, block{kind: providers.ApprovalRequested, approval: a})
			}
		}
	}
}

// addText keeps a block's text as it is written: only the whole is trimmed.
func (rec *record) addText(s string) {
	if strings.TrimSpace(s) != "" {
		rec.blocks = append(rec.blocks, block{kind: providers.AssistantMessage, text: s})
		rec.size += len(s)
	}
}

func planText(input []byte) (plan string) {
	scan.Members(input, func(key, value []byte) bool {
		if string(key) == "plan" {
			plan = scan.Text(value)
		}
		return true
	})
	return plan
}

func firstText(content []byte) []byte {
	var text []byte
	scan.Elements(content, func(b []byte) bool {
		scan.Members(b, func(key, value []byte) bool {
			if string(key) == "text" {
				text = value
			}
			return true
		})
		return text == nil
	})
	return text
}

// reason is the category of an API error (2.1.197, 2.1.332). The two tests on
// its text are there because nothing else in the record tells: 2.1.197 gives
// 529 no apiErrorStatus, and "prompt is too long" is an ordinary 400.
func reason(class, stop string, status int, text []byte) providers.Reason {
	short := bytes.ToLower(text[:min(len(text), 200)])
	switch {
	case stop == "refusal":
		return providers.PolicyBlocked
	case bytes.Contains(short, []byte("prompt is too long")):
		return providers.ContextLimit
	case class == "rate_limit" || status == 429:
		return providers.RateLimited
	case class == "authentication_failed" || status == 401:
		return providers.AuthenticationFailed
	case status == 529, class == "server_error" && bytes.Contains(short, []byte("529")):
		return providers.ModelAtCapacity
	case class == "server_error" || status >= 500 && status < 600:
		return providers.ProviderUnavailable
	case class == "invalid_request" || status == 400:
		return providers.InvalidRequest
	}
	return providers.ProviderError
}
