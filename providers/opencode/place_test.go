package opencode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"steno/providers"
)

const plainSession = "ses_dd23788a9ffemZn0ip4YuiY1vO"

// old is a database without events that another process writes, row by row,
// with a reader that goes on from a new mark each time.
type old struct {
	t    testing.TB
	exec func(query string)
	a    providers.Artifact
	mark []byte
	last int64 // End of the newest record
}

func withoutEvents(t testing.TB) *old {
	path, p := apart(t, "plain")
	p.exec("DROP TABLE event; DROP TABLE event_sequence")
	o := &old{exec: p.exec, a: rowsOf(path, plainSession)}
	o.begin(t)
	return o
}

// begin empties the session.
func (o *old) begin(t testing.TB) {
	o.t, o.mark, o.last = t, nil, 0
	o.exec("DELETE FROM part; DELETE FROM message; UPDATE session SET time_created = 1, time_updated = 1")
}

func (o *old) message(id string, created, updated int64, data string) {
	o.t.Helper()
	o.exec(fmt.Sprintf(`INSERT INTO message VALUES('%s', '%s', %d, %d, '%s') ON CONFLICT(id) DO UPDATE SET time_updated = %[4]d, data = '%[5]s'`,
		id, plainSession, created, updated, data))
}

func (o *old) user(id string, at int64) {
	o.t.Helper()
	o.message(id, at, at, fmt.Sprintf(`{"role":"user","time":{"created":%d}}`, at))
	o.part("p"+id, id, at, `{"type":"text","text":"prompt `+id+`"}`)
	o.exec(fmt.Sprintf(`UPDATE session SET time_updated = %d`, at))
}

func (o *old) reply(id, parent string, at int64) {
	o.t.Helper()
	o.message(id, at, at, fmt.Sprintf(`{"role":"assistant","parentID":"%s","time":{"created":%d}}`, parent, at))
}

func (o *old) end(id, parent, finish string, created, at int64) {
	o.t.Helper()
	o.message(id, created, at, fmt.Sprintf(`{"role":"assistant","parentID":"%s","finish":"%s","time":{"created":%d,"completed":%d}}`, parent, finish, created, at))
}

func (o *old) part(id, msg string, at int64, data string) {
	o.t.Helper()
	o.exec(fmt.Sprintf(`INSERT INTO part VALUES('%s', '%s', '%s', %d, %[4]d, '%[5]s') ON CONFLICT(id) DO UPDATE SET time_updated = %[4]d, data = '%[5]s'`,
		id, msg, plainSession, at, data))
}

func (o *old) text(id, msg string, at int64, text string) {
	o.t.Helper()
	o.part(id, msg, at, fmt.Sprintf(`{"type":"text","text":"%s","time":{"start":1,"end":%d}}`, text, at))
}

// records are what is new, each batch from the mark of the one before.
func (o *old) records(size int) (out []providers.Record, reset providers.Reset) {
	o.t.Helper()
	for more := true; more; {
		c := cursorAt(o.t, o.a, o.mark)
		b := read(o.t, c, size)
		if b.Reset != providers.Same {
			reset = b.Reset
		}
		for _, r := range b.Records {
			if r.Start < o.last && reset == providers.Same {
				o.t.Fatalf("row %d after one that ends at %d", r.Start, o.last)
			}
			o.last = r.End
			out = append(out, r)
		}
		var err error
		if o.mark, err = c.MarkAt(c.Offset()); err != nil || len(o.mark) > maxMark {
			o.t.Fatalf("mark of %d bytes, %v", len(o.mark), err)
		}
		more = b.More
	}
	return out, reset
}

// look names what is new: "begin a1", "part p1", "end a1", or the reset.
func (o *old) look() string {
	o.t.Helper()
	recs, reset := o.records(700)
	out := names(o.t, recs)
	if reset != providers.Same {
		out = append(out, "reset "+string(reset))
	}
	return strings.Join(out, ", ")
}

func names(t testing.TB, recs []providers.Record) (out []string) {
	t.Helper()
	for _, r := range recs {
		switch f := decode(r); {
		case f.part != "":
			out = append(out, "part "+f.part)
		case !f.completed.IsZero() || f.failed || f.finish != "":
			out = append(out, "end "+f.id)
		case f.what == gapRecord:
			out = append(out, "gap")
		default:
			out = append(out, "begin "+f.id)
		}
	}
	return out
}

func (o *old) want(when, what string) {
	o.t.Helper()
	if got := o.look(); got != what {
		o.t.Errorf("%s: %q, want %q", when, got, what)
	}
	if again := o.look(); again != "" {
		o.t.Errorf("%s: again %q", when, again)
	}
}

// Rows of one millisecond that come over many looks, in whatever order of ids,
// and are changed within that millisecond, are given once each.
func TestRowsOfOneMillisecond(t *testing.T) {
	const at = 1796064442201
	rnd := rand.New(rand.NewPCG(1, 2))
	shuffled := rnd.Perm(maxSeen / 2)
	descending := make([]int, maxSeen/2)
	for i := range descending {
		descending[i] = len(descending) - i
	}
	ascending := make([]int, maxSeen+20)
	for i := range ascending {
		ascending[i] = i
	}
	for name, order := range map[string][]int{"shuffled": shuffled, "descending": descending, "ascending": ascending} {
		t.Run(name, func(t *testing.T) {
			o := withoutEvents(t)
			o.user("msg_u1", at)
			o.want("prompt", "begin msg_u1, part pmsg_u1")
			o.reply("msg_a1", "msg_u1", at)
			o.want("reply", "begin msg_a1")
			for _, n := range order {
				id := fmt.Sprintf("prt_%03d", n)
				o.part(id, "msg_a1", at, `{"type":"text","text":"","time":{"start":1}}`)
				o.want("beginning", "part "+id)
				if n%8 == 0 {
					o.text(id, "msg_a1", at, "said")
					o.want("ending", "part "+id)
				}
			}
			o.end("msg_a1", "msg_u1", "stop", at, at)
			o.want("end", "end msg_a1")
			o.user("msg_u2", at)
			o.want("next prompt", "begin msg_u2, part pmsg_u2")
		})
	}
}

// Rows that are older than what was given last: of a transaction that took
// long, of another process, of a clock that was set back.
func TestLateRows(t *testing.T) {
	const at = 1796064442201
	begun := func(t *testing.T) *old {
		o := withoutEvents(t)
		o.user("msg_u1", at)
		o.reply("msg_a1", "msg_u1", at+10)
		o.text("prt_1", "msg_a1", at+5000, "late in time")
		o.want("first", "begin msg_u1, part pmsg_u1, begin msg_a1, part prt_1")
		return o
	}
	t.Run("part", func(t *testing.T) {
		o := begun(t)
		o.text("prt_0", "msg_a1", at+20, "came late")
		o.want("late part", "part prt_0")
		o.end("msg_a1", "msg_u1", "stop", at+10, at+30) // before prt_1, by the time
		o.want("late end", "end msg_a1")
	})
	t.Run("prompt", func(t *testing.T) {
		o := begun(t)
		o.end("msg_a1", "msg_u1", "stop", at+10, at+6000)
		o.want("end", "end msg_a1")
		o.user("msg_u2", at-3_600_000)
		o.want("an hour before", "begin msg_u2, part pmsg_u2")
		o.reply("msg_a2", "msg_u2", at-3_599_000)
		o.text("prt_2", "msg_a2", at-3_598_000, "new")
		o.end("msg_a2", "msg_u2", "stop", at-3_599_000, at-3_597_000)
		o.want("its answer", "begin msg_a2, part prt_2, end msg_a2")
	})
	// More turns than are looked at: what is given up is said, and then it goes on.
	t.Run("before the floor", func(t *testing.T) {
		o := withoutEvents(t)
		turn := func(n int, at int64) {
			o.user(fmt.Sprint("msg_u", n), at)
			o.reply(fmt.Sprint("msg_a", n), fmt.Sprint("msg_u", n), at+10)
			o.text(fmt.Sprint("prt_", n), fmt.Sprint("msg_a", n), at+20, "x")
			o.end(fmt.Sprint("msg_a", n), fmt.Sprint("msg_u", n), "stop", at+10, at+30)
		}
		for n := range 5 {
			turn(n, at+int64(n)*1000)
			o.want("turn", strings.ReplaceAll("begin msg_uN, part pmsg_uN, begin msg_aN, part prt_N, end msg_aN", "N", fmt.Sprint(n)))
		}
		o.user("msg_u5", at-3_600_000)
		o.want("clock", "reset rewritten")
		o.reply("msg_a5", "msg_u5", at-3_599_990)
		o.want("its answer", "begin msg_a5")
		o.end("msg_a5", "msg_u5", "stop", at-3_599_990, at-3_599_000)
		o.want("its end", "end msg_a5")
		for n := 6; n < 9; n++ {
			turn(n, at-3_600_000+int64(n)*1000)
			o.want("turn", strings.ReplaceAll("begin msg_uN, part pmsg_uN, begin msg_aN, part prt_N, end msg_aN", "N", fmt.Sprint(n)))
		}
	})
	// An import into the session: older messages, with the session's time as it was.
	t.Run("import", func(t *testing.T) {
		o := begun(t)
		for n := 2; n < 5; n++ {
			o.user(fmt.Sprint("msg_u", n), at+int64(n)*10_000)
			o.end(fmt.Sprint("msg_a", n), fmt.Sprint("msg_u", n), "stop", at+int64(n)*10_000+1, at+int64(n)*10_000+2)
		}
		o.end("msg_a1", "msg_u1", "stop", at+10, at+6000)
		o.look()
		for n := range 2 * maxWindow {
			o.message(fmt.Sprintf("msg_old%03d", n), int64(1000+n), at+60_000, `{"role":"user","time":{"created":1000}}`)
		}
		o.want("history", "")
		o.user("msg_u9", at+70_000)
		o.want("news", "begin msg_u9, part pmsg_u9")
	})
}

// Two prompts that are queued while an answer is written do not hide the rest
// of that answer.
func TestPromptsQueuedBesideAnAnswer(t *testing.T) {
	o := withoutEvents(t)
	o.user("msg_1u", 100)
	o.reply("msg_2a", "msg_1u", 110)
	o.user("msg_3u", 120)
	o.user("msg_4u", 130)
	o.user("msg_5u", 140)
	o.want("prompts", "begin msg_1u, part pmsg_1u, begin msg_2a, begin msg_3u, part pmsg_3u, begin msg_4u, part pmsg_4u, begin msg_5u, part pmsg_5u")
	o.text("prt_1", "msg_2a", 150, "said")
	o.want("text", "part prt_1")
	o.end("msg_2a", "msg_1u", "stop", 110, 160)
	o.want("end", "end msg_2a")
}

// A history that is read from its beginning, of any length, is given whole and
// in order, although the program has emptied old tool output since, or an import
// gave all of its rows one time.
func TestLongHistory(t *testing.T) {
	for name, change := range map[string]string{
		"as it was":      "",
		"output emptied": "UPDATE part SET time_updated = 2000000 WHERE rowid % 7 = 0",
		"imported":       "UPDATE part SET time_updated = 2000000; UPDATE message SET time_updated = 2000000",
	} {
		t.Run(name, func(t *testing.T) {
			o := withoutEvents(t)
			var want []string
			for n := range int64(32) {
				u, at := fmt.Sprintf("msg_%03du", n), 1000+n*1000
				want = append(want, "begin "+u, "part p"+u)
				var b strings.Builder
				fmt.Fprintf(&b, `INSERT INTO message VALUES('%s', '%s', %d, %[3]d, '{"role":"user","time":{"created":%[3]d}}');
					INSERT INTO part VALUES('p%[1]s', '%[1]s', '%[2]s', %[3]d, %[3]d, '{"type":"text","text":"prompt"}');`, u, plainSession, at)
				for k := range 2 + n%2 {
					a, at := fmt.Sprintf("msg_%03dz%d", n, k), at+100*(k+1)
					fmt.Fprintf(&b, `INSERT INTO message VALUES('%s', '%s', %d, %d, '{"role":"assistant","parentID":"%s","finish":"stop","time":{"created":%[3]d,"completed":%[4]d}}');
						INSERT INTO part VALUES('q%[1]s', '%[1]s', '%[2]s', %[3]d, %[4]d, '{"type":"text","text":"said %[1]s","time":{"start":1,"end":%[4]d}}');`, a, plainSession, at, at+50, u)
					want = append(want, "begin "+a, "part q"+a, "end "+a)
				}
				o.exec(b.String())
			}
			o.exec("UPDATE session SET time_updated = 1000000;" + change)
			recs, reset := o.records(5000)
			got := names(t, recs)
			if name == "imported" { // within the newest two turns time alone tells
				at := slices.Index(want, "begin msg_030u")
				got, want = got[:at], want[:at]
			}
			if !slices.Equal(got, want) || reset != providers.Same {
				for n := range min(len(got), len(want)) {
					if got[n] != want[n] {
						t.Errorf("record %d: %s, want %s", n, got[n], want[n])
						break
					}
				}
				t.Errorf("%d records, want %d; reset %q", len(got), len(want), reset)
			}
			o.want("again", "")
			p := newProjector(nil)
			finals := 0
			for _, r := range recs[:len(got)] {
				for _, d := range p.Project(r) {
					if d.Kind == providers.TurnFinal && strings.HasPrefix(d.Text, "said ") {
						finals++
					}
				}
			}
			if finals < 30 {
				t.Errorf("%d turns ended with their text", finals)
			}
		})
	}
}

// Another state of the database in its place, and messages that the user took
// away.
func TestRowsTakenAway(t *testing.T) {
	begun := func(t *testing.T) *old {
		o := withoutEvents(t)
		o.user("msg_u1", 1000)
		o.end("msg_a1", "msg_u1", "stop", 1010, 1020)
		o.user("msg_u2", 2000)
		o.look()
		return o
	}
	t.Run("undo", func(t *testing.T) {
		o := begun(t)
		o.exec(`DELETE FROM part WHERE message_id = 'msg_u2'; DELETE FROM message WHERE id = 'msg_u2'; UPDATE session SET time_updated = 2500`)
		o.want("after it", "")
		o.user("msg_u3", 3000)
		o.want("next", "begin msg_u3, part pmsg_u3")
	})
	t.Run("older state", func(t *testing.T) {
		o := begun(t)
		o.exec(`DELETE FROM part WHERE message_id = 'msg_u2'; DELETE FROM message WHERE id = 'msg_u2'; UPDATE session SET time_updated = 1000`)
		o.want("after it", "reset rewritten")
		o.user("msg_u3", 3000)
		o.want("next", "begin msg_u3, part pmsg_u3")
	})
}

// Whatever a writer does, in whatever order of times, each version that a look
// can see is given once, and none twice.
func TestRowsAtRandom(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		withoutEvents(t).anything(120, func(n int) int { return rnd.IntN(n) })
	}
}

// FuzzRowsWithoutEvents is the same for writers that are made up.
func FuzzRowsWithoutEvents(f *testing.F) {
	path, db := live(f, "plain")
	execute(f, db, "DROP TABLE event; DROP TABLE event_sequence")
	o := &old{a: rowsOf(path, plainSession)}
	o.exec = func(query string) { execute(o.t, db, query) }
	for seed := range uint64(8) {
		rnd, choices := rand.New(rand.NewPCG(seed, 9)), make([]byte, 150)
		for i := range choices {
			choices[i] = byte(rnd.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		o.begin(t)
		o.anything(60, func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0])
			choices = choices[1:]
			return c % n
		})
	})
}

// anything is a writer of some steps that choose decides, and its reader.
func (o *old) anything(steps int, choose func(n int) int) {
	now := int64(1_000_000)
	step := func() int64 { now += []int64{0, 0, 1, 40}[choose(4)]; return now }
	about := func() int64 { return step() - []int64{0, 0, 0, 1, 300}[choose(5)] }
	due := map[string]bool{}
	var prompt, reply string
	var created int64
	var parts []string
	for n := range steps {
		switch what := choose(10); {
		case prompt == "" || reply == "" && what < 3:
			prompt = fmt.Sprintf("msg_%04du", n)
			o.user(prompt, step())
			due["begin "+prompt], due["part p"+prompt] = true, true
		case reply == "":
			reply, created, parts = fmt.Sprintf("msg_%04da", n), step(), nil
			o.reply(reply, prompt, created)
			due["begin "+reply] = true
		case what < 5 && len(parts) < 25:
			parts = append(parts, fmt.Sprintf("prt_%03d_%d", choose(1000), n))
			o.part(parts[len(parts)-1], reply, about(), `{"type":"text","text":"","time":{"start":1}}`)
			due["part "+parts[len(parts)-1]] = true
		case what < 8 && len(parts) > 0:
			id := parts[choose(len(parts))]
			o.text(id, reply, about(), strings.Repeat("x", n))
			due["part "+id] = true
		case what == 8:
			o.end(reply, prompt, "stop", created, max(about(), created))
			due["end "+reply] = true
			reply = ""
		}
		if choose(3) > 0 {
			continue
		}
		recs, reset := o.records([]int{1, 500, 1 << 20}[choose(3)])
		if reset != providers.Same {
			o.t.Fatalf("step %d: reset %q", n, reset)
		}
		for _, name := range names(o.t, recs) {
			if !due[name] {
				o.t.Fatalf("step %d: %s is twice", n, name)
			}
			delete(due, name)
		}
		for name := range due {
			o.t.Fatalf("step %d: %s is lost", n, name)
		}
	}
}

// A mark has its bound whatever the ids and times are.
func TestMarksOfRowsAreBounded(t *testing.T) {
	id := "msg_" + strings.Repeat("x", maxIdent-4)
	s := spot{At: 1<<63 - 1, Msg: key{At: 1<<63 - 1, ID: id}, Class: ends, Part: id}
	p := place{Floor: s.Msg, Low: &s, Walk: &s, Newest: id, Updated: 1<<63 - 1}
	for n := range uint32(maxSeen) {
		p.Seen = append(p.Seen, 1<<32-1-n)
	}
	m := mark{Off: 1<<63 - 1, Rows: &p}.in("ses_"+strings.Repeat("x", 64), identity{1<<64 - 1, 1<<64 - 1})
	b, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseMark(b)
	again, _ := json.Marshal(back)
	if err != nil || string(again) != string(b) {
		t.Errorf("%v, other mark\n%s\n%s", err, b, again)
	}
	p.Newest = "msg_\"" // no id that a mark has
	if b, _ = json.Marshal(m); b != nil {
		if _, err := parseMark(b); err == nil {
			t.Error("a mark with a foreign id was taken")
		}
	}
}
