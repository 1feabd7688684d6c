package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// rowFake keeps the records of all sessions in one file, which stands for a
// database: a row is a line of its session.
type rowFake struct{ fake }

type fakeRow struct {
	Session string     `json:"session"`
	Record  fakeRecord `json:"record"`
}

func (rowFake) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	if root.Name == "log" && rel == "all.db" {
		return providers.Artifact{Role: providers.Carrier, Of: "all.db"}, true
	}
	if session, ok := strings.CutPrefix(rel, "all.db/"); ok && root.Name == "log" {
		return providers.Artifact{Framing: providers.Rows, Session: session}, true
	}
	return fake{}.Claim(root, rel)
}

func (rowFake) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	rows, err := fake{}.Evidence(ctx, p, known)
	for i := range rows {
		rows[i].Path = filepath.Join(p.Env["HOME"], "fake/log/all.db", rows[i].Session)
	}
	return rows, err
}

// rows are the session's records, from the first on.
func (rowFake) rows(a providers.Artifact) ([]providers.Record, error) {
	b, err := os.ReadFile(filepath.Dir(a.Path))
	if err != nil {
		return nil, err
	}
	var out []providers.Record
	for _, line := range bytes.Split(b, []byte("\n")) {
		var r fakeRow
		if json.Unmarshal(line, &r) != nil || r.Session != a.Session {
			continue
		}
		n := int64(len(out))
		rec := providers.Record{Start: n, End: n + 1, Framing: providers.Rows}
		if rec.Data, _ = json.Marshal(r.Record); r.Record.Do == "huge" {
			rec.Data, rec.Gap, rec.Size = nil, providers.Oversized, 5<<20
		}
		out = append(out, rec)
	}
	if len(out) == 0 {
		return nil, fs.ErrNotExist
	}
	return out, nil
}

func (f rowFake) Cursor(a providers.Artifact, mark []byte) (providers.Cursor, error) {
	c := &rowCursor{rows: func() ([]providers.Record, error) { return f.rows(a) }}
	if mark != nil {
		n, err := strconv.ParseInt(string(mark), 10, 64)
		if err != nil {
			return nil, err
		}
		c.at = n
	}
	return c, nil
}

func (f rowFake) AtEnd(a providers.Artifact, limit int64) ([]byte, error) {
	rows, err := f.rows(a)
	if err != nil {
		return nil, err
	}
	n := int64(len(rows))
	if limit >= 0 {
		n = min(n, limit)
	}
	return []byte(strconv.FormatInt(n, 10)), nil
}

func (f rowFake) Back(a providers.Artifact, mark []byte, _ int64) (providers.Backward, error) {
	rows, err := f.rows(a)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(string(mark))
	return &rowsBack{rows[:min(n, len(rows))]}, err
}

func (f rowFake) Born(a providers.Artifact) (time.Time, error) {
	rows, err := f.rows(a)
	if err != nil {
		return time.Time{}, err
	}
	var first fakeRecord
	_ = json.Unmarshal(rows[0].Data, &first)
	return first.At, nil
}

type rowsBack struct{ rows []providers.Record }

func (b *rowsBack) Next() (providers.Record, bool, error) {
	if len(b.rows) == 0 {
		return providers.Record{}, false, nil
	}
	last := b.rows[len(b.rows)-1]
	b.rows = b.rows[:len(b.rows)-1]
	return last, true, nil
}
func (b *rowsBack) Close() {}

type rowCursor struct {
	rows func() ([]providers.Record, error)
	at   int64
}

func (c *rowCursor) Read(int) (providers.Batch, error) {
	rows, err := c.rows()
	if err != nil {
		return providers.Batch{}, err
	}
	if c.at > int64(len(rows)) {
		c.at = int64(len(rows))
		return providers.Batch{Reset: providers.Truncated}, nil
	}
	rows = rows[c.at:]
	more := len(rows) > 2
	rows = rows[:min(len(rows), 2)] // so that there is more to read now and then
	c.at += int64(len(rows))
	return providers.Batch{Records: rows, More: more}, nil
}
func (c *rowCursor) Offset() int64 { return c.at }
func (c *rowCursor) MarkAt(off int64) ([]byte, error) {
	return []byte(strconv.FormatInt(off, 10)), nil
}
func (c *rowCursor) Release() {}

func (r *rig) rows(session string, recs ...fakeRecord) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.home, "fake/log/all.db"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	for _, rec := range recs {
		if err := json.NewEncoder(f).Encode(fakeRow{session, rec}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Sessions that share a database have their own events, also after a restart,
// and what a row lost costs only that row.
func TestRows(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{rowFake{}} })
	r.rows("old", records("t0")...)
	r.run()
	a := r.start("s1")
	r.want(available)
	r.rows("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	r.rows("other", records("x1")...) // nobody's
	r.rows("s1", records("t2")...)
	want = all(want, turn("t2"))
	r.want(want...)

	r.halt()
	r.rows("s1", fakeRecord{ID: "big", Do: "huge", At: now()})
	r.rows("s1", records("t3")...)
	r.run()
	want = all(want, []string{restarted, available, "observer_failure"}, turn("t3"))
	r.want(want...)
	for _, e := range r.events() {
		if e.Kind == "observer_failure" && *e.Detail != "fake record in row 6 is longer than 4194304 bytes: 5242880 bytes skipped" {
			t.Errorf("detail = %q", *e.Detail)
		}
	}

	// Another session of the same process, which began before it was bound.
	r.rows("s2", records("t4")...)
	a.register(fakeRegistry{Session: "s2"})
	want = all(want, turn("t4"))
	r.want(want...)
	a.stop()
	r.want(append(want, exited)...)
}

// A session that is older than its process is read from its end.
func TestRowsOfAnOldSession(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{rowFake{}} })
	r.rows("s1", records("t1")...)
	r.rows("s1", fakeRecord{ID: "t2", Do: "start", At: now()})
	r.age()
	r.run()
	r.start("s1")
	r.want(available)
	r.bound("s1")
	r.rows("s1", fakeRecord{ID: "m", Do: "say", Text: "hello", At: now()})
	r.want(available, "assistant_message t2 hello")
}

// bound waits until a session is read for an agent.
func (r *rig) bound(session string) {
	r.t.Helper()
	r.until("the session is bound", func() bool {
		ok := false
		err := r.obs.ask(context.Background(), func() {
			for a := range r.obs.live {
				ok = ok || a.reader != nil && a.reader.artifact.Session == session && !a.busy
			}
		})
		return err == nil && ok
	})
}

// What was written while two processes named one session is nobody's, in a
// database too.
func TestRowsWhileRefused(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{rowFake{}} })
	r.run()
	r.start("s1")
	b := r.start("s1")
	r.want(available, available)
	r.until("both are refused", func() bool {
		n := 0
		err := r.obs.ask(context.Background(), func() {
			for _, a := range r.obs.byProcess {
				if strings.Contains(a.match.Reason, "2 live processes") && a.art == nil {
					n++
				}
			}
		})
		return err == nil && n == 2
	})
	r.rows("s1", records("t1")...)
	r.until("the binding is refused and what was written is measured", func() bool {
		ok := false
		err := r.obs.ask(context.Background(), func() {
			a := r.obs.artifacts[filepath.Join(r.home, "fake/log/all.db/s1")]
			ok = a != nil && a.refused.size == 3
		})
		return err == nil && ok
	})
	b.stop()
	r.want(available, available, exited)
	r.bound("s1")
	r.rows("s1", records("t2")...)
	r.want(all([]string{available, available, exited}, turn("t2"))...)
}

// documentFake has one JSON document a session, rewritten with every record.
type documentFake struct{ fake }

func (documentFake) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	if root.Name == "log" && strings.HasSuffix(rel, ".json") {
		return providers.Artifact{Framing: providers.Document}, true // the session is inside
	}
	return fake{}.Claim(root, rel)
}

type fakeDocument struct {
	Session string       `json:"session"`
	Records []fakeRecord `json:"records"`
}

func (documentFake) Describe(_ providers.Artifact, first []byte) providers.Session {
	var d fakeDocument
	_ = json.Unmarshal(first, &d)
	return providers.Session{ID: d.Session}
}

func (f documentFake) Projector(a providers.Artifact, state []byte) providers.Projector {
	p := &documentProjector{fakeProjector: fakeProjector{}}
	_ = json.Unmarshal(state, &p.done)
	return p
}

// documentProjector projects the records of a document that it did not see.
type documentProjector struct {
	fakeProjector
	done int
}

func (p *documentProjector) Project(r providers.Record) []providers.Draft {
	var d fakeDocument
	_ = json.Unmarshal(r.Data, &d)
	var out []providers.Draft
	for _, rec := range d.Records[min(p.done, len(d.Records)):] {
		b, _ := json.Marshal(rec)
		out = append(out, p.fakeProjector.Project(providers.Record{Data: b})...)
	}
	p.done = len(d.Records)
	return out
}
func (p *documentProjector) State() []byte { b, _ := json.Marshal(p.done); return b }
func (p *documentProjector) Rewind(r providers.Record) bool {
	p.Project(r)
	return true
}

func (r *rig) document(session string, recs ...fakeRecord) {
	r.t.Helper()
	b, err := json.MarshalIndent(fakeDocument{session, recs}, "", " ")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.home, "fake/log/chat.json"), b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func TestDocument(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Providers = []providers.Provider{documentFake{}} })
	r.run()
	r.start("s1")
	r.want(available)
	recs := records("t1")
	r.document("s1", recs...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	recs = append(recs, records("t2")...)
	r.document("s1", recs...)
	want = all(want, turn("t2"))
	r.want(want...)
	for _, e := range r.events() {
		if id := (identity{e.AgentID, e.IncarnationID}).eventID("fake/s1/t1/start"); e.Kind == "turn_started" && *e.TurnID == "t1" && e.EventID != id {
			t.Error("the event's id does not have the session that only the document names")
		}
	}
	r.halt()
	recs = append(recs, records("t3")...)
	r.document("s1", recs...)
	r.run()
	r.want(all(want, []string{restarted, available}, turn("t3"))...)
}
