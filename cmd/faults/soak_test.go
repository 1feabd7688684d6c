package faults

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// Soak: hours of mixed load on one daemon. Four agents write turns of all kinds
// and go on to other sessions, others come and go, clients misbehave, the log is
// pruned. Memory, descriptors and the time from a record to its event stay what
// they were: the figures are the last quarter over the first.
func TestSoak(t *testing.T) {
	length := pick(time.Duration(0), time.Hour)
	if given := os.Getenv(soakVar); given != "" {
		var err error
		if length, err = time.ParseDuration(given); err != nil {
			t.Fatalf("%s: %v", soakVar, err)
		}
	}
	if length == 0 {
		t.Skipf("in the long form, or with %s=10m", soakVar)
	}
	t.Parallel()
	if !alone(t) {
		return
	}
	r := dice(t)
	w := newWorld(t)
	w.env = append(w.env, "STENO_RETENTION_EVENTS=2000")
	d := w.startWith(plain(t))
	d.ready()
	s := w.read(0)
	var agents []*agent
	for i := range 4 {
		agents = append(agents, w.agent([]string{"claude", "codex"}[i%2], fmt.Sprint("agent", i)))
	}
	watch := w.agent("claude", "watch")
	w.seen(append(slices.Clone(agents), watch)...)
	for _, a := range agents {
		a.mark = a.do("mark")
		a.do("go %d 500ms", r.Uint64())
	}
	id := ""
	for agent, name := range w.agents() {
		if name == watch.name {
			id = agent
		}
	}
	f := &figures{Fault: "10 soak", Unit: "minutes", Tried: int(length.Minutes()),
		How: "4 agents without a pause, sessions and agents that come and go, rude clients, pruning at 2,000 events"}
	var memory, files, delay []float64
	pid := d.cmd.Process.Pid
	guests := 0
	for end, sample := time.Now().Add(length), 0; time.Now().Before(end); sample++ {
		began := time.Now()
		want := s.told(id) + 4 // start, two answers, final
		watch.do("turn 1 50")
		w.until("a turn is told", func() bool { return s.told(id) >= want })
		took := time.Since(began)
		delay = append(delay, took.Seconds())
		f.recovered(took)
		rss, err := residentBytes(pid)
		if err != nil {
			t.Fatal(err)
		}
		memory, files = append(memory, float64(rss)), append(files, float64(w.open(pid)))
		if a := agents[r.IntN(len(agents))]; sample%4 == 0 && s.tells(a.mark) {
			a.mark = a.do("clear")
		}
		if sample%15 == 7 {
			guests++
			g := w.agent("codex", fmt.Sprint("guest", guests))
			w.until("a guest", func() bool { return slices.Contains(names(w.agents()), g.name) })
			g.do("turn 2 500")
			g.exit()
		}
		if sample%10 == 3 {
			w.rude(50)
		}
		time.Sleep(max(0, length/600-time.Since(began))) // 600 samples, evenly
	}
	for _, a := range agents {
		a.do("stop")
	}
	s.verdict(f, append(agents, watch)...)
	m, n, l := lastOverFirst(memory), lastOverFirst(files), lastOverFirst(delay)
	f.Note = fmt.Sprintf("last quarter over first: memory %.2f, descriptors %.2f, delay %.2f; %d guests, %d events", m, n, l, guests, s.head())
	if m > 1.3 || n > 1.2 || l > 2 {
		t.Errorf("not flat: %s", f.Note)
	}
	d.stop()
	f.report(t)
}

// told counts the records of an agent that were told.
func (s *story) told(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byAgent[id]
}

func names(agents map[string]string) []string {
	var out []string
	for _, name := range agents {
		out = append(out, name)
	}
	return out
}

// lastOverFirst is the median of the last quarter over that of the first.
func lastOverFirst(samples []float64) float64 {
	n := len(samples) / 4
	if n == 0 {
		return 1
	}
	median := func(part []float64) float64 {
		part = slices.Clone(part)
		slices.Sort(part)
		return part[len(part)/2]
	}
	return median(samples[len(samples)-n:]) / median(samples[:n])
}
