package kimi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/providers"
	"steno/providers/providertest"
)

// began is when the process of these tests starts.
var began = time.UnixMilli(1796082700000).UTC()

// home is a directory of the program, made by hand.
type home struct {
	t   *testing.T
	dir string
}

// session makes a session as the program does and gives what Steno knows of it.
func (h home) session(name, cwd, title string, created, updated time.Duration, forked string) providers.Session {
	h.t.Helper()
	sum := sha256.Sum256([]byte(cwd))
	id := "session_" + name
	dir := filepath.Join(h.dir, "sessions", "wd_"+filepath.Base(cwd)+"_"+hex.EncodeToString(sum[:6]), id)
	if err := os.MkdirAll(filepath.Join(dir, "agents", "main"), 0o700); err != nil {
		h.t.Fatal(err)
	}
	m := map[string]any{"id": id, "version": 2, "cwd": cwd, "title": title,
		"createdAt": began.Add(created).UnixMilli(), "updatedAt": began.Add(updated).UnixMilli()}
	if forked != "" {
		m["forkedFrom"] = "session_" + forked
	}
	b, err := json.Marshal(m)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), b, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return providers.Session{ID: id, Path: filepath.Join(dir, "agents", "main", "wire.jsonl"), Born: began.Add(created)}
}

func evidence(t *testing.T, p providers.Process, known ...providers.Session) string {
	t.Helper()
	rows, err := Provider{}.Evidence(t.Context(), p, known)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range rows {
		line := fmt.Sprintf("%d %s", e.Rank, strings.TrimPrefix(e.Session, "session_"))
		if e.Refused != "" {
			line += " refused: " + e.Refused
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func TestEvidence(t *testing.T) {
	const old = "nothing was done in this session since the process began"
	s, m := time.Second, time.Minute
	h := home{t, t.TempDir()}
	kimi := providers.Process{PID: 7, Exe: "/usr/bin/node", Args: []string{"kimi-code  "}, CWD: "/w/a", Started: began}
	fresh := h.session("fresh", "/w/a", "one", s, 2*s, "")
	second := h.session("second", "/w/a", "two", 3*s, 4*s, "")
	past := h.session("past", "/w/a", "three", -m, -s, "")
	resumed := h.session("resumed", "/w/a", "four", -m, 5*s, "")
	fork := h.session("fork", "/w/a", "Fork: one", 6*s, 2*s, "fresh")
	usedFork := h.session("usedfork", "/w/a", "Fork: two", 6*s, 9*s, "second")
	elsewhere := h.session("elsewhere", "/w/b", "one", s, 2*s, "")
	child := fresh
	child.Internal = "a helper's"
	tests := []struct {
		name  string
		p     func(p *providers.Process)
		known []providers.Session
		want  string
	}{
		{"one session of the directory", nil, []providers.Session{fresh, elsewhere, past}, "4 fresh; 4 past refused: " + old},
		{"two of them, no title", nil, []providers.Session{fresh, second}, "4 second; 4 fresh"},
		{"two of them, one in the title", func(p *providers.Process) { p.Title = "one" }, []providers.Session{fresh, second},
			"4 second refused: the terminal's title is another session's name; 4 fresh"},
		{"a title that nobody has", func(p *providers.Process) { p.Title = "bash" }, []providers.Session{fresh, second}, "4 second; 4 fresh"},
		{"the title of a dead session", func(p *providers.Process) { p.Title = "three" }, []providers.Session{fresh, past},
			"4 fresh; 4 past refused: " + old},
		{"resumed, and prompted", nil, []providers.Session{resumed}, "4 resumed"},
		{"a fork that nobody used, and one", nil, []providers.Session{fork, usedFork}, "4 usedfork; 4 fork refused: a fork that nobody has used"},
		{"a session that owns no pane", nil, []providers.Session{child}, ""},
		{"the command line", func(p *providers.Process) { p.Args = []string{"node", "/bin/kimi", "-r", past.ID} }, []providers.Session{past},
			"3 past; 4 past refused: " + old},
		{"the command line, nothing known", func(p *providers.Process) { p.Args = []string{"node", "/bin/kimi", "-r", past.ID} }, nil, "3 past"},
		{"no directory", func(p *providers.Process) { p.CWD = "" }, []providers.Session{fresh}, ""},
		{"no start", func(p *providers.Process) { p.Started = time.Time{} }, []providers.Session{fresh}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := kimi
			if tt.p != nil {
				tt.p(&p)
			}
			if got := evidence(t, p, tt.known...); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What lies where state.json should be is no reason to stop: only a file that
// cannot be read now is.
func TestEvidenceBadState(t *testing.T) {
	h := home{t, t.TempDir()}
	kimi := providers.Process{PID: 7, CWD: "/w/a", Started: began}
	bad := []func(path string) error{
		os.Remove,
		func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		func(p string) error { return os.WriteFile(p, make([]byte, maxStateFile+1), 0o600) },
		func(p string) error { _ = os.Remove(p); return os.Mkdir(p, 0o700) },
	}
	for i, spoil := range bad {
		s := h.session(fmt.Sprint("bad", i), "/w/a", "", time.Second, time.Second, "")
		if err := spoil(filepath.Join(sessionDir(s.Path), "state.json")); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("4 bad%d refused: the session has no state that can be read", i)
		if got := evidence(t, kimi, s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := copiedBefore(s.Path); got != 0 { // there is no record, so nothing was copied
			t.Errorf("copiedBefore = %d", got)
		}
	}
	s := h.session("other", "/w/a", "", time.Second, time.Second, "")
	s.ID = "session_mine"
	if got := evidence(t, kimi, s); got != "4 mine refused: the state beside the record is another session's" {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Provider{}).Evidence(ctx, kimi, []providers.Session{s}); err == nil {
		t.Error("no error after the context ended")
	}
	var many []providers.Session
	for i := range maxStates + 9 {
		many = append(many, h.session(fmt.Sprint("many", i), "/w/a", "", -time.Minute, -time.Minute, ""))
	}
	rows, err := Provider{}.Evidence(t.Context(), kimi, many)
	if err != nil || len(rows) != maxRefused {
		t.Errorf("%d rows, %v, want %d", len(rows), err, maxRefused)
	}
}

// A session that cannot be read now is unknown, not absent.
func TestEvidenceUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	h := home{t, t.TempDir()}
	s := h.session("s", "/w/a", "", time.Second, time.Second, "")
	if err := os.Chmod(filepath.Join(sessionDir(s.Path), "state.json"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := (Provider{}).Evidence(t.Context(), providers.Process{PID: 7, CWD: "/w/a", Started: began}, []providers.Session{s}); err == nil {
		t.Error("no error")
	}
}

// The name by which a fork is noticed comes some milliseconds before its
// state.json: what the fork copied is no event even then.
func TestForkJustMade(t *testing.T) {
	for _, late := range []bool{false, true} {
		h := home{t, t.TempDir()}
		s := h.session("fork", "/w/a", "Fork: one", 10*time.Second, time.Second, "own")
		state := filepath.Join(sessionDir(s.Path), "state.json")
		if err := os.WriteFile(s.Path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(state, state+".tmp.7.00ff"); err != nil {
			t.Fatal(err)
		}
		if !late {
			time.AfterFunc(3*stateEvery, func() { _ = os.Rename(state+".tmp.7.00ff", state) }) // the program's own rename
		}
		w := (&wire{ms: began.UnixMilli()}).prompt("0", "copied").ended("0", "completed", "")
		p := Provider{}.Projector(providers.Artifact{Session: "S", Path: s.Path}, nil)
		if got := providertest.Drafts(providertest.Play(p, w.recs, providertest.Script{End: true})); len(got) != 0 {
			t.Errorf("late %v: copied records give %v", late, got)
		}
		if got := p.Turn(); got.State != providers.WaitingOnUser {
			t.Errorf("late %v: Turn = %v", late, got)
		}
		w = (&wire{ms: time.Now().Add(time.Minute).UnixMilli()}).prompt("1", "own")
		if got := providertest.Drafts(providertest.Play(p, w.recs, providertest.Script{End: true})); len(got) != 2 {
			t.Errorf("late %v: its own prompt gives %v", late, got)
		}
	}
}

// --continue means the session of the directory that was used last.
func TestContinued(t *testing.T) {
	dir := t.TempDir()
	h := home{t, dir}
	kimi := providers.Process{PID: 7, Exe: "/usr/bin/node", Args: []string{"node", "/bin/kimi", "--continue"}, CWD: "/w/a", Started: began,
		Env: map[string]string{"KIMI_CODE_HOME": dir}}
	if got := evidence(t, kimi); got != "" {
		t.Errorf("no sessions: %s", got)
	}
	h.session("older", "/w/a", "", -time.Hour, -10*time.Minute, "")
	last := h.session("last", "/w/a", "", -2*time.Hour, -time.Minute, "")
	h.session("elsewhere", "/w/b", "", -time.Hour, -time.Second, "")
	h.session("unused", "/w/a", "", -30*time.Minute, -20*time.Minute, "older") // a fork: as old as its source
	if got := evidence(t, kimi); got != "3 last" {
		t.Errorf("got %s, want last", got)
	}
	rows, err := Provider{}.Evidence(t.Context(), kimi, nil)
	if err != nil || rows[0].Path != last.Path || !rows[0].At.Equal(began) {
		t.Errorf("rows = %+v, %v", rows, err)
	}
	picks := kimi
	picks.Args = append(picks.Args, "-S")
	if got := evidence(t, picks); got != "" {
		t.Errorf("one that will be picked: %s", got)
	}
	other := kimi
	other.Env = map[string]string{"HOME": dir}
	if got := evidence(t, other); got != "" {
		t.Errorf("another home: %s", got)
	}
	h.session("used", "/w/a", "", -time.Hour, time.Second, "")
	if got := evidence(t, kimi); got != "3 used refused: a session of this directory was used since the process began" {
		t.Errorf("with a session that was used since: %s", got)
	}
	if err := os.Chmod(filepath.Join(dir, "sessions"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "sessions"), 0o700)
	if _, err := (Provider{}).Evidence(t.Context(), kimi, nil); err == nil && os.Geteuid() != 0 {
		t.Error("no error from a directory that cannot be read")
	}
}

// /fork makes a session and stays in its own: the name of the new one is no
// proof, until it is seen again.
func TestDoubt(t *testing.T) {
	h := home{t, t.TempDir()}
	own := h.session("own", "/w/a", "one", time.Second, 2*time.Second, "")
	fork := h.session("fork", "/w/a", "Fork: one", 10*time.Second, 2*time.Second, "own")
	known := []providers.Session{own, fork}
	tests := []struct {
		session string
		at      time.Duration
		doubt   bool
	}{
		{own.ID, time.Second, false},
		{fork.ID, 10 * time.Second, true},
		{fork.ID, 10*time.Second + 300*time.Millisecond, true},
		{fork.ID, 15 * time.Second, false},
		{"session_unknown", 10 * time.Second, false},
	}
	for _, tt := range tests {
		why := Provider{}.Doubt(providers.Process{PID: 7}, providers.Naming{PID: 7, Session: tt.session, Source: fromName}, began.Add(tt.at), known)
		if (why != "") != tt.doubt {
			t.Errorf("Doubt(%s, +%v) = %q, want doubt %v", tt.session, tt.at, why, tt.doubt)
		}
	}
}

// A directory and the folder that 2.1.0 made for it.
func TestInDirectory(t *testing.T) {
	const path = "/k/sessions/wd_proj.n-me_750eb9a32b19/" + someSession + "/agents/main/wire.jsonl"
	if !inDirectory(path, "/var/tmp/kdemo/Proj.Näme") {
		t.Error("the recorded folder is not recognised")
	}
	if inDirectory(path, "/var/tmp/kdemo") || inDirectory("/wire.jsonl", "/var/tmp/kdemo") {
		t.Error("another folder is")
	}
}

// The states that the program wrote.
func TestRecordedStates(t *testing.T) {
	for _, c := range load(t) {
		m, err := readMeta(sessionDir(c.File))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(c.Name, "hand-") {
			continue
		}
		if m.ID != c.Artifact.Session || m.born().IsZero() || m.CWD == "" {
			t.Errorf("%s: state = %+v", c.Name, m)
		}
		s := Provider{}.Describe(c.Artifact, providertest.Split(c.Data)[0].Data)
		if s.ID != m.ID || s.Born.IsZero() || m.Forked == "" && s.Born.Before(m.born().Add(-time.Second)) || s.Internal != "" {
			t.Errorf("%s: Describe = %+v", c.Name, s)
		}
	}
}

// A fork's record begins with that of its source: only what is newer than the
// fork is its own, also after a restart.
func TestFork(t *testing.T) {
	for _, c := range load(t) {
		if !strings.HasPrefix(c.Name, "lab-fork/") {
			continue
		}
		p := Provider{}.Projector(c.Artifact, nil)
		var starts int
		for _, r := range providertest.Split(c.Data) {
			for _, d := range p.Project(r) {
				if d.Kind == providers.TurnStarted {
					starts++
				}
			}
			if h := p.(providers.Holder); !h.Held() {
				p = Provider{}.Projector(providers.Artifact{Session: c.Artifact.Session, Path: "/gone/main/wire.jsonl"}, p.State())
			}
		}
		if starts != 1 {
			t.Errorf("%d turns started, want 1 of 6", starts)
		}
		return
	}
	t.Fatal("no fork in the corpus")
}
