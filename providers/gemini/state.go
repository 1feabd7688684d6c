package gemini

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"steno/providers"
)

// phase is where the newest turn stands.
type phase uint8

const (
	none    phase = iota // the session has had no turn yet
	unknown              // there may be one: records are missing
	open
	done    // its final was given, proved
	settled // its final was given, by silence: it may prove wrong
	aborted
	failed // an error ended the work on it
)

func (f phase) state() providers.TurnState {
	switch f {
	case open:
		return providers.WaitingOnAgent
	case done, settled, aborted, failed:
		return providers.WaitingOnUser
	}
	return providers.Unknown
}

// turn is the newest turn.
type turn struct {
	ID    string    `json:"i,omitempty"` // of the message that started it
	At    time.Time `json:"a,omitzero"`
	Input string    `json:"n,omitempty"` // hash of what was typed
	Phase phase     `json:"p,omitempty"`
}

// seenKept bounds the messages that are remembered, as hashes; a message takes
// one to three of them.
const seenKept = 192

// state is all that a projector remembers while nothing is held. Its bound: 192
// hashes of 8 bytes in base64, and some ids of at most 64 bytes: below 2,600
// bytes.
type state struct {
	Session string `json:"s,omitempty"`
	Sub     bool   `json:"sub,omitempty"` // a subagent's: nothing is projected
	Turn    turn   `json:"t,omitzero"`
	Last    string `json:"l,omitempty"` // the newest answer of the turn

	Replay   bool      `json:"r,omitempty"` // inside history that is written again
	ReplayAt time.Time `json:"ra,omitzero"` // its newest message
	Bare     bool      `json:"b,omitempty"` // the history does not begin with the context any more
	Cut      bool      `json:"w,omitempty"` // /rewind was used: the next list lacks messages for a reason

	Cancel     string    `json:"c,omitempty"` // a cancel that nothing was there for
	CancelAt   time.Time `json:"ca,omitzero"`
	CancelTold bool      `json:"ct,omitempty"` // cancelled calls told of a cancel; its own message follows

	Packed []byte `json:"k,omitempty"` // seen, oldest first

	seen []uint64
}

func (s *state) save() []byte {
	s.Packed = s.Packed[:0]
	for _, h := range s.seen {
		s.Packed = binary.LittleEndian.AppendUint64(s.Packed, h)
	}
	b, err := json.Marshal(s)
	if err != nil || len(b) > providers.StateMax {
		return nil // cannot be: all of it is bounded
	}
	return b
}

// load reads a saved state; what save did not write counts as empty.
func (s *state) load(b []byte) {
	*s = state{}
	if len(b) == 0 || len(b) > providers.StateMax {
		return
	}
	var n state
	if json.Unmarshal(b, &n) != nil || len(n.Packed)%8 != 0 || len(n.Packed) > seenKept*8 || n.Turn.Phase > failed {
		return
	}
	for _, id := range []string{n.Session, n.Turn.ID, n.Turn.Input, n.Last, n.Cancel} {
		if len(id) > maxID || id != "" && !ids.Fit([]byte(id)) {
			return
		}
	}
	for p := n.Packed; len(p) > 0; p = p[8:] {
		n.seen = append(n.seen, binary.LittleEndian.Uint64(p))
	}
	n.Packed = nil
	*s = n
}

// Roles of what is remembered of an id.
const (
	asMessage = "m/" // it was read
	asText    = "t/" // its text was given
	asCall    = "c/" // its plan was given
	asTools   = "x/" // its tool calls were read
)

func (s *state) knows(role, id string) bool {
	h := hash(role + id)
	for i := len(s.seen) - 1; i >= 0; i-- {
		if s.seen[i] == h {
			return true
		}
	}
	return false
}

// note remembers an id and says whether it was new.
func (s *state) note(role, id string) bool {
	if s.knows(role, id) {
		return false
	}
	if len(s.seen) >= seenKept {
		s.seen = append(s.seen[:0], s.seen[len(s.seen)-seenKept+1:]...)
	}
	s.seen = append(s.seen, hash(role+id))
	return true
}
