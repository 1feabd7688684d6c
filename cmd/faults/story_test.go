package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"steno/ipc"
	"steno/ipc/wire"
)

// told is what is kept of an event.
type told struct {
	sequence uint64
	agent    string
	token    string // as in truth, "" for what a file does not say word for word
	kind     string
	at       time.Time // when the reader had it
}

// story is what a reader was told. It lives through every death of the daemon.
type story struct {
	w      *world
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	byID     map[string]uint64
	bySeq    map[uint64]string
	events   []told
	tellings int             // events that tell a record of a file
	byAgent  map[string]int  // the same of each agent
	marks    map[string]bool // of sessions
	last     uint64
	repeated int
	reused   int
	wrong    []string // what else breaks the story, at most 20 lines
	changed  chan struct{}
}

// read begins a story at a cursor: one reader goes on from where it was
// whatever happens, and one reads again from any earlier place, now and then.
func (w *world) read(after uint64) *story {
	ctx, cancel := context.WithCancel(context.Background())
	s := &story{w: w, cancel: cancel, byID: map[string]uint64{}, bySeq: map[uint64]string{}, marks: map[string]bool{}, byAgent: map[string]int{}, last: after, changed: make(chan struct{})}
	s.done.Go(func() { s.connected(ctx, s.follow) })
	s.done.Go(func() { s.connected(ctx, s.again) })
	w.t.Cleanup(s.end)
	return s
}

// end stops the readers.
func (s *story) end() {
	s.cancel()
	s.done.Wait()
}

// connected runs f with one connection after another.
func (s *story) connected(ctx context.Context, f func(context.Context, *ipc.Client) error) {
	for ctx.Err() == nil {
		c, err := ipc.Dial(ctx, s.w.socket())
		if err == nil {
			err = f(ctx, c)
			c.Close()
		}
		if err != nil && !passing(err) && ctx.Err() == nil {
			s.fault("a reader was told: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond): // a client's pause between two tries
		}
	}
}

// passing says whether an error only says that the daemon is not there now.
func passing(err error) bool {
	var e *ipc.Error
	if errors.As(err, &e) {
		return e.Code == ipc.CodeUnavailable || e.Code == ipc.CodeTooMany
	}
	return errors.Is(err, ipc.ErrUnreachable) || errors.Is(err, ipc.ErrDisconnected)
}

func (s *story) follow(ctx context.Context, c *ipc.Client) error {
	for {
		s.mu.Lock()
		after := s.last
		s.mu.Unlock()
		page, err := c.ReadEvents(ctx, wire.ReadParams{After: after, Limit: 1 + rand.IntN(wire.MaxLimit), Wait: rand.Int64N(500)})
		if err != nil {
			return err
		}
		if page.Status != wire.OK {
			s.fault("cursor %d is %s: the log has %d to %d", after, page.Status, page.OldestAvailableSequence, page.LatestSequence)
			return nil
		}
		events, err := eventsOf(page)
		if err != nil {
			return err
		}
		s.take(events)
	}
}

// again reads pages anywhere: what they say must be what was said before.
func (s *story) again(ctx context.Context, c *ipc.Client) error {
	for {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		page, err := c.ReadEvents(ctx, wire.ReadParams{After: rand.Uint64N(last + 1), Limit: 1 + rand.IntN(50)})
		if err != nil {
			return err
		}
		events, err := eventsOf(page)
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, e := range events {
			s.same(e.Sequence, e.EventID)
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond): // its pace
		}
	}
}

// same notes that a sequence names an event. The caller holds mu.
func (s *story) same(sequence uint64, id string) {
	if have, ok := s.bySeq[sequence]; ok && have != id {
		s.reused++
		s.faultLocked("sequence %d named two events", sequence)
	}
	if have, ok := s.byID[id]; ok && have != sequence {
		s.repeated++
		s.faultLocked("event %s has the sequences %d and %d", id, have, sequence)
	}
	s.bySeq[sequence], s.byID[id] = id, sequence
}

func (s *story) take(events []wire.Event) {
	if len(events) == 0 {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if e.Sequence != s.last+1 {
			s.faultLocked("event %d came after %d", e.Sequence, s.last)
		}
		if e.Sequence > s.last {
			s.last = e.Sequence
		}
		s.same(e.Sequence, e.EventID)
		if mark, ok := strings.CutPrefix(markerOf(value(e.Text)), "[m:"); ok {
			mark, _, _ = strings.Cut(mark, ":")
			s.marks[mark] = true
		}
		if tokenOf(e) != "" {
			s.tellings++
			s.byAgent[e.AgentID]++
		}
		s.events = append(s.events, told{e.Sequence, e.AgentID, tokenOf(e), kindOf(e), now})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func eventsOf(page wire.Page) ([]wire.Event, error) {
	out := make([]wire.Event, len(page.Events))
	for i, raw := range page.Events {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var skipped = regexp.MustCompile(`^\w+ record at byte (\d+) is longer than 4194304 bytes: \d+ bytes skipped$`)

// tokenOf is what an event says of a record, in the words of truth.
func tokenOf(e wire.Event) string {
	switch e.Kind {
	case wire.TurnStarted:
		return "start " + value(e.TurnID)
	case wire.AssistantMessage:
		return "text " + markerOf(value(e.Text))
	case wire.TurnFinal:
		if value(e.Outcome) != "completed" || markerOf(value(e.Text)) == "" {
			return "wrong final " + value(e.TurnID)
		}
		return "final " + value(e.TurnID)
	case wire.ObserverFailure:
		if m := skipped.FindStringSubmatch(value(e.Detail)); m != nil {
			return "gap " + m[1]
		}
		return "failure " + value(e.Detail)
	}
	return ""
}

// kindOf is the kind, and for a lifecycle which one.
func kindOf(e wire.Event) string {
	if e.Kind == wire.AgentLifecycle {
		return value(e.Lifecycle) + " " + value(e.Reason)
	}
	return e.Kind
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (s *story) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faultLocked(format, args...)
}

func (s *story) faultLocked(format string, args ...any) {
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// head is the last sequence that the reader has.
func (s *story) head() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// tells says whether anything of a session was told.
func (s *story) tells(mark string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[mark]
}

// grown waits until the reader has n events more than after, for at most d, and
// says whether it has.
func (s *story) grown(after uint64, n int, d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	for {
		s.mu.Lock()
		enough, changed := s.last >= after+uint64(n), s.changed
		s.mu.Unlock()
		if enough {
			return true
		}
		select {
		case <-changed:
		case <-limit.C:
			return false
		}
	}
}

// more waits until n more records were told, for at most d, and says whether they
// were.
func (s *story) more(n int, d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	s.mu.Lock()
	want := s.tellings + n
	for s.tellings < want {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			return false
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	return true
}

// tokens are what was told of some agents, in order, by agent.
func (s *story) tokens(agents map[string]string) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for _, e := range s.events {
		if name := agents[e.agent]; name != "" && e.token != "" {
			out[name] = append(out[name], e.token)
		}
	}
	return out
}

// verdict compares the story with the truth of the agents' files and adds the
// difference to the figures: each record of a file once, in the file's order.
func (s *story) verdict(f *figures, agents ...*agent) {
	t := s.w.t
	t.Helper()
	truths := map[string][]truth{}
	for _, a := range agents {
		for _, path := range a.files() {
			if tr, err := truthOf(path); err == nil {
				truths[a.name] = append(truths[a.name], tr)
			} else if !strings.Contains(err.Error(), "no such file") { // a session may have had no record yet
				t.Fatal(err)
			}
		}
	}
	// What is late is waited for.
	names := s.w.agents()
	for deadline := time.Now().Add(patience); ; {
		head := s.head()
		lost, _ := difference(truths, s.tokens(names), nil)
		if lost == 0 || time.Now().After(deadline) {
			break
		}
		if s.grown(head, 1, 100*time.Millisecond) {
			deadline = time.Now().Add(patience)
		}
		names = s.w.agents()
	}
	lost, lines := difference(truths, s.tokens(names), f)
	f.Lost += lost
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Repeated += s.repeated
	f.Reused += s.reused
	for _, line := range slices.Concat(s.wrong, lines) {
		t.Error(line)
	}
}

// difference counts what of the truths was not told, and adds what was told
// twice to the figures. Its lines say what is wrong, at most 20 of them.
func difference(truths map[string][]truth, got map[string][]string, f *figures) (lost int, lines []string) {
	say := func(format string, args ...any) {
		if len(lines) < 20 {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	for name, files := range truths {
		count := map[string]int{}
		for _, token := range got[name] {
			count[token]++
		}
		place := map[string]int{} // of the first time a token was told
		for i, token := range got[name] {
			if _, ok := place[token]; !ok {
				place[token] = i
			}
		}
		known := map[string]bool{}
		for _, file := range files {
			last := -1
			for i, token := range file.tokens {
				known[token] = true
				at, ok := place[token]
				if !ok {
					lost++
					say("%s: %s: %q, record %d of %d, was not told", name, file.session, token, i, len(file.tokens))
					continue
				}
				// Two files may have a gap at one place.
				if at < last && !strings.HasPrefix(token, "gap ") {
					say("%s: %s: %q was told before what stands before it", name, file.session, token)
				}
				last = max(last, at)
			}
		}
		for token, n := range count {
			if !known[token] {
				say("%s: %q was told and is in no file", name, token)
			} else if n > 1 && !strings.HasPrefix(token, "gap ") {
				say("%s: %q was told %d times", name, token, n)
				if f != nil {
					f.Repeated += n - 1
				}
			}
		}
	}
	return lost, lines
}
