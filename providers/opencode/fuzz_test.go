package opencode

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

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
	for n, c := range turnCases {
		var data []byte
		for _, r := range script(f, c.script) {
			data = append(append(data, r.Data...), '\n') // a gap or a silence is an empty line
		}
		f.Add(data, uint64(n)*0x9e3779b97f4a7c15)
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
		var back struct {
			Seq  int64
			Type string
			Data json.RawMessage
		}
		if rec.Gap == providers.Whole && (json.Unmarshal(rec.Data, &back) != nil || back.Seq != 5 ||
			back.Type != kind && utf8.ValidString(kind) || !bytes.Equal(back.Data, bytes.Trim(data, " \t\r\n"))) {
			t.Fatalf("%q is not %q with %q", rec.Data, kind, data)
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
		off = max(0, min(off, int64(len(data))))
		l, err := searchLog(bytes.NewReader(data), off)
		if err != nil {
			t.Fatal(err)
		}
		// What other processes wrote after the place says nothing of this one.
		if again, err := searchLog(bytes.NewReader(data[:off]), off); err != nil || again != l {
			t.Fatalf("%+v, %v without what follows, %+v with it", again, err, l)
		}
		if l.session != "" && (l.run == "" || !sessionID.MatchString(l.session)) {
			t.Fatalf("session %q of run %q", l.session, l.run)
		}
	})
}

// FuzzBatches gives a session rows of any bytes and reads them whole, in batches
// of chosen sizes with a new mark each time, and backwards: the records are the
// same, and so are the drafts, with a restart between the batches.
func FuzzBatches(f *testing.F) {
	path, db := live(f, "tui1")
	a := rowsOf(path, tui)
	for _, c := range corpus(f) {
		if len(c.Data) < 12_000 {
			f.Add(c.Data, []byte{0, 3, 1, 200})
		}
	}
	f.Add([]byte("{}\n\x00\x00\n[\n{\"type\":\"a\xff\"}\n\n"), []byte{1})
	f.Fuzz(func(t *testing.T, data []byte, sizes []byte) {
		lines := bytes.SplitN(data, []byte{'\n'}, 60)
		execute(t, db, "BEGIN; DELETE FROM event")
		for seq, line := range lines {
			var e struct{ Type string }
			var body struct{ Data json.RawMessage }
			if json.Unmarshal(line, &e) == nil && json.Unmarshal(line, &body) == nil && body.Data != nil {
				line = body.Data
			}
			addEvent(t, db, tui, seq, e.Type, string(line))
		}
		execute(t, db, "COMMIT")
		whole := readAll(t, a, 1<<30)
		if len(whole) != len(lines) {
			t.Fatalf("%d records of %d rows", len(whole), len(lines))
		}
		once, cut := newProjector(nil), newProjector(nil)
		var want, got []providers.Draft
		for _, r := range whole {
			want = append(want, once.Project(r)...)
		}
		var saved []byte
		next := 0
		for n, more := 0, true; more; n++ {
			size := 1 << 20
			if n < len(sizes) {
				size = 1 + int(sizes[n])*8
			}
			c := cursorAt(t, a, saved)
			b := read(t, c, size)
			for _, r := range b.Records {
				if !reflect.DeepEqual(r, whole[next]) {
					t.Fatalf("record %d: %+v, want %+v", next, r, whole[next])
				}
				next++
				got = append(got, cut.Project(r)...)
			}
			var err error
			if saved, err = c.MarkAt(c.Offset()); err != nil || len(saved) > maxMark {
				t.Fatalf("mark of %d bytes, %v", len(saved), err)
			}
			if more = b.More; !cut.Held() {
				cut = newProjector(bytes.Clone(cut.State()))
			}
		}
		if next != len(whole) || !reflect.DeepEqual(append(got, cut.Settle()...), append(want, once.Settle()...)) {
			t.Fatalf("%d of %d records, or other drafts", next, len(whole))
		}
		back, err := Provider{}.Back(a, saved, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		for n := len(whole) - 1; ; n-- {
			r, ok, err := back.Next()
			switch {
			case errors.Is(err, errBusy):
				n++
				continue
			case err != nil:
				t.Fatal(err)
			case !ok && n == -1:
				return
			case !ok || n < 0 || !reflect.DeepEqual(r, whole[n]):
				t.Fatalf("backwards, record %d: %+v", n, r)
			}
		}
	})
}
