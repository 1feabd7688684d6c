package copilot

import (
	"encoding/json"
	"strings"

	"steno/providers"
)

// form is what ask_user is called with (1.0.102): a message and a schema of
// the answer; or, as human_response.recorded of the same version names it, a
// question and its choices.
type form struct {
	Message string `json:"message"`
	Schema  struct {
		Properties map[string]field `json:"properties"`
	} `json:"requestedSchema"`

	Question string   `json:"question"`
	Choices  []string `json:"choices"`
	Freeform *bool    `json:"allow_freeform"`
	Free     *bool    `json:"allowFreeform"`
}

// field is one answer of a form.
type field struct {
	Type  string     `json:"type"`
	Title string     `json:"title"`
	Enum  []string   `json:"enum"`
	Names []string   `json:"enumNames"`
	OneOf []constant `json:"oneOf"`
}

type constant struct {
	Const       string `json:"const"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// question makes an approval of ask_user's arguments when they ask for one of
// several given answers. A form of several fields, or of an answer in the
// user's own words, gives none.
func question(call string, args []byte) *providers.Approval {
	var f form
	if len(args) > providers.MaxQuestion || json.Unmarshal(args, &f) != nil {
		return nil
	}
	prompt, header := strings.TrimSpace(f.Message), ""
	var options []providers.Choice
	switch {
	case prompt != "" && len(f.Schema.Properties) == 1:
		for _, only := range f.Schema.Properties {
			header, options = strings.TrimSpace(only.Title), only.options()
		}
	case f.Question != "" && (isFalse(f.Freeform) || isFalse(f.Free)):
		prompt = strings.TrimSpace(f.Question)
		for _, c := range f.Choices {
			options = append(options, providers.Choice{Label: c})
		}
	}
	a := providers.AskOne(call, header, prompt, options)
	if a != nil {
		a.Reason = ""
	}
	return a
}

// options are the given answers of a field; none if it takes others, or more
// than one.
func (f field) options() []providers.Choice {
	if f.Type != "string" && f.Type != "" {
		return nil
	}
	var out []providers.Choice
	for i, value := range f.Enum {
		if len(f.Names) == len(f.Enum) {
			value = f.Names[i]
		}
		out = append(out, providers.Choice{Label: value})
	}
	for _, c := range f.OneOf {
		label := c.Title
		if label == "" {
			label = c.Const
		}
		out = append(out, providers.Choice{Label: label, Description: c.Description})
	}
	return out
}

func isFalse(b *bool) bool { return b != nil && !*b }
