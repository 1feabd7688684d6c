package codex

import (
	"bytes"
	"hash/fnv"
	"strings"
	"time"
	"unicode"

	"steno/providers"
	"steno/providers/scan"
)

// what a record is to the projector.
type what uint8

const (
	nothing      what = iota // told nothing that matters here
	gapRecord                // bytes that are no record
	metaRecord               // session_meta
	turnStart                // task_started
	turnComplete             // task_complete
	turnAborted              // turn_aborted
	userInput                // item UserMessage, event user_message: the real prompt
	userItem                 // response_item of role user: the prompt as the model gets it, or a context
	agentText                // an assistant message, from one of three sources
	planText                 // item Plan
	work                     // any other item of a turn: it proves that the turn runs
)

// source is where an assistant message was read.
type source uint8

const (
	noSource source = iota
	itemSource
	eventSource
	responseSource
)

// fact is one record, reduced to what is used.
type fact struct {
	what   what
	source source
	start  int64
	at     time.Time
	turn   string // "" when the record names none
	thread string
	id     string // the item's
	text   string // trimmed
	sum    uint64 // of the text, white space left out; 0 = no text
	input  string // hash of a prompt

	child      bool // task_started of a turn that another turn started
	attributed bool // task_started says what triggered it
	injected   bool // a userItem that the program made itself
	failed     bool // task_complete with an error
	reason     providers.Reason
	review     bool // work: item EnteredReviewMode
	paginated  bool // metaRecord
	header     header

	unknown string // a type that the program did not have
}

// decode reduces a record. It never fails: what it does not know is nothing.
func decode(r providers.Record) fact {
	f := fact{start: r.Start}
	if r.Gap != providers.Whole || r.Data == nil {
		f.what = gapRecord
		return f
	}
	var typ, payload []byte
	if !scan.Members(r.Data, func(key, val []byte) bool {
		switch string(key) {
		case "type":
			typ = val
		case "timestamp":
			f.at = scan.Time(val)
		case "payload":
			payload = val
		}
		return true
	}) {
		return f
	}
	f.note("", typ, knownTypes)
	if !scan.IsObject(payload) {
		return f
	}
	switch {
	case scan.Is(typ, "event_msg"):
		f.event(payload)
	case scan.Is(typ, "response_item"):
		f.response(payload)
	case scan.Is(typ, "session_meta"):
		f.what, f.header = metaRecord, parseHeader(payload)
		scan.Members(payload, func(key, val []byte) bool {
			if string(key) == "history_mode" {
				f.paginated = scan.Is(val, "paginated")
			}
			return true
		})
	case scan.Is(typ, "turn_context"):
		f.turn = member(payload, "turn_id")
	}
	return f
}

func member(obj []byte, name string) string {
	var s string
	scan.Members(obj, func(key, val []byte) bool {
		if string(key) == name {
			s = ident(val)
		}
		return true
	})
	return s
}

func (f *fact) event(payload []byte) {
	var typ, item, message, last, errObj, attribution, kind []byte
	scan.Members(payload, func(key, val []byte) bool {
		switch string(key) {
		case "type":
			typ = val
		case "turn_id":
			f.turn = ident(val)
		case "thread_id":
			f.thread = ident(val)
		case "item":
			item = val
		case "message":
			message = val
		case "last_agent_message":
			last = val
		case "error":
			errObj = val
		case "turn_attribution":
			attribution = val
		case "kind":
			kind = val
		}
		return true
	})
	f.note("event_msg/", typ, knownEvents)
	switch scan.Text(typ) {
	case "task_started", "turn_started":
		f.what = turnStart
		if scan.IsObject(attribution) {
			scan.Members(attribution, func(key, val []byte) bool {
				switch string(key) {
				case "parent_turn_id":
					f.child = !scan.IsNull(val)
				}
				f.attributed = true
				return true
			})
		}
	case "task_complete", "turn_complete":
		f.what = turnComplete
		f.setText(scan.Text(last))
		if !scan.IsNull(errObj) {
			f.failed, f.reason = true, failure(errObj)
		}
	case "turn_aborted":
		f.what = turnAborted
	case "item_completed":
		f.item(item)
	case "user_message":
		// Builds before the item events marked contexts with a kind of their own.
		if scan.IsNull(kind) || scan.Is(kind, "plain") {
			f.what, f.input = userInput, providers.InputHash(scan.Text(message))
		}
	case "agent_message":
		f.what, f.source = agentText, eventSource
		f.setText(scan.Text(message))
	case "agent_reasoning":
		f.what = work
	}
}

func (f *fact) item(item []byte) {
	var typ, content, plain []byte
	if !scan.IsObject(item) {
		return
	}
	scan.Members(item, func(key, val []byte) bool {
		switch string(key) {
		case "type":
			typ = val
		case "id":
			f.id = itemID(val)
		case "content":
			content = val
		case "text":
			plain = val
		}
		return true
	})
	f.note("item/", typ, knownItems)
	switch scan.Text(typ) {
	case "UserMessage":
		f.what, f.input = userInput, providers.InputHash(contentText(content))
	case "AgentMessage":
		f.what, f.source = agentText, itemSource
		f.setText(contentText(content))
	case "Plan":
		f.what = planText
		f.setText(scan.Text(plain))
	case "ContextCompaction":
		// A compaction comes before the prompt of the turn that needs it
		// (0.171.0): it must not release a start that waits for that prompt.
	case "EnteredReviewMode":
		f.what, f.review = work, true
	case "":
	default:
		f.what = work
	}
}

func (f *fact) response(payload []byte) {
	var typ, role, content, meta []byte
	scan.Members(payload, func(key, val []byte) bool {
		switch string(key) {
		case "type":
			typ = val
		case "role":
			role = val
		case "id":
			f.id = itemID(val)
		case "content":
			content = val
		case "internal_chat_message_metadata_passthrough":
			meta = val
		}
		return true
	})
	f.note("response_item/", typ, knownResponses)
	var kinds []byte
	if scan.IsObject(meta) {
		scan.Members(meta, func(key, val []byte) bool {
			switch string(key) {
			case "turn_id":
				f.turn = ident(val)
			case "content_item_kinds":
				kinds = val
			}
			return true
		})
	}
	switch {
	case scan.Is(typ, "message") && scan.Is(role, "user"):
		s := contentText(content)
		f.what, f.input, f.injected = userItem, providers.InputHash(s), injected(kinds, s)
	case scan.Is(typ, "message") && scan.Is(role, "assistant"):
		f.what, f.source = agentText, responseSource
		f.setText(contentText(content))
	case scan.Is(typ, "reasoning"), scan.Is(typ, "function_call"), scan.Is(typ, "function_call_output"),
		scan.Is(typ, "custom_tool_call"), scan.Is(typ, "custom_tool_call_output"),
		scan.Is(typ, "local_shell_call"), scan.Is(typ, "web_search_call"):
		f.what = work
	}
}

// injected says whether a user message was made by the program. 0.171.0 names
// the kind of each part and calls only typed text "user."; older builds are
// known by how the text begins.
func injected(kinds []byte, s string) bool {
	if !scan.IsNull(kinds) {
		user := false
		scan.Elements(kinds, func(val []byte) bool {
			user = bytes.HasPrefix(val, []byte(`"user.`))
			return !user
		})
		return !user
	}
	s = strings.TrimSpace(s)
	for _, mark := range []string{
		"<environment_context", "<user_instructions", "<turn_aborted", "<user_action",
		"<user_shell_command", "<subagent_notification", "<permissions", "<skill",
		"<INSTRUCTIONS", "# AGENTS.md instructions",
	} {
		if strings.HasPrefix(s, mark) {
			return true
		}
	}
	return s == ""
}

// contentText joins the text parts of a message with a newline.
func contentText(content []byte) string {
	var texts []string
	scan.Elements(content, func(part []byte) bool {
		var typ, val []byte
		scan.Members(part, func(key, v []byte) bool {
			switch string(key) {
			case "type":
				typ = v
			case "text":
				val = v
			}
			return true
		})
		switch scan.Text(typ) {
		case "text", "Text", "input_text", "output_text":
			if s := scan.Text(val); s != "" {
				texts = append(texts, s)
			}
		}
		return true
	})
	return strings.Join(texts, "\n")
}

func (f *fact) setText(s string) {
	f.text = strings.TrimSpace(s)
	f.sum = sum(f.text)
}

// sum of a text, white space left out: two sources of one message join its
// parts differently. 0 is the sum of nothing.
func sum(s string) uint64 {
	if s == "" {
		return 0
	}
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, c := range s {
		if unicode.IsSpace(c) {
			continue
		}
		h = (h ^ uint64(c)) * prime
	}
	return h | 1
}

// itemID is an item's id as a key can hold it: at most 128 printable bytes,
// longer or other ones by their hash.
func itemID(val []byte) string {
	s := scan.Text(val)
	if s == "" {
		return ""
	}
	ok := len(s) <= 128
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] > ' ' && s[i] < 0x7f && s[i] != '/'
	}
	if ok {
		return s
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	return "h" + hex64(h.Sum64())
}

// ids are what the program names things with: the bound keeps the projector's
// state small whatever the file says.
var ids = scan.NewNames(64, "-_.:")

// ident is an id that the program wrote, "" when it is missing or not usable
// as one.
func ident(val []byte) string { return ids.Read(val) }
