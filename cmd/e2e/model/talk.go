package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// speaker is who said a line of a conversation.
type speaker int

const (
	human speaker = iota
	machine
	tool // the result of one
)

// line is one message of a conversation, as chat completions and Gemini have
// it.
type line struct {
	who  speaker
	text string
}

// asked finds the script of the last prompt, and one step for each answer after
// it. Requests that offer no tools are the programs' own questions: they have
// fixed answers.
func asked(talk []line, tools int) (string, int) {
	answers := 0
	for i := len(talk) - 1; i >= 0; i-- {
		switch l := talk[i]; l.who {
		case machine:
			if i+1 == len(talk) || talk[i+1].who != machine {
				answers++
			}
		case human:
			text := own(l.text)
			name := named(text)
			switch {
			case answers == 0 && summary.MatchString(text) && (name == "" || tools == 0):
				return "compact", 0
			case tools == 0:
				return "title", 0
			case notice.MatchString(l.text): // the program itself may answer with a tool first
				return "notification", 0
			case name != "":
				return name, answers
			case compacted.MatchString(text):
				return "compacted", answers
			case text != "" && !nudge.MatchString(text):
				return "other", answers
			}
		}
	}
	if tools == 0 {
		return "title", 0
	}
	return "other", answers
}

var (
	// summary is what the programs ask when they compact a conversation, some with
	// their tools on offer.
	summary = regexp.MustCompile(`(?i)(create|generate|provide|write) [^.]{0,80}summary|state_snapshot`)
	// compacted is how OpenCode goes on after that, behind a summary that it gives
	// as the model's words.
	compacted = regexp.MustCompile(`Continue if you have next steps`)
	// notice tells the model that something in the background ended: Kimi Code,
	// Copilot CLI, OpenCode.
	notice = regexp.MustCompile(`<notification |<system_notification>|<task id="`)
	// nudge is what the programs say to make a turn go on.
	nudge = regexp.MustCompile(`^(System: )?Please continue|^The plan at \S+ has been approved`)
)

// plainText is the text of a message whose content is a string or a list of
// parts.
func plainText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []part
	_ = json.Unmarshal(content, &parts) // another form has no text
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text+p.Encrypted)
	}
	return strings.Join(texts, "\n")
}

// schema is as much of a JSON schema as is needed to fill it.
type schema struct {
	Type       string            `json:"type"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
}

// fill makes a value of a schema that says as little as it can, with text where
// a string is free.
func (s schema) fill(text string) any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch strings.ToLower(s.Type) {
	case "object":
		v := object{}
		for name, p := range s.Properties {
			v[name] = p.fill(text)
		}
		return v
	case "array":
		return []any{}
	case "boolean":
		return false
	case "number", "integer":
		return 0
	}
	return text
}
