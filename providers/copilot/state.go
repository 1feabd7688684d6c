package copilot

import (
	"encoding/json"
	"hash/fnv"
	"strings"
	"time"

	"steno/providers"
)

// maxSeen bounds the events that are remembered, so that one that comes again
// gives nothing.
const maxSeen = 128

const stateVersion = 1

// phase is where the newest turn stands.
type phase uint8

const (
	none    phase = iota // there was no turn yet
	open                 // the agent works
	closed               // the user has to act
	unknown              // a gap: there may be a turn
)

func (f phase) state() providers.TurnState {
	switch f {
	case open:
		return providers.WaitingOnAgent
	case closed:
		return providers.WaitingOnUser
	}
	return providers.Unknown
}

// state is all that a projector remembers while nothing is held. Its ids have
// at most maxID plain bytes each, so that it packs into 2 KiB.
type state struct {
	Version     int    `json:"v"`
	Turn        string `json:"t,omitempty"` // the newest turn
	Interaction string `json:"i,omitempty"` // interactionId of its newest prompt
	Phase       phase  `json:"p,omitempty"`
	Ended       bool   `json:"e,omitempty"` // assistant.turn_end came after the last assistant.turn_start
	Autopilot   bool   `json:"a,omitempty"`
	Notice      string `json:"n,omitempty"` // first notification after the turn's end

	Born time.Time `json:"b,omitzero"` // time of session.start, while what follows it may be copied

	Lost            string `json:"l,omitempty"` // the turn before a gap
	LostInteraction string `json:"m,omitempty"`
	LostOpen        bool   `json:"o,omitempty"`

	Seen []byte `json:"k,omitempty"` // packed seen

	seen []uint64 // hashes of events, oldest first
}

// State packs the memory.
func (p *projector) State() []byte {
	s := p.state
	s.Version = stateVersion
	s.Seen = make([]byte, 0, 8*len(s.seen))
	for _, h := range s.seen {
		for shift := 0; shift < 64; shift += 8 {
			s.Seen = append(s.Seen, byte(h>>shift))
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil // not reachable: no member can fail
	}
	return b
}

// load reads a state; false for one that this version did not write.
func (s *state) load(b []byte) bool {
	if len(b) == 0 || len(b) > providers.StateMax || json.Unmarshal(b, s) != nil || s.Version != stateVersion ||
		s.Phase > unknown || len(s.Seen)%8 != 0 || len(s.Seen) > 8*maxSeen {
		return false
	}
	for _, id := range []string{s.Turn, s.Interaction, s.Notice, s.Lost, s.LostInteraction} {
		if len(id) > maxID || id != "" && ident([]byte(`"`+id+`"`)) == "" && !placed(id) {
			return false
		}
	}
	for b := s.Seen; len(b) > 0; b = b[8:] {
		var h uint64
		for i := range 8 {
			h |= uint64(b[i]) << (8 * i)
		}
		s.seen = append(s.seen, h)
	}
	s.Seen = nil
	return true
}

// placed says whether an id is that of an event's place, see parse.
func placed(id string) bool {
	digits, ok := strings.CutPrefix(id, "at/")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// repeats says whether an event was seen before, and remembers it.
func (s *state) repeats(id string) bool {
	f := fnv.New64a()
	f.Write([]byte(id))
	h := f.Sum64()
	for _, known := range s.seen {
		if known == h {
			return true
		}
	}
	if len(s.seen) >= maxSeen {
		s.seen = append(s.seen[:0], s.seen[1:]...)
	}
	s.seen = append(s.seen, h)
	return false
}
