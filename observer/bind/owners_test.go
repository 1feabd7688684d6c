package bind

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"steno/providers"
)

// fakeHarness recognises processes by a word in front of their arguments:
// "codex:launcher". The tables below say what each stands for.
type fakeHarness string

func (f fakeHarness) ID() string { return string(f) }

func (f fakeHarness) Recognise(p providers.Process) providers.Part {
	for _, a := range p.Args {
		switch a {
		case string(f) + ":launcher":
			return providers.Launcher
		case string(f) + ":worker":
			return providers.Worker
		case string(f) + ":helper":
			return providers.Helper
		}
	}
	return providers.NotMine
}

var allHarnesses = []Recogniser{
	fakeHarness("claude"), fakeHarness("codex"), fakeHarness("gemini"),
	fakeHarness("opencode"), fakeHarness("kimi"), fakeHarness("copilot"),
}

const (
	pts1 = 136<<8 | 1
	pts2 = 136<<8 | 2
)

// at is when the tables were "read"; processes started a minute before unless
// they say otherwise.
var at = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

// ps makes a process: "pid ppid pgid sid tty tpgid state role". A role that ends
// in "!" started a second before.
func ps(text string) providers.Process {
	var p providers.Process
	var role, state string
	n, err := fmt.Sscan(text, &p.PID, &p.PPID, &p.PGID, &p.SID, &p.TTY, &p.TPGID, &state, &role)
	if err != nil || n != 8 {
		panic(fmt.Sprintf("%q: %v", text, err))
	}
	p.State, p.StartTicks, p.Started = state[0], uint64(p.PID)*10, at.Add(-time.Minute)
	role, young := strings.CutSuffix(role, "!")
	if young {
		p.Started = at.Add(-time.Second)
	}
	p.Args = []string{role}
	return p
}

// pane makes pane n, which shell n0 leads.
func pane(n uint32) Pane {
	return Pane{
		Key: PaneKey("/s", 900, 77, int(n)), Server: ServerKey("/s"), Number: n, TTY: 136<<8 | uint64(n),
		PID: int(n) * 10, Title: fmt.Sprintf("title %d", n),
	}
}

// tree makes processes. T1 and T2 stand for the terminals of panes 1 and 2.
func tree(lines ...string) []providers.Process {
	var out []providers.Process
	for _, l := range lines {
		l = strings.NewReplacer("T1", fmt.Sprint(pts1), "T2", fmt.Sprint(pts2)).Replace(l)
		out = append(out, ps(l))
	}
	return out
}

const shell1, shell2 = "10 900 10 10 T1 30 S bash", "20 900 20 20 T2 40 S bash"

// Field list: F14, F18.
func TestOwners(t *testing.T) {
	t.Parallel()
	two := []Pane{pane(1), pane(2)}
	key1, key2 := two[0].Key, two[1].Key
	for _, c := range []struct {
		name  string
		panes []Pane
		procs []providers.Process
		want  []string // "provider pid launcher foreground kind key"
		no    []string // "pid pending reason"
	}{
		// The six rows of binding.md, section 4.
		{"claude: one process", two, tree(shell1, "30 10 30 10 T1 30 S claude:worker"),
			[]string{"claude 30 0 true tmux " + key1}, nil},
		{"codex: node, then the native worker; daemon and updater are its children without a terminal", two, tree(shell1,
			"30 10 30 10 T1 30 S codex:launcher", "31 30 30 10 T1 30 S codex:worker",
			"32 31 32 32 0 -1 S codex:helper", "33 31 33 33 0 -1 S codex:helper"),
			[]string{"codex 31 30 true tmux " + key1}, []string{"32 false helper of the program", "33 false helper of the program"}},
		{"gemini: node, then node", two, tree(shell1, "30 10 30 10 T1 30 S gemini:launcher", "31 30 30 10 T1 30 S gemini:worker"),
			[]string{"gemini 31 30 true tmux " + key1}, nil},
		{"opencode: one process", two, tree(shell1, "30 10 30 10 T1 30 S opencode:worker"),
			[]string{"opencode 30 0 true tmux " + key1}, nil},
		{"kimi: one process", two, tree(shell1, "30 10 30 10 T1 30 S kimi:worker"),
			[]string{"kimi 30 0 true tmux " + key1}, nil},
		{"copilot: node, then MainThread", two, tree(shell1, "30 10 30 10 T1 30 S copilot:launcher", "31 30 30 10 T1 30 S copilot:worker"),
			[]string{"copilot 31 30 true tmux " + key1}, nil},

		{"two panes", two, tree(shell1, shell2, "30 10 30 10 T1 30 S claude:worker", "40 20 40 20 T2 40 S claude:worker"),
			[]string{"claude 30 0 true tmux " + key1, "claude 40 0 true tmux " + key2}, nil},
		{"the harness leads the pane", two, tree("10 900 10 10 T1 10 S claude:worker"),
			[]string{"claude 10 0 true tmux " + key1}, nil},
		{"a shell script between shell and harness", two, tree(shell1, "30 10 30 10 T1 30 S sh", "31 30 30 10 T1 30 S claude:worker"),
			[]string{"claude 31 0 true tmux " + key1}, nil},
		{"a wrapper between launcher and worker", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher", "31 30 30 10 T1 30 S sh", "32 31 30 10 T1 30 S codex:worker"),
			[]string{"codex 32 30 true tmux " + key1}, nil},
		{"nested harness, same job", two, tree(shell1, "30 10 30 10 T1 30 S claude:worker", "31 30 30 10 T1 30 S sh", "32 31 30 10 T1 30 S codex:worker"),
			[]string{"claude 30 0 true tmux " + key1}, []string{"32 false started by claude process 30"}},
		{"nested harness of the same kind with launcher", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher", "31 30 30 10 T1 30 S codex:worker",
			"32 31 30 10 T1 30 S codex:launcher", "33 32 30 10 T1 30 S codex:worker"),
			[]string{"codex 31 30 true tmux " + key1}, []string{"32 false started by codex process 31", "33 false started by codex process 32"}},
		{"nested harness without a terminal", two, tree(shell1, "30 10 30 10 T1 30 S codex:worker", "31 30 31 31 0 -1 S claude:worker"),
			[]string{"codex 30 0 true tmux " + key1}, []string{"31 false started by codex process 30"}},
		{"nested harness on a terminal of its own", two, tree(shell1, "30 10 30 10 T1 30 S codex:worker", "31 30 31 31 34825 31 S claude:worker"),
			[]string{"codex 30 0 true tmux " + key1}, []string{"31 false started by codex process 30"}},
		{"a tool of the shared daemon", nil, tree("32 1 32 32 0 -1 S codex:helper", "33 32 32 32 0 -1 S sh", "34 33 32 32 0 -1 S claude:worker"),
			nil, []string{"32 false helper of the program", "34 false started by codex process 32"}},
		{"spare process of the program", two, tree(shell1, "30 10 30 10 T1 30 S claude:worker", "31 30 30 10 T1 30 S claude:helper", "35 1 35 35 0 -1 S claude:helper"),
			[]string{"claude 30 0 true tmux " + key1}, []string{"31 false helper of the program", "35 false helper of the program"}},

		{"stopped by Ctrl-Z", two, tree("10 900 10 10 T1 10 S bash", "30 10 30 10 T1 10 T claude:worker"),
			[]string{"claude 30 0 false tmux " + key1}, nil},
		{"one stopped, another in front", two, tree(shell1, "29 10 29 10 T1 30 T codex:launcher", "28 29 29 10 T1 30 T codex:worker", "30 10 30 10 T1 30 S claude:worker"),
			[]string{"codex 28 29 false tmux " + key1, "claude 30 0 true tmux " + key1}, nil},
		{"a pipe of two harnesses", two, tree(shell1, "30 10 30 10 T1 30 S claude:worker", "31 10 30 10 T1 30 S codex:worker"),
			nil, []string{"30 false 2 harnesses in the foreground job of one terminal: 30, 31", "31 false 2 harnesses in the foreground job of one terminal: 30, 31"}},
		{"a pipe into a pager", two, tree(shell1, "30 10 30 10 T1 30 S claude:worker", "31 10 30 10 T1 30 S less"),
			[]string{"claude 30 0 true tmux " + key1}, nil},
		{"launcher waits for its worker", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher!"),
			nil, []string{"30 true launcher has not started its worker yet"}},
		{"launcher without a worker", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher"),
			nil, []string{"30 false launcher has lived 10 s without a worker"}},
		{"launcher with two workers", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher", "31 30 30 10 T1 30 S codex:worker", "32 30 30 10 T1 30 S codex:worker"),
			nil, []string{"31 false launcher 30 has 2 workers", "32 false launcher 30 has 2 workers"}},
		{"worker of another process group than its launcher", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher", "31 30 31 10 T1 30 S codex:worker"),
			nil, []string{"30 false launcher has lived 10 s without a worker", "31 false started by codex process 30"}},
		{"worker whose launcher has died", two, tree(shell1, "31 1 30 10 T1 30 S codex:worker"),
			[]string{"codex 31 0 true tmux " + key1}, nil},
		{"zombie worker beside a new one", two, tree(shell1, "30 10 30 10 T1 30 S codex:launcher", "31 30 30 10 T1 30 Z codex:worker", "32 30 30 10 T1 30 S codex:worker"),
			[]string{"codex 32 30 true tmux " + key1}, nil},
		{"only a zombie", two, tree(shell1, "30 10 30 10 T1 30 Z claude:worker"), nil, nil},
		{"recognised twice", two, func() []providers.Process {
			l := tree(shell1, "30 10 30 10 T1 30 S claude:worker", "31 30 30 10 T1 30 S codex:worker")
			l[1].Args = append(l[1].Args, "codex:worker")
			return l
		}(), nil, []string{"30 false more than one provider recognises this process", "31 false started by claude process 30"}},

		{"terminal without a multiplexer", nil, tree(shell1, "30 10 30 10 T1 30 S claude:worker"),
			[]string{"claude 30 0 true terminal tty:/dev/pts/1:10:100"}, nil},
		{"two on one terminal without a multiplexer", nil, tree(shell1, "30 10 30 10 T1 30 S claude:worker", "31 10 30 10 T1 30 S claude:worker"),
			nil, []string{"30 false 2 harnesses in the foreground job of one terminal: 30, 31", "31 false 2 harnesses in the foreground job of one terminal: 30, 31"}},
		{"another terminal inside a pane, as by script", []Pane{pane(1)}, tree("10 900 10 10 T1 28 S bash", "28 10 28 10 T1 28 S script",
			"29 28 29 29 T2 30 S bash", "30 29 30 29 T2 30 S claude:worker"),
			[]string{"claude 30 0 true terminal tty:/dev/pts/2:29:290"}, nil},
		{"tmux inside a pane of tmux", two, tree("10 900 10 10 T1 28 S bash", "28 10 28 10 T1 28 S tmux",
			"20 901 20 20 T2 40 S bash", "40 20 40 20 T2 40 S claude:worker"),
			[]string{"claude 40 0 true tmux " + key2}, nil},
		{"headless", two, tree("50 1 50 50 0 -1 S claude:worker", "51 1 51 51 0 -1 S codex:launcher", "52 51 51 51 0 -1 S codex:worker"),
			[]string{"claude 50 0 true headless pid:50:500", "codex 52 51 true headless pid:52:520"}, nil},

		{"dead pane whose terminal is used again", []Pane{func() Pane { p := pane(1); p.Dead, p.Number, p.Key = true, 9, "dead"; return p }(), pane(1)},
			tree(shell1, "30 10 30 10 T1 30 S claude:worker"), []string{"claude 30 0 true tmux " + key1}, nil},
		{"only a dead pane", []Pane{func() Pane { p := pane(1); p.Dead = true; return p }()},
			tree(shell1, "30 10 30 10 T1 30 S claude:worker"), []string{"claude 30 0 true terminal tty:/dev/pts/1:10:100"}, nil},
		{"two panes with one terminal", []Pane{pane(1), func() Pane { p := pane(1); p.Key = "other"; return p }(), func() Pane { p := pane(1); p.Key = "third"; return p }()},
			tree(shell1, "30 10 30 10 T1 30 S claude:worker"), nil, []string{"30 false more than one pane has terminal /dev/pts/1"}},
		{"the same pane twice", []Pane{pane(1), pane(1)},
			tree(shell1, "30 10 30 10 T1 30 S claude:worker"), []string{"claude 30 0 true tmux " + key1}, nil},
		{"a container has a terminal of the same number", []Pane{pane(1)}, tree(shell1, "30 10 30 10 T1 30 S claude:worker",
			"60 1 60 60 T1 61 S bash", "61 60 61 60 T1 61 S claude:worker"),
			[]string{"claude 30 0 true tmux " + key1, "claude 61 0 true terminal tty:/dev/pts/1:60:600"}, nil},
		{"the pane's own session is gone from the terminal", []Pane{pane(1)}, tree("60 1 60 60 T1 60 S claude:worker"),
			[]string{"claude 60 0 true tmux " + key1}, nil},
		{"unknown terminal of a pane", []Pane{func() Pane { p := pane(1); p.TTY = 0; return p }()}, tree("50 1 50 50 0 -1 S claude:worker"),
			[]string{"claude 50 0 true headless pid:50:500"}, nil},
		{"nothing", nil, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantNo := c.no
			slices.Sort(wantNo)
			for i := range 20 {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				procs, panes := slices.Clone(c.procs), slices.Clone(c.panes)
				rng.Shuffle(len(procs), func(i, j int) { procs[i], procs[j] = procs[j], procs[i] })
				if i > 0 {
					rng.Shuffle(len(panes), func(i, j int) { panes[i], panes[j] = panes[j], panes[i] })
				}
				owners, excluded := Owners(NewProcesses(at, procs...), panes, allHarnesses)
				var got, no []string
				for _, o := range owners {
					got = append(got, fmt.Sprintf("%s %d %d %v %s %s", o.Provider, o.Process.PID, o.Launcher, o.Foreground, o.Place.Kind, o.Place.Key))
					if (o.Place.Pane != nil) != (o.Place.Kind == InTmux) {
						t.Errorf("place %+v", o.Place)
					}
				}
				for _, e := range excluded {
					if e.Helper != (e.Reason == "helper of the program") {
						t.Errorf("excluded %+v", e)
					}
					no = append(no, fmt.Sprintf("%d %v %s", e.Process.PID, e.Pending, e.Reason))
				}
				slices.Sort(no)
				if !slices.Equal(got, c.want) || !slices.Equal(no, wantNo) {
					t.Fatalf("Owners =\n%q\n%q\nwant\n%q\n%q", got, no, c.want, wantNo)
				}
			}
		})
	}
}

// Field list: F10.
func TestOwnerPlace(t *testing.T) {
	t.Parallel()
	panes := []Pane{pane(1)}
	procs := NewProcesses(at, tree(shell1, "30 10 30 10 T1 30 S claude:worker", "40 20 40 20 T2 40 S claude:worker", "50 1 50 50 0 -1 S claude:worker")...)
	owners, _ := Owners(procs, panes, allHarnesses)
	if len(owners) != 3 {
		t.Fatalf("owners %+v", owners)
	}
	for i, want := range []Place{
		{Kind: InTmux, Key: "tmux:/s:900:77:%1", Server: "tmux:/s", Number: 1, TTY: "/dev/pts/1", Pane: &panes[0]},
		{Kind: InTerminal, Key: "tty:/dev/pts/2:20:0", Server: "terminal", Number: 2, TTY: "/dev/pts/2"}, // its leader is not seen
		{Kind: Headless, Key: "pid:50:500", Server: "headless", Number: 50},
	} {
		if !reflect.DeepEqual(owners[i].Place, want) {
			t.Errorf("place %d = %+v, want %+v", i, owners[i].Place, want)
		}
	}
	if owners[0].Process.Title != "title 1" || owners[1].Process.Title != "" {
		t.Errorf("titles %q, %q", owners[0].Process.Title, owners[1].Process.Title)
	}
	panes[0].Title = "changed"
	if owners[0].Place.Pane.Title != "title 1" {
		t.Error("the place shares its pane with the caller")
	}
}
