package claude

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"steno/providers"
)

// recorded is a registry record of 2.1.332, shortened.
const recorded = `{"pid":9001,"sessionId":"` + someID + `","cwd":"/home/dev/proj/c3t-perm","startedAt":1796065996475,"procStart":"224445",` +
	`"version":"2.1.332","kind":"interactive","entrypoint":"cli","status":"waiting","updatedAt":1796066005066,` +
	`"statusUpdatedAt":1796066005000,"waitingFor":"permission prompt"}`

// home makes a configuration directory with one registry record.
func home(t *testing.T, record string) (dir string, p providers.Process) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, ".claude", "sessions", "9001.json"), record)
	return dir, providers.Process{PID: 9001, StartTicks: 224445, CWD: "/home/dev/proj/c3t-perm",
		Started: time.UnixMilli(1796065996000), Args: []string{"claude"}, Env: map[string]string{"HOME": dir}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func one(t *testing.T, p providers.Process, known []providers.Session) providers.Evidence {
	t.Helper()
	got, err := Provider{}.Evidence(t.Context(), p, known)
	if err != nil || len(got) != 1 {
		t.Fatalf("Evidence = %v, %v, want one piece", got, err)
	}
	return got[0]
}

func TestRegistryIsExact(t *testing.T) {
	dir, p := home(t, recorded)
	since := time.UnixMilli(1796066005000).UTC()
	if err := os.Chtimes(filepath.Join(dir, ".claude", "sessions", "9001.json"), time.Time{}, since); err != nil {
		t.Fatal(err)
	}
	known := []providers.Session{
		{ID: someID, Path: "/c/projects/-elsewhere/" + someID + ".jsonl"},
		{ID: someID, Path: "/c/projects/-home-dev-proj-c3t-perm/" + someID + ".jsonl"},
		{ID: someID, Path: "/c/projects/-later/" + someID + ".jsonl"},
	}
	want := providers.Evidence{Rank: providers.Exact, Session: someID, Path: known[1].Path, Source: "sessions/<pid>.json",
		At: time.UnixMilli(1796066005066).UTC(), Activity: providers.Waiting, Waiting: "permission prompt",
		Since: since}
	if got := one(t, p, known); got != want {
		t.Errorf("Evidence = %+v\nwant %+v", got, want)
	}
}

func TestRegistryBeforeTheTranscriptIsKnown(t *testing.T) {
	dir, p := home(t, recorded)
	if got := one(t, p, nil); got.Path != "" || got.Refused != "" {
		t.Errorf("no transcript yet: Path = %q, Refused = %q", got.Path, got.Refused)
	}
	path := filepath.Join(dir, ".claude", "projects", "-home-dev-proj-c3t-perm", someID+".jsonl")
	write(t, path, "")
	if got := one(t, p, nil); got.Path != path {
		t.Errorf("Path = %q, want %q", got.Path, path)
	}
}

// Field list: F9, F10.
func TestRegistryRefused(t *testing.T) {
	tests := []struct{ name, old, new, refused string }{
		{"another start", `"224445"`, `"224446"`, "earlier process"},
		{"no start", `"procStart":"224445",`, ``, "no start time"},
		{"null start", `"224445"`, `null`, "no start time"},
		{"another pid", `"pid":9001`, `"pid":9002`, "another process"},
		{"another pane", `"pid":9001`, `"pid":9001,"tmux":"work:@2.%15"`, "another pane"},
		{"no session", someID, "../../etc/passwd", "no session"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, p := home(t, strings.Replace(recorded, tt.old, tt.new, 1))
			p.Pane = "%5"
			got := one(t, p, nil)
			if !strings.Contains(got.Refused, tt.refused) || got.Activity != "" || got.Path != "" {
				t.Errorf("Evidence = %+v, want refused with %q and no activity", got, tt.refused)
			}
			if got.Session != "" && got.Session != someID {
				t.Errorf("Session = %q", got.Session)
			}
		})
	}
	t.Run("the same pane", func(t *testing.T) {
		_, p := home(t, strings.Replace(recorded, `"pid":9001`, `"pid":9001,"tmux":"work:@2.%5"`, 1))
		p.Pane = "%5"
		if got := one(t, p, nil); got.Refused != "" {
			t.Errorf("Evidence = %+v, want accepted", got)
		}
	})
	t.Run("internal session", func(t *testing.T) {
		_, p := home(t, recorded)
		got := one(t, p, []providers.Session{{ID: someID, Path: "/x", Internal: "subagent"}})
		if got.Refused == "" || got.Path != "" {
			t.Errorf("Evidence = %+v, want refused", got)
		}
	})
}

func TestActivity(t *testing.T) {
	tests := []struct {
		status, waiting string
		want            providers.Activity
		words           string
	}{
		{"busy", "", providers.Busy, ""},
		{"idle", "", providers.Idle, ""},
		{"shell", "", providers.Idle, ""},
		{"waiting", "input needed", providers.Waiting, "input needed"},
		{"waiting", "dialog open", providers.Waiting, "dialog open"},
		{"waiting", "please type the secret", providers.Waiting, ""},
		{"", "", providers.NoActivity, ""},
		{"dancing", "", providers.NoActivity, ""},
	}
	for _, tt := range tests {
		_, p := home(t, fmt.Sprintf(`{"pid":9001,"sessionId":"%s","procStart":"224445","status":"%s","waitingFor":"%s"}`,
			someID, tt.status, tt.waiting))
		if got := one(t, p, nil); got.Activity != tt.want || got.Waiting != tt.words {
			t.Errorf("status %q: Activity = %q, Waiting = %q, want %q, %q", tt.status, got.Activity, got.Waiting, tt.want, tt.words)
		}
	}
}

// A status counts from when it was written: the program stamps it and may
// write it seconds later (2.1.197, an answer of 4 MiB: 7 s).
func TestStatusCountsFromItsWriting(t *testing.T) {
	stamped := time.UnixMilli(1796066005000).UTC()
	tests := []struct {
		name          string
		record        string
		written, want time.Time
	}{
		{"at once", recorded, stamped.Add(-time.Millisecond), stamped}, // the kernel's clock is coarse
		{"late", recorded, stamped.Add(7 * time.Second), stamped.Add(7 * time.Second)},
		{"not stamped", strings.Replace(recorded, "statusUpdatedAt", "x", 1), stamped, time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, p := home(t, tt.record)
			if err := os.Chtimes(filepath.Join(dir, ".claude", "sessions", "9001.json"), time.Time{}, tt.written); err != nil {
				t.Fatal(err)
			}
			if got := one(t, p, nil); !got.Since.Equal(tt.want) {
				t.Errorf("Since = %v, want %v", got.Since, tt.want)
			}
		})
	}
}

// A record that is being written over (new bytes, old tail) is read again
// until it is whole, a few times.
func TestRegistryHalfWritten(t *testing.T) {
	for halves := range tries + 1 {
		reads := 0
		rec, found, err := readEntry(t.Context(), func() ([]byte, error) {
			if reads++; reads <= halves {
				return []byte(recorded + `d prompt"}`), nil
			}
			return []byte(recorded), nil
		})
		if halves < tries && (err != nil || !found || rec.Session != someID || reads != halves+1) {
			t.Errorf("whole after %d halves: %v, %v, %v in %d reads", halves, rec, found, err, reads)
		}
		if halves == tries && (err == nil || reads != tries) {
			t.Errorf("never whole: error %v in %d reads, want an error in %d", err, reads, tries)
		}
	}
}

// Without an environment the record is looked for beside the known transcripts.
func TestRegistryWithoutEnvironment(t *testing.T) {
	dir, p := home(t, recorded)
	p.Env = nil
	path := filepath.Join(dir, ".claude", "projects", "-x", someID+".jsonl")
	got := one(t, p, []providers.Session{{ID: "other", Path: "/a/b.jsonl"}, {ID: someID, Path: path}})
	if got.Rank != providers.Exact || got.Refused != "" || got.Path != path {
		t.Errorf("Evidence = %+v", got)
	}
}

func TestLongDirectory(t *testing.T) {
	cwd := "/home/dev/" + strings.Repeat("long", 60)
	dir, p := home(t, strings.Replace(recorded, "/home/dev/proj/c3t-perm", cwd, 1))
	prefix, _ := slug(cwd)
	path := filepath.Join(dir, ".claude", "projects", prefix+"nwv0e0", someID+".jsonl")
	write(t, path, "")
	write(t, filepath.Join(dir, ".claude", "projects", prefix+"zzzzzz", "other.jsonl"), "")
	if got := one(t, p, nil); got.Path != path {
		t.Errorf("Path = %q, want %q", got.Path, path)
	}
	write(t, filepath.Join(dir, ".claude", "projects", prefix+"zzzzzz", someID+".jsonl"), "")
	if got := one(t, p, nil); got.Path != "" {
		t.Errorf("two folders hold the session: Path = %q, want none", got.Path)
	}
}

// Field list: F17.
func TestCouldNotLook(t *testing.T) {
	t.Run("never whole", func(t *testing.T) {
		_, p := home(t, `{"pid":9001`)
		if got, err := (Provider{}).Evidence(t.Context(), p, nil); err == nil {
			t.Errorf("Evidence = %v, want an error", got)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		_, p := home(t, `{"pid":9001`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (Provider{}).Evidence(ctx, p, nil); err == nil {
			t.Error("want an error")
		}
	})
	t.Run("link out of the directory", func(t *testing.T) {
		dir, p := home(t, "")
		path := filepath.Join(dir, ".claude", "sessions", "9001.json")
		outside := filepath.Join(t.TempDir(), "r.json")
		write(t, outside, recorded)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
		if got, err := (Provider{}).Evidence(t.Context(), p, nil); err == nil {
			t.Errorf("Evidence = %v, want an error", got)
		}
	})
	t.Run("pipe", func(t *testing.T) {
		dir, p := home(t, "")
		path := filepath.Join(dir, ".claude", "sessions", "9001.json")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (Provider{}).Evidence(t.Context(), p, nil); err == nil {
			t.Errorf("Evidence = %v, want an error", got)
		}
	})
	t.Run("no environment", func(t *testing.T) {
		if _, err := (Provider{}).Evidence(t.Context(), providers.Process{PID: 9001}, nil); err == nil {
			t.Error("want an error")
		}
	})
}

func TestNoRecordIsNoEvidence(t *testing.T) {
	p := providers.Process{PID: 9001, Args: []string{"claude"}, Env: map[string]string{"HOME": t.TempDir()}}
	if got, err := (Provider{}).Evidence(t.Context(), p, nil); err != nil || len(got) != 0 {
		t.Errorf("Evidence = %v, %v, want none", got, err)
	}
}

func TestArguments(t *testing.T) {
	p := providers.Process{PID: 9001, Started: time.Unix(1796065996, 0), Args: []string{"claude", "--resume", someID},
		Env: map[string]string{"HOME": t.TempDir()}}
	known := []providers.Session{{ID: someID, Path: "/c/projects/-x/" + someID + ".jsonl"}}
	got := one(t, p, known)
	if got.Rank != providers.Arguments || got.Session != someID || got.Path != known[0].Path || got.Refused != "" {
		t.Errorf("Evidence = %+v", got)
	}
	p.Args = append(p.Args, "--fork-session")
	if got := one(t, p, known); got.Refused == "" {
		t.Errorf("a forked session's old id counts: %+v", got)
	}
}

// Field list: F4, F5, F11.
func TestAgreement(t *testing.T) {
	dir := t.TempDir()
	start := time.Unix(1796065996, 0)
	p := providers.Process{PID: 9001, Started: start, CWD: "/home/dev/proj/a-b", Env: map[string]string{"HOME": dir}}
	folder := filepath.Join(dir, ".claude", "projects", "-home-dev-proj-a-b")
	session := func(name, cwd string, born time.Time) providers.Session {
		path := filepath.Join(folder, name+".jsonl")
		write(t, path, `{"type":"mode","mode":"normal"}`+"\n"+`{"type":"user","cwd":"`+cwd+`","timestamp":"2026-11-30T10:00:00Z"}`+"\n")
		return providers.Session{ID: name, Path: path, Born: born}
	}
	known := []providers.Session{
		session("mine", "/home/dev/proj/a-b", start.Add(time.Second)),
		session("older", "/home/dev/proj/a-b", start.Add(-time.Second)),
		session("same folder, other directory", "/home/dev/proj/a/b", start.Add(time.Second)),
		session("no birth", "/home/dev/proj/a-b", time.Time{}),
		{ID: "told", CWD: "/home/dev/proj/a-b", Born: start.Add(time.Minute), Path: "/nowhere/x.jsonl"},
		{ID: "internal", CWD: "/home/dev/proj/a-b", Born: start.Add(time.Minute), Internal: "subagent"},
	}
	got, err := Provider{}.Evidence(t.Context(), p, known)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range got {
		ids = append(ids, e.Session)
		if e.Rank != providers.Agreement || e.Refused != "" {
			t.Errorf("Evidence = %+v", e)
		}
	}
	if want := "mine told"; strings.Join(ids, " ") != want {
		t.Errorf("agreeing sessions = %v, want %s", ids, want)
	}
}

func TestDescribe(t *testing.T) {
	a := providers.Artifact{Provider: ID, Path: "/c/x.jsonl", Session: someID}
	born := time.Date(2026, 11, 30, 18, 46, 18, 909e6, time.UTC)
	tests := []struct {
		first string
		want  providers.Session
	}{
		{`{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-30T18:46:18.909Z","content":"x"}`, providers.Session{Born: born}},
		{`{"type":"user","cwd":"/home/dev/é","timestamp":"2026-11-30T18:46:18.909Z"}`, providers.Session{Born: born, CWD: "/home/dev/é"}},
		{`{"type":"ai-title","aiTitle":"t"}`, providers.Session{}},
		{`{"type":"user","isSidechain":true}`, providers.Session{Internal: "subagent"}},
		{`{"cwd":7,"timestamp":"never"`, providers.Session{}},
		{``, providers.Session{}},
	}
	for _, tt := range tests {
		tt.want.ID, tt.want.Path = someID, a.Path
		if got := (Provider{}).Describe(a, []byte(tt.first)); got != tt.want {
			t.Errorf("Describe(%s) = %+v, want %+v", tt.first, got, tt.want)
		}
	}
}
