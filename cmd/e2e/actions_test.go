//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"steno/ipc/wire"
)

// agent is a directory with a pane, in which a person starts programs.
type agent struct {
	w    *world
	name string
	pane string // tmux pane id

	program *program // that was started last

	bare *exec.Cmd      // a terminal without a multiplexer
	keys io.WriteCloser // its keyboard
	log  string         // what it was sent

	apart *exec.Cmd     // a program that runs without a terminal
	said  *bytes.Buffer // what it printed
}

// action is one thing that a person does.
type action func(*agent)

// do is several actions in a row.
func do(actions ...action) action {
	return func(a *agent) {
		a.w.t.Helper()
		for _, act := range actions {
			act(a)
		}
	}
}

// in makes an action happen in another pane: of the directory of that name, up
// to a dot.
func in(name string, act action) action {
	return func(a *agent) { act(a.w.agent(name)) }
}

func (w *world) tmuxCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-f", "/dev/null"}, args...)...)
	cmd.Env, cmd.Dir = w.env, w.dir
	return cmd
}

func (w *world) tmux(args ...string) string {
	w.t.Helper()
	out, err := w.tmuxCommand(args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %s: %v: %s", args[0], err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (w *world) agent(name string) *agent {
	if w.agents[name] == nil {
		w.agents[name] = &agent{w: w, name: name}
	}
	return w.agents[name]
}

// open makes the agent's pane with a shell.
func (a *agent) open() {
	a.w.t.Helper()
	if a.pane != "" {
		return
	}
	dir := filepath.Join(a.w.dir, a.dir())
	shell := []string{"bash", "--norc", "--noprofile"}
	place := []string{"new-window", "-d", "-t", "e2e"}
	if a.w.tmuxCommand("has-session", "-t", "e2e").Run() != nil {
		place = []string{"new-session", "-d", "-s", "e2e", "-x", "150", "-y", "50"}
	}
	a.pane = a.w.tmux(append(append(place, "-P", "-F", "#{pane_id}", "-c", dir), shell...)...)
	see("$")(a)
}

// dir is the agent's directory: its name up to a dot, so that several agents
// can share one.
func (a *agent) dir() string {
	dir, _, _ := strings.Cut(a.name, ".")
	return dir
}

func (a *agent) screen() string {
	a.w.t.Helper()
	return a.w.tmux("capture-pane", "-J", "-p", "-t", a.pane)
}

// coloured is the screen with its colours.
func (a *agent) coloured() string {
	a.w.t.Helper()
	return a.w.tmux("capture-pane", "-e", "-p", "-t", a.pane)
}

// squeeze drops white space: programs wrap and pad as they like.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// see waits until the screen shows a text.
func see(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the screen shows "+text, func() bool {
			return strings.Contains(squeeze(a.screen()), squeeze(text))
		})
	}
}

// gone waits until the screen no longer shows a text.
func gone(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the screen no longer shows "+text, func() bool {
			return !strings.Contains(squeeze(a.screen()), squeeze(text))
		})
	}
}

// write types a text and waits until the screen shows it once more. Its last
// letter comes alone: programs take a burst of letters with an Enter right after
// it for a paste, and keep the Enter as text.
func write(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		// The lines are counted alone, too: "nam" above a line that begins with an e is
		// not yet a name.
		count := func(s string) (lines, all int) {
			screen, s := a.screen(), squeeze(s)
			for line := range strings.Lines(screen) {
				lines += strings.Count(squeeze(line), s)
			}
			return lines, strings.Count(squeeze(screen), s)
		}
		_, n := utf8.DecodeLastRuneInString(text)
		head := text[:len(text)-n]
		for _, part := range []struct{ keys, shown string }{{head, head}, {text[len(head):], text}} {
			if part.keys == "" {
				continue
			}
			lines, all := count(part.shown)
			colours := a.coloured()
			shown := func() bool {
				// A program that proposes the rest of a command shows it all before it
				// is typed, in another colour.
				proposed := strings.HasPrefix(a.composer(), squeeze(part.shown)) && a.coloured() != colours
				l, n := count(part.shown)
				return l > lines || n > all || proposed
			}
			a.w.tmux("send-keys", "-t", a.pane, "-l", part.keys)
			if !within(times(swallowed), shown) && a.coloured() == colours {
				// A dialog that just came drops them (Claude Code's for plans), and
				// nothing changed at all.
				a.w.tmux("send-keys", "-t", a.pane, "-l", part.keys)
			}
			a.w.eventually("the screen shows what was typed: "+part.shown, shown)
		}
	}
}

// key presses one key.
func key(name string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.tmux("send-keys", "-t", a.pane, name)
	}
}

// answer presses a key on a dialog that shows a text, and waits until that is
// gone. A program may drop what is pressed in the first moments of a dialog, lest
// somebody who still types answers it (Claude Code 2.1.332 does): then the dialog
// stays, and the key is pressed once more.
func answer(name, dialog string) action {
	return func(a *agent) {
		a.w.t.Helper()
		away := func() bool { return !strings.Contains(squeeze(a.screen()), squeeze(dialog)) }
		key(name)(a)
		if !within(times(swallowed), away) {
			key(name)(a)
			a.w.eventually("the dialog goes away: "+dialog, away)
		}
	}
}

// prompt types a prompt and sends it.
func prompt(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.prompts = append(a.w.prompts, text)
		command(text)(a)
	}
}

// command types a text into the program's composer and sends it.
func command(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		write(text)(a)
		a.enter(text, func() bool { return !a.composed(text) })
	}
}

// swallowed is how long a text may stand where it was typed after Enter. Then the
// key was lost.
var swallowed = 8 * time.Second

// redrawn is how long a program may take to draw its screen anew.
const redrawn = 150 * time.Millisecond

// enter presses Enter and waits until what was typed is taken. A program that is
// busy with its own screen can swallow the key (Codex right after /new does, on
// a busy machine): then the text stays where it is, and a person presses Enter
// once more. That is only done while the text is there and nothing was asked of
// the model since, so that the second Enter cannot answer a dialog of the first.
func (a *agent) enter(text string, taken func() bool) {
	a.w.t.Helper()
	before := len(a.w.model.Requests())
	asked := func() bool { return len(a.w.model.Requests()) > before }
	// A screen that is just drawn anew lacks lines for a moment: once is not enough.
	sure := func() bool { return asked() || taken() && (within(redrawn, asked) || taken()) }
	key("Enter")(a)
	if within(times(swallowed), sure) {
		return
	}
	if a.composed(text) {
		a.w.t.Logf("Enter was swallowed after %s", text)
		key("Enter")(a)
	}
	a.w.eventually("the program takes "+text, sure)
}

// composed tells whether a text, or its first line, still stands where prompts
// are typed.
func (a *agent) composed(text string) bool {
	a.w.t.Helper()
	typed := a.composer()
	return typed != "" && strings.HasPrefix(squeeze(text), typed)
}

// composer is what stands where prompts are typed, without white space: on the
// last line of the screen that begins like one.
func (a *agent) composer() string {
	a.w.t.Helper()
	if a.program == nil || a.program.composer == "" {
		return ""
	}
	const frame = " │┃|"
	typed := ""
	for line := range strings.Lines(a.screen()) {
		if rest, ok := strings.CutPrefix(strings.Trim(line, frame+"\n"), a.program.composer); ok {
			typed = squeeze(strings.Trim(rest, frame))
		}
	}
	return typed
}

// shell runs a command in the pane's shell, without waiting for its end.
func shell(command string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.open()
		do(write(command), key("Enter"))(a)
	}
}

// wiped starts at an empty screen, so that what is seen is new.
func wiped(a *agent) {
	a.w.t.Helper()
	a.open()
	do(write("clear"), key("Enter"))(a)
	a.w.eventually("the screen is empty", func() bool { return squeeze(a.screen()) == "$" })
}

// held waits until the model stands still.
func held(a *agent) {
	a.w.t.Helper()
	ctx, cancel := a.w.bounded()
	defer cancel()
	a.w.must(a.w.model.Held(ctx))
}

// askedAgain waits until the model was asked by one script more than once.
func askedAgain(script string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the model is asked again by "+script, func() bool {
			n := 0
			for _, r := range a.w.model.Requests() {
				if r.Script == script {
					n++
				}
			}
			return n > 1
		})
	}
}

// release lets the model go on.
func release(a *agent) {
	a.w.t.Helper()
	ctx, cancel := a.w.bounded()
	defer cancel()
	a.w.must(a.w.model.Release(ctx))
}

// quit leaves the program as a person does.
func quit(a *agent) {
	a.w.t.Helper()
	write(a.program.leave)(a)
	a.enter(a.program.leave, func() bool { return len(a.programs()) == 0 })
	ended(a)
}

// ended waits until the pane has only its shell.
func ended(a *agent) {
	a.w.t.Helper()
	a.w.eventually("the program ends", func() bool { return len(a.programs()) == 0 })
}

// kill ends the program, and not the shell, the way a crash does.
func kill(a *agent) {
	a.w.t.Helper()
	for _, pid := range a.programs() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			a.w.t.Fatal(err)
		}
	}
}

// running waits until the program runs a command.
func running(command string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the program runs "+command, func() bool {
			for _, pid := range a.w.processes() {
				line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if err == nil && strings.Join(strings.Split(strings.Trim(string(line), "\x00"), "\x00"), " ") == command {
					return true
				}
			}
			return false
		})
	}
}

// programs lists the processes that the pane's shell started and theirs.
func (a *agent) programs() []int {
	a.w.t.Helper()
	return children(a.w.tmux("display-message", "-p", "-t", a.pane, "#{pane_pid}"))
}

func children(pid string) []int {
	var out []int
	tasks, err := filepath.Glob("/proc/" + pid + "/task/*/children")
	if err != nil {
		return nil
	}
	for _, path := range tasks {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the thread is gone
		}
		for _, child := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(child); err == nil {
				out = append(append(out, n), children(child)...)
			}
		}
	}
	return out
}

// restart ends the daemon by a signal and starts it again.
func restart(sig syscall.Signal) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.stop(sig)
		a.w.serve()
	}
}

// down ends the daemon, but not before the follower has heard from it.
func down(a *agent) {
	a.w.t.Helper()
	if !a.w.heard {
		select {
		case page := <-a.w.pages:
			a.w.read(page)
		case <-time.After(patience):
			a.w.t.Fatalf("the follower heard nothing in %s", patience)
		}
	}
	a.w.stop(syscall.SIGKILL)
	a.w.away = time.Now()
}

// up starts the daemon. A follower looks for one for 30 s: on a slow machine it
// may have given up.
func up(a *agent) {
	a.w.mayEnd = time.Since(a.w.away) > 20*time.Second
	a.w.serve()
}

// recorded waits until a text is in the program's own files.
func recorded(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the program records "+text, func() bool {
			found := false
			err := filepath.WalkDir(a.w.home(), func(path string, _ fs.DirEntry, err error) error {
				if err == nil && filepath.Ext(path) == ".jsonl" {
					data, err := os.ReadFile(path)
					found = found || err == nil && strings.Contains(string(data), text)
				}
				return nil // what is gone again is not it
			})
			a.w.must(err)
			return found
		})
	}
}

// hangUp kills the tmux server. Another one starts with the next shell.
func hangUp(a *agent) {
	a.w.t.Helper()
	a.w.tmux("kill-server")
	for _, other := range a.w.agents {
		other.pane = ""
	}
}

// status waits until the catalog shows the agent in a state.
func status(want string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the catalog shows "+want, func() bool {
			out, err := a.w.command("steno", "agent", "catalog").Output()
			a.w.must(err)
			var c wire.Catalog
			a.w.must(json.Unmarshal(out, &c))
			for _, e := range c.Agents {
				if e.Alive && a.w.nameOf(e.AgentID) == a.name {
					return e.Status == want
				}
			}
			return false
		})
	}
}

// bare starts a program on a terminal without a multiplexer: that of script(1).
func bare(name string, args ...string) action {
	return func(a *agent) {
		a.w.t.Helper()
		log := filepath.Join(a.w.dir, "terminal-"+a.name+".txt")
		cmd := exec.Command("script", "--quiet", "--flush", "--command", strings.Join(append([]string{"stty rows 50 cols 150;", name}, args...), " "), log)
		cmd.Env, cmd.Dir = a.w.env, filepath.Join(a.w.dir, a.dir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		in, err := cmd.StdinPipe()
		a.w.must(err)
		a.w.must(cmd.Start())
		a.bare, a.keys, a.log = cmd, in, log
		a.program = programNamed(name)
		for _, text := range a.program.ready {
			shown(text)(a)
		}
	}
}

// escapes are what a terminal does not show.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b.`)

// shown waits until a bare terminal was sent a text.
func shown(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.eventually("the terminal was sent "+text, func() bool {
			out, err := os.ReadFile(a.log)
			return err == nil && strings.Contains(squeeze(escapes.ReplaceAllString(string(out), "")), squeeze(text))
		})
	}
}

// say types a prompt on a bare terminal and sends it.
func say(text string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.prompts = append(a.w.prompts, text)
		_, err := io.WriteString(a.keys, text)
		a.w.must(err)
		shown(text)(a)
		asked := len(a.w.model.Requests())
		enter := func() {
			_, err := io.WriteString(a.keys, "\r")
			a.w.must(err)
		}
		taken := func() bool { return len(a.w.model.Requests()) > asked }
		enter()
		if !within(times(swallowed), taken) {
			enter() // as in agent.enter
			a.w.eventually("the model is asked "+text, taken)
		}
	}
}

// hangUpBare closes a bare terminal.
func hangUpBare(a *agent) {
	a.w.t.Helper()
	a.w.must(a.bare.Process.Kill())
	_ = a.bare.Wait() // it was killed
}

// headless runs a program without a terminal to its end, which has to be good.
func headless(name string, args ...string) action { return alone(true, name, args...) }

// headlessFails is headless with a bad end.
func headlessFails(name string, args ...string) action { return alone(false, name, args...) }

func alone(good bool, name string, args ...string) action {
	return func(a *agent) {
		a.w.t.Helper()
		a.w.prompts = append(a.w.prompts, args[len(args)-1])
		cmd := a.w.command(name, args...)
		cmd.Dir = filepath.Join(a.w.dir, a.dir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.WaitDelay = patience // it may leave somebody behind who holds its output
		a.w.must(cmd.Start())
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer late.Stop()
		if err := cmd.Wait(); (err == nil) != good {
			a.w.t.Fatalf("%s: %v: %s", name, err, out.Bytes())
		}
	}
}
