package opencode

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

const tui = "ses_dd2316f41ffeO85cxAKZQgRKWA" // the main session of tui1

func addEvent(t testing.TB, db *sql.DB, session string, seq int, kind, data string) {
	t.Helper()
	execute(t, db, `INSERT INTO event VALUES(?, ?, ?, ?, ?)`, fmt.Sprintf("evt_%s_%d", session, seq), session, seq, kind, data)
}

func cursorAt(t testing.TB, a providers.Artifact, mark []byte) providers.Cursor {
	t.Helper()
	c, err := Provider{}.Cursor(a, mark)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// read asks again, as the observer does, when the machine was too slow.
func read(t testing.TB, c providers.Cursor, max int) providers.Batch {
	t.Helper()
	for try := 0; ; try++ {
		b, err := c.Read(max)
		if err == nil {
			return b
		}
		if !errors.Is(err, errBusy) || try == 200 {
			t.Fatal(err)
		}
		time.Sleep(settled / 4) // the observer's own wait is longer
	}
}

func atEnd(t testing.TB, a providers.Artifact, limit int64) []byte {
	t.Helper()
	for try := 0; ; try++ {
		m, err := Provider{}.AtEnd(a, limit)
		if err == nil {
			return m
		}
		if !errors.Is(err, errBusy) || try == 200 {
			t.Fatal(err)
		}
	}
}

// However a session is cut into batches and marks, it has the same records.
func TestEverySplitGivesTheSameRecords(t *testing.T) {
	path, _ := live(t, "tui1")
	a := rowsOf(path, tui)
	whole := readAll(t, a, 1<<30)
	if len(whole) != 180 || whole[179].End != 180 {
		t.Fatalf("%d records", len(whole))
	}
	for _, size := range []int{1, 700, 9000} {
		if got := readAll(t, a, size); !reflect.DeepEqual(got, whole) {
			t.Errorf("%d bytes at a time: other records", size)
		}
	}
	for _, at := range []int64{0, 1, 77, 179, 180} {
		c := cursorAt(t, a, nil)
		read(t, c, 1<<30)
		m, err := c.MarkAt(at)
		if err != nil {
			t.Fatal(err)
		}
		again := cursorAt(t, a, m)
		if again.Offset() != at {
			t.Errorf("mark at %d: offset %d", at, again.Offset())
		}
		b := read(t, again, 1<<30)
		if b.Reset != providers.Same || b.Size != 180 || len(b.Records) != len(whole[at:]) || at < 180 && !reflect.DeepEqual(b.Records, whole[at:]) {
			t.Errorf("from %d: %d records, reset %q, size %d", at, len(b.Records), b.Reset, b.Size)
		}
		if len(m) > maxMark {
			t.Errorf("mark of %d bytes", len(m))
		}
	}
	if _, err := cursorAt(t, a, nil).MarkAt(99); err == nil {
		t.Error("a mark at no border")
	}
}

func TestBackIsTheReverse(t *testing.T) {
	path, _ := live(t, "tui1")
	a := rowsOf(path, tui)
	whole := readAll(t, a, 1<<30)
	for _, limit := range []int64{-1, 180, 100, 1, 0} {
		m := atEnd(t, a, limit)
		n := int64(180)
		if limit >= 0 {
			n = limit
		}
		if got := cursorAt(t, a, m).Offset(); got != n {
			t.Fatalf("AtEnd(%d): offset %d", limit, got)
		}
		b, err := Provider{}.Back(a, m, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		var got []providers.Record
		for {
			r, ok, err := b.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got = append(got, r)
		}
		b.Close()
		slices.Reverse(got)
		if len(got) != int(n) || n > 0 && !reflect.DeepEqual(got, whole[:n]) {
			t.Errorf("back from %d: %d records", n, len(got))
		}
	}
	b, err := Provider{}.Back(a, atEnd(t, a, -1), 2000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		if _, ok, err := b.Next(); err != nil || !ok {
			break
		}
		n++
	}
	if n == 0 || n > 20 {
		t.Errorf("%d records in 2000 bytes", n)
	}
}

func TestGaps(t *testing.T) {
	path, db := live(t, "plain")
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	a := rowsOf(path, s)
	c := cursorAt(t, a, atEnd(t, a, -1))
	big := `{"part":{"text":"` + strings.Repeat("x", providers.MaxRecord) + `"}}`
	addEvent(t, db, s, 16, "message.part.updated.1", big)
	addEvent(t, db, s, 17, "message.updated.1", `{"info"`)
	addEvent(t, db, s, 18, "message.updated.1", `[1]`)
	addEvent(t, db, s, 19, "message.updated.1", ``)
	addEvent(t, db, s, 20, "message.updated.1", `{"a":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`}`)
	addEvent(t, db, s, 21, `quote " here`, `{"a":1}`)
	execute(t, db, `INSERT INTO event VALUES('evt_blob', ?, 22, 'x', x'00000000')`, s)
	exact := `{"x":"` + strings.Repeat("y", providers.MaxRecord-8) + `"}`
	addEvent(t, db, s, 23, "x", exact)
	var got []string
	for more := true; more; {
		b := read(t, c, 1<<20)
		for _, r := range b.Records {
			got = append(got, fmt.Sprintf("%d-%d %s %d", r.Start, r.End, r.Gap, r.Size))
			if r.Framing != providers.Rows || (r.Gap == providers.Whole) != (r.Data != nil) {
				t.Errorf("record %d: framing %d, gap %q, %d bytes", r.Start, r.Framing, r.Gap, len(r.Data))
			}
			if r.Start == 21 && string(r.Data) != `{"seq":21,"type":"quote \" here","data":{"a":1}}` {
				t.Errorf("record %s", r.Data)
			}
		}
		more = b.More
	}
	want := []string{fmt.Sprintf("16-17 oversized %d", len(big)), "17-18 malformed 7", "18-19 malformed 3", "19-20 malformed 0",
		"20-21 too_deep 1206", "21-22  0", "22-23 padding 4", "23-24  0"}
	if !slices.Equal(got, want) {
		t.Errorf("records\n got %q\nwant %q", got, want)
	}
	d := providers.Record{Start: 16, End: 17, Gap: providers.Oversized, Size: int64(len(big)), Framing: providers.Rows}.Failure(ID)
	if want := fmt.Sprintf("opencode record in row 16 is longer than 4194304 bytes: %d bytes skipped", len(big)); d.Detail != want {
		t.Errorf("failure %q", d.Detail)
	}
}

// What a mark proves: other rows before it, in the same file or in another.
func TestResets(t *testing.T) {
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	more := func(t *testing.T, db *sql.DB) { addEvent(t, db, s, 16, "x", `{"a":1}`) }
	tests := []struct {
		name   string
		change func(t *testing.T, path string, db *sql.DB)
		want   providers.Reset
		off    int64
		gives  int // records without a reset
	}{
		{"nothing", func(*testing.T, string, *sql.DB) {}, providers.Same, 16, 0},
		{"a row", func(t *testing.T, _ string, db *sql.DB) { more(t, db) }, providers.Same, 17, 1},
		{"rows taken away", func(t *testing.T, _ string, db *sql.DB) { execute(t, db, `DELETE FROM event WHERE seq > 9`) }, providers.Truncated, 10, 0},
		{"another row in its place", func(t *testing.T, _ string, db *sql.DB) {
			execute(t, db, `DELETE FROM event WHERE seq > 14`)
			addEvent(t, db, s, 15, "x", `{}`)
			addEvent(t, db, s, 16, "x", `{}`)
		}, providers.Rewritten, 17, 0},
		{"all rows taken away", func(t *testing.T, _ string, db *sql.DB) { execute(t, db, `DELETE FROM event`) }, providers.Truncated, 0, 0},
		{"a copy with the same rows", func(t *testing.T, path string, _ *sql.DB) {
			swap(t, path, func(db *sql.DB) { more(t, db) })
		}, providers.Same, 17, 1},
		{"an older copy", func(t *testing.T, path string, _ *sql.DB) {
			swap(t, path, func(db *sql.DB) { execute(t, db, `DELETE FROM event WHERE seq > 11`) })
		}, providers.Replaced, 12, 0},
		{"an older copy that went on otherwise", func(t *testing.T, path string, _ *sql.DB) {
			swap(t, path, func(db *sql.DB) {
				execute(t, db, `DELETE FROM event WHERE seq > 11`)
				for seq := 12; seq < 20; seq++ {
					addEvent(t, db, s, seq, "x", `{}`)
				}
			})
		}, providers.Replaced, 20, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, db := live(t, "plain")
			a := rowsOf(path, s)
			m := atEnd(t, a, -1)
			c := cursorAt(t, a, m)
			tt.change(t, path, db)
			b := read(t, c, 1<<20)
			if b.Reset != tt.want || c.Offset() != tt.off || len(b.Records) != tt.gives || b.Size != tt.off {
				t.Errorf("reset %q at %d, %d records, size %d; want %q at %d, %d", b.Reset, c.Offset(), len(b.Records), b.Size, tt.want, tt.off, tt.gives)
			}
			now, err := c.MarkAt(c.Offset())
			if err != nil {
				t.Fatal(err)
			}
			if b := read(t, cursorAt(t, a, now), 1<<20); b.Reset != providers.Same || len(b.Records) != 0 {
				t.Errorf("again: reset %q, %d records", b.Reset, len(b.Records))
			}
		})
	}
}

// swap puts another database, made from the same dump and changed, in the
// place of the file, with its own -wal and -shm.
func swap(t *testing.T, path string, change func(*sql.DB)) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "opencode.db")
	db := writer(t, other)
	execute(t, db, "BEGIN;\n"+dump(t, "plain")+"COMMIT;")
	change(db)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(other+suffix, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
}

// Field list: D28. Events of a session that was deleted say nothing.
func TestGone(t *testing.T) {
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	check := func(t *testing.T, a providers.Artifact, m []byte) {
		t.Helper()
		_, err := cursorAt(t, a, m).Read(1 << 20)
		_, endErr := Provider{}.AtEnd(a, -1)
		_, bornErr := Provider{}.Born(a)
		for _, err := range []error{err, endErr, bornErr} {
			if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "/") {
				t.Errorf("error %v, want fs.ErrNotExist without a path", err)
			}
		}
	}
	t.Run("session", func(t *testing.T) {
		path, db := live(t, "plain")
		m := atEnd(t, rowsOf(path, s), -1)
		execute(t, db, `DELETE FROM session`) // the events stay behind, as orphans
		check(t, rowsOf(path, s), m)
	})
	t.Run("database", func(t *testing.T) {
		path, _ := live(t, "plain")
		m := atEnd(t, rowsOf(path, s), -1)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil {
				t.Fatal(err)
			}
		}
		check(t, rowsOf(path, s), m)
	})
	t.Run("never", func(t *testing.T) {
		path, _ := live(t, "plain")
		check(t, rowsOf(path, "ses_none"), nil)
	})
}

func TestBorn(t *testing.T) {
	path, _ := live(t, "plain")
	born, err := Provider{}.Born(rowsOf(path, "ses_dd23788a9ffemZn0ip4YuiY1vO"))
	if err != nil || born.UnixMilli() != 1796064442201 {
		t.Errorf("Born = %v, %v", born, err)
	}
}

// The rows of a transaction that was rolled back are never seen, and those of
// one that is open are not seen yet; the reader waits for neither.
func TestOpenAndAbortedTransactions(t *testing.T) {
	path, db := live(t, "plain")
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	a := rowsOf(path, s)
	c := cursorAt(t, a, atEnd(t, a, -1))
	for _, end := range []string{"ROLLBACK", "COMMIT"} {
		execute(t, db, "BEGIN IMMEDIATE")
		addEvent(t, db, s, 16, "x", `{}`)
		if b := read(t, c, 1<<20); len(b.Records) != 0 || b.Reset != providers.Same {
			t.Fatalf("in the transaction: %d records, reset %q", len(b.Records), b.Reset)
		}
		execute(t, db, end)
		want := map[string]int{"ROLLBACK": 0, "COMMIT": 1}[end]
		if b := read(t, c, 1<<20); len(b.Records) != want {
			t.Errorf("after %s: %d records, want %d", end, len(b.Records), want)
		}
	}
}

// Field list: E3. A lock that keeps readers out is an error that passes, and
// moves nothing.
func TestBusy(t *testing.T) {
	path, p := apart(t, "plain")
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	a := rowsOf(path, s)
	c := cursorAt(t, a, nil)
	// The program does not do this, but a tool that repairs its database does.
	if got := p.say("PRAGMA locking_mode=EXCLUSIVE"); got != "exclusive" {
		t.Fatal(got)
	}
	p.exec("UPDATE project SET time_updated = 1")
	began := time.Now()
	_, err := c.Read(1 << 20)
	if !errors.Is(err, errBusy) || errors.Is(err, fs.ErrNotExist) || c.Offset() != 0 {
		t.Errorf("error %v at %d, want busy at 0", err, c.Offset())
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("waited %v", d)
	}
	if most := c.(*cursor).most; most >= maxRows {
		t.Errorf("%d rows are asked for again: what takes too long would for ever", most)
	}
	p.end()
	n := 0
	for more := true; more; {
		b := read(t, c, 1<<20)
		n, more = n+len(b.Records), b.More
	}
	if most := c.(*cursor).most; n != 16 || most <= leastRows {
		t.Errorf("%d records afterwards, and %d rows at a time", n, most)
	}
}

// A reader in a loop never keeps the program from folding its log of writes,
// however it does that, and never misses a row over it.
func TestCheckpointsBesideAReader(t *testing.T) {
	path, db := apart(t, "plain")
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	a := rowsOf(path, s)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan int64, 1)
	go func() {
		c, err := Provider{}.Cursor(a, nil)
		for next := int64(0); err == nil; {
			var b providers.Batch
			over := ctx.Err() != nil
			if b, err = c.Read(1 << 20); errors.Is(err, errBusy) {
				err = nil
				continue
			}
			for _, r := range b.Records {
				if r.Start != next {
					err = fmt.Errorf("row %d, want %d", r.Start, next)
				}
				next = r.End
			}
			if b.Reset != providers.Same {
				err = fmt.Errorf("reset %q", b.Reset)
			}
			if over && len(b.Records) == 0 {
				seen <- next
				break
			}
		}
		done <- err
	}()
	const rows = 120
	for i := range rows {
		db.exec(fmt.Sprintf(`INSERT INTO event VALUES('evt_%d', '%s', %d, 'x', '{"a":"%s"}')`, i, s, 16+i, strings.Repeat("z", 5000)))
		if i%3 != 0 {
			continue
		}
		mode := []string{"TRUNCATE", "RESTART", "FULL"}[i/3%3]
		if got := db.say("PRAGMA wal_checkpoint(" + mode + ")"); !strings.HasPrefix(got, "0 ") {
			t.Fatalf("checkpoint %s: busy, %s", mode, got)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != 16+rows {
		t.Errorf("read up to %d, want %d", got, 16+rows)
	}
}

// Every query that runs again and again finds its rows by an index.
func TestPlans(t *testing.T) {
	_, db := live(t, "plain")
	tests := []struct {
		query string
		args  []any
		want  string
	}{
		{queryBorn, []any{"s"}, "SEARCH session USING INDEX sqlite_autoindex_session_1 (id=?)"},
		{querySession, []any{"s"}, "SEARCH session USING INDEX sqlite_autoindex_session_1 (id=?)"},
		{querySessions, []any{1}, "SCAN session USING INDEX sqlite_autoindex_session_1"}, // in the order of ids, the first few
		{queryProof, []any{"s", 1}, "SEARCH event USING INDEX event_aggregate_seq_idx (aggregate_id=? AND seq=?)"},
		{queryNewest, []any{"s"}, "SEARCH event USING INDEX event_aggregate_seq_idx (aggregate_id=?)"},
		{queryBelow, []any{"s", 1}, "SEARCH event USING INDEX event_aggregate_seq_idx (aggregate_id=? AND seq<?)"},
		{queryEvents, []any{1, "s", 1, 1}, "SEARCH event USING INDEX event_aggregate_seq_idx (aggregate_id=? AND seq>?)"},
		{queryBack, []any{1, "s", 1, 1}, "SEARCH event USING INDEX event_aggregate_seq_idx (aggregate_id=? AND seq<?)"},
		{queryMessages, []any{1, "s", 1, "m", 1}, "SEARCH message USING INDEX message_session_time_created_id_idx (session_id=? AND (time_created,id)>(?,?))"},
		{queryMessagesBack, []any{1, "s", 1}, "SEARCH message USING INDEX message_session_time_created_id_idx (session_id=?)"},
		{queryParts, []any{"s", 1, "m", 2, "n", 1}, "SEARCH m USING COVERING INDEX message_session_time_created_id_idx (session_id=? AND (time_created,id)>(?,?) AND (time_created,id)<(?,?)); SEARCH p USING INDEX part_message_id_id_idx (message_id=?)"},
		{queryPart, []any{"p"}, "SEARCH part USING INDEX sqlite_autoindex_part_1 (id=?)"},
		{queryMessage, []any{"m"}, "SEARCH message USING COVERING INDEX sqlite_autoindex_message_1 (id=?)"},
	}
	for _, tt := range tests {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+tt.query, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, detail)
		}
		rows.Close()
		if got := strings.Join(steps, "; "); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.query, got, tt.want)
		}
	}
}

// The price of one new row is the same beside few rows and beside many, of this
// session and of others.
func TestAppendCostDoesNotGrow(t *testing.T) {
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	price := func(t *testing.T, own, foreign int) time.Duration {
		path, db := live(t, "plain")
		execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 16 UNION ALL SELECT i+1 FROM n WHERE i < ?)
			INSERT INTO event SELECT 'evt_own' || i, ?, i, 'message.part.updated.1', '{"part":{"text":"' || hex(randomblob(200)) || '"}}' FROM n`, 15+own, s)
		execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < ?)
			INSERT INTO event SELECT 'evt_other' || i, 'ses_other' || (i % 50), i, 'message.part.updated.1', '{"part":{"text":"' || hex(randomblob(200)) || '"}}' FROM n`, foreign)
		execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
		a := rowsOf(path, s)
		c := cursorAt(t, a, atEnd(t, a, -1))
		best := time.Hour
		for i := range 12 {
			addEvent(t, db, s, 16+own+i, "x", `{}`)
			began := time.Now()
			b := read(t, c, 1<<20)
			best = min(best, time.Since(began))
			if len(b.Records) != 1 {
				t.Fatalf("%d records", len(b.Records))
			}
		}
		return best
	}
	rows := 100_000
	if raced {
		rows = 10_000 // SQLite is Go code here, and its inserts are slow with the race detector
	}
	few, many := price(t, 10, 10), price(t, rows, rows/2)
	if many > 4*few+2*time.Millisecond {
		t.Errorf("one row costs %v beside %d rows and %v beside 20", many, rows+rows/2, few)
	}
}

// A batch is bounded by bytes and by rows, and by the time of a transaction.
func TestBatchesAreBounded(t *testing.T) {
	path, db := live(t, "plain")
	const s = "ses_dd23788a9ffemZn0ip4YuiY1vO"
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 16 UNION ALL SELECT i+1 FROM n WHERE i < 2000)
		INSERT INTO event SELECT 'evt_own' || i, ?, i, 'x', '{"a":"' || hex(randomblob(500)) || '"}' FROM n`, s)
	c := cursorAt(t, rowsOf(path, s), nil)
	b := read(t, c, 1<<30)
	if len(b.Records) != maxRows || !b.More || b.Size != 2001 {
		t.Errorf("%d records, more %v, size %d", len(b.Records), b.More, b.Size)
	}
	b = read(t, c, 5000)
	if n := len(b.Records); n < 4 || n > 6 || !b.More {
		t.Errorf("%d records in 5000 bytes, more %v", n, b.More)
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxTransaction)
	cancel()
	err := look(ctx, path, s, func(*view) error { return nil })
	if !errors.Is(err, errBusy) {
		t.Errorf("out of time: %v", err)
	}
}

func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "opencode.db")
	a := rowsOf(path, "ses_x")
	for name, data := range map[string]string{"text": strings.Repeat("no database ", 1000), "empty": ""} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cursorAt(t, a, nil).Read(1 << 20); err == nil || strings.Contains(err.Error(), "no database ") || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := cursorAt(t, a, nil).Read(1 << 20); err == nil {
		t.Error("a directory was read")
	}
	for _, bad := range []string{``, `{}`, `{"s":"ses_other","o":1}`, `{"s":"ses_x","o":-1}`, `nonsense`} {
		if _, err := (Provider{}).Cursor(a, []byte(bad)); err == nil {
			t.Errorf("mark %q was taken", bad)
		}
	}
}
