package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"steno/ipc/wire"
)

// secret stands in everything that an agent, a person or a client says in
// TestNoTextIsLogged. With its space it is no name of a record type.
const secret = "zqxj hunter"

// TestNoTextIsLogged: the log at its most talkative level, status, doctor and
// explain hold nothing of prompts, answers, thoughts, tool output, arguments,
// environments, titles and requests, of records that are whole, damaged or too
// long, for all six programs; and the state directory holds no prompt and no
// tool output.
func TestNoTextIsLogged(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "GEMINI_CLI_NO_RELAUNCH=1") // as the session's process has it
	d := w.serve(nil, "--log-level", "debug", "--sweep", "1s")
	f := w.follow(0)
	title := w.titled()
	agents := map[string]*standin{}
	for harness, args := range map[string][]string{
		"claude":   {secret + " argument"},
		"codex":    {secret + " argument"},
		"gemini":   {"-i", secret + " argument"},
		"opencode": {"--prompt", secret + " argument"},
		"kimi":     {"--yolo"},
		"copilot":  {"-i", secret + " argument"},
	} {
		lines := markedDemo(t, harness)
		record := filepath.Join(w.dir, harness+".jsonl")
		if err := os.WriteFile(record, bytes.Join(lines, []byte("\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		a := w.agentWith(args, harness, harness+"-dir", "STANDIN_RECORD="+record, "API_KEY="+secret)
		agents[harness] = a
		a.do("all")
		id := w.entry(harness + "-dir").AgentID
		f.until(harness+"'s marked answer", func(events []wire.Event) bool {
			return count(events, id, func(e wire.Event) bool { return isFinal(e) && strings.Contains(value(e.Text), secret) }) == 1
		})
		spoil(t, a, harness, lines)
		a.do("again")
		a.do("all")
		f.until(harness+"'s next answer", func(events []wire.Event) bool {
			return count(events, id, func(e wire.Event) bool { return isFinal(e) && strings.Contains(value(e.Text), secret) }) > 1
		})
	}
	disturb(t, w)

	said := map[string][]byte{}
	note := func(args ...string) { said["steno "+strings.Join(args, " ")] = w.steno(args...) }
	for _, format := range []string{"table", "json"} {
		note("status", "--format", format)
		note("doctor", "--format", format)
		note("explain", "--format", format, title)
		for harness := range agents {
			note("explain", "--format", format, w.entry(harness+"-dir").AgentID)
		}
	}
	d.stop()
	said["the log"] = d.stderr.Bytes()
	for what, text := range said {
		if i := bytes.Index(text, []byte("zqxj")); i >= 0 {
			t.Errorf("%s: ...%s", what, text[max(0, i-300):min(len(text), i+100)])
		}
	}
	kept, err := filepath.Glob(filepath.Join(w.dir, ".local/state/steno/*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("no state: %v", err)
	}
	for _, file := range kept {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{secret + " prompt", secret + " tool"} {
			if bytes.Contains(data, []byte(text)) {
				t.Errorf("%s holds %q", filepath.Base(file), text)
			}
		}
	}
	if n := bytes.Count(said["the log"], []byte("\n")); n < len(agents) {
		t.Errorf("the log has %d lines: is it on?", n)
	}
}

// literal is a string of JSON with the name before it, if it is a member's
// value, and what comes after it.
var literal = regexp.MustCompile(`(?:"(\w+)":)?"((?:[^"\\]|\\.)*)"(:?)`)

// each gives a record with its strings, which change may replace as JSON.
func each(line []byte, change func(key, text string) string) []byte {
	return literal.ReplaceAllFunc(line, func(found []byte) []byte {
		m := literal.FindSubmatch(found)
		key, text, after := string(m[1]), string(m[2]), string(m[3])
		if after != "" { // a name before something else than a string
			return found
		}
		out := change(key, text)
		if key != "" {
			out = `"` + key + `":` + out
		}
		return []byte(out)
	})
}

// markedDemo is a program's recorded session with the secret in every text.
func markedDemo(t *testing.T, harness string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(moduleRoot, "testdata/demo", harness+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	for i, line := range lines {
		lines[i] = each(line, func(_, text string) string {
			text = strings.ReplaceAll(text, "SCENARIO", secret+" prompt")
			if !strings.Contains(text, "The command printed") { // the answer
				text = strings.ReplaceAll(text, "tool-output", secret+" tool")
			}
			// An interruption is known by its whole text.
			if strings.Contains(text, " ") && !strings.Contains(text, secret) && !strings.HasPrefix(text, "[Request") {
				text += " " + secret
			}
			return `"` + text + `"`
		})
	}
	return lines
}

// spoil makes an agent write each of its records in several damaged forms, with
// the secret where it was not, and one record that is too long.
func spoil(t *testing.T, a *standin, harness string, lines [][]byte) {
	t.Helper()
	now := time.Now().UTC()
	dates := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
	millis := regexp.MustCompile(`\b1796\d{9}\b`)
	quoted := `"` + secret + `"`
	for _, line := range lines {
		line = dates.ReplaceAll(line, []byte(now.Format("2006-01-02T15:04:05.000Z")))
		line = millis.ReplaceAll(line, []byte(fmt.Sprint(now.UnixMilli())))
		structure := regexp.MustCompile(`^(type|timestamp|role)$`)
		replace := func(with string, where func(key string) bool) []byte {
			return each(line, func(key, text string) string {
				if where(key) {
					return with
				}
				return `"` + text + `"`
			})
		}
		texts := func(key string) bool { return !structure.MatchString(key) }
		all := func(string) bool { return true }
		forms := [][]byte{
			replace(quoted, texts), replace(`{`+quoted+`:[`+quoted+`]}`, texts),
			replace(quoted, func(key string) bool { return key == "type" }),
			regexp.MustCompile(`":(\d[\d.]*|true|false|null)`).ReplaceAll(line, []byte(`":`+quoted)),
			regexp.MustCompile(`"(content|text|data|payload|message|part|info|output|status|id|uuid)":`).ReplaceAll(line, []byte(`"`+secret+` $1":`)),
		}
		if harness != "opencode" { // its rows have a type, and are JSON
			forms = append(forms, replace(quoted, all), replace(`[`+quoted+`]`, all), line[:len(line)/2], line[:len(line)-1], []byte(secret), []byte(quoted), []byte(`[`+quoted+`]`))
		}
		for _, form := range forms {
			a.do("raw " + string(form))
		}
	}
	if harness == "opencode" {
		return
	}
	long := append(bytes.TrimSuffix(lines[len(lines)-1], []byte("}")), `,"more":"`...)
	long = append(append(long, bytes.Repeat([]byte(secret), 5<<20/len(secret))...), "\"}\n"...)
	file, err := os.OpenFile(a.file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(long); err != nil {
		t.Fatal(err)
	}
}

// titled makes a pane whose title is the secret, and gives its number.
func (w *world) titled() string {
	a := w.pane("gemini", "titled")
	w.tmux("select-pane", "-t", a.pane, "-T", secret)
	a.say("all")
	return fmt.Sprint(w.entry("titled").PaneID)
}

// disturb puts the secret into the small files beside the sessions, and into
// requests to the daemon, right and wrong ones.
func disturb(t *testing.T, w *world) {
	t.Helper()
	for _, pattern := range []string{
		".claude/sessions/*.json", ".codex/session_index.jsonl", ".gemini/tmp/*/.project_root", ".gemini/projects.json",
		".kimi-code/sessions/*/*/state.json", ".copilot/session-state/*/inuse.*.lock", ".local/share/opencode/log/*.log",
	} {
		files, err := filepath.Glob(filepath.Join(w.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(each(old, func(key, _ string) string { return `"` + secret + `"` }), "\n"+secret+"\n"...), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	requests := []string{secret, `"` + secret + `"`, `{"` + secret + `":"` + secret, `[{"method":"` + secret + `"}]`}
	for _, method := range []string{"Hello", "Capabilities", "Catalog", "ReadAgentEvents", "ListAgents", "ListPanes", "Status", "Explain", "AdmitPrompt", "ReadRequests", secret} {
		for _, params := range []string{`"` + secret + `"`, `{"` + secret + `":1}`, `{"client":"` + secret + `","target":"` + secret + `","after":"` + secret + `"}`,
			`{"agent_id":"` + secret + `","incarnation_id":"` + secret + `","request_id":"` + secret + `","prompt":"` + secret + `"}`} {
			requests = append(requests, fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, secret, method, params))
		}
	}
	for _, request := range requests {
		conn, err := net.DialTimeout("unix", w.socket(), patience)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(conn, request); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(conn).ReadBytes('\n'); err != nil {
			t.Errorf("%s: %v", request, err)
		}
		conn.Close()
	}
	var before, now wire.Status
	w.decode(w.steno("status", "--format", "json"), &before)
	waitFor(t, "another look at all files", func() bool {
		w.decode(w.steno("status", "--format", "json"), &now)
		return now.Watch.Sweeps > before.Watch.Sweeps+1
	})
	e := w.entry("claude-dir")
	w.steno("agent", "admit", "--exact-agent-id", "--incarnation", *e.IncarnationID, "--request-id", "5b1c2d3e-0000-4000-8000-000000000001", e.AgentID, secret)
}
