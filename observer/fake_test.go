package observer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"steno/providers"
)

// fake is a provider with the simplest format that has everything the pipeline
// deals with: turns, texts, finals that are held, and a registry of processes.
type fake struct{ quiet time.Duration }

var (
	_ providers.Provider = fake{}
	_ providers.Binder   = fake{}
)

type fakeRecord struct {
	ID   string    `json:"id"`
	Do   string    `json:"do"` // start, say, final, note
	Turn string    `json:"turn,omitempty"`
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at,omitzero"`
	CWD  string    `json:"cwd,omitempty"`
}

func (fake) ID() string { return "fake" }

func (fake) Roots(env providers.Env) []providers.Root {
	dirs := append([]string{filepath.Join(env.Home, "fake")}, env.Extra...)
	var out []providers.Root
	for _, d := range dirs {
		out = append(out,
			providers.Root{Provider: "fake", Name: "log", Dir: filepath.Join(d, "log"), Depth: 1},
			providers.Root{Provider: "fake", Name: "reg", Dir: filepath.Join(d, "reg")})
	}
	return out
}

func (fake) Claim(root providers.Root, rel string) (providers.Artifact, bool) {
	switch {
	case root.Name == "reg" && strings.HasSuffix(rel, ".json"):
		return providers.Artifact{Role: providers.Registry}, true
	case root.Name == "log" && strings.HasSuffix(rel, ".jsonl"):
		return providers.Artifact{Session: strings.TrimSuffix(filepath.Base(rel), ".jsonl")}, true
	}
	return providers.Artifact{}, false
}

func (f fake) Projector(a providers.Artifact, state []byte) providers.Projector {
	p := &fakeProjector{quiet: f.quiet}
	_ = json.Unmarshal(state, &p.s)
	return p
}

func (fake) EnvKeys() []string { return []string{"HOME"} }
func (fake) NeedsOpen() bool   { return false }

func (fake) Recognise(p providers.Process) providers.Part {
	if filepath.Base(p.Exe) == agentName {
		return providers.Worker
	}
	return providers.NotMine
}

func (fake) Describe(a providers.Artifact, first []byte) providers.Session {
	var r fakeRecord
	_ = json.Unmarshal(first, &r)
	return providers.Session{ID: a.Session, CWD: r.CWD}
}

type fakeRegistry struct {
	PID      int       `json:"pid"`
	Session  string    `json:"session"`
	Also     string    `json:"also,omitempty"` // another session, as well proved
	Activity string    `json:"activity"`
	Since    time.Time `json:"since,omitzero"`
}

func (fake) Evidence(ctx context.Context, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	b, err := os.ReadFile(filepath.Join(p.Env["HOME"], "fake", "reg", fmt.Sprintf("%d.json", p.PID)))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r fakeRegistry
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	e := providers.Evidence{Rank: providers.Exact, Session: r.Session, Source: "reg/<pid>.json", Activity: providers.Activity(r.Activity), Since: r.Since}
	for _, s := range known {
		if s.ID == r.Session {
			e.Path = s.Path
		}
	}
	if r.Also == "" {
		return []providers.Evidence{e}, nil
	}
	also := providers.Evidence{Rank: providers.Exact, Session: r.Also, Source: "reg/<pid>.json, also"}
	for _, s := range known {
		if s.ID == r.Also {
			also.Path = s.Path
		}
	}
	return []providers.Evidence{e, also}, nil
}

// fakeProjector holds a final until the next record or silence.
type fakeProjector struct {
	s     fakeState
	held  []providers.Draft
	quiet time.Duration
}

type fakeState struct{ Turn, State string }

func (p *fakeProjector) Project(r providers.Record) []providers.Draft {
	out := p.release()
	if r.Gap != providers.Whole {
		p.s = fakeState{}
		return append(out, r.Failure("fake"))
	}
	var rec fakeRecord
	if err := json.Unmarshal(r.Data, &rec); err != nil {
		return append(out, providers.Record{Start: r.Start, End: r.End, Gap: providers.Malformed}.Failure("fake"))
	}
	switch rec.Do {
	case "start":
		p.s = fakeState{rec.ID, "waiting_on_agent"}
		out = append(out,
			providers.Draft{Key: rec.ID + "/start", Kind: providers.TurnStarted, Turn: rec.ID, At: rec.At},
			providers.Draft{Key: rec.ID + "/state", Kind: providers.TurnStateChanged, Turn: rec.ID, At: rec.At, State: providers.WaitingOnAgent})
	case "say":
		out = append(out, providers.Draft{Key: rec.ID, Kind: providers.AssistantMessage, Turn: p.s.Turn, Text: rec.Text, At: rec.At})
	case "final":
		p.held = []providers.Draft{
			{Key: rec.ID + "/final", Kind: providers.TurnFinal, Turn: p.s.Turn, Outcome: providers.Completed, Text: rec.Text, At: rec.At},
			{Key: rec.ID + "/state", Kind: providers.TurnStateChanged, Turn: p.s.Turn, State: providers.WaitingOnUser, At: rec.At},
		}
		if p.quiet == 0 {
			out = append(out, p.release()...)
		}
	}
	return out
}

func (p *fakeProjector) release() []providers.Draft {
	out := p.held
	p.held = nil
	if len(out) > 0 {
		p.s.State = "waiting_on_user"
	}
	return out
}

func (p *fakeProjector) Turn() providers.Turn {
	return providers.Turn{ID: p.s.Turn, State: providers.TurnState(p.s.State)}
}
func (p *fakeProjector) State() []byte             { b, _ := json.Marshal(p.s); return b }
func (p *fakeProjector) Held() bool                { return len(p.held) > 0 }
func (p *fakeProjector) Settle() []providers.Draft { return p.release() }
func (p *fakeProjector) Quiet() time.Duration {
	if len(p.held) > 0 {
		return p.quiet
	}
	return 0
}

func (p *fakeProjector) Rewind(r providers.Record) bool {
	var rec fakeRecord
	_ = json.Unmarshal(r.Data, &rec)
	switch rec.Do {
	case "final":
		p.s = fakeState{State: "waiting_on_user"}
		return true
	case "start":
		p.s = fakeState{rec.ID, "waiting_on_agent"}
		return true
	}
	return false
}
func (p *fakeProjector) Rewound() {}

func (p *fakeProjector) Idle(at time.Time) []providers.Draft {
	if p.s.State != "waiting_on_agent" {
		return nil
	}
	p.s.State = "waiting_on_user"
	return []providers.Draft{
		{Key: p.s.Turn + "/no_reply", Kind: providers.TurnFinal, Turn: p.s.Turn, Outcome: providers.Aborted, Reason: providers.NoReply, Detail: providers.NoReply.Detail(), At: at},
		{Key: p.s.Turn + "/no_reply/state", Kind: providers.TurnStateChanged, Turn: p.s.Turn, State: providers.WaitingOnUser, At: at},
	}
}
