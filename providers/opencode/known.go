package opencode

import "strings"

// What 1.18.33 writes, from its own schema (openapi.json, and the definitions in
// its bundle); what a provider does not read is listed too. session.next.* are
// the records of a coming format: the four here change nothing for a turn, the
// others would, and are reported as soon as they appear.
var knownEvents = map[string]bool{
	"session.created.1": true, "session.updated.1": true, "session.deleted.1": true,
	"message.updated.1": true, "message.removed.1": true,
	"message.part.updated.1": true, "message.part.removed.1": true,
	"session.next.agent.switched.1": true, "session.next.model.switched.1": true,
	"session.next.moved.1": true, "session.next.context.updated.1": true,
}

var knownParts = map[string]bool{
	"text": true, "subtask": true, "reasoning": true, "file": true, "tool": true, "step-start": true,
	"step-finish": true, "snapshot": true, "patch": true, "agent": true, "retry": true, "compaction": true,
}

var knownErrors = map[string]bool{
	"ProviderAuthError": true, "UnknownError": true, "MessageOutputLengthError": true,
	"MessageAbortedError": true, "StructuredOutputError": true, "ContextOverflowError": true,
	"ContentFilterError": true, "APIError": true,
}

// eventName is the type without its version, and whether it is new. Another
// version of a known type is read like the known one.
func eventName(kind string) (name string, drift bool) {
	name = kind
	if at := strings.LastIndexByte(kind, '.'); at >= 0 && strings.Trim(kind[at+1:], "0123456789") == "" {
		name = kind[:at]
	}
	return name, kind != "" && !knownEvents[kind]
}

const (
	maxDrift   = 16 // of one call
	maxDrifted = 64 // that are remembered, so that each is reported once
)

// surveyor collects types that were never seen.
type surveyor struct {
	seen  map[string]bool
	fresh []string
}

func (s *surveyor) note(kinds []string) {
	for _, k := range kinds {
		k = clean(k)
		if s.seen[k] || len(s.seen) >= maxDrifted || len(s.fresh) >= maxDrift {
			continue
		}
		if s.seen == nil {
			s.seen = map[string]bool{}
		}
		s.seen[k] = true
		s.fresh = append(s.fresh, k)
	}
}

// Drift lists the types of records, parts, roles and errors that this package
// does not know, since the last call.
func (s *surveyor) Drift() []string {
	out := s.fresh
	s.fresh = nil
	return out
}

// clean makes a type printable; one that does not look like a type is only
// said to be odd.
func clean(k string) string {
	if len(k) > 64 {
		return "odd"
	}
	for i := range len(k) {
		switch c := k[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '.', c == '_', c == '-', c == '/', c == ':', c == '$':
		default:
			return "odd"
		}
	}
	return k
}
