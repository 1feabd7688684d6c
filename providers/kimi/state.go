package kimi

import (
	"encoding/json"

	"steno/providers"
)

// textKept is how many bytes of the last step's text the state can hold. A
// longer one is held: what it was read from is read again.
const textKept = 1 << 10

// phase is where a turn stands.
type phase uint8

const (
	unknown phase = iota
	open
	closed
)

func (p phase) state() providers.TurnState {
	switch p {
	case open:
		return providers.WaitingOnAgent
	case closed:
		return providers.WaitingOnUser
	}
	return providers.Unknown
}

// state is all that a projector remembers while nothing is held: at most some
// 1,700 bytes.
type state struct {
	Version int    `json:"v"`
	Copied  int64  `json:"c,omitempty"` // a fork: records written before this, in ms, are another session's
	Phase   phase  `json:"p,omitempty"` // of the newest turn
	Number  int64  `json:"t,omitempty"` // its number; nothing while Phase is unknown
	Since   int64  `json:"s,omitempty"` // when it started, in ms
	Next    int64  `json:"n,omitempty"` // number of the next turn, for a start that names none
	Step    string `json:"u,omitempty"` // newest step, at most maxID bytes
	Of      int64  `json:"o,omitempty"` // turn of that step
	Last    []byte `json:"l,omitempty"` // its text
}

const stateVersion = 1

// loadState reads a state; anything that this version did not write counts as none.
func loadState(b []byte) (s state) {
	if len(b) == 0 || len(b) > providers.StateMax || json.Unmarshal(b, &s) != nil || s.Version != stateVersion ||
		s.Phase > closed || len(s.Step) > maxID || len(s.Last) > textKept {
		return state{Version: stateVersion}
	}
	return s
}

// State is the memory. It never fails: the structure has only numbers, short
// strings and bytes.
func (p *projector) State() []byte {
	s := p.state
	if len(s.Last) > textKept {
		s.Last = nil // only while it is held
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}
