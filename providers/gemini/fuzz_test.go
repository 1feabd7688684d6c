package gemini

import (
	"bytes"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

func seed(f *testing.F) {
	for _, c := range corpus(f) {
		if len(c.Data) < 20_000 {
			f.Add(c.Data, uint8(len(c.Name)))
		}
	}
}

// FuzzProject gives lines, with silences, looks and restarts in between, to a
// projector: no panic, every bound, every draft well-formed, a key only once.
func FuzzProject(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, plan uint8) {
		read := func(_, _, file string) string { return "plan " + file }
		p := newProjector(mainArtifact, nil, read)
		check := func(drafts []providers.Draft) {
			for _, d := range drafts {
				if err := providertest.CheckDraft(d); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(p.State()); n == 0 || n > providers.StateMax {
				t.Fatalf("state has %d bytes", n)
			}
			if names := p.Drift(); len(names) > 16 {
				t.Fatalf("%d names of drift", len(names))
			}
		}
		for i, r := range providertest.Split(data) {
			if plan&8 != 0 {
				r.Framing = providers.Document
			}
			check(p.Project(r))
			at := time.Unix(int64(i), 0)
			switch {
			case plan&1 != 0 && i%3 == 0:
				check(p.See(providers.Witness{At: at, Activity: providers.Idle}, time.Second))
				check(p.See(providers.Witness{At: at.Add(1), Activity: providers.Idle}, time.Second))
			case plan&2 != 0 && i%4 == 0:
				check(p.Settle())
				if p.Held() || p.Quiet() != 0 || p.Look() != 0 {
					t.Fatal("held after Settle")
				}
			}
			if plan&4 != 0 && !p.Held() {
				turn := p.Turn()
				p = newProjector(mainArtifact, bytes.Clone(p.State()), read)
				if p.Turn() != turn {
					t.Fatalf("turn made again = %v, want %v", p.Turn(), turn)
				}
			}
		}
		check(p.Settle())
		back := fresh()
		recs := providertest.Split(data)
		for i := len(recs) - 1; i >= 0 && !back.Rewind(recs[i]); i-- {
		}
		if back.Rewound(); back.Held() {
			t.Fatal("held after a look back")
		}
	})
}

// FuzzState gives a projector a state that it did not write.
func FuzzState(f *testing.F) {
	p := fresh()
	play(p, userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", calls))
	f.Add(p.State())
	f.Add([]byte(`{"k":"AAAA"}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		p := newProjector(mainArtifact, state, nil)
		play(p, userLine("u1", 1, "one"), geminiLine("g1", 2, "One.", ""))
		p.Settle()
		if n := len(p.State()); n == 0 || n > providers.StateMax {
			t.Fatalf("state has %d bytes", n)
		}
	})
}

// FuzzHead gives what evidence reads of files: headers, stubs, titles.
func FuzzHead(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, _ uint8) {
		h := parseHeader(data)
		if h.session != "" && sessionID([]byte(`"`+h.session+`"`)) != h.session {
			t.Fatalf("session %q", h.session)
		}
		stub(data, int64(len(data)))
		Provider{}.TitleActivity(string(data))
		for _, r := range providertest.Split(data) {
			if r.Gap == providers.Whole {
				parse(r)
			}
		}
	})
}
