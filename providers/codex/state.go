package codex

import (
	"encoding/json"
	"strconv"
	"time"

	"steno/providers"
)

// phase of a turn.
type phase string

const (
	held phase = "h" // started by the program; the draft waits for the prompt
	open phase = "o"
	done phase = "e"
	leak phase = "l" // a reviewer's turn in its parent's file: makes no event
)

const (
	turnsKept = 8       // turns remembered, in the order of their starts
	seenKept  = 8       // assistant messages remembered, newest last
	textKept  = 1 << 10 // bytes of the last assistant text that the state can hold
)

type turn struct {
	ID    string `json:"i"`
	Phase phase  `json:"p"`
}

// seen is an assistant message that was given.
type seen struct {
	Turn   string `json:"t,omitempty"`
	ID     string `json:"i,omitempty"` // hash of the item's id, "" when it had none
	Sum    string `json:"s"`
	Source source `json:"f"`
	Twin   bool   `json:"w,omitempty"` // its twin was seen too
}

// state is all that a projector remembers. Its bound: 8 turns and 8 messages of
// at most 64-byte ids and 16-byte hashes, one base64 text of 1024 bytes, some
// words: below 3,600 bytes.
type state struct {
	Thread   string `json:"th,omitempty"`
	Internal bool   `json:"int,omitempty"`  // not a user's thread: nothing is projected
	Skip     bool   `json:"skip,omitempty"` // inside history that a fork copied
	Attr     bool   `json:"attr,omitempty"` // this file's turns say what triggered them
	Inputs   bool   `json:"in,omitempty"`   // this file has items or events for prompts
	Source   source `json:"src,omitempty"`  // what this file writes for messages besides response_items

	Turns  []turn `json:"turns,omitempty"`
	Cur    string `json:"cur,omitempty"`  // "" = not known
	Bare   bool   `json:"bare,omitempty"` // the current turn started without a prompt (compaction)
	Review bool   `json:"rev,omitempty"`  // the current turn is a review

	HeldAt time.Time `json:"hat,omitzero"`
	Cand   string    `json:"cand,omitempty"` // hash of a prompt that a response_item gave for the held start

	Seen     []seen `json:"seen,omitempty"`
	LastTurn string `json:"lt,omitempty"`
	Last     []byte `json:"ltx,omitempty"` // last assistant text of LastTurn when it fits
}

func loadState(b []byte) state {
	var s state
	if len(b) == 0 || len(b) > providers.StateMax || json.Unmarshal(b, &s) != nil {
		return state{}
	}
	if len(s.Turns) > turnsKept || len(s.Seen) > seenKept || len(s.Last) > textKept {
		return state{}
	}
	return s
}

func hex64(n uint64) string { return strconv.FormatUint(n, 16) }
