package opencode

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// FuzzProject gives a projector lines of any bytes, with restarts and silences
// after some of them, and checks what holds whatever comes.
func FuzzProject(f *testing.F) {
	for _, c := range corpus(f) {
		if len(c.Data) < 12_000 {
			f.Add(c.Data, uint64(0x123456789))
		}
	}
	f.Add([]byte(`{"type":"message.updated.1","data":{"info":{"id":7,"role":"user","time":"x"}}}`+"\n"), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, when uint64) {
		recs := providertest.Split(data)
		run := func(restarts bool) []providers.Draft {
			p := newProjector(nil)
			var out []providers.Draft
			for i, r := range recs {
				for _, d := range p.Project(r) {
					if err := providertest.CheckDraft(d); err != nil {
						t.Fatal(err)
					}
					out = append(out, d)
				}
				if when>>(i%64)&1 == 1 && p.Held() {
					out = append(out, p.Settle()...)
					if p.Held() || p.Quiet() != 0 {
						t.Fatal("held after Settle")
					}
				}
				if n := len(p.State()); n > providers.StateMax || n == 0 {
					t.Fatalf("state of %d bytes", n)
				}
				if r.Gap != providers.Whole && (p.Held() || p.Turn().ID != "") {
					t.Fatalf("after a gap: held %v, turn %v", p.Held(), p.Turn())
				}
				if restarts && !p.Held() {
					p = newProjector(bytes.Clone(p.State()))
				}
			}
			return append(out, p.Settle()...)
		}
		whole := run(false)
		if again := run(true); !reflect.DeepEqual(again, whole) {
			t.Fatal("restarts change the drafts")
		}
		back := newProjector(nil)
		for i := len(recs) - 1; i >= 0; i-- {
			if back.Rewind(recs[i]) {
				break
			}
		}
		back.Rewound()
		if n := len(back.State()); back.Held() || n > providers.StateMax || n == 0 {
			t.Fatalf("rewound: held %v, state of %d bytes", back.Held(), n)
		}
	})
}

// FuzzRow makes records of rows of any bytes.
func FuzzRow(f *testing.F) {
	f.Add("message.updated.1", []byte(`{"a":1}`))
	f.Add("\xff\"", []byte(` [] `))
	f.Add("x", []byte(`{"a":"\ud800"} `))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		r := row{seq: 5, data: data}
		r.kind.String, r.size.Int64 = kind, int64(len(data))
		rec := r.record()
		if rec.Gap == providers.Whole && !json.Valid(rec.Data) {
			t.Fatalf("not JSON: %q", rec.Data)
		}
		if rec.Gap != providers.Whole && (rec.Data != nil || rec.Size != int64(len(data))) {
			t.Fatalf("gap with data: %+v", rec)
		}
		m := message{key: key{ID: "msg_\"1"}, data: data, info: infoOf(data)}
		if rec.Gap == providers.Whole {
			for _, began := range []bool{true, false} {
				if out, _ := m.event("ses_1", began); !json.Valid(out) {
					t.Fatalf("not JSON: %q", out)
				}
			}
		}
	})
}

// FuzzLog reads a log of any bytes from any place.
func FuzzLog(f *testing.F) {
	f.Add([]byte("timestamp=2026-11-30T18:54:00.000Z level=INFO run=08e546a1 message=\"a b\" session.id=ses_1\n"), int64(80))
	f.Add([]byte("run=0badcafe message=created id=ses_2 x=\"\\\n"), int64(1000))
	f.Fuzz(func(t *testing.T, data []byte, off int64) {
		l, err := searchLog(bytes.NewReader(data), max(0, min(off, int64(len(data)))))
		if err != nil {
			t.Fatal(err)
		}
		if l.session != "" && (l.run == "" || !sessionID.MatchString(l.session)) {
			t.Fatalf("session %q of run %q", l.session, l.run)
		}
	})
}
