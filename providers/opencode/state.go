package opencode

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"steno/providers"
)

// Bounds of the state. Ids have at most maxIdent bytes, so that all of it is
// below 4 KiB whatever the program writes.
const (
	maxTurns   = 6
	maxAliases = 5
	maxReplies = 7
	maxOpen    = 4   // texts of one message that began and did not end
	maxGiven   = 40  // parts that were given
	maxText    = 640 // bytes of text, as JSON, of the message that is being written
)

// Phases of a turn.
const (
	pending = "p" // the user's message is there, its text is not
	open    = "o" // the agent has to act
	stopped = "s" // the user has to act; nothing ended the turn
	done    = "d" // its final was given
)

// state is all that a projector remembers.
type state struct {
	Born    int64   `json:"b,omitempty"` // when the session was made, ms
	Child   bool    `json:"c,omitempty"`
	Cur     string  `json:"u,omitempty"` // the newest turn
	Replay  bool    `json:"r,omitempty"` // after an automatic compaction the program may repeat the prompt
	Turns   []turn  `json:"t,omitempty"` // in the order of their beginning
	Aliases []alias `json:"a,omitempty"`
	Replies []reply `json:"m,omitempty"`
	// Given are hashes of the texts and questions that were given last.
	Given []string `json:"g,omitempty"`
	// Text is what the message that is being written has said so far.
	Of   string `json:"x,omitempty"`
	Text string `json:"y,omitempty"`
}

type turn struct {
	ID    string `json:"i"`
	Phase string `json:"p"`
	At    int64  `json:"a,omitempty"` // ms, while pending
	Syn   bool   `json:"s,omitempty"` // pending, and only the program's words so far
	Task  bool   `json:"k,omitempty"` // those are the report of a subagent
	Input string `json:"h,omitempty"` // hash of the prompt
}

// alias is a user message of the program: it belongs to a turn, or to none.
type alias struct {
	ID   string `json:"i"`
	Turn string `json:"t,omitempty"`
}

// reply is an assistant message.
type reply struct {
	ID       string   `json:"i"`
	Turn     string   `json:"t,omitempty"` // "" = it says nothing: a summary, a copy, a reply to nobody
	Summary  string   `json:"s,omitempty"` // of which turn it is a summary
	Complete bool     `json:"c,omitempty"`
	Failed   bool     `json:"f,omitempty"`
	Tools    bool     `json:"l,omitempty"`
	Rejected bool     `json:"j,omitempty"`
	Torn     bool     `json:"n,omitempty"` // a gap may have swallowed a part of it
	Open     []string `json:"o,omitempty"` // hashes of texts that began
}

func loadState(b []byte) state {
	var s state
	if json.Unmarshal(b, &s) != nil || !s.sound() {
		return state{}
	}
	return s
}

// sound says whether this package wrote the state.
func (s *state) sound() bool {
	ids := []string{s.Cur, s.Of}
	hashes := slices.Clone(s.Given)
	for _, t := range s.Turns {
		if ids = append(ids, t.ID); t.ID == "" || len(t.Input) > 64 {
			return false
		}
		switch t.Phase {
		case pending, open, stopped, done:
		default:
			return false
		}
	}
	for _, a := range s.Aliases {
		ids = append(ids, a.ID, a.Turn)
	}
	for _, r := range s.Replies {
		ids = append(ids, r.ID, r.Turn, r.Summary)
		hashes = append(hashes, r.Open...)
		if len(r.Open) > maxOpen {
			return false
		}
	}
	for _, id := range ids {
		if id != "" && ident(id) != id {
			return false
		}
	}
	for _, h := range hashes {
		if len(h) > 8 {
			return false
		}
	}
	return len(s.Turns) <= maxTurns && len(s.Aliases) <= maxAliases && len(s.Replies) <= maxReplies &&
		len(s.Given) <= maxGiven && small(s.Text)
}

func (s *state) save() []byte {
	b, err := json.Marshal(s)
	if err != nil || len(b) > providers.StateMax {
		return nil // not reachable: every part is bounded. A new start is the safe answer
	}
	return b
}

// small says whether a text can be kept in the state.
func small(text string) bool {
	switch {
	case len(text) > maxText:
		return false
	case 6*len(text)+2 <= maxText: // no byte takes more than \u00XX
		return true
	}
	b, err := json.Marshal(text)
	return err == nil && len(b) <= maxText
}

// short is 32 bits of an id, to tell a few of them apart.
func short(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

func (s *state) turn(id string) *turn {
	for i := range s.Turns {
		if s.Turns[i].ID == id {
			return &s.Turns[i]
		}
	}
	return nil
}

func (s *state) alias(id string) *alias {
	for i := range s.Aliases {
		if s.Aliases[i].ID == id {
			return &s.Aliases[i]
		}
	}
	return nil
}

func (s *state) reply(id string) *reply {
	for i := range s.Replies {
		if s.Replies[i].ID == id {
			return &s.Replies[i]
		}
	}
	return nil
}

func (s *state) addTurn(t turn) {
	if len(s.Turns) == maxTurns {
		drop := slices.IndexFunc(s.Turns, func(t turn) bool { return t.Phase == done || t.Phase == stopped })
		s.Turns = slices.Delete(s.Turns, max(drop, 0), max(drop, 0)+1)
	}
	s.Turns = append(s.Turns, t)
}

// dropTurn forgets a turn that never began.
func (s *state) dropTurn(id string) {
	s.Turns = slices.DeleteFunc(s.Turns, func(t turn) bool { return t.ID == id })
}

func (s *state) addAlias(a alias) {
	if len(s.Aliases) == maxAliases {
		s.Aliases = slices.Delete(s.Aliases, 0, 1)
	}
	s.Aliases = append(s.Aliases, a)
}

func (s *state) addReply(r reply) *reply {
	if len(s.Replies) == maxReplies {
		drop := slices.IndexFunc(s.Replies, func(r reply) bool { return r.Complete || r.Turn == "" })
		s.Replies = slices.Delete(s.Replies, max(drop, 0), max(drop, 0)+1)
	}
	s.Replies = append(s.Replies, r)
	return &s.Replies[len(s.Replies)-1]
}

// give says whether id was not given yet, and notes it.
func (s *state) give(id string) bool {
	h := short(id)
	if slices.Contains(s.Given, h) {
		return false
	}
	if len(s.Given) == maxGiven {
		s.Given = slices.Delete(s.Given, 0, 1)
	}
	s.Given = append(s.Given, h)
	return true
}

// newest is the newest turn that waits for the agent, "" when there is none.
func (s *state) newest() string {
	for _, t := range slices.Backward(s.Turns) {
		if t.Phase == open {
			return t.ID
		}
	}
	return ""
}

// last is the newest turn that has begun, "" when there is none.
func (s *state) last() string {
	for _, t := range slices.Backward(s.Turns) {
		if t.Phase != pending {
			return t.ID
		}
	}
	return ""
}

// newerOpen says whether a turn that began after id waits for the agent.
func (s *state) newerOpen(id string) bool {
	at := slices.IndexFunc(s.Turns, func(t turn) bool { return t.ID == id })
	return slices.ContainsFunc(s.Turns[at+1:], func(t turn) bool { return t.Phase == open })
}

func millis(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
