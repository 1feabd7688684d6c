package kimi

import (
	"encoding/json"
	"strings"

	"steno/providers"
	"steno/providers/scan"
)

// readRequest reads what the user is asked: a plan to review, or one question
// with one answer. A permission to run a tool gives no event.
func (f *fact) readRequest(kind, req []byte, tool string) {
	if n := number(scan.Member(req, "turnId")); n >= 0 {
		f.turn = n
	}
	switch {
	case scan.Is(kind, "approval"):
		display := scan.Member(req, "display")
		if scan.Is(scan.Member(display, "kind"), "plan_review") {
			f.text = strings.TrimSpace(scan.Text(scan.Member(display, "plan")))
		}
	case scan.Is(kind, "question"):
		if tool == "" {
			tool = f.id
		}
		f.question = question(tool, scan.Member(req, "questions"))
	}
}

// question makes an approval of a form (2.1.0) when it is one question with one
// answer. A form of several questions or answers is not on the default stream.
func question(item string, raw []byte) *providers.Approval {
	if len(raw) > providers.MaxQuestion {
		return nil
	}
	var form []struct {
		Question    string `json:"question"`
		Header      string `json:"header"`
		MultiSelect bool   `json:"multiSelect"`
		Options     []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	}
	if json.Unmarshal(raw, &form) != nil || len(form) != 1 {
		return nil
	}
	q := form[0]
	if q.MultiSelect {
		return nil
	}
	var answers []providers.Choice
	for _, o := range q.Options {
		answers = append(answers, providers.Choice{Label: o.Label, Description: o.Description})
	}
	return providers.AskOne(item, q.Header, q.Question, answers)
}
