package claude

import (
	"encoding/json"

	"steno/providers"
)

// question makes an approval of AskUserQuestion's input (2.1.197, 2.1.332)
// when it is one question with one answer. A form of several questions or
// answers is not on the default stream; the registry says that it waits.
func question(item string, input []byte) *providers.Approval {
	if len(input) > providers.MaxQuestion {
		return nil
	}
	var form struct {
		Questions []struct {
			Question    string `json:"question"`
			Header      string `json:"header"`
			MultiSelect bool   `json:"multiSelect"`
			Options     []struct {
				Label       string `json:"label"`
				Description string `json:"description"`
			} `json:"options"`
		} `json:"questions"`
	}
	if json.Unmarshal(input, &form) != nil || len(form.Questions) != 1 {
		return nil
	}
	q := form.Questions[0]
	if q.MultiSelect {
		return nil
	}
	var answers []providers.Choice
	for _, o := range q.Options {
		answers = append(answers, providers.Choice{Label: o.Label, Description: o.Description})
	}
	return providers.AskOne(item, q.Header, q.Question, answers)
}
