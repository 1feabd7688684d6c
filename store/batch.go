package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Bounds of a batch.
const (
	// MaxBody is the longest event body, in bytes.
	MaxBody = 990_000
	// MaxBatch is the most events, sources, agents, servers, or keys to drop.
	MaxBatch = 10_000
	// MaxState is the longest mark, and the longest state, in bytes.
	MaxState = 4 << 10
	// maxKey bounds every other text, in bytes. Linux allows paths of 4 KiB.
	maxKey = 16 << 10
)

// bodyStart is how a body begins: the sequence goes after its first byte.
const bodyStart = `{"event_id":`

// Batch is what one transaction stores. Drops come first, so a key that is
// dropped and stored in one batch is there afterwards.
type Batch struct {
	Events      []Event
	Sources     []Source
	Agents      []Agent
	Servers     []Server
	DropSources []string // paths
	DropAgents  []string // ids
}

// Event is a committed fact. Body is one JSON object in one line that starts
// with {"event_id": and has no "sequence"; Page puts that in. ID is unique: an
// event whose id is in the log, or earlier in the batch, is left out.
type Event struct {
	ID, Kind, Agent, Incarnation string
	Body                         []byte
}

// Source is where observation of one artifact goes on after a restart. Path is
// the key.
type Source struct {
	Path, Provider, Session, Agent, Incarnation string

	Mark, State []byte // opaque, at most MaxState each
	Offset      int64  // bytes consumed
	Settled     bool
	Updated     time.Time
}

// Agent is the newest incarnation of one agent. ID is the key. Times keep their
// nanoseconds; one before 1970 or after 2261 becomes the zero time.
type Agent struct {
	ID, Name, Harness, Incarnation string

	PID        int
	StartTicks uint64 // clock ticks since boot
	Boot       string

	Place, PaneKey string
	PaneID         uint64
	TTY, CWD       string

	Session, Path string
	Rank          int
	Evidence      string

	Available  bool
	Since      time.Time // first durable available of this incarnation
	Generation int64

	Alive                   bool
	Status, TurnState, Turn string
	ObservedAt, CreatedAt   time.Time
	ExitedAt                time.Time
	Launch                  string
}

// Server is the slot that a multiplexer server has in pane ids. Key and Slot
// are both unique; a stored Key gets the new Slot.
type Server struct {
	Key  string
	Slot uint32
}

func (b *Batch) empty() bool {
	return len(b.Events)+len(b.Sources)+len(b.Agents)+len(b.Servers)+len(b.DropSources)+len(b.DropAgents) == 0
}

// validate names what is wrong by kind and position, never by content.
func (b *Batch) validate() error {
	for _, n := range []int{len(b.Events), len(b.Sources), len(b.Agents), len(b.Servers), len(b.DropSources), len(b.DropAgents)} {
		if n > MaxBatch {
			return fmt.Errorf("%w: %d entries of one kind, at most %d", ErrInvalid, n, MaxBatch)
		}
	}
	for i := range b.Events {
		if why := b.Events[i].fault(); why != "" {
			return fmt.Errorf("%w: event %d: %s", ErrInvalid, i, why)
		}
	}
	for i := range b.Sources {
		if why := b.Sources[i].fault(); why != "" {
			return fmt.Errorf("%w: source %d: %s", ErrInvalid, i, why)
		}
	}
	for i := range b.Agents {
		a := &b.Agents[i]
		if a.ID == "" || tooLong(a.ID, a.Name, a.Harness, a.Incarnation, a.Boot, a.Place, a.PaneKey, a.TTY, a.CWD,
			a.Session, a.Path, a.Evidence, a.Status, a.TurnState, a.Turn, a.Launch) {
			return fmt.Errorf("%w: agent %d: no id, or a text over %d bytes", ErrInvalid, i, maxKey)
		}
	}
	for i, s := range b.Servers {
		if s.Key == "" || tooLong(s.Key) {
			return fmt.Errorf("%w: server %d: no key, or over %d bytes", ErrInvalid, i, maxKey)
		}
	}
	return nil
}

func (e *Event) fault() string {
	switch {
	case e.ID == "" || e.Kind == "":
		return "no id or no kind"
	case tooLong(e.ID, e.Kind, e.Agent, e.Incarnation):
		return fmt.Sprintf("a text over %d bytes", maxKey)
	case len(e.Body) > MaxBody:
		return fmt.Sprintf("body of %d bytes, at most %d", len(e.Body), MaxBody)
	case !bytes.HasPrefix(e.Body, []byte(bodyStart)):
		return "body does not start with its event_id"
	case bytes.ContainsAny(e.Body, "\n\r"):
		return "body is not one line"
	case !json.Valid(e.Body):
		return "body is not JSON"
	}
	return ""
}

func (s *Source) fault() string {
	switch {
	case s.Path == "":
		return "no path"
	case tooLong(s.Path, s.Provider, s.Session, s.Agent, s.Incarnation):
		return fmt.Sprintf("a text over %d bytes", maxKey)
	case len(s.Mark) > MaxState || len(s.State) > MaxState:
		return fmt.Sprintf("mark of %d or state of %d bytes, at most %d", len(s.Mark), len(s.State), MaxState)
	case s.Offset < 0:
		return "negative offset"
	}
	return ""
}

func tooLong(texts ...string) bool {
	for _, t := range texts {
		if len(t) > maxKey {
			return true
		}
	}
	return false
}
