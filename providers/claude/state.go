package claude

import (
	"encoding/json"
	"hash/fnv"
	"time"

	"steno/providers"
)

// Bounds of the memory, so that State stays below providers.StateMax.
const (
	maxSeen  = 128 // records whose turn is known
	maxTurns = 6
)

// phase is where a turn stands.
type phase uint8

const (
	unknown phase = iota // only of records without a turn
	offered              // an echo that the model has not answered: not started
	open
	closed
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

// turn is what is known of one turn.
type turn struct {
	Serial   uint32    `json:"s,omitempty"` // never 0 in the table
	ID       string    `json:"i,omitempty"` // uuid of the record that started it
	Prompt   string    `json:"p,omitempty"` // promptId
	Parent   uint64    `json:"f,omitempty"` // hash of the starting record's parent, 0 for a root
	At       time.Time `json:"a,omitzero"`
	Phase    phase     `json:"h,omitempty"`
	Notice   bool      `json:"n,omitempty"` // started by a task notification
	Answered bool      `json:"r,omitempty"` // the model has answered
	Resumed  uint64    `json:"o,omitempty"` // hash of the record that opened it again, 0 for none

	Input string `json:"-"` // only from a prompt until its start is given
}

// message is the last API message of the session.
type message struct {
	ID     string    `json:"i,omitempty"`
	Turn   uint32    `json:"t,omitempty"`
	Stop   string    `json:"s,omitempty"`
	Record string    `json:"r,omitempty"` // uuid of its last text
	At     time.Time `json:"a,omitzero"`
	Text   bool      `json:"x,omitempty"`
	Tool   bool      `json:"u,omitempty"`
}

// state is all that a projector remembers while nothing is held.
type state struct {
	Version int     `json:"v"`
	Turns   []turn  `json:"t,omitempty"`
	Current uint32  `json:"c,omitempty"` // serial of the newest started turn, 0 for none
	Next    uint32  `json:"n,omitempty"` // last serial given
	Nobody  turn    `json:"b,omitzero"`  // stands for the turn of records whose turn is not known
	Lost    turn    `json:"l,omitzero"`  // the current turn before a gap
	Last    message `json:"m,omitzero"`
	Seen    []byte  `json:"k,omitempty"` // packed seen

	seen []place // oldest first
}

// place is the turn of one record: a serial that may have left the table.
type place struct {
	uuid uint64
	turn uint32
}

const (
	stateVersion = 1
	placeSize    = 9 // 8 bytes of hash, 1 byte of index into Turns plus one
)

// State packs the memory. Ids have at most maxID plain bytes each, so its size
// is at most 3.8 KiB.
func (p *projector) State() []byte {
	s := p.state
	s.Version = stateVersion
	s.Seen = make([]byte, 0, len(s.seen)*placeSize)
	for _, e := range s.seen {
		for shift := 0; shift < 64; shift += 8 {
			s.Seen = append(s.Seen, byte(e.uuid>>shift))
		}
		index := byte(0)
		for i := range s.Turns {
			if s.Turns[i].Serial == e.turn {
				index = byte(i + 1)
			}
		}
		s.Seen = append(s.Seen, index)
	}
	b, err := json.Marshal(s)
	if err != nil { // a year outside 0..9999, refused by load and never parsed
		return nil
	}
	return b
}

// load reads a state; false for one that this version did not write.
func (s *state) load(b []byte) bool {
	if len(b) == 0 || len(b) > providers.StateMax || json.Unmarshal(b, s) != nil || s.Version != stateVersion ||
		len(s.Turns) > maxTurns || len(s.Seen)%placeSize != 0 || len(s.Seen) > maxSeen*placeSize || s.Nobody.Serial != 0 {
		return false
	}
	for _, t := range append(s.Turns, s.Nobody, s.Lost) {
		if len(t.ID) > maxID || len(t.Prompt) > maxID || t.Phase > closed {
			return false
		}
	}
	for _, t := range s.Turns {
		if t.Serial == 0 || t.Serial > s.Next || t.ID == "" {
			return false
		}
	}
	for b := s.Seen; len(b) > 0; b = b[placeSize:] {
		var e place
		for i := range 8 {
			e.uuid |= uint64(b[i]) << (8 * i)
		}
		if i := int(b[8]); i > len(s.Turns) {
			return false
		} else if i > 0 {
			e.turn = s.Turns[i-1].Serial
		}
		s.seen = append(s.seen, e)
	}
	s.Seen = nil
	return len(s.Last.ID) <= maxID && len(s.Last.Record) <= maxID && len(s.Last.Stop) <= maxID
}

// find is the serial of a record's turn (0 for none), and whether the record
// is remembered.
func (s *state) find(uuid string) (serial uint32, seen bool) {
	if uuid == "" {
		return 0, false
	}
	h := hash(uuid)
	for i := len(s.seen) - 1; i >= 0; i-- {
		if s.seen[i].uuid == h {
			return s.seen[i].turn, true
		}
	}
	return 0, false
}

// see remembers a record.
func (s *state) see(uuid string, serial uint32) {
	if len(s.seen) >= maxSeen {
		s.seen = append(s.seen[:0], s.seen[1:]...)
	}
	s.seen = append(s.seen, place{hash(uuid), serial})
}

// turn finds a turn by its serial, nil for 0 and for one long ago. The pointer
// is good until the next add.
func (s *state) turn(serial uint32) *turn {
	for i := range s.Turns {
		if serial != 0 && s.Turns[i].Serial == serial {
			return &s.Turns[i]
		}
	}
	return nil
}

// add puts a turn into the table. The oldest one leaves it, but never the
// current one.
func (s *state) add(t turn) *turn {
	if len(s.Turns) >= maxTurns {
		gone := 0
		if s.Turns[0].Serial == s.Current {
			gone = 1
		}
		s.Turns = append(s.Turns[:gone], s.Turns[gone+1:]...)
	}
	s.Next++
	t.Serial = s.Next
	s.Turns = append(s.Turns, t)
	return &s.Turns[len(s.Turns)-1]
}

// forget is what a gap does: records before it are remembered, but not the
// turns that they belonged to. Only a tool result with the current turn's
// promptId brings that one back, under another serial.
func (s *state) forget() {
	if t := s.turn(s.Current); t != nil {
		s.Lost = *t
		s.Lost.Serial = 0
	}
	s.Turns, s.Current, s.Nobody, s.Last = nil, 0, turn{}, message{}
}

// hash shortens an id. 64 bits over at most 128 remembered records.
func hash(id string) uint64 {
	if id == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}
