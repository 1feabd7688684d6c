package claude

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"steno/providers"
)

// Bounds of the memory, so that State stays below providers.StateMax.
const (
	maxSeen    = 128 // records whose turn is known
	maxTurns   = 6
	maxOrphans = 8 // parents that may come after what hangs off them was taken
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
	Holed   bool    `json:"g,omitempty"` // a gap was read: a parent may be in it
	Seen    []byte  `json:"k,omitempty"` // packed seen
	Orphans []byte  `json:"w,omitempty"` // packed orphans

	seen    []place  // oldest first
	orphans []uint64 // hashes of parents that had not come when what hangs off them was taken; oldest first
}

// place is the turn of one record: a serial that may have left the table.
// When the record, or one above it, was taken without its parent, the turn is
// a guess until that parent comes.
type place struct {
	uuid    uint64
	turn    uint32
	missing uint64 // hash of that parent, one of orphans; 0 for a turn that is sure
}

const (
	stateVersion = 1
	// 8 bytes of hash, then 1 byte: its lower half is the index into Turns
	// plus one, its upper half that into orphans plus one.
	placeSize  = 9
	orphanSize = 8
)

// State packs the memory. Ids have at most maxID plain bytes each, so its size
// is at most 3.9 KiB.
func (p *projector) State() []byte {
	s := p.state
	s.Version = stateVersion
	s.Seen = make([]byte, 0, len(s.seen)*placeSize)
	for _, e := range s.seen {
		s.Seen = binary.LittleEndian.AppendUint64(s.Seen, e.uuid)
		index := byte(0)
		for i := range s.Turns {
			if s.Turns[i].Serial == e.turn {
				index = byte(i + 1)
			}
		}
		index |= byte(slices.Index(s.orphans, e.missing)+1) << 4
		s.Seen = append(s.Seen, index)
	}
	s.Orphans = make([]byte, 0, len(s.orphans)*orphanSize)
	for _, o := range s.orphans {
		s.Orphans = binary.LittleEndian.AppendUint64(s.Orphans, o)
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
		len(s.Turns) > maxTurns || len(s.Seen)%placeSize != 0 || len(s.Seen) > maxSeen*placeSize || s.Nobody.Serial != 0 ||
		len(s.Orphans)%orphanSize != 0 || len(s.Orphans) > maxOrphans*orphanSize {
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
	for b := s.Orphans; len(b) > 0; b = b[orphanSize:] {
		o := binary.LittleEndian.Uint64(b)
		if o == 0 || slices.Contains(s.orphans, o) {
			return false
		}
		s.orphans = append(s.orphans, o)
	}
	for b := s.Seen; len(b) > 0; b = b[placeSize:] {
		e := place{uuid: binary.LittleEndian.Uint64(b)}
		index, missing := int(b[8]&15), int(b[8]>>4)
		if index > len(s.Turns) || missing > len(s.orphans) {
			return false
		}
		if index > 0 {
			e.turn = s.Turns[index-1].Serial
		}
		if missing > 0 {
			e.missing = s.orphans[missing-1]
		}
		s.seen = append(s.seen, e)
	}
	s.Seen, s.Orphans = nil, nil
	return len(s.Last.ID) <= maxID && len(s.Last.Record) <= maxID && len(s.Last.Stop) <= maxID
}

// find is the serial of a record's turn (0 for none), and whether the record
// is remembered.
func (s *state) find(uuid string) (serial uint32, seen bool) {
	if e := s.place(uuid); e != nil {
		return e.turn, true
	}
	return 0, false
}

// place finds a record that is remembered, else nil. The pointer is good
// until the next see.
func (s *state) place(uuid string) *place {
	if uuid == "" {
		return nil
	}
	h := hash(uuid)
	for i := len(s.seen) - 1; i >= 0; i-- {
		if s.seen[i].uuid == h {
			return &s.seen[i]
		}
	}
	return nil
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
	s.Holed = true
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
