package providers

import (
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of a draft: the wire's event kinds but agent_lifecycle,
// which only the observer can know.
type Kind string

const (
	TurnStarted       Kind = "turn_started"
	TurnStateChanged  Kind = "turn_state_changed"
	Plan              Kind = "plan"
	AssistantMessage  Kind = "assistant_message"
	ObserverFailure   Kind = "observer_failure"
	TurnFinal         Kind = "turn_final"
	ApprovalRequested Kind = "approval_requested"
)

// TurnState says who has to act.
type TurnState string

const (
	Unknown        TurnState = "unknown"
	WaitingOnAgent TurnState = "waiting_on_agent"
	WaitingOnUser  TurnState = "waiting_on_user"
)

// Outcome of a turn_final.
type Outcome string

const (
	Completed Outcome = "completed"
	Aborted   Outcome = "aborted"
)

// How a turn_final was proved, where a program does not always record it.
const (
	CompletionRecorded = "recorded" // by a record or by what the program publishes
	CompletionSettled  = "settled"  // by silence; it may be taken back, see the contract's D23
)

// Reason is the category of a failure. Contract, section 1.9.
type Reason string

const (
	PolicyBlocked        Reason = "policy_blocked"
	ContextLimit         Reason = "context_limit"
	UsageLimit           Reason = "usage_limit"
	RateLimited          Reason = "rate_limited"
	ModelAtCapacity      Reason = "model_at_capacity"
	ProviderUnavailable  Reason = "provider_unavailable"
	AuthenticationFailed Reason = "authentication_failed"
	InvalidRequest       Reason = "invalid_request"
	SandboxError         Reason = "sandbox_error"
	ProviderError        Reason = "provider_error"
	NoReply              Reason = "no_reply"
)

// Detail is Steno's one fixed sentence for a category. Provider text never
// stands in its place.
func (r Reason) Detail() string {
	switch r {
	case PolicyBlocked:
		return "The provider refused the request under its content policy."
	case ContextLimit:
		return "The conversation no longer fits the model's context window."
	case UsageLimit:
		return "A usage limit or session budget of the account is used up."
	case RateLimited:
		return "The provider is limiting the rate of requests."
	case ModelAtCapacity:
		return "The selected model has no capacity at the moment; another model may answer."
	case ProviderUnavailable:
		return "The provider's service or the connection to it failed."
	case AuthenticationFailed:
		return "The provider did not accept the credentials."
	case InvalidRequest:
		return "The provider rejected the request as invalid."
	case SandboxError:
		return "The sandbox that runs the agent's commands failed."
	case NoReply:
		return "The agent went idle without answering the prompt."
	case "":
		return ""
	}
	return "The provider reported an error."
}

// Draft is something that happened, in the provider's words.
type Draft struct {
	Key  string // stable within the session: the same fact always has the same key, no other fact has it
	Kind Kind
	Turn string    // provider turn id; "" when it is not known
	At   time.Time // time the program gave to the record; zero when it gave none

	Text    string    // plan, assistant_message, turn_final: trimmed; "" is null on the wire
	State   TurnState // turn_state_changed
	Outcome Outcome   // turn_final
	Reason  Reason    // failed turn_final, provider error; "" otherwise
	Detail  string    // observer_failure, failed turn_final; "" is null

	Completion  string    // turn_final: CompletionRecorded or CompletionSettled where the provider tells them apart, else ""
	Recoverable bool      // observer_failure
	Approval    *Approval // approval_requested
	InputSHA256 string    // turn_started: lower-case hex of the trimmed input, "" when the input is not recorded
}

// Approval is a question or permission that waits for the user.
type Approval struct {
	Kind      string // command_approval, user_question
	Item      string // provider's id of the tool call
	Prompt    string
	Reason    string
	Command   string
	CWD       string
	Choices   []Choice
	Questions []Question
}

// Bounds of a question that becomes an approval: MaxQuestion of what it is made
// of, in bytes, and MaxChoices of its answers. A longer one gives no event.
const (
	MaxQuestion = 64 << 10
	MaxChoices  = 32
)

// AskOne makes the approval of one question that has one answer out of some
// given ones, whose ids become option_1, option_2 and so on: the only form that
// is on the default stream. It is nil without a tool call's id, a question, or 1
// to MaxChoices answers that all have a label.
func AskOne(item, header, question string, answers []Choice) *Approval {
	if item == "" || strings.TrimSpace(question) == "" || len(answers) == 0 || len(answers) > MaxChoices {
		return nil
	}
	choices := make([]Choice, len(answers))
	for i, c := range answers {
		if strings.TrimSpace(c.Label) == "" {
			return nil
		}
		c.ID = fmt.Sprintf("option_%d", i+1)
		choices[i] = c
	}
	return &Approval{
		Kind: "user_question", Item: item, Prompt: question, Reason: header, Choices: choices,
		Questions: []Question{{Header: header, Question: question, Options: choices}},
	}
}

// Choice is one offered answer. ID has at most 33 bytes and no colon.
type Choice struct {
	ID, Label, Description string
}

// Question is one question of a form.
type Question struct {
	Index       int
	Header      string
	Question    string
	MultiSelect bool
	Options     []Choice
}
