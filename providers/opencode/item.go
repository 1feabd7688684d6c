package opencode

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"

	"steno/providers"
)

// message is a row of that table.
type message struct {
	key
	updated int64
	size    int64
	data    []byte
	info    info
}

// ending is what a message of the model says of its end.
type ending struct{ completed, failed, finish bool }

// finals are the endings after which a message is complete. An error may follow.
var finals = []ending{{true, false, false}, {true, false, true}, {true, true, false}, {true, true, true}, {false, true, false}, {false, true, true}}

func (m *message) ending() ending {
	if m.info.Role != "assistant" {
		return ending{}
	}
	return ending{m.info.Time.Completed > 0, m.info.Error != nil, m.info.Finish != ""}
}

func (e ending) final() bool { return e.completed || e.failed }

func (e ending) slot(id string) uint32 { return slotOf(ends, id, e) }

// item is one record to come.
type item struct {
	spot
	msg  *message
	size int64
	slot uint32 // tells it, and its version, apart from the others of a window
}

// Classes of items, in the order within a message.
const (
	begins uint8 = iota
	holds
	ends
)

func slotOf(class uint8, id string, version ...any) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, class, id, version)
	return h.Sum32()
}

// items are those of a message, in no order. What has an id that is none of the
// program's is left out: a mark could not hold it.
func (m *message) items(parts []item) []item {
	if ident(m.ID) != m.ID {
		return nil
	}
	out := []item{{spot: spot{At: m.At, Msg: m.key, Class: begins}, msg: m, slot: slotOf(begins, m.ID)}}
	for _, i := range parts {
		if ident(i.Part) != i.Part {
			continue
		}
		i.Msg, i.msg, i.At = m.key, m, max(i.At, m.At)
		out = append(out, i)
	}
	e := m.ending()
	if e == (ending{}) {
		return out
	}
	done := max(m.At, m.updated)
	for n := range out {
		out[n].At = min(out[n].At, done) // what was changed afterwards is not after the end
	}
	return append(out, item{spot: spot{At: done, Msg: m.key, Class: ends}, msg: m, slot: e.slot(m.ID)})
}

// record composes the event that an item stands for.
func (v *view) record(i item, off int64) (providers.Record, error) {
	r := row{seq: max(off, i.At*slots)}
	r.kind.String = "message.updated.1"
	switch i.Class {
	case begins:
		r.data, r.size.Int64 = i.msg.event(v.session, true)
	case ends:
		r.data, r.size.Int64 = i.msg.event(v.session, false)
	case holds:
		r.kind.String = "message.part.updated.1"
		var data []byte
		r.size.Int64 = i.size
		if i.size <= providers.MaxRecord {
			err := v.tx.QueryRowContext(v.ctx, queryPart, i.Part).Scan(&data)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return providers.Record{}, classify(v.ctx, "read part", err)
			}
		}
		if g := gapOf(data, i.size); g == providers.Whole {
			data = join(quoted("id", i.Part)+quoted("messageID", i.Msg.ID), data)
			r.data = fmt.Appendf(nil, `{"sessionID":%q,"part":%s,"time":%d}`, v.session, data, i.At)
		} else {
			r.data = data
		}
	}
	return r.record(), nil
}
