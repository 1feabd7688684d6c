package ipc

import (
	"encoding/json"
	"fmt"
	"slices"

	"steno/ipc/wire"
)

// head is the part of an event that every reader depends on.
type head struct {
	Sequence      uint64 `json:"sequence"`
	EventID       string `json:"event_id"`
	Kind          string `json:"kind"`
	AgentID       string `json:"agent_id"`
	IncarnationID string `json:"incarnation_id"`
}

// CheckPage says whether a page that answers a read after a cursor keeps the
// contract: schema, echo, order, next cursor, recovery, and only kinds that
// this program knows. Unknown keys are no fault.
//
// Errors: ErrIncompatible for another schema, ErrUnknownKind, else ErrProtocol.
func CheckPage(p wire.Page, after uint64) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
	}
	switch {
	case p.Schema != wire.SchemaEvents:
		return fmt.Errorf("%w: event page of schema %q", ErrIncompatible, p.Schema)
	case p.RequestedAfterSequence != after:
		return bad("page after %d, asked for %d", p.RequestedAfterSequence, after)
	case p.OldestAvailableSequence > p.LatestSequence+1:
		return bad("oldest event %d, latest %d", p.OldestAvailableSequence, p.LatestSequence)
	}
	switch p.Status {
	case wire.CursorTooOld:
		if len(p.Events) > 0 || p.NextAfterSequence != nil {
			return bad("a gap with events or a next cursor")
		}
		if p.Recovery == nil || p.Recovery.Kind != "catalog_snapshot" {
			return bad("a gap without a way to recover")
		}
		return nil
	case wire.OK:
	default:
		return bad("page of status %q", p.Status)
	}
	last := after
	for _, raw := range p.Events {
		var h head
		if err := json.Unmarshal(raw, &h); err != nil {
			return bad("event after %d: %v", last, err)
		}
		switch {
		case h.Sequence <= last || h.Sequence > p.LatestSequence:
			return bad("event %d after %d, latest %d", h.Sequence, last, p.LatestSequence)
		case !slices.Contains(wire.Kinds[:], h.Kind):
			return fmt.Errorf("%w: %q in event %d", ErrUnknownKind, h.Kind, h.Sequence)
		case h.EventID == "" || h.AgentID == "" || h.IncarnationID == "":
			return bad("event %d without identity", h.Sequence)
		}
		last = h.Sequence
	}
	// With a filter the next cursor is the last event examined (D19), which
	// may be beyond the last one sent; it never is beyond the latest.
	if p.NextAfterSequence == nil || *p.NextAfterSequence < last || *p.NextAfterSequence > p.LatestSequence {
		return bad("next cursor does not follow event %d, latest %d", last, p.LatestSequence)
	}
	return nil
}
