package opencode

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// Rows of the field list that are about what the program keeps. Those about
// SQLite are in files_test.go and rows_test.go, C18 is TestAgreement.

// Field list: D25. The JSON files of releases before the database may still be
// there. They claim nothing, so that they can neither hide the database nor
// give its sessions twice.
func TestOldFilesAreNotRead(t *testing.T) {
	h := newHome(t, "opencode.db")
	root := providers.Root{Provider: ID, Name: dataRoot, Dir: h.data}
	for _, rel := range []string{
		"storage/session/global/" + tui + ".json", "storage/session/message/" + tui + "/msg_1.json", "storage/message/" + tui + "/msg_1.json",
		"storage/part/msg_1/prt_1.json", "storage/opencode.db/" + tui, "project/global/storage/session/info/" + tui + ".json",
	} {
		if a, ok := (Provider{}).Claim(root, rel); ok {
			t.Errorf("%s is claimed: %+v", rel, a)
		}
	}
	if root.Depth != 0 {
		t.Errorf("the root is walked %d deep", root.Depth)
	}
	if got, want := ask(t, h.process(h.line(stamped, "0badcafe", tui))), "1 "+tui+" at opencode.db"; got != want {
		t.Errorf("evidence %s, want %s", got, want)
	}
}

// Field list: D26. Each channel's database is read, also when one session is in
// two of them: an artifact is a session of one database.
func TestEveryChannelIsRead(t *testing.T) {
	dir := t.TempDir()
	root := providers.Root{Provider: ID, Name: dataRoot, Dir: dir}
	for i, name := range []string{"opencode.db", "opencode-dev.db", "opencode-nightly.1.db"} {
		db := writer(t, filepath.Join(dir, name))
		execute(t, db, "BEGIN;\n"+dump(t, "plain")+"COMMIT;")
		for n := range i {
			addEvent(t, db, plainSession, 16+n, "x", `{}`)
		}
		carrier, ok := Provider{}.Claim(root, name+"-wal")
		rows, also := Provider{}.Claim(root, name+"/"+plainSession)
		if !ok || !also || carrier.Of != name || !strings.HasPrefix(rows.Path, filepath.Join(dir, carrier.Of)+"/") {
			t.Fatalf("%s: carrier %+v, rows %+v", name, carrier, rows)
		}
		if got := len(readAll(t, rows, 1<<20)); got != 16+i {
			t.Errorf("%s: %d records, want %d", name, got, 16+i)
		}
	}
}

// Field list: D29. A part that was written again and again is one message, the
// look at what is new costs what is new, and the search for the open turn ends.
func TestManyVersionsOfOnePart(t *testing.T) {
	versions := 79_083
	if raced {
		versions = 5_000
	}
	path, db := live(t, "plain")
	a := rowsOf(path, plainSession)
	execute(t, db, `DELETE FROM event WHERE seq > 9`) // in the middle of the answer
	part := `{"part":{"id":"prt_many","messageID":"` + answerOf(t, a) + `","type":"tool","tool":"bash","callID":"c1","state":{"status":"running","metadata":{"output":"`
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO event SELECT 'evt_v' || i, ?, i, 'message.part.updated.1', ? || i || '"}}},"time":1}' FROM n`, 9+versions, plainSession, part)
	m := atEnd(t, a, -1)
	c := cursorAt(t, a, m)
	if c.Offset() != int64(10+versions) {
		t.Fatalf("at %d", c.Offset())
	}
	p := newProjector(nil)
	b, err := Provider{}.Back(a, m, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, ok, err := b.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok || p.Rewind(r) {
			break
		}
	}
	p.Rewound()
	turn := p.Turn()
	if turn.ID == "" || turn.State != providers.WaitingOnAgent {
		t.Errorf("turn %v after looking back", turn)
	}
	given := 0
	for range 3 {
		addEvent(t, db, plainSession, int(c.Offset()), "message.part.updated.1", strings.Replace(part, `"tool","tool"`, `"text","text":"Said.","time":{"start":1,"end":2},"tool"`, 1)+`"}}},"time":1}`)
		got := read(t, c, 1<<20)
		if len(got.Records) != 1 || got.Reset != providers.Same {
			t.Fatalf("%d records, reset %q", len(got.Records), got.Reset)
		}
		for _, d := range p.Project(got.Records[0]) {
			if given++; d.Turn != turn.ID {
				t.Errorf("%v, want turn %s", d, turn.ID)
			}
		}
	}
	if given != 1 {
		t.Errorf("three versions of a text gave %d drafts, want 1", given)
	}
}

// answerOf is the model's message of a session with one.
func answerOf(t *testing.T, a providers.Artifact) string {
	t.Helper()
	for _, r := range readAll(t, a, 1<<20) {
		if f := decode(r); f.what == assistantRow {
			return f.id
		}
	}
	t.Fatal("no answer")
	return ""
}

// Field list: D31. Rows that a replay writes a second time are the same
// messages. What is older than the projector remembers keeps its keys, by which
// the log knows it.
func TestReplayIsNoNews(t *testing.T) {
	for _, c := range corpus(t) {
		p := newProjector(nil)
		known := map[string]bool{}
		var recs []providers.Record
		for _, r := range readAll(t, c.Artifact, 1<<20) {
			recs = append(recs, r)
			for _, d := range p.Project(r) {
				known[d.Key] = true
			}
		}
		for _, d := range p.Settle() {
			known[d.Key] = true
		}
		end := p.Turn()
		for _, r := range recs {
			for _, d := range p.Project(r) {
				if !known[d.Key] {
					t.Errorf("%s: a replay gives %s", c.Name, d.Key)
				}
			}
		}
		p.Settle()
		if got := p.Turn(); got != end {
			t.Errorf("%s: turn %v after a replay, was %v", c.Name, got, end)
		}
	}
}

// Not one of the program's checkpoints waits longer for a reader than for its
// transaction, which ends when its time is over, whatever the reader does.
func TestTransactionsEnd(t *testing.T) {
	path, p := apart(t, "tui1") // the writer waits 2 s for a reader
	checked := false
	began := time.Now()
	err := look(t.Context(), path, tui, func(v *view) error {
		rows, err := v.tx.QueryContext(v.ctx, queryEvents, providers.MaxRecord, tui, 0, maxRows)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return rows.Err()
		}
		p.exec("UPDATE project SET time_updated = 1")
		if got := p.say("PRAGMA wal_checkpoint(TRUNCATE)"); !strings.HasPrefix(got, "0 ") {
			t.Errorf("checkpoint %s after %v: a reader is in its way", got, time.Since(began))
		}
		checked = true
		return nil
	})
	if !checked {
		t.Errorf("no checkpoint was tried: %v", err)
	}
}

// Beside a large table, read from its beginning by small and large batches,
// every checkpoint succeeds and a look is short.
func TestCheckpointsBesideALargeTable(t *testing.T) {
	rows := 20_000
	if raced {
		rows = 2_000
	}
	path, p := apart(t, "plain")
	p.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 16 UNION ALL SELECT i+1 FROM n WHERE i < %d)
		INSERT INTO event SELECT 'evt_big' || i, '%s', i, 'message.part.updated.1', '{"part":{"text":"' || hex(randomblob(1000)) || '"}}' FROM n`, 15+rows, plainSession))
	c := cursorAt(t, rowsOf(path, plainSession), nil)
	var looks []time.Duration
	next := int64(0)
	for n, more := 0, true; more; n++ {
		began := time.Now()
		b, err := c.Read([]int{1, 1 << 16, 1 << 30}[n%3])
		looks = append(looks, time.Since(began))
		if err != nil {
			if !errors.Is(err, errBusy) {
				t.Fatal(err)
			}
			continue
		}
		for _, r := range b.Records {
			if r.Start != next {
				t.Fatalf("row %d, want %d", r.Start, next)
			}
			next = r.End
		}
		more = b.More
		if n%8 == 0 {
			p.exec(fmt.Sprintf("UPDATE project SET time_updated = %d", n))
			if got := p.say("PRAGMA wal_checkpoint(TRUNCATE)"); !strings.HasPrefix(got, "0 ") {
				t.Fatalf("checkpoint: %s", got)
			}
		}
	}
	if next != int64(16+rows) {
		t.Errorf("read up to %d of %d", next, 16+rows)
	}
	slices.Sort(looks)
	if half := looks[len(looks)/2]; half > maxTransaction {
		t.Errorf("half of the looks took longer than %v", half)
	}
}

// The length of a row is known before its bytes are touched: SQLite marks a
// column that is read for its length alone (OPFLAG_BYTELENARG), and the bytes
// are read behind a jump.
func TestLengthIsAskedFirst(t *testing.T) {
	_, db := live(t, "plain")
	const lengthOnly = 0xc0
	for query, args := range map[string][]any{
		queryEvents: {1, "s", 1, 1}, queryBack: {1, "s", 1, 1}, queryMessages: {1, "s", 1, "m", 1}, queryMessagesBack: {1, "s", 1},
		queryParts: {"s", 1, "m", 2, "n", 1},
	} {
		rows, err := db.Query("EXPLAIN "+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		lengths, jumps, bytes := 0, 0, 0
		for rows.Next() {
			var addr, p1, p2, p3 int
			var op string
			var p4, comment any
			var p5 int
			if err := rows.Scan(&addr, &op, &p1, &p2, &p3, &p4, &p5, &comment); err != nil {
				t.Fatal(err)
			}
			switch {
			case op == "Column" && p5&lengthOnly == lengthOnly:
				lengths++
			case (op == "Gt" || op == "Le") && lengths > 0:
				jumps++
			case op == "Column" && lengths > 0 && jumps > 0:
				bytes++
			}
		}
		rows.Close()
		wantLengths, wantBytes := 2, 1 // one for the record, one for the jump
		if query == queryParts {
			wantLengths, wantBytes = 1, 0
		}
		if lengths != wantLengths || jumps < wantBytes || bytes < wantBytes {
			t.Errorf("%s\n%d lengths, %d jumps, %d columns behind them", query, lengths, jumps, bytes)
		}
	}
}
