package wire

// The objects below are Steno's own and not part of the Agent API: what the
// daemon says about itself. They hold no prompt, message or tool output.

// Status is the daemon's own state.
type Status struct {
	Version   string           `json:"version"`
	PID       int              `json:"pid"`
	StartedAt Time             `json:"started_at"`
	StateDir  string           `json:"state_dir"`
	Socket    string           `json:"socket"`
	Clients   int              `json:"clients"`
	Store     StoreStatus      `json:"store"`
	Watch     WatchStatus      `json:"watch"`
	Mux       []MuxStatus      `json:"mux"`
	Providers []ProviderStatus `json:"providers"`
}

// StoreStatus is the state of the event log.
type StoreStatus struct {
	Working bool   `json:"working"`
	Error   string `json:"error"` // why it does not work, "" when it does
	Oldest  uint64 `json:"oldest_sequence"`
	Latest  uint64 `json:"latest_sequence"`
	Events  uint64 `json:"events"`
	Bytes   int64  `json:"bytes"`
	// The two bounds of retention.
	RetainEvents int   `json:"retention_events"`
	RetainBytes  int64 `json:"retention_bytes"`
}

// WatchStatus is the state of file watching.
type WatchStatus struct {
	Mode      string `json:"mode"` // inotify, mixed, polling
	Reason    string `json:"reason"`
	Watches   int    `json:"watches"`
	Budget    int    `json:"budget"`
	Unwatched int    `json:"unwatched_directories"`
	Overflows uint64 `json:"overflows"`
	Sweeps    uint64 `json:"sweeps"`
	LastSweep Time   `json:"last_sweep_at"`
}

// MuxStatus is one multiplexer server.
type MuxStatus struct {
	Socket string `json:"socket"`
	Panes  int    `json:"panes"`
	Error  string `json:"error"`
}

// ProviderStatus counts what is seen of one provider.
type ProviderStatus struct {
	ID        string       `json:"id"`
	Roots     []RootStatus `json:"roots"`
	Artifacts int          `json:"artifacts"`
	Processes int          `json:"processes"`
	Bound     int          `json:"bound"`
	// Failures counts observer failures since the daemon started.
	Failures uint64 `json:"observer_failures"`
	// Drift names the types of records that Steno has never seen before.
	Drift []string `json:"drift"`
	// Unbound says, per live process without a session, why.
	Unbound []Unbound `json:"unbound"`
}

// RootStatus is one directory that a provider's artifacts may appear in.
type RootStatus struct {
	Dir    string `json:"dir"`
	Exists bool   `json:"exists"`
}

// Unbound is a process without a session.
type Unbound struct {
	PID    int     `json:"pid"`
	PaneID *uint64 `json:"pane_id"` // null where it is no agent, and so owns no pane
	Reason string  `json:"reason"`
}

// Pane is one place that an agent can live in: a pane of a multiplexer, a bare
// terminal, or a process without a terminal.
type Pane struct {
	PaneID         uint64 `json:"pane_id"`
	TabID          uint64 `json:"tab_id"`
	WindowID       uint64 `json:"window_id"`
	Workspace      string `json:"workspace"`
	Title          string `json:"title"`
	EffectiveTitle string `json:"effective_title"`
	CWD            string `json:"cwd"` // file://host/abs/path, "" when unknown
	TTYName        string `json:"tty_name"`
	IsActive       bool   `json:"is_active"`
	// Steno's own additions.
	Place    string `json:"place"`     // tmux, terminal, headless
	Socket   string `json:"socket"`    // multiplexer socket, "" elsewhere
	MuxPane  string `json:"mux_pane"`  // "%3" for tmux, "" elsewhere
	AgentPID int    `json:"agent_pid"` // 0 when no agent lives here
}

// Explanation says what speaks for and against a binding.
type Explanation struct {
	PaneID   uint64        `json:"pane_id"`
	AgentID  string        `json:"agent_id"`
	Name     string        `json:"name"`
	Harness  string        `json:"harness"`
	PID      int           `json:"pid"`
	Place    string        `json:"place"`
	Bound    bool          `json:"bound"`
	Session  string        `json:"session_id"`
	Artifact string        `json:"artifact"`
	Reason   string        `json:"reason"` // why it is not bound, "" when it is
	Activity string        `json:"activity"`
	Waiting  string        `json:"waiting_for"`
	Evidence []EvidenceRow `json:"evidence"`
}

// EvidenceRow is one piece of evidence.
type EvidenceRow struct {
	Rank     int    `json:"rank"`
	Source   string `json:"source"`
	Session  string `json:"session_id"`
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason"` // why it was refused
}
