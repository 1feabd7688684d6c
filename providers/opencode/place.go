package opencode

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// place is a mark's part for databases without events. What was given is told
// by identity, not by time: a row may come late, because a transaction took
// long, of another process, within the millisecond of another one, or dated by a
// clock that was set back.
type place struct {
	Floor key `json:"f"` // the first message that is looked at again
	// Seen has, of the messages from the floor on, each that has ended, and of
	// the others each item that was given.
	Seen seen `json:"h,omitempty"`
	// Low stands for the oldest of them when they are too many: what is not
	// behind it was given, or is history.
	Low *spot `json:"l,omitempty"`
	// Walk is how far the messages before the floor that is to come were given,
	// in the order of messages.
	Walk    *spot  `json:"w,omitempty"`
	Newest  string `json:"n,omitempty"` // the message that was announced last
	Updated int64  `json:"u,omitempty"` // time of the session then, ms
}

// maxSeen is how many items a mark tells apart.
const maxSeen = 64

// spot is the place of an item.
type spot struct {
	At    int64  `json:"t"`
	Msg   key    `json:"m"`
	Class uint8  `json:"c"`
	Part  string `json:"p,omitempty"`
}

// key orders messages.
type key struct {
	At int64  `json:"t"`
	ID string `json:"i,omitempty"`
}

func (k key) compare(o key) int { return cmp.Or(cmp.Compare(k.At, o.At), cmp.Compare(k.ID, o.ID)) }

func (k key) min(o key) key {
	if k.compare(o) < 0 {
		return k
	}
	return o
}

// byTime is the order of changes.
func (s spot) byTime(o spot) int {
	return cmp.Or(cmp.Compare(s.At, o.At), s.Msg.compare(o.Msg), cmp.Compare(s.Class, o.Class), cmp.Compare(s.Part, o.Part))
}

// byMessage is the order of history: a message whole, then the next one.
func (s spot) byMessage(o spot) int {
	return cmp.Or(s.Msg.compare(o.Msg), cmp.Compare(s.Class, o.Class), cmp.Compare(s.At, o.At), cmp.Compare(s.Part, o.Part))
}

// sound says whether this package wrote the place.
func (p *place) sound() bool {
	ids := []string{p.Floor.ID, p.Newest}
	for _, s := range []*spot{p.Low, p.Walk} {
		if s != nil {
			ids = append(ids, s.Msg.ID, s.Part)
		}
	}
	for _, id := range ids {
		if ident(id) != id {
			return false
		}
	}
	return len(p.Seen) <= maxSeen
}

// given says whether an item was given.
func (p *place) given(i *item) bool {
	return slices.Contains(p.Seen, i.slot) || p.Low != nil && i.spot.byTime(*p.Low) <= 0 || p.Walk != nil && i.spot.byMessage(*p.Walk) <= 0
}

// over says whether the end of a message was given, with an error or without.
func (p *place) over(m *message) bool {
	return slices.ContainsFunc(finals, func(e ending) bool { return slices.Contains(p.Seen, e.slot(m.ID)) })
}

// kept are the items that Seen stands for, in the order of time.
type kept []item

// add notes one more item that was given. The end of a message stands for all
// of it. When they are too many the oldest is left out, and Low is behind it:
// never before an item that is there and was not given, as these are given in
// order.
func (h kept) add(i item, p *place) kept {
	if i.Class == ends && i.msg.ending().final() {
		h = slices.DeleteFunc(h, func(o item) bool { return o.Msg == i.Msg })
	}
	at, _ := slices.BinarySearchFunc(h, i, func(a, b item) int { return a.byTime(b.spot) })
	h = slices.Insert(h, at, i)
	if len(h) > maxSeen {
		low := h[0].spot
		if p.Low == nil || low.byTime(*p.Low) > 0 {
			p.Low = &low
		}
		h = slices.Delete(h, 0, 1)
	}
	p.Seen = make(seen, len(h))
	for n := range h {
		p.Seen[n] = h[n].slot
	}
	return h
}

// seen are 32 bits of each item and its version, as text in a mark.
type seen []uint32

// MarshalText never fails.
func (s seen) MarshalText() ([]byte, error) {
	var b []byte
	for _, x := range s {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText fails for what MarshalText did not write.
func (s *seen) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil || len(b)%4 != 0 || len(b) > 4*maxSeen {
		return errors.New("no list of items")
	}
	for ; len(b) > 0; b = b[4:] {
		*s = append(*s, binary.BigEndian.Uint32(b))
	}
	return nil
}
