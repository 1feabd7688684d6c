package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agent is a running agent: this binary under the name of a program. Its
// commands are in player_test.go.
type agent struct {
	t       *testing.T
	name    string // of its directory
	harness string
	mark    string // of the present session, where a test keeps it
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// agent starts an agent in a directory of its own below the world's. It has no
// terminal. More environment may follow.
func (w *world) agent(harness, name string, more ...string) *agent {
	w.t.Helper()
	bin, err := agentBinary(w.dir, harness)
	if err != nil {
		w.t.Fatal(err)
	}
	a := &agent{t: w.t, name: name, harness: harness, cmd: exec.Command(bin)}
	a.cmd.Dir = w.path(name)
	if err := os.MkdirAll(a.cmd.Dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	a.cmd.Env = append(append([]string{}, w.env...), more...)
	a.cmd.Stderr = os.Stderr
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	a.answers = bufio.NewReaderSize(out, 1<<20)
	if err := a.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		a.in.Close()
		_ = a.cmd.Process.Kill() // it may have ended
		_ = a.cmd.Wait()
	})
	if got := a.answer(); got != "ready" {
		w.t.Fatalf("agent said %q", got)
	}
	return a
}

func (a *agent) answer() string {
	a.t.Helper()
	line, err := a.answers.ReadString('\n')
	if err != nil {
		a.t.Fatalf("agent %s: %v", a.name, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// do gives a command, which has to succeed, and returns its answer.
func (a *agent) do(format string, args ...any) string {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.in, format+"\n", args...); err != nil {
		a.t.Fatalf("agent %s: %v", a.name, err)
	}
	answer := a.answer()
	if strings.HasPrefix(answer, "error") {
		a.t.Fatalf("agent %s: "+format+": %s", append(append([]any{a.name}, args...), answer)...)
	}
	return answer
}

// files are the agent's session files, oldest first.
func (a *agent) files() []string {
	a.t.Helper()
	var out []string
	decode(a.t, []byte(a.do("files")), &out)
	return out
}

// exit ends the agent in order.
func (a *agent) exit() {
	a.t.Helper()
	a.do("exit")
	_ = a.cmd.Wait() // its answer was the success
}

// truth is what a session's file proves, in the order of the file, as tokens
// that a story has too:
//
//	start TURN     a prompt, or a turn's start
//	text MARKER    an answer
//	final TURN     the program's own word that the turn is over
//	gap OFFSET     a record that is too long to be read
//
// It is read with encoding/json and the rules below, and with nothing of
// Steno's.
type truth struct {
	session string
	tokens  []string
}

// maxRecord is the longest record that is read (README: a record over 4 MiB is
// reported and passed over).
const maxRecord = 4 << 20

// truthOf reads a file. What stands behind its last newline is no record yet.
func truthOf(path string) (truth, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return truth{}, err
	}
	out := truth{session: filepath.Base(path)}
	seen := map[string]bool{}
	for at := 0; ; {
		n := strings.IndexByte(string(data[at:min(len(data), at+64)]), '\n')
		if n < 0 {
			n = indexNewline(data[at:])
		}
		if n < 0 {
			return out, nil
		}
		var tokens []string
		if n > maxRecord {
			tokens = []string{fmt.Sprint("gap ", at)}
		} else if tokens, err = tokensOf(data[at : at+n]); err != nil {
			return out, fmt.Errorf("%s at byte %d: %w", out.session, at, err)
		}
		for _, token := range tokens {
			if !seen[token] { // Codex writes an answer twice
				seen[token] = true
				out.tokens = append(out.tokens, token)
			}
		}
		at += n + 1
	}
}

func indexNewline(data []byte) int {
	for i, b := range data {
		if b == '\n' {
			return i
		}
	}
	return -1
}

// tokensOf reads one record of either program, as the players write them.
func tokensOf(line []byte) ([]string, error) {
	var r struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		UUID    string `json:"uuid"`
		Turn    string `json:"faultTurn"` // the player's own note
		Message struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		Payload struct {
			Type string `json:"type"`
			Turn string `json:"turn_id"`
			Role string `json:"role"`
			Item struct {
				Type    string  `json:"type"`
				Content []piece `json:"content"`
			} `json:"item"`
			Content []piece `json:"content"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	switch p := r.Payload; {
	case r.Type == "user":
		return []string{"start " + r.UUID}, nil
	case r.Type == "assistant":
		var content []piece
		if err := json.Unmarshal(r.Message.Content, &content); err != nil {
			return nil, err
		}
		return markers(content)
	case r.Type == "system" && r.Subtype == "turn_duration":
		return []string{"final " + r.Turn}, nil
	case p.Type == "task_started":
		return []string{"start " + p.Turn}, nil
	case p.Type == "task_complete":
		return []string{"final " + p.Turn}, nil
	case p.Type == "item_completed" && p.Item.Type == "AgentMessage":
		return markers(p.Item.Content)
	case p.Type == "message" && p.Role == "assistant":
		return markers(p.Content)
	}
	return nil, nil
}

type piece struct {
	Text string `json:"text"`
}

func markers(pieces []piece) ([]string, error) {
	var out []string
	for _, p := range pieces {
		m := markerOf(p.Text)
		if m == "" {
			return nil, errors.New("an answer without a marker")
		}
		out = append(out, "text "+m)
	}
	return out, nil
}

// markerOf is the mark that every answer of a player begins with.
func markerOf(text string) string {
	if !strings.HasPrefix(text, "[m:") {
		return ""
	}
	mark, _, ok := strings.Cut(text, "]")
	if !ok {
		return ""
	}
	return mark + "]"
}

func itoa(n int) string { return fmt.Sprint(n) }

// stamp is a time as both programs write it.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
