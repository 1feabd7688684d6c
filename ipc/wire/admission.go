package wire

// Statuses of an admission receipt.
const (
	Accepted         = "accepted"
	ReceiptBusy      = "busy"
	Unsupported      = "unsupported"
	NotAvailable     = "unavailable"
	StaleIncarnation = "stale_incarnation"
	Invalid          = "invalid"
	ObserverFailed   = "observer_failure"
	InternalFailure  = "internal_failure"
	Indeterminate    = "indeterminate"
)

// AdmitParams asks to write one prompt to one exact incarnation of an agent.
type AdmitParams struct {
	RequestID     string `json:"request_id"` // a UUID
	AgentID       string `json:"agent_id"`
	IncarnationID string `json:"incarnation_id"`
	Prompt        string `json:"prompt"`
	Paste         bool   `json:"paste"`
	ReturnFinal   bool   `json:"return_final"`
	TimeoutMS     uint64 `json:"timeout_ms"` // of the final, 0 for none
}

// Receipt is what became of a prompt. A definitive one that is not accepted
// means that no byte of the prompt was written.
type Receipt struct {
	Schema        string        `json:"schema"`
	RequestID     string        `json:"request_id"`
	Status        string        `json:"status"`
	Definitive    bool          `json:"definitive"`
	PromptWritten *bool         `json:"prompt_written"` // null when indeterminate
	AgentID       *string       `json:"agent_id"`
	IncarnationID *string       `json:"incarnation_id"`
	ReturnFinal   bool          `json:"return_final"`
	Request       *AgentRequest `json:"request"`
	Detail        *string       `json:"detail"`
}

// Correlations of a return request.
const (
	ObservedPTY     = "observed_pty"
	CodexAppServer  = "codex_app_server_events"
	StateRegistered = "registered"
	StateSubmitted  = "submitted"
	StateBound      = "bound"
	// The terminal states.
	StateCompleted      = "completed"
	StateAborted        = "aborted"
	StateTimedOut       = "timed_out"
	StateCancelled      = "cancelled"
	StateDeliveryFailed = "delivery_failed"
	StateIndeterminate  = "indeterminate"
)

// AgentRequest is a prompt whose final is to be returned, and one line of the
// terminal stream once it has ended.
type AgentRequest struct {
	RequestID                string  `json:"request_id"`
	TargetAgentID            string  `json:"target_agent_id"`
	TargetAgentName          string  `json:"target_agent_name"`
	TargetPaneID             uint64  `json:"target_pane_id"`
	TargetHarness            string  `json:"target_harness"` // a variant name
	Correlation              string  `json:"correlation"`
	TargetIncarnationID      string  `json:"target_incarnation_id"`
	TargetPID                uint64  `json:"target_pid"`
	TargetProcessStartTime   uint64  `json:"target_process_start_time"` // kernel ticks
	TargetSessionPath        string  `json:"target_session_path"`
	BaselineProviderTurnID   string  `json:"baseline_provider_turn_id"`
	BaselineCursor           uint64  `json:"baseline_cursor"`
	ReconciledEventSequence  uint64  `json:"reconciled_event_sequence"`
	BaselineUserMessageCount uint64  `json:"baseline_user_message_count"`
	SubmissionSHA256         string  `json:"submission_sha256"`
	PromptSHA256             string  `json:"prompt_sha256"`
	SubmissionPaste          bool    `json:"submission_paste"`
	TimeoutMS                uint64  `json:"timeout_ms"` // 0 for none
	State                    string  `json:"state"`
	ProviderTurnID           *string `json:"provider_turn_id"`
	CreatedAt                Time    `json:"created_at"`
	UpdatedAt                Time    `json:"updated_at"`
	DeadlineAt               *Time   `json:"deadline_at"`
	CompletedAt              *Time   `json:"completed_at"`
	FinalMessage             *string `json:"final_message"` // only when completed
	Detail                   *string `json:"detail"`
	// TerminalEventSequence is set once; it has a number space of its own.
	TerminalEventSequence *uint64 `json:"terminal_event_sequence"`
}

// Kinds of an approval, and the ids of a command approval's choices. Questions
// have option_1, option_2 and so on.
const (
	CommandApproval  = "command_approval"
	UserQuestion     = "user_question"
	UserQuestionForm = "user_question_form"

	AllowOnce    = "allow_once"
	AllowSession = "allow_session"
	AllowPrefix  = "allow_prefix"
	AllowNetwork = "allow_network"
	Reject       = "reject"
)

// MaxChoiceID is the longest choice id, in bytes: an instant messenger's
// button holds no more beside the request id.
const MaxChoiceID = 33

// Resolution says that an approval was answered.
type Resolution struct {
	Schema        string `json:"schema"`
	RequestID     string `json:"request_id"`
	AgentID       string `json:"agent_id"`
	IncarnationID string `json:"incarnation_id"`
	ChoiceID      string `json:"choice_id"`
	Resolved      bool   `json:"resolved"` // always true
}
