package opencode

import (
	"encoding/json"
	"fmt"
	"strings"

	"steno/providers"
)

// maxQuestion bounds the input of a question that becomes an approval, in
// bytes, and maxOptions its answers. A longer one gives no event.
const (
	maxQuestion = 64 << 10
	maxOptions  = 32
)

// question makes an approval of the question tool's input (1.18.33) when it is
// one question with one answer. The field multiple is the program's; models
// add multiSelect in either spelling.
func question(call string, input []byte) *providers.Approval {
	if call == "" || len(input) > maxQuestion {
		return nil
	}
	var form struct {
		Questions []struct {
			Question string `json:"question"`
			Header   string `json:"header"`
			Multiple flag   `json:"multiple"`
			Options  []struct {
				Label       string `json:"label"`
				Description string `json:"description"`
			} `json:"options"`
		} `json:"questions"`
	}
	if json.Unmarshal(input, &form) != nil || len(form.Questions) != 1 {
		return nil
	}
	q := form.Questions[0]
	if strings.TrimSpace(q.Question) == "" || bool(q.Multiple) || len(q.Options) == 0 || len(q.Options) > maxOptions {
		return nil
	}
	a := &providers.Approval{Kind: "user_question", Item: call, Prompt: q.Question, Reason: q.Header}
	for i, o := range q.Options {
		if o.Label == "" {
			return nil
		}
		a.Choices = append(a.Choices, providers.Choice{ID: fmt.Sprintf("option_%d", i+1), Label: o.Label, Description: o.Description})
	}
	a.Questions = []providers.Question{{Header: q.Header, Question: q.Question, Options: a.Choices}}
	return a
}
