package wire

// Harness names of a catalog entry.
const (
	HarnessUnknown  = "unknown"
	HarnessClaude   = "claude"
	HarnessCodex    = "codex"
	HarnessGemini   = "gemini"
	HarnessOpenCode = "opencode"
	HarnessKimi     = "kimi"
	HarnessCopilot  = "copilot"
)

// Statuses of an agent.
const (
	Starting = "starting"
	Busy     = "busy"
	Idle     = "idle"
	Errored  = "errored"
	Exited   = "exited"
)

// Turn states of an agent and of a turn_state_changed event.
const (
	TurnUnknown    = "unknown" // of an agent only
	WaitingOnAgent = "waiting_on_agent"
	WaitingOnUser  = "waiting_on_user"
)

// Outcomes of a turn_final.
const (
	Completed = "completed"
	Aborted   = "aborted"
)

// Catalog is the set of agents at one moment. Reading events after AsOf may
// repeat a state that the catalog already shows; it never skips one.
type Catalog struct {
	Schema string         `json:"schema"`
	AsOf   uint64         `json:"as_of_event_sequence"`
	Agents []CatalogEntry `json:"agents"` // never null
}

// CatalogEntry is one agent. Its pane id is where it lives now, unique in the
// catalog, and never its identity.
type CatalogEntry struct {
	AgentID string `json:"agent_id"`
	// IncarnationID is null while the process is not confirmed.
	IncarnationID *string `json:"incarnation_id"`
	PaneID        uint64  `json:"pane_id"`
	Name          string  `json:"name"`
	Harness       string  `json:"harness"`
	Status        string  `json:"status"`
	TurnState     string  `json:"turn_state"`
	Alive         bool    `json:"alive"`
	ObservedAt    Time    `json:"observed_at"`
}

// How a caller was resolved.
const (
	ByPane        = "wakterm_pane"
	ByCodexThread = "codex_thread"
)

// Caller says for which agent a command runs.
type Caller struct {
	Schema     string       `json:"schema"`
	ResolvedBy string       `json:"resolved_by"`
	Agent      CatalogEntry `json:"agent"`
}
