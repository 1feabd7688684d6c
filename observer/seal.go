package observer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"steno/ipc/wire"
	"steno/providers"
	"steno/store"
)

// maxEncodedText keeps the JSON of one event below wire.MaxLine with room for
// the page around it, also where escaping makes a text longer.
const maxEncodedText = 900_000

// Bounds of an approval, in bytes and items. Even if every byte needs six to be
// escaped, the event stays below maxEncodedText.
const (
	maxPrompt    = 16 << 10
	maxQuestion  = 4 << 10
	maxLabel     = 256
	maxChoices   = 20
	maxQuestions = 4
)

// identity is whose facts are being sealed: D13 and D14 of the contract.
type identity struct {
	agent, incarnation string
}

// incarnationID is the SHA-256 of agent id, boot id, pid and start ticks, in
// hex. It is stable for one process life and never repeats for another.
func incarnationID(agent, boot string, pid int, start uint64) string {
	return digest("incarnation", agent, boot, strconv.Itoa(pid), strconv.FormatUint(start, 10))
}

// eventID is the SHA-256 of agent, incarnation and the record's stable key.
func (id identity) eventID(key string) string {
	return digest("event", id.agent, id.incarnation, key)
}

// digest hashes parts with their lengths, so that no two lists of parts give
// the same bytes.
func digest(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		l := uint64(len(p))
		for i := range n {
			n[i] = byte(l >> (8 * i))
		}
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// seal turns a draft of a session into the event that is stored.
func (id identity) seal(provider, session string, d providers.Draft, now time.Time) (store.Event, error) {
	e := wire.Event{
		EventID:       id.eventID(provider + "/" + session + "/" + d.Key),
		Kind:          string(d.Kind),
		AgentID:       id.agent,
		IncarnationID: id.incarnation,
		ObservedAt:    wire.At(when(d.At, now)),
		TurnID:        optional(d.Turn),
		Reason:        optional(string(d.Reason)),
		TurnState:     optional(string(d.State)),
		Outcome:       optional(string(d.Outcome)),
		Detail:        optional(d.Detail),
		InputSHA256:   optional(d.InputSHA256),
		Completion:    d.Completion,
	}
	if d.Kind == providers.ObserverFailure {
		e.Recoverable = &d.Recoverable
	}
	if d.Text != "" {
		text := strings.ToValidUTF8(d.Text, "\uFFFD")
		cut := cutText(text)
		e.Text = &cut
		if len(cut) < len(text) {
			e.TextTruncated, e.TextBytes = true, int64(len(text))
		}
	}
	if d.Approval != nil {
		e.Approval = id.approval(d, e.ObservedAt)
	}
	return encode(e)
}

// lifecycle makes an agent_lifecycle event. The generation makes repeated
// pairs of available and unavailable distinct.
func (id identity) lifecycle(value, reason string, generation int64, at time.Time) (store.Event, error) {
	return encode(wire.Event{
		EventID:       id.eventID(fmt.Sprintf("lifecycle/%d/%s", generation, value)),
		Kind:          wire.AgentLifecycle,
		AgentID:       id.agent,
		IncarnationID: id.incarnation,
		ObservedAt:    wire.At(at),
		Lifecycle:     &value,
		Reason:        optional(reason),
	})
}

func (id identity) approval(d providers.Draft, at wire.Time) *wire.Approval {
	a := d.Approval
	out := &wire.Approval{
		Schema:        wire.SchemaApproval,
		Kind:          a.Kind,
		RequestID:     digest("approval", id.agent, id.incarnation, a.Item)[:24],
		AgentID:       id.agent,
		IncarnationID: id.incarnation,
		TurnID:        d.Turn,
		ItemID:        a.Item,
		ObservedAt:    at,
		Prompt:        optional(cutTo(a.Prompt, maxPrompt)),
		Reason:        optional(cutTo(a.Reason, maxQuestion)),
		Command:       optional(cutTo(a.Command, maxPrompt)),
		CWD:           optional(cutTo(a.CWD, maxQuestion)),
		Choices:       choices(a.Choices),
		Questions:     []wire.Question{},
	}
	for i, q := range a.Questions {
		if i == maxQuestions {
			break
		}
		out.Questions = append(out.Questions, wire.Question{
			Index:       q.Index,
			Header:      cutTo(q.Header, maxLabel),
			Question:    cutTo(q.Question, maxQuestion),
			MultiSelect: q.MultiSelect,
			Options:     choices(q.Options),
		})
	}
	return out
}

func choices(in []providers.Choice) []wire.Choice {
	out := []wire.Choice{}
	for i, c := range in {
		if i == maxChoices {
			break
		}
		out = append(out, wire.Choice{ID: c.ID, Label: cutTo(c.Label, maxLabel), Description: optional(cutTo(c.Description, 2*maxLabel))})
	}
	return out
}

// encode writes the event's JSON without its sequence, which only the store
// knows.
func encode(e wire.Event) (store.Event, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return store.Event{}, fmt.Errorf("encode event: %w", err)
	}
	const head = `{"sequence":0,`
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	body = append([]byte("{"), body[len(head):]...)
	return store.Event{ID: e.EventID, Kind: e.Kind, Agent: e.AgentID, Incarnation: e.IncarnationID, Body: body}, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// when is the record's own time, or the time of observation where the record
// has none.
func when(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

// cutText keeps a text within wire.MaxText bytes, and its JSON within
// maxEncodedText.
func cutText(s string) string {
	s = cutTo(s, wire.MaxText)
	n := 0
	for i, r := range s {
		n += encodedLen(r)
		if n > maxEncodedText {
			return s[:i]
		}
	}
	return s
}

// encodedLen is how many bytes encoding/json writes for a rune at the most.
func encodedLen(r rune) int {
	switch {
	case r == '\u2028' || r == '\u2029' || r < 0x20 || r == utf8.RuneError:
		return 6
	case r == '"' || r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// cutTo cuts on a code point.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
