package kimi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// FuzzProject gives any record to a projector in the middle of a turn.
func FuzzProject(f *testing.F) {
	for _, c := range load(f) {
		for i, r := range providertest.Split(c.Data) {
			if i%7 == 0 && len(r.Data) < 4<<10 {
				f.Add(r.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(bytes.TrimSpace(data)) == 0 || bytes.TrimSpace(data)[0] != '{' || !json.Valid(data) {
			return // never reaches a provider
		}
		w := (&wire{ms: 1e12}).prompt("0", "p").begin("0", "s1").say("0", "s1", "a", "text")
		w.recs = append(w.recs, providers.Record{Start: w.at, End: w.at + int64(len(data)), Data: data})
		w.at += int64(len(data))
		w.end("0", "s1", "end_turn").ended("0", "completed", "")
		p := newProjector("S", nil)
		drafts := providertest.Drafts(providertest.Play(p, w.recs, providertest.Script{End: true}))
		for _, d := range drafts {
			if err := providertest.CheckDraft(d); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.State()); n > providers.StateMax {
			t.Fatalf("State has %d bytes", n)
		}
		for _, name := range p.Drift() {
			if name == "" || len(name) > 64 {
				t.Fatalf("drift %q", name)
			}
		}
		back := newProjector("S", nil)
		for i := len(w.recs) - 1; i >= 0 && !back.Rewind(w.recs[i]); i-- {
		}
		back.Rewound()
		if back.Held() {
			t.Fatal("something is held after a look-back")
		}
	})
}

// FuzzTurns makes records in any order, with restarts, and checks what holds for
// every session.
func FuzzTurns(f *testing.F) {
	f.Add([]byte{0, 1, 2, 4, 6})
	f.Add([]byte{0, 1, 2, 5, 1, 2, 4, 6, 8, 9, 10, 14})
	f.Add([]byte{0, 1, 2, 3, 11, 12, 7, 0, 15, 2, 4, 6})
	f.Fuzz(func(t *testing.T, code []byte) {
		w := &wire{ms: 1e12}
		for _, c := range code[:min(len(code), 64)] {
			turn := []string{"0", "1"}[c>>4&1]
			switch c & 15 {
			case 0:
				w.prompt(turn, "p")
			case 1, 8:
				w.begin(turn, "s"+turn)
			case 2, 9:
				w.say(turn, "s"+turn, "id"+string('a'+rune(len(w.recs)%26))+string('a'+rune(len(w.recs)/26)), "words")
			case 3:
				w.call(turn, "s"+turn)
			case 4:
				w.end(turn, "s"+turn, "end_turn")
			case 5:
				w.end(turn, "s"+turn, "error")
			case 6:
				w.ended(turn, "completed", "")
			case 7:
				w.ended(turn, "cancelled", "")
			case 10:
				w.ended(turn, "failed", `,"error":{"code":"context.overflow"}`)
			case 11:
				w.raw(`{"type":"interaction.request","kind":"approval","id":"x","request":{"turnId":` + turn + `},TIME}`)
			case 12:
				w.gap()
			case 13:
				w.prompt("null", "p")
			case 14:
				w.ended("null", "completed", "")
			default:
				w.raw(`{"type":"usage.record",TIME}`)
			}
		}
		want := providertest.Drafts(providertest.Play(newProjector("S", nil), w.recs, providertest.Script{End: true}))
		var got []providers.Draft
		p := newProjector("S", nil)
		for i, r := range w.recs {
			got = append(got, p.Project(r)...)
			if !p.Held() && i%2 == 0 {
				p = newProjector("S", bytes.Clone(p.State()))
			}
		}
		got = append(got, p.Settle()...)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("with restarts\n%v\nwithout\n%v", got, want)
		}
		if err := providertest.CheckOrder(want); err != nil {
			t.Fatalf("%v\n%v", err, want)
		}
		for _, d := range want {
			if err := providertest.CheckDraft(d); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzState reads any bytes as a state, and as the state.json of a session.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"v":1,"p":1,"t":3,"s":1796082700000,"n":4,"u":"abc","o":3,"l":"aGk="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newProjector("S", b)
		w := (&wire{ms: 1e12}).say("0", "s1", "a", "text").end("0", "s1", "end_turn").ended("0", "completed", "")
		for _, d := range providertest.Drafts(providertest.Play(p, w.recs, providertest.Script{End: true})) {
			if err := providertest.CheckDraft(d); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.State()); n > providers.StateMax {
			t.Fatalf("State has %d bytes", n)
		}
	})
}
