package opencode

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// wanted are the drafts of a golden, without the records that they come from.
func wanted(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range strings.Split(string(b), "\n") {
		if l != "" && l[0] != '#' && l[0] != '!' {
			out = append(out, regexp.MustCompile(`^[0-9]+s? `).ReplaceAllString(l, ""))
		}
	}
	return out
}

func formats(drafts []providers.Draft) []string {
	var out []string
	for _, d := range drafts {
		out = append(out, providertest.Format(d))
	}
	return out
}

func difference(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("draft %d\n got %s\nwant %s", i, g, w)
		}
	}
}

// Without its events, a session that is over gives the same drafts: only a
// question that was answered has left no trace of having waited.
func TestRowsGiveTheSameDrafts(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(corpusDir, "*", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	open := map[string]string{}
	for _, file := range names {
		name := filepath.Base(filepath.Dir(file))
		if open[name] == "" {
			path, db := live(t, name)
			execute(t, db, "DROP TABLE event; DROP TABLE event_sequence")
			var n int
			if err := db.QueryRow("SELECT count(*) FROM part").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if open[name] = path; n == 0 {
				open[name] = "no rows"
			}
		}
		session := strings.TrimSuffix(filepath.Base(file), ".golden")
		if open[name] == "no rows" || name == "sub" || session == "ses_dd22eb4dbffeZ4Cfl4kBvMDxXg" {
			continue // no rows in the dump, or a subagent's, which is told by its event alone
		}
		tried++
		t.Run(name+"/"+session, func(t *testing.T) {
			a := rowsOf(open[name], session)
			for _, size := range []int{1 << 20, 1} {
				p := newProjector(nil)
				var drafts []providers.Draft
				last := int64(-1)
				for _, r := range readAll(t, a, size) {
					if r.Start <= last || r.End != r.Start+1 {
						t.Fatalf("row %d-%d after %d", r.Start, r.End, last)
					}
					last = r.Start
					drafts = append(drafts, p.Project(r)...)
				}
				if p.Held() {
					drafts = append(drafts, p.Settle()...)
				}
				want := slices.DeleteFunc(wanted(t, file), func(s string) bool { return strings.HasPrefix(s, "approval_requested") })
				difference(t, formats(drafts), want)
			}
		})
	}
	if tried < 15 {
		t.Errorf("%d sessions tried", tried)
	}
}

// replay writes a session into tables without events, change by change.
type replay struct {
	t    *testing.T
	db   *sql.DB
	a    providers.Artifact
	now  int64
	recs []providers.Record
}

func newReplay(t *testing.T, name, session string) *replay {
	t.Helper()
	from, _ := live(t, name)
	path, db := live(t, name)
	execute(t, db, "DROP TABLE event; DROP TABLE event_sequence; DELETE FROM part; DELETE FROM message")
	return &replay{t: t, db: db, a: rowsOf(path, session), recs: readAll(t, rowsOf(from, session), 1<<20)}
}

func (r *replay) apply(i int) {
	var e struct {
		Type string
		Data struct {
			SessionID string
			Time      int64
			Info      map[string]any
			Part      map[string]any
		}
	}
	if err := json.Unmarshal(r.recs[i].Data, &e); err != nil {
		r.t.Fatal(err)
	}
	body := func(m map[string]any) string {
		c := map[string]any{}
		for k, v := range m {
			if k != "id" && k != "sessionID" && k != "messageID" {
				c[k] = v
			}
		}
		b, _ := json.Marshal(c)
		return string(b)
	}
	switch {
	case e.Data.Part != nil:
		r.now = max(r.now, e.Data.Time)
		execute(r.t, r.db, `INSERT INTO part VALUES(?1, ?2, ?3, ?4, ?4, ?5) ON CONFLICT(id) DO UPDATE SET time_updated = ?4, data = ?5`,
			e.Data.Part["id"], e.Data.Part["messageID"], e.Data.SessionID, r.now, body(e.Data.Part))
	case strings.HasPrefix(e.Type, "message.updated"):
		times := e.Data.Info["time"].(map[string]any)
		created := int64(times["created"].(float64))
		if done, ok := times["completed"].(float64); ok {
			r.now = max(r.now, int64(done))
		}
		r.now = max(r.now, created)
		execute(r.t, r.db, `INSERT INTO message VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(id) DO UPDATE SET time_updated = ?4, data = ?5`,
			e.Data.Info["id"], e.Data.SessionID, created, r.now, body(e.Data.Info))
	}
}

// Seen while it is written, every few changes, and from a new mark each time,
// such a session gives what its events give.
func TestRowsWhileTheyAreWritten(t *testing.T) {
	const name, session = "tui1", tui
	want := wanted(t, filepath.Join(corpusDir, name, session+".golden"))
	for _, every := range []int{1, 3, 17} {
		r := newReplay(t, name, session)
		p := newProjector(nil)
		var drafts []providers.Draft
		var m []byte
		for i := range r.recs {
			r.apply(i)
			if i%every != 0 && i != len(r.recs)-1 {
				continue
			}
			for more := true; more; {
				c := cursorAt(t, r.a, m)
				b := read(t, c, 3000)
				if b.Reset != providers.Same {
					t.Fatalf("reset %q", b.Reset)
				}
				for _, rec := range b.Records {
					drafts = append(drafts, p.Project(rec)...)
				}
				var err error
				if m, err = c.MarkAt(c.Offset()); err != nil || len(m) > maxMark {
					t.Fatalf("mark of %d bytes, %v", len(m), err)
				}
				more = b.More
			}
		}
		expect := want
		if every > 1 { // the question may have been answered between two looks
			expect = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return strings.HasPrefix(s, "approval_requested") })
			drafts = slices.DeleteFunc(drafts, func(d providers.Draft) bool { return d.Kind == providers.ApprovalRequested })
		}
		difference(t, formats(drafts), expect)
	}
}

// At its end, and backwards from there, a session without events knows its
// turn, and goes on with what comes.
func TestRowsFromTheirEnd(t *testing.T) {
	r := newReplay(t, "tui1", tui)
	for i := range 60 {
		r.apply(i)
	}
	m := atEnd(t, r.a, -1)
	p := newProjector(nil)
	b, err := Provider{}.Back(r.a, m, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var back []int64
	for {
		rec, ok, err := b.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		back = append(back, rec.Start)
		if p.Rewind(rec) {
			break
		}
	}
	p.Rewound()
	if !slices.IsSortedFunc(back, func(a, b int64) int { return int(b - a) }) || len(back) < 10 {
		t.Errorf("rows backwards: %v", back)
	}
	if got := p.Turn(); got.ID != "msg_22dd0ce55001u6p3zzNornfVDw" || got.State != providers.WaitingOnAgent {
		t.Errorf("turn %v", got)
	}
	c := cursorAt(t, r.a, m)
	var drafts []providers.Draft
	for i := 60; i < 73; i++ {
		r.apply(i)
		for _, rec := range read(t, c, 1<<20).Records {
			drafts = append(drafts, p.Project(rec)...)
		}
	}
	want := wanted(t, filepath.Join(corpusDir, "tui1", tui+".golden"))
	at := slices.IndexFunc(want, func(s string) bool { return strings.Contains(s, `"Thanks for the answer."`) })
	difference(t, formats(drafts), want[at:at+3])

	limited := cursorAt(t, r.a, atEnd(t, r.a, back[3])).Offset()
	if limited > back[3] {
		t.Errorf("AtEnd(%d) is at %d", back[3], limited)
	}
}

// Many messages, many items of one millisecond, rows that are too long.
func TestRowsInBulk(t *testing.T) {
	path, db := live(t, "plain")
	execute(t, db, "DROP TABLE event; DELETE FROM part; DELETE FROM message")
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300)
		INSERT INTO message SELECT printf('msg_%05d', i), ?, i / 40, 5, '{"role":"user","time":{"created":1}}' FROM n`, s)
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 600)
		INSERT INTO part SELECT printf('prt_%05d', i), printf('msg_%05d', (i + 1) / 2), ?, 5, 5 + i / 300, '{"type":"text","text":"' || i || '"}' FROM n`, s)
	execute(t, db, `UPDATE part SET data = '{"type":"text","text":"' || hex(zeroblob(2200000)) || '"}' WHERE id = 'prt_00007'`)
	a := rowsOf(path, s)
	for _, size := range []int{1 << 30, 500} {
		recs := readAll(t, a, size) // 300 parts have one time
		texts := map[string]bool{}
		gaps := 0
		for i, r := range recs {
			if i > 0 && r.Start < recs[i-1].End {
				t.Fatalf("row %d after one that ends at %d", r.Start, recs[i-1].End)
			}
			if r.Gap != providers.Whole {
				gaps++
				continue
			}
			if f := decode(r); f.what == textPart {
				texts[f.part] = true
			}
		}
		if len(texts) != 599 || gaps != 1 || len(recs) != 900 {
			t.Errorf("%d bytes at a time: %d texts, %d gaps, %d records", size, len(texts), gaps, len(recs))
		}
	}
}

// fewItems lowers the bound of one look.
func fewItems(t *testing.T) {
	old := maxItems
	maxItems = 64
	t.Cleanup(func() { maxItems = old })
}

// manyParts makes a database without events with messages of some parts each.
func manyParts(t *testing.T, messages, each int) (path string, db *sql.DB) {
	t.Helper()
	path, db = live(t, "plain")
	execute(t, db, "DROP TABLE event; DELETE FROM part; DELETE FROM message")
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO message SELECT printf('msg_%05d', i), ?, 1000 + i, 1000 + i, '{"role":"user","time":{"created":1}}' FROM n`, messages-1, plainSession)
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO part SELECT printf('prt_%05d', i), printf('msg_%05d', i / ?), ?, 1, 1, '{"type":"text","text":"x"}' FROM n`, messages*each-1, each, plainSession)
	execute(t, db, "UPDATE session SET time_updated = 2000")
	return path, db
}

// readCounting reads what there is, and counts how often each was given.
func readCounting(t *testing.T, c providers.Cursor, given map[string]int) {
	t.Helper()
	for more := true; more; {
		b := read(t, c, 1<<20)
		if b.Reset != providers.Same {
			t.Fatalf("reset %q", b.Reset)
		}
		for _, name := range names(t, b.Records) {
			given[name]++
		}
		more = b.More
	}
}

// More parts than one look reads: each is given once, message by message, and so
// is what comes after them. It does not matter how much a look may take.
func TestMorePartsThanALook(t *testing.T) {
	fewItems(t)
	const messages = 5
	for _, each := range []int{1, 48, 63, 64} {
		for _, most := range []int{1, 2, leastRows, maxRows} {
			t.Run(fmt.Sprintf("%d parts, %d rows", each, most), func(t *testing.T) {
				path, db := manyParts(t, messages, each)
				c := cursorAt(t, rowsOf(path, plainSession), nil)
				c.(*cursor).most = most
				given := map[string]int{}
				readCounting(t, c, given)
				execute(t, db, `INSERT INTO message VALUES('msg_next', ?, 3000, 3000, '{"role":"user","time":{"created":3000}}')`, plainSession)
				readCounting(t, c, given)
				for name, n := range given {
					if n != 1 {
						t.Errorf("%s was given %d times", name, n)
					}
				}
				if want := messages*(each+1) + 1; len(given) != want {
					t.Errorf("%d records, want %d", len(given), want)
				}
			})
		}
	}
}

// A message with more parts than any look takes costs a gap, once, and what
// comes after it is given.
func TestMessageOfTooManyParts(t *testing.T) {
	fewItems(t)
	path, db := manyParts(t, 2, maxItems)
	more := `INSERT INTO part VALUES(?, 'msg_00000', ?, 1, 1, '{"type":"text","text":"x"}')`
	execute(t, db, more, "prt_a", plainSession)
	c := cursorAt(t, rowsOf(path, plainSession), nil)
	var gaps, whole int
	look := func() {
		for more := true; more; {
			b := read(t, c, 1<<20)
			for _, r := range b.Records {
				if r.Gap == providers.Whole {
					whole++
				} else if gaps++; r.Gap != providers.Malformed || len(r.Data) != 0 {
					t.Errorf("gap %q of %d bytes", r.Gap, len(r.Data))
				}
			}
			more = b.More
		}
	}
	look()
	execute(t, db, more, "prt_b", plainSession)
	look()
	if want := 2 + maxItems; gaps != 1 || whole != want {
		t.Errorf("%d gaps and %d records, want 1 and %d", gaps, whole, want)
	}
}

// A look that failed is followed by a smaller one, and that by larger ones.
func TestFailedLookAsksForLess(t *testing.T) {
	path, db := manyParts(t, 1, 1)
	c := cursorAt(t, rowsOf(path, plainSession), nil).(*cursor)
	execute(t, db, "ALTER TABLE part RENAME TO other")
	if _, err := c.Read(1 << 20); err == nil || c.most != leastRows {
		t.Errorf("%v, then %d rows", err, c.most)
	}
	execute(t, db, "ALTER TABLE other RENAME TO part")
	for want := 2 * leastRows; want <= 2*maxRows; want *= 2 {
		if read(t, c, 1<<20); c.most != min(want, maxRows) {
			t.Errorf("%d rows, want %d", c.most, min(want, maxRows))
		}
	}
}

// The bytes of a part that is too long are not asked for: there is no transaction
// here that could give them.
func TestLongPartIsNotRead(t *testing.T) {
	i := item{spot: spot{At: 5, Class: holds, Part: "prt_1"}, msg: &message{key: key{At: 5, ID: "msg_1"}}, size: providers.MaxRecord + 1}
	r, err := (&view{}).record(i, 0)
	if err != nil || r.Gap != providers.Oversized || r.Size != i.size || r.Start != 5*slots {
		t.Errorf("record %+v, %v", r, err)
	}
}

// An older state of the database is put back: its session's time says so,
// although the message that was read last is there.
func TestOlderRowsPutBack(t *testing.T) {
	path, db := live(t, "plain")
	execute(t, db, "DROP TABLE event")
	a := rowsOf(path, plainSession)
	m := atEnd(t, a, -1)
	swap(t, path, func(db *sql.DB) {
		execute(t, db, "DROP TABLE event; UPDATE session SET time_updated = time_updated - 1")
	})
	if b := read(t, cursorAt(t, a, m), 1<<20); b.Reset != providers.Replaced || len(b.Records) != 0 {
		t.Errorf("reset %q, %d records", b.Reset, len(b.Records))
	}
	// A copy of what there was is no other database.
	m = atEnd(t, a, -1)
	swap(t, path, func(db *sql.DB) {
		execute(t, db, "DROP TABLE event; UPDATE session SET time_updated = time_updated - 1")
	})
	if b := read(t, cursorAt(t, a, m), 1<<20); b.Reset != providers.Same || len(b.Records) != 0 {
		t.Errorf("the same again: reset %q, %d records", b.Reset, len(b.Records))
	}
}

// The table of events appears with an update of the program: a new baseline.
func TestEventsAppear(t *testing.T) {
	r := newReplay(t, "plain", "ses_dd23788a9ffemZn0ip4YuiY1vO")
	for i := range r.recs {
		r.apply(i)
	}
	m := atEnd(t, r.a, -1)
	execute(t, r.db, "CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL)")
	b := read(t, cursorAt(t, r.a, m), 1<<20)
	if b.Reset != providers.Rewritten {
		t.Errorf("reset %q", b.Reset)
	}
	execute(t, r.db, "DROP TABLE event")
	if b := read(t, cursorAt(t, r.a, m), 1<<20); b.Reset != providers.Same || len(b.Records) != 0 {
		t.Errorf("as before: reset %q, %d records", b.Reset, len(b.Records))
	}
	// Another database in its place, without the message that was read last.
	path, _, err := split(r.a)
	if err != nil {
		t.Fatal(err)
	}
	swap(t, path, func(db *sql.DB) { execute(t, db, "DROP TABLE event; DELETE FROM message") })
	if b := read(t, cursorAt(t, r.a, m), 1<<20); b.Reset != providers.Replaced || len(b.Records) != 0 {
		t.Errorf("another database: reset %q, %d records", b.Reset, len(b.Records))
	}
}

func TestMessageEvents(t *testing.T) {
	m := message{key: key{At: 5, ID: "msg_1"}, data: []byte(`{"role":"user","summary":{"diffs":[]},"time":{"created":5}}`)}
	m.info = infoOf(m.data)
	for began, want := range map[bool]string{
		true:  `{"sessionID":"ses_1","info":{"id":"msg_1","role":"user","time":{"created":5}}}`,
		false: `{"sessionID":"ses_1","info":{"id":"msg_1","role":"user","summary":{"diffs":[]},"time":{"created":5}}}`,
	} {
		if got, n := m.event("ses_1", began); string(got) != want || int(n) != len(want) {
			t.Errorf("began %v: %s", began, got)
		}
	}
	if got := string(join(`"id":"x",`, []byte(` { } `))); !reflect.DeepEqual(got, `{"id":"x" } `) {
		t.Errorf("join gives %s", got)
	}
}
