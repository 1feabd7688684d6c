package wire

import (
	"encoding/json"
	"time"
)

// Event kinds on the default stream. A reader must refuse any other.
const (
	AgentLifecycle    = "agent_lifecycle"
	TurnStarted       = "turn_started"
	TurnStateChanged  = "turn_state_changed"
	Plan              = "plan"
	AssistantMessage  = "assistant_message"
	ObserverFailure   = "observer_failure"
	TurnFinal         = "turn_final"
	ApprovalRequested = "approval_requested"
)

// Kinds lists the eight kinds of the default stream.
var Kinds = [...]string{
	AgentLifecycle, TurnStarted, TurnStateChanged, Plan,
	AssistantMessage, ObserverFailure, TurnFinal, ApprovalRequested,
}

// Lifecycle values and the reasons of an unavailable one.
const (
	Available           = "available"
	Unavailable         = "unavailable"
	ProcessExited       = "process_exited"
	IncarnationReplaced = "incarnation_replaced"
	MuxRestarted        = "mux_restarted"
)

// Bounds of the wire.
const (
	// MaxText is the longest text of an event, in bytes of UTF-8. A longer one
	// is cut on a code point and marked with text_truncated and text_bytes.
	MaxText = 256 << 10
	// MaxLine is the length that a page stays below as one JSON line, newline
	// included.
	MaxLine = 1_000_000
	// MaxLimit is the most events a page has; DefaultLimit what it has unasked.
	MaxLimit     = 1000
	DefaultLimit = 100
	// MaxWait is the longest long poll, in milliseconds.
	MaxWait = 30_000
	// MaxRequest is the longest request line, in bytes.
	MaxRequest = 2 << 20
)

// Event is one committed fact. All kinds have the same keys; unused ones are null.
type Event struct {
	Sequence      uint64    `json:"sequence"`
	EventID       string    `json:"event_id"`
	Kind          string    `json:"kind"`
	AgentID       string    `json:"agent_id"`
	IncarnationID string    `json:"incarnation_id"`
	ObservedAt    Time      `json:"observed_at"`
	TurnID        *string   `json:"turn_id"`
	Lifecycle     *string   `json:"lifecycle"`
	Reason        *string   `json:"reason"`
	TurnState     *string   `json:"turn_state"`
	Text          *string   `json:"text"`
	Outcome       *string   `json:"outcome"`
	Recoverable   *bool     `json:"recoverable"`
	Detail        *string   `json:"detail"`
	Approval      *Approval `json:"approval"`
	InputSHA256   *string   `json:"input_sha256"`
	// Additive: present only on an event whose text was cut.
	TextTruncated bool  `json:"text_truncated,omitempty"`
	TextBytes     int64 `json:"text_bytes,omitempty"`
	// Additive: how a turn_final was proved, "recorded" or "settled" (by
	// silence); present only where a program does not always record it.
	Completion string `json:"completion,omitempty"`
}

// Approval is a question or permission that an agent waits for.
type Approval struct {
	Schema        string     `json:"schema"`
	Kind          string     `json:"kind"`
	RequestID     string     `json:"request_id"` // 24 hex characters
	AgentID       string     `json:"agent_id"`
	IncarnationID string     `json:"incarnation_id"`
	TurnID        string     `json:"turn_id"`
	ItemID        string     `json:"item_id"`
	ObservedAt    Time       `json:"observed_at"`
	Prompt        *string    `json:"prompt"`
	Reason        *string    `json:"reason"`
	Command       *string    `json:"command"`
	CWD           *string    `json:"cwd"`
	Choices       []Choice   `json:"choices"`   // never null
	Questions     []Question `json:"questions"` // never null
}

// Choice is one offered answer; ID has at most 33 bytes and no colon.
type Choice struct {
	ID          string  `json:"id"`
	Label       string  `json:"label"`
	Description *string `json:"description"`
}

// Question is one question of a form. Header is always a string.
type Question struct {
	Index       int      `json:"index"`
	Header      string   `json:"header"`
	Question    string   `json:"question"`
	MultiSelect bool     `json:"multi_select"`
	Options     []Choice `json:"options"` // never null
}

// Page statuses.
const (
	OK           = "ok"
	CursorTooOld = "cursor_too_old"
)

// Page is what a reader gets. Events are kept as the JSON they were committed
// with; Decode reads them.
type Page struct {
	Schema                  string            `json:"schema"`
	Status                  string            `json:"status"`
	RequestedAfterSequence  uint64            `json:"requested_after_sequence"`
	OldestAvailableSequence uint64            `json:"oldest_available_sequence"`
	LatestSequence          uint64            `json:"latest_sequence"`
	NextAfterSequence       *uint64           `json:"next_after_sequence"`
	Events                  []json.RawMessage `json:"events"` // never null
	Recovery                *Recovery         `json:"recovery"`
}

// Recovery tells a reader whose cursor is too old how to go on.
type Recovery struct {
	Kind                string `json:"kind"` // catalog_snapshot
	CatalogAsOfSequence uint64 `json:"catalog_as_of_sequence"`
}

// Time is an instant on the wire: RFC 3339, UTC, Z, 0 to 9 fractional digits.
type Time struct{ time.Time }

// At makes a Time of t.
func At(t time.Time) Time { return Time{t.UTC()} }

// MarshalJSON writes the instant in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(time.RFC3339Nano) + `"`), nil
}

// UnmarshalJSON reads RFC 3339 with any offset and turns it to UTC.
func (t *Time) UnmarshalJSON(b []byte) error {
	var in time.Time
	if err := in.UnmarshalJSON(b); err != nil {
		return err
	}
	t.Time = in.UTC()
	return nil
}
