package providertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"steno/providers"
)

// borders bounds how many borders of one artifact are tried.
const borders = 100

// Run checks the contract of a provider over a corpus.
func Run(t *testing.T, prov providers.Provider, corpus []Case) {
	t.Helper()
	for _, c := range corpus {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			h := &harness{t: t, make: func(state []byte) providers.Projector { return prov.Projector(c.Artifact, state) },
				id: prov.ID(), recs: Records(c)}
			t.Run("shape", h.shape)
			t.Run("restart", h.restart)
			t.Run("silence", h.silence)
			t.Run("gap", h.gap)
			t.Run("damage", h.damage)
			t.Run("rewind", h.rewind)
			t.Run("state", h.state)
		})
	}
}

type harness struct {
	t    *testing.T
	id   string
	make func(state []byte) providers.Projector
	recs []providers.Record
}

func (h *harness) step() int { return max(1, len(h.recs)/borders) }

// points are the borders to try: all, or an even spread.
func (h *harness) points() []int {
	var out []int
	for i := 0; i <= len(h.recs); i += h.step() {
		out = append(out, i)
	}
	return out
}

func (h *harness) shape(t *testing.T) {
	p := h.make(nil)
	steps := Play(p, h.recs, Script{End: true})
	drafts := Drafts(steps)
	for _, d := range drafts {
		if err := CheckDraft(d); err != nil {
			t.Error(err)
		}
	}
	if err := CheckOrder(drafts); err != nil {
		t.Error(err)
	}
	if err := leak(drafts, sentences(h.recs)); err != nil {
		t.Error(err)
	}
	if held(p) {
		t.Error("Held is true after Settle")
	}
	if q, ok := p.(providers.Holder); ok && q.Quiet() != 0 {
		t.Errorf("Quiet = %v after Settle, want 0", q.Quiet())
	}
}

// restart makes the projector again from State wherever it may be saved, and
// wants the same drafts and the same end.
func (h *harness) restart(t *testing.T) {
	whole := Drafts(Play(h.make(nil), h.recs, Script{End: true}))
	p, given := h.make(nil), 0
	for i, r := range h.recs {
		given += len(project(p, r))
		h.bounded(t, p)
		if held(p) || i%h.step() != 0 {
			continue
		}
		again := h.make(bytes.Clone(p.State()))
		if got, want := again.Turn(), p.Turn(); got != want {
			t.Fatalf("after record %d: Turn made again = %v, want %v", i, got, want)
		}
		rest := Drafts(Play(again, h.recs[i+1:], Script{End: true}))
		if err := same(rest, whole[given:]); err != nil {
			t.Fatalf("made again after record %d: %v", i, err)
		}
	}
	// One projector made again at every chance.
	p = h.make(nil)
	var got []providers.Draft
	for _, r := range h.recs {
		got = append(got, project(p, r)...)
		if !held(p) {
			p = h.make(bytes.Clone(p.State()))
		}
	}
	got = append(got, settle(p)...)
	if err := same(got, whole); err != nil {
		t.Fatalf("made again at every record: %v", err)
	}
}

func same(got, want []providers.Draft) error {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Errorf("draft %d = %s, want %s", i, Format(got[i]), Format(want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d drafts, want %d", len(got), len(want))
	}
	return nil
}

// silence settles after every record, and at each single one, with a restart
// right after: the rest must not depend on the memory that State does not hold.
func (h *harness) silence(t *testing.T) {
	if _, ok := h.make(nil).(providers.Holder); !ok {
		t.Skip("the projector holds nothing")
	}
	for _, at := range h.points() {
		p := h.make(nil)
		before := Drafts(Play(p, h.recs[:at], Script{End: true}))
		if held(p) {
			t.Fatalf("record %d: Held after Settle", at)
		}
		h.bounded(t, p)
		state := bytes.Clone(p.State())
		on := Drafts(Play(p, h.recs[at:], Script{End: true}))
		again := Drafts(Play(h.make(state), h.recs[at:], Script{End: true}))
		if err := same(again, on); err != nil {
			t.Fatalf("silence before record %d, then made again: %v", at, err)
		}
		all := append(before, on...)
		for _, d := range all {
			if err := CheckDraft(d); err != nil {
				t.Fatalf("silence before record %d: %v", at, err)
			}
		}
		if err := CheckOrder(all); err != nil {
			t.Fatalf("silence before record %d: %v", at, err)
		}
	}
	always := map[int]bool{}
	for i := range h.recs {
		always[i] = true
	}
	if err := CheckOrder(Drafts(Play(h.make(nil), h.recs, Script{Settle: always}))); err != nil {
		t.Fatalf("silence after every record: %v", err)
	}
}

func (h *harness) gap(t *testing.T) {
	kinds := []providers.Gap{providers.Oversized, providers.Malformed, providers.TooDeep, providers.Padding}
	for n, at := range h.points() {
		p := h.make(nil)
		drafts := Drafts(Play(p, h.recs[:at], Script{}))
		hole := providers.Record{Start: 1 << 40, End: 1<<40 + 77, Gap: kinds[n%len(kinds)]}
		given := p.Project(hole)
		want, found := hole.Failure(h.id), false
		for _, d := range given {
			found = found || reflect.DeepEqual(d, want)
		}
		if !found {
			t.Fatalf("gap before record %d: no draft is its Failure", at)
		}
		if held(p) {
			t.Fatalf("gap before record %d: something is still held", at)
		}
		if turn := p.Turn(); turn.ID != "" {
			t.Fatalf("gap before record %d: Turn = %q, want none", at, turn.ID)
		}
		h.bounded(t, p)
		drafts = append(append(drafts, given...), Drafts(Play(p, h.recs[at:], Script{End: true}))...)
		for _, d := range drafts {
			if err := CheckDraft(d); err != nil {
				t.Fatalf("gap before record %d: %v", at, err)
			}
		}
		if err := CheckOrder(drafts); err != nil {
			t.Fatalf("gap before record %d: %v", at, err)
		}
	}
}

// damage cuts and changes records. Whatever comes, no panic and every bound.
func (h *harness) damage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, uint64(len(h.recs))))
	for round := range 15 {
		p := h.make(nil)
		for _, r := range h.recs {
			r.Data = bytes.Clone(r.Data)
			if len(r.Data) > 0 && rnd.IntN(3) == 0 {
				damage(rnd, &r, round)
			}
			for _, d := range p.Project(r) {
				if err := CheckDraft(d); err != nil {
					t.Fatalf("damaged record at %d: %v", r.Start, err)
				}
			}
			h.bounded(t, p)
		}
		settle(p)
		h.bounded(t, p)
	}
}

func damage(rnd *rand.Rand, r *providers.Record, round int) {
	at := rnd.IntN(len(r.Data))
	switch round % 5 {
	case 0:
		r.Data = r.Data[:at]
	case 1:
		r.Data[at] = byte(rnd.IntN(256))
	case 2: // a value of another type
		for _, pair := range [][2]string{{`"content":"`, `"content":7,"x":"`}, {`"message":{`, `"message":null,"x":{`}, {`"uuid":"`, `"uuid":[],"x":"`}} {
			r.Data = bytes.Replace(r.Data, []byte(pair[0]), []byte(pair[1]), 1)
		}
	case 3: // a name that is not there any more
		if i := bytes.IndexByte(r.Data[at:], '"'); i >= 0 && at+i+1 < len(r.Data) {
			r.Data[at+i+1] ^= 1
		}
	case 4: // an id far too long
		long := append([]byte(`":"`), bytes.Repeat([]byte("z"), 3000)...)
		r.Data = bytes.ReplaceAll(r.Data, []byte(`":"`), long)
	}
}

func (h *harness) rewind(t *testing.T) {
	if _, ok := h.make(nil).(providers.Rewinder); !ok {
		t.Skip("the projector cannot rewind")
	}
	for _, at := range h.points() {
		full := h.make(nil)
		Play(full, h.recs[:at], Script{End: true})
		back := h.make(nil)
		rw := back.(providers.Rewinder)
		for i := at - 1; i >= 0; i-- {
			r := h.recs[i]
			r.Data = bytes.Clone(r.Data)
			done := rw.Rewind(r)
			for k := range r.Data {
				r.Data[k] = '#'
			}
			if done {
				break
			}
		}
		rw.Rewound()
		if got, want := back.Turn(), full.Turn(); got != want {
			t.Fatalf("rewound before record %d: Turn = %v, want %v", at, got, want)
		}
		if held(back) {
			t.Fatalf("rewound before record %d: something is held", at)
		}
		h.bounded(t, back)
		turns := map[string]string{}
		for _, d := range Drafts(Play(full, h.recs[at:], Script{End: true})) {
			turns[d.Key] = d.Turn
		}
		for _, d := range Drafts(Play(back, h.recs[at:], Script{End: true})) {
			if turn, ok := turns[d.Key]; !ok || turn != d.Turn {
				t.Fatalf("rewound before record %d: %s %q has turn %q; projected from the start: %q (known: %v)",
					at, d.Kind, d.Key, d.Turn, turn, ok)
			}
		}
	}
}

// state gives the projector states that it did not write.
func (h *harness) state(t *testing.T) {
	p := h.make(nil)
	Play(p, h.recs, Script{End: true})
	good := bytes.Clone(p.State())
	bad := [][]byte{{}, {0}, []byte("{}"), []byte("null"), []byte("[1]"), bytes.Repeat([]byte{0xff}, 100), good[:len(good)/2]}
	rnd := rand.New(rand.NewPCG(9, 9))
	for range 40 {
		b := bytes.Clone(good)
		if len(b) > 0 {
			b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
		}
		bad = append(bad, b)
	}
	for _, b := range bad {
		p := h.make(b)
		Play(p, h.recs, Script{End: true})
		h.bounded(t, p)
	}
}

func (h *harness) bounded(t *testing.T, p providers.Projector) {
	t.Helper()
	if n := len(p.State()); n > providers.StateMax && !held(p) {
		t.Fatalf("State has %d bytes, want at most %d", n, providers.StateMax)
	}
	if q, ok := p.(providers.Holder); ok && q.Quiet() > 10e9 {
		t.Fatalf("Quiet = %v, want at most 10s", q.Quiet())
	}
}
