package ipc

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

// readParams is wire.ReadParams as a server reads it: what is absent differs
// from what is zero.
type readParams struct {
	After  uint64   `json:"after_sequence"`
	Limit  *int64   `json:"limit"`
	Wait   uint64   `json:"wait_ms"`
	Kinds  []string `json:"kinds"`
	Agents []string `json:"agents"`
}

// query checks the parameters.
func (p *readParams) query(id json.RawMessage) (store.Query, error) {
	q := store.Query{After: store.Seq(p.After), Limit: wire.DefaultLimit, Kinds: p.Kinds, Agents: p.Agents}
	if p.Limit != nil {
		if *p.Limit < 1 || *p.Limit > wire.MaxLimit {
			return q, invalid("limit must be from 1 to 1000")
		}
		q.Limit = int(*p.Limit)
	}
	if len(p.Kinds) > wire.MaxFilter || len(p.Agents) > wire.MaxFilter {
		return q, invalid("a filter has at most 256 names")
	}
	for _, k := range p.Kinds {
		if !slices.Contains(wire.Kinds[:], k) {
			return q, invalid("kinds names an event kind that is not known")
		}
	}
	for _, a := range p.Agents {
		if a == "" || len(a) > wire.MaxName {
			return q, invalid("an agent id has 1 to 256 bytes")
		}
	}
	q.MaxBytes = wire.MaxLine - 1 - len(appendPage(nil, id, widest))
	return q, nil
}

// widest is a page of no events whose every number has all its digits: what
// surrounds the events is never longer.
var widest = pageOf(1<<64-1, store.Page{Oldest: 1<<64 - 1, Latest: 1<<64 - 1, Next: 1<<64 - 1})

// readEvents answers ReadAgentEvents.
func readEvents(c *session, life context.Context, req *request) ([]byte, func(), error) {
	var p readParams
	if err := req.decode(&p); err != nil {
		return nil, nil, err
	}
	q, err := p.query(req.id)
	if err != nil {
		return nil, nil, err
	}
	deadline := time.NewTimer(time.Duration(min(p.Wait, wire.MaxWait)) * time.Millisecond)
	defer deadline.Stop()
	for waited := p.Wait == 0; ; {
		release, err := c.hold(life)
		if err != nil {
			return nil, nil, err
		}
		// Taken before the page is read, so that no commit falls in between.
		changed := c.s.o.Store.Changed()
		got, err := c.s.o.Store.Page(life, q)
		if err != nil {
			return nil, release, &storeError{err}
		}
		if got.Gap || len(got.Events) > 0 || waited {
			return appendPage(nil, req.id, pageOf(p.After, got)), release, nil
		}
		release()
		// A filter may have looked at a part of the log and found nothing.
		q.After = got.Next
		if got.Next < got.Latest {
			continue
		}
		select {
		case <-changed:
		case <-deadline.C:
			waited = true
		case <-c.patience.Done():
			waited = true
		}
	}
}

// pageOf is the page of the contract for what the log gave after a cursor.
func pageOf(after uint64, got store.Page) wire.Page {
	p := wire.Page{
		Schema: wire.SchemaEvents, Status: wire.OK,
		RequestedAfterSequence:  after,
		OldestAvailableSequence: uint64(got.Oldest),
		LatestSequence:          uint64(got.Latest),
	}
	if got.Gap {
		p.Status = wire.CursorTooOld
		p.Recovery = &wire.Recovery{Kind: "catalog_snapshot", CatalogAsOfSequence: p.LatestSequence}
		return p
	}
	next := uint64(got.Next)
	p.NextAfterSequence = &next
	for _, e := range got.Events {
		p.Events = append(p.Events, e)
	}
	return p
}

// appendPage writes the answer line of a page. The events go in as the bytes
// that were committed: encoding them again would cost the most and could change
// their length, which the page's bound counts on.
func appendPage(b []byte, id json.RawMessage, p wire.Page) []byte {
	size := 512
	for _, e := range p.Events {
		size += len(e) + 1
	}
	b = slices.Grow(b, size)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":{"schema":"`+wire.SchemaEvents+`","status":"`...)
	b = append(b, p.Status...)
	b = append(b, `","requested_after_sequence":`...)
	b = strconv.AppendUint(b, p.RequestedAfterSequence, 10)
	b = append(b, `,"oldest_available_sequence":`...)
	b = strconv.AppendUint(b, p.OldestAvailableSequence, 10)
	b = append(b, `,"latest_sequence":`...)
	b = strconv.AppendUint(b, p.LatestSequence, 10)
	b = append(b, `,"next_after_sequence":`...)
	if p.NextAfterSequence == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, *p.NextAfterSequence, 10)
	}
	b = append(b, `,"events":[`...)
	for i, e := range p.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	b = append(b, `],"recovery":`...)
	if p.Recovery == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"kind":"catalog_snapshot","catalog_as_of_sequence":`...)
		b = strconv.AppendUint(b, p.Recovery.CatalogAsOfSequence, 10)
		b = append(b, '}')
	}
	return append(b, "}}\n"...)
}
