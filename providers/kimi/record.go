package kimi

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// what a record is to the projector.
type what uint8

const (
	nothing  what = iota // tells nothing that matters here
	gap                  // bytes that are no record
	touch                // proves that its turn runs; only made by Rewind
	start                // turn.prompt
	begin                // step.begin
	part                 // content.part of a text
	call                 // tool.call: what was said before it stands
	request              // interaction.request: the same, and maybe a plan or a question
	endGood              // step.end
	endError             // step.end of a step that failed: its text does not count
	ended                // turn.ended
)

// fact is one record, reduced to what is used.
type fact struct {
	what  what
	start int64
	ms    int64     // when it was written, 0 = it does not tell
	at    time.Time // the same
	turn  int64     // -1 = it names none
	step  string    // uuid of the step
	id    string    // of the part, or of the request

	input    string              // start: hash of the prompt
	text     string              // part: as written; request: a plan
	question *providers.Approval // request
	outcome  providers.Outcome   // ended
	reason   providers.Reason    // ended

	unknown string // a type that the provider has no entry for
}

// decode reduces a record of the main agent. It never fails: what it does not
// know is nothing.
func decode(r providers.Record) fact {
	f := fact{start: r.Start, turn: -1}
	if r.Gap != providers.Whole {
		f.what = gap
		return f
	}
	var kind, late, agent, event, turnID, origin, input, id, tool, req, reason, failure, version []byte
	scan.Members(r.Data, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			kind = value
		case "kind":
			late = value
		case "agentId":
			agent = value
		case "time":
			f.ms = max(0, number(value))
		case "event":
			event = value
		case "turnId":
			turnID = value
		case "origin":
			origin = value
		case "input":
			input = value
		case "id":
			id = value
		case "toolCallId":
			tool = value
		case "request":
			req = value
		case "reason":
			reason = value
		case "error":
			failure = value
		case "protocol_version":
			version = value
		}
		return true
	})
	f.at = scan.Millis(f.ms)
	name := scan.Text(kind)
	f.unknown = unknownType(name, late, version)
	if scan.Is(late, "event") || len(agent) > 0 && !scan.Is(agent, "main") {
		return f
	}
	f.turn = number(turnID)
	switch name {
	case "turn.prompt":
		f.what, f.input = start, inputHash(origin, input)
		f.note("turn.prompt", scan.Member(origin, "kind"), knownOrigins)
	case "turn.ended":
		f.what = ended
		f.outcome, f.reason = outcome(scan.Text(reason), failure)
		f.note("turn.ended", reason, knownReasons)
	case "context.append_loop_event":
		f.readEvent(event)
	case "interaction.request":
		f.what, f.id = request, ident(id)
		f.readRequest(late, req, ident(tool))
		f.note("interaction.request", late, knownRequests)
	}
	return f
}

// readEvent reads an event of a step.
func (f *fact) readEvent(event []byte) {
	var kind, uuid, stepUUID, content, finish []byte
	scan.Members(event, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			kind = value
		case "uuid":
			uuid = value
		case "stepUuid":
			stepUUID = value
		case "turnId":
			f.turn = number(value)
		case "part":
			content = value
		case "finishReason":
			finish = value
		}
		return true
	})
	switch scan.Text(kind) {
	case "step.begin":
		f.what, f.step = begin, ident(uuid)
	case "content.part":
		f.step, f.id = ident(stepUUID), ident(uuid)
		kind := scan.Member(content, "type")
		if scan.Is(kind, "text") {
			f.what, f.text = part, scan.Text(scan.Member(content, "text"))
		}
		f.note("content.part", kind, knownParts)
	case "tool.call":
		f.what, f.step = call, ident(stepUUID)
	case "step.end":
		f.what, f.step = endGood, ident(uuid)
		if scan.Is(finish, "error") {
			f.what = endError
		}
	}
	f.note("context.append_loop_event", kind, knownEvents)
}

// inputHash is the hash by which a prompt is recognised: of the trimmed text
// parts. Before what was typed stand the texts of skills that it named (2.1.0,
// read in the program). "" for a prompt without text.
func inputHash(origin, input []byte) string {
	skills := 0
	scan.Elements(scan.Member(origin, "skillActivations"), func([]byte) bool { skills++; return true })
	var texts []string
	if len(input) > 0 && input[0] == '"' {
		texts = append(texts, scan.Text(input))
	}
	scan.Elements(input, func(p []byte) bool {
		if skills > 0 {
			skills--
			return true
		}
		if scan.Is(scan.Member(p, "type"), "text") {
			texts = append(texts, scan.Text(scan.Member(p, "text")))
		}
		return true
	})
	return providers.InputHash(strings.Join(texts, "\n"))
}

// outcome reads how a turn ended. A turn that the program says ended is over,
// whatever word it uses for it.
func outcome(reason string, failure []byte) (providers.Outcome, providers.Reason) {
	switch reason {
	case "completed":
		return providers.Completed, ""
	case "failed":
		return providers.Aborted, category(failure)
	}
	return providers.Aborted, "" // cancelled, or blocked by a hook of the user's
}

// maxID bounds an id that is used as it is, in bytes. Real ones have up to 45.
const maxID = 64

var ids = scan.NewNames(maxID, "-_.:")

// ident is an id as a key can hold it: as the program wrote it, or the hash of
// one that is longer or has other characters; "" when there is none.
func ident(value []byte) string {
	if s := ids.Read(value); s != "" {
		return s
	}
	if !scan.IsString(value) || len(value) < 3 {
		return ""
	}
	h := fnv.New64a()
	h.Write(value[1 : len(value)-1])
	return "h" + strconv.FormatUint(h.Sum64(), 16)
}

// number reads a whole number from 0 to 2^53, written as a number or, as the
// events of a step have it (2.1.0), as a string; -1 for anything else.
func number(value []byte) int64 {
	if scan.IsString(value) {
		value = value[1 : len(value)-1]
	}
	if len(value) == 0 || len(value) > 16 {
		return -1
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return -1
		}
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n > 1<<53 {
		return -1
	}
	return n
}
