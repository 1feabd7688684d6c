package observer

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"steno/ipc"
	"steno/ipc/wire"
)

// BenchmarkAppendToFollower measures one record from its write to its page at a
// waiting follower, beside a bare loop that does the least that any such
// program must: inotify, read, a FULL commit of one row, a socket write. Both
// run in turns in one process, on the same file system. The figure that counts
// is the ratio of the medians; above 2.5 the benchmark fails.
func BenchmarkAppendToFollower(b *testing.B) {
	r := newRig(b, func(o *Options) { o.Log = zerolog.Nop() })
	r.run()
	r.start("s1")
	r.write("s1", fakeRecord{ID: "t", Do: "start", At: now()})
	r.want(available, "turn_started t", "turn_state_changed t waiting_on_agent")
	follow := follower(b, r)
	bare := bareLoop(b)

	var mine, theirs []time.Duration
	n := 0
	for b.Loop() {
		n++
		rec := fakeRecord{ID: fmt.Sprint("m", n), Do: "say", Text: "word word word word word word word word", At: now()}
		time.Sleep(3 * time.Millisecond) // a record after quiet: outside of the throttle
		began := time.Now()
		r.write("s1", rec)
		follow()
		mine = append(mine, time.Since(began))
		time.Sleep(3 * time.Millisecond)
		theirs = append(theirs, bare())
	}
	p50, bare50 := percentile(mine, 50), percentile(theirs, 50)
	b.ReportMetric(float64(p50.Microseconds()), "p50-us")
	b.ReportMetric(float64(percentile(mine, 99).Microseconds()), "p99-us")
	b.ReportMetric(float64(bare50.Microseconds()), "bare-p50-us")
	b.ReportMetric(float64(percentile(theirs, 99).Microseconds()), "bare-p99-us")
	ratio := float64(p50) / float64(bare50)
	b.ReportMetric(ratio, "ratio")
	if n >= 100 && ratio > 2.5 {
		b.Errorf("p50 %v is %.2f times that of the bare loop %v, at most 2.5 is allowed", p50, ratio, bare50)
	}
}

func percentile(d []time.Duration, p int) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[min(len(s)-1, len(s)*p/100)]
}

// follower serves the rig's store on a socket and gives a function that waits
// for the next page with an event.
func follower(b *testing.B, r *rig) func() {
	b.Helper()
	path := filepath.Join(b.TempDir(), "sock")
	l, err := ipc.Listen(path)
	if err != nil {
		b.Fatal(err)
	}
	s := ipc.NewServer(ipc.Options{Store: r.store, Live: r.obs, Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			b.Error(err)
		}
	})
	c, err := ipc.Dial(ctx, path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(); cancel(); wg.Wait() })
	pages := make(chan uint64)
	after := uint64(3)
	wg.Go(func() {
		for {
			p, err := c.ReadEvents(ctx, wire.ReadParams{After: after, Limit: 100, Wait: 30_000})
			if err != nil {
				return
			}
			if len(p.Events) == 0 {
				continue
			}
			after = *p.NextAfterSequence
			select {
			case pages <- after:
			case <-ctx.Done():
				return
			}
		}
	})
	want := after
	return func() {
		want++
		for got := range pages {
			if got >= want {
				return
			}
		}
	}
}

// bareLoop starts the least loop and gives a function that appends one record
// to it and says how long it took to arrive.
func bareLoop(b *testing.B) func() time.Duration {
	b.Helper()
	dir := b.TempDir()
	file := filepath.Join(dir, "log.jsonl")
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bare.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE e (seq INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB) STRICT"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO e (body) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Add(dir); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		var off int64
		for ev := range w.Events {
			if ev.Name != file {
				continue
			}
			in, err := os.Open(file)
			if err != nil {
				return
			}
			n, _ := in.ReadAt(buf, off)
			in.Close()
			if n == 0 {
				continue
			}
			off += int64(n)
			if _, err := insert.Exec(buf[:n]); err != nil {
				b.Error(err)
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() {
		w.Close()
		<-done
		for _, c := range []interface{ Close() error }{client, server, l, insert, db, f} {
			c.Close()
		}
	})
	in := bufio.NewReader(client)
	rec, err := json.Marshal(fakeRecord{ID: "m", Do: "say", Text: "word word word word word word word word", At: now()})
	if err != nil {
		b.Fatal(err)
	}
	rec = append(rec, '\n')
	return func() time.Duration {
		began := time.Now()
		if _, err := f.Write(rec); err != nil {
			b.Fatal(err)
		}
		if _, err := in.ReadBytes('\n'); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
}
