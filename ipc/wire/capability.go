package wire

import "errors"

// Capabilities of the contract, in the order in which they are listed.
const (
	CapCatalog      = "catalog.v1"
	CapAdmission    = "prompt_admission.v1"
	CapReturnStream = "return_request_terminal_stream.v1"
	CapEventStream  = "event_stream.v1" // only while the event log works
)

// Capabilities is what a daemon can do at this moment.
type Capabilities struct {
	Schema       string   `json:"schema"`
	APIMajor     int      `json:"api_major"`
	Capabilities []string `json:"capabilities"` // never null
}

// Hello is the answer to a greeting: who serves, and in which version.
type Hello struct {
	Schema   string `json:"schema"`
	APIMajor int    `json:"api_major"`
	Service  string `json:"service"` // steno
	Version  string `json:"version"` // of the program
}

// HelloParams is a client's greeting.
type HelloParams struct {
	// Client is the client's name, at most MaxClient bytes.
	Client string `json:"client,omitempty"`
	// APIMajor is the major version that the client speaks; 0 is Major.
	APIMajor int `json:"api_major,omitempty"`
}

// ReadParams asks for one page of events.
type ReadParams struct {
	// After is the cursor: the page begins with the first event above it.
	After uint64 `json:"after_sequence"`
	// Limit is the most events wanted, 1 to MaxLimit; 0 is DefaultLimit.
	Limit int `json:"limit,omitempty"`
	// Wait is how long an empty page may be held back, in milliseconds. The
	// server clamps it to MaxWait.
	Wait int64 `json:"wait_ms,omitempty"`
	// Kinds and Agents keep only events of these kinds and agent ids; empty
	// keeps all. At most MaxFilter each.
	Kinds  []string `json:"kinds,omitempty"`
	Agents []string `json:"agents,omitempty"`
}

// MaxClient is the longest name of a client, in bytes.
const MaxClient = 128

// MaxFilter is the most names in one filter, and MaxName the longest of them,
// in bytes.
const (
	MaxFilter = 256
	MaxName   = 256
)

// ExplainParams names what to explain: a pane id, an agent id or a name.
type ExplainParams struct {
	Target string `json:"target"`
}

// RequestsParams asks for the return requests that ended after a position of
// their own number space.
type RequestsParams struct {
	After uint64 `json:"after_terminal_sequence"`
	// Limit is the most requests wanted, 1 to MaxRequests; 0 is MaxRequests.
	Limit int `json:"limit,omitempty"`
}

// MaxRequests is the most return requests of one answer.
const MaxRequests = 100

// Requests is a part of the return stream.
type Requests struct {
	Requests []AgentRequest `json:"requests"` // never null
}

// AgentList is the wide list of agents.
type AgentList struct {
	Agents []AgentListEntry `json:"agents"` // never null
}

// PaneList is the list of panes.
type PaneList struct {
	Panes []Pane `json:"panes"` // never null
}

// ErrNotFound is what an explanation of an unknown target gives; it reaches
// the client as the code not_found.
var ErrNotFound = errors.New("no such pane or agent")
