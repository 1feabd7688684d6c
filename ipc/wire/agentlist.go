package wire

// AgentListEntry is the wide view of one agent. Unlike the catalog it spells
// its enums as variant names (Claude, WaitingOnUser); Variant makes them.
// Steno has no value for many of its keys and prints those as null.
type AgentListEntry struct {
	Metadata        AgentMetadata `json:"metadata"`
	Runtime         AgentRuntime  `json:"runtime"`
	PaneID          uint64        `json:"pane_id"`
	TabID           uint64        `json:"tab_id"`
	WindowID        uint64        `json:"window_id"`
	Workspace       string        `json:"workspace"`
	DomainID        uint64        `json:"domain_id"` // always 0, the local domain
	Origin          string        `json:"origin"`    // adopted: Steno starts no agent
	DetectionSource *string       `json:"detection_source"`
	// NeedsAttention is true for a live agent that waits for its user or has
	// failed.
	NeedsAttention bool `json:"needs_attention"`
}

// Origins of an agent. These stay in lower case.
const (
	Adopted  = "adopted"
	Detected = "detected"
	Managed  = "managed"
)

// Transports of an agent, as variant names.
const (
	TransportPlain    = "PlainPty" // no session is bound
	TransportObserved = "ObservedPty"
	TransportCodexTUI = "CodexAppServerTui"
)

// AgentMetadata is what stays the same during an agent's life.
type AgentMetadata struct {
	AgentID          string          `json:"agent_id"`
	Name             string          `json:"name"`
	LaunchCmd        string          `json:"launch_cmd"`
	DeclaredCWD      string          `json:"declared_cwd"`
	AdoptedPID       *int            `json:"adopted_pid"`
	AdoptedStartTime *uint64         `json:"adopted_start_time"` // kernel ticks
	CreatedAt        Time            `json:"created_at"`
	RepoRoot         *string         `json:"repo_root"`
	Worktree         *string         `json:"worktree"`
	Branch           *string         `json:"branch"`
	ManagedCheckout  bool            `json:"managed_checkout"`
	CodexAppServer   *CodexAppThread `json:"codex_app_server"`
	LaunchSupervisor *string         `json:"launch_supervisor"`
}

// CodexAppThread is the provider identity of a managed Codex agent.
type CodexAppThread struct {
	ThreadID   string   `json:"thread_id"`
	SessionID  string   `json:"session_id"`
	Executable string   `json:"executable"`
	Version    string   `json:"version"`
	TUIArgs    []string `json:"tui_args"`
}

// AgentRuntime is what an agent does now.
type AgentRuntime struct {
	Harness               string         `json:"harness"`
	Transport             string         `json:"transport"`
	Status                string         `json:"status"`
	TurnState             string         `json:"turn_state"`
	Alive                 bool           `json:"alive"`
	ForegroundProcessName *string        `json:"foreground_process_name"`
	TTYName               *string        `json:"tty_name"`
	LastInputAt           *Time          `json:"last_input_at"`
	LastOutputAt          *Time          `json:"last_output_at"`
	LastProgressAt        *Time          `json:"last_progress_at"`
	LastTurnCompletedAt   *Time          `json:"last_turn_completed_at"`
	ObservedTurn          *string        `json:"observed_turn"`
	ObservedAt            Time           `json:"observed_at"`
	SessionPath           *string        `json:"session_path"`
	ProgressSummary       *string        `json:"progress_summary"`
	HarnessMode           *string        `json:"harness_mode"`
	TurnPhase             *string        `json:"turn_phase"`
	AttentionReason       *string        `json:"attention_reason"`
	TerminalProgress      *string        `json:"terminal_progress"`
	ObserverError         *string        `json:"observer_error"`
	BackgroundJob         *BackgroundJob `json:"background_job"`
}

// BackgroundJob is a job that an agent was detached into.
type BackgroundJob struct {
	JobID     string `json:"job_id"`
	SessionID string `json:"session_id"`
	Hint      string `json:"hint"`
}

// variants maps the names of the catalog to those of the wide list.
var variants = map[string]string{
	HarnessUnknown: "Unknown", HarnessClaude: "Claude", HarnessCodex: "Codex",
	HarnessGemini: "Gemini", HarnessOpenCode: "OpenCode",
	HarnessKimi: "Kimi", HarnessCopilot: "Copilot",
	Starting: "Starting", Busy: "Busy", Idle: "Idle", Errored: "Errored", Exited: "Exited",
	WaitingOnAgent: "WaitingOnAgent", WaitingOnUser: "WaitingOnUser",
}

// Variant is the variant name of a harness, status or turn state; Unknown for
// any other word.
func Variant(name string) string {
	if v, ok := variants[name]; ok {
		return v
	}
	return "Unknown"
}
