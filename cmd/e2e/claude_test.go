//go:build e2e

package e2e

import "syscall"

// asked is what every prompt to Claude Code and Codex begins with: the start of
// turn A or the next, with what was typed.
func asked(turn, prompt string) string {
	return "started " + turn + " \"" + prompt + "\"\nworking " + turn + "\n"
}

// done is how a turn ends well.
func done(turn, text string) string {
	return "message " + turn + " \"" + text + "\"\n" + final(turn, text)
}

// final is done without its message.
func final(turn, text string) string {
	return "final " + turn + " completed \"" + text + "\"\nwaiting " + turn + "\n"
}

// plain is a whole turn of the script of that name.
func plain(turn string) step {
	return step{prompt("SCENARIO:plain"), asked(turn, "SCENARIO:plain") + done(turn, "PLAIN: one answer.")}
}

// second is another one.
func second(turn string) step {
	return step{prompt("SCENARIO:second"), asked(turn, "SCENARIO:second") + done(turn, "SECOND: another answer.")}
}

// exited is how it ends.
var exited = step{quit, "unavailable process_exited"}

// left is how it ends without a command, whose echo the session would keep.
var left = step{ctrlD, "unavailable process_exited"}

// failed is an error that Claude Code reports.
func failed(status, reason string) scenario {
	return scenario{
		name: "error-" + status, about: "the API answers " + status,
		steps: []step{
			{claude(), "available"},
			{prompt("SCENARIO:" + status), asked("A", "SCENARIO:"+status) + "failure A " + reason + "\nwaiting A"},
			plain("B"),
			exited,
		},
	}
}

// sessionID names a session before it starts.
const sessionID = "5e550000-0000-4000-8000-000000000001"

var claudeScenarios = []scenario{
	{name: "plain", about: "one prompt, one answer", steps: []step{
		{claude(), "available"},
		plain("A"),
		exited,
	}},
	{name: "two-turns", about: "two prompts one after the other", steps: []step{
		{claude(), "available"},
		plain("A"),
		second("B"),
		exited,
	}},
	{name: "unicode", about: "letters of several scripts, quotes and markup", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:unicode é漢字"), asked("A", "SCENARIO:unicode é漢字") +
			done("A", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		exited,
	}},
	{name: "several-texts", about: "three text blocks in one answer", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:texts"), asked("A", "SCENARIO:texts") + `
			message A "FIRST text."
			message A "SECOND text."
			message A "THIRD text."
			` + final("A", `FIRST text.\nSECOND text.\nTHIRD text.`)},
		exited,
	}},
	{name: "thinking", about: "thinking before the answer", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:thinking"), asked("A", "SCENARIO:thinking") + done("A", "THINKING: the answer is 42.")},
		exited,
	}},
	{name: "tool", about: "a tool call", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:tool"), asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.")},
		exited,
	}},
	{name: "parallel-tools", about: "two tools in one answer", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:tools"), asked("A", "SCENARIO:tools") + `message A "TOOLS: two at once."
			` + done("A", "TOOLS: both ran.")},
		exited,
	}},
	{name: "failed-tool", about: "a tool that fails", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:toolfail"), asked("A", "SCENARIO:toolfail") + done("A", "TOOLFAIL: it failed.")},
		exited,
	}},
	{name: "permission-granted", about: "a permission dialog, answered with yes", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:permission"), see("Do you want to")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{status("busy"), ""},
		{answer("Enter", "Do you want to"), done("A", "PERMISSION: thanks.")},
		{status("idle"), ""},
		exited,
	}},
	{name: "permission-escaped", about: "a permission dialog, left with Esc", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:permission"), see("Do you want to")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{answer("Escape", "Do you want to"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "question-answered", about: "a question with two options, answered", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:question"), see("Enter to select")), asked("A", "SCENARIO:question") + `
			message A "QUESTION: I have to know."
			question A user_question "Colour" "Which colour?" Red|Blue`},
		{answer("2", "Enter to select"), done("A", "QUESTION: thanks.")},
		exited,
	}},
	{name: "question-cancelled", about: "a question, left with Esc", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:question"), see("Enter to select")), asked("A", "SCENARIO:question") + `
			message A "QUESTION: I have to know."
			question A user_question "Colour" "Which colour?" Red|Blue`},
		{answer("Escape", "Enter to select"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "plan-approved", about: "a plan, approved", steps: []step{
		{claude("--permission-mode", "plan"), "available"},
		{do(prompt("SCENARIO:plan"), see("Would you like to proceed")), asked("A", "SCENARIO:plan") + `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."
			plan A "# The plan\n\n1. Look\n2. Leap"`},
		{answer("Enter", "Would you like to proceed"), done("A", "PLAN: understood.")},
		exited,
	}},
	{name: "form-answered", about: "a form of two questions is no event", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:form"), see("Enter to select")), asked("A", "SCENARIO:form")},
		{do(chosen("1", "Which sizes?"), key("2"), key("Right"), see("Submit answers"), key("1")), done("A", "FORM: thanks.")},
		exited,
	}},
	{name: "plan-rejected", about: "a plan, rejected with words; the same turn goes on", steps: []step{
		{claude("--permission-mode", "plan"), "available"},
		{do(prompt("SCENARIO:plan"), see("Would you like to proceed")), asked("A", "SCENARIO:plan") + `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."
			plan A "# The plan\n\n1. Look\n2. Leap"`},
		{do(key("Up"), see("❯ 3."), write("look twice"), key("Enter")), done("A", "PLAN: understood.")},
		exited,
	}},
	{name: "plan-escaped", about: "a plan, left with Esc", steps: []step{
		{claude("--permission-mode", "plan"), "available"},
		{do(prompt("SCENARIO:plan"), see("Would you like to proceed")), asked("A", "SCENARIO:plan") + `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."
			plan A "# The plan\n\n1. Look\n2. Leap"`},
		{answer("Escape", "Would you like to proceed"), "final A aborted\nwaiting A"},
		exited,
	}},
	{name: "esc-silent", about: "Esc before any output, and then nothing: the program says that it is idle", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:silent"), held), asked("A", "SCENARIO:silent")},
		{key("Escape"), "final A aborted no_reply\nwaiting A"},
		{do(key("C-u"), gone("SCENARIO:silent")), ""},
		exited,
	}},
	{name: "esc-silent-next", about: "Esc before any output, and another prompt at once", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:silent"), held), asked("A", "SCENARIO:silent")},
		{do(key("Escape"), gone("esc to interrupt"), key("C-u"), gone("SCENARIO:silent"), prompt("SCENARIO:plain")),
			"final A aborted\n" + asked("B", "SCENARIO:plain") + done("B", "PLAIN: one answer.")},
		exited,
	}},
	{name: "esc-text", about: "Esc during a text", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{key("Escape"), `
			message A "HELD: first words,"
			final A aborted
			waiting A`},
		plain("B"),
		exited,
	}},
	{name: "esc-tool", about: "Esc while a tool runs", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:endless"), running("tail -F never-made")), asked("A", "SCENARIO:endless") + `message A "ENDLESS: wait."`},
		{key("Escape"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "queued", about: "a prompt typed while the model speaks is the next turn", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{do(prompt("SCENARIO:second"), release), done("A", "HELD: first words, and the rest.") +
			asked("B", "SCENARIO:second") + done("B", "SECOND: another answer.")},
		exited,
	}},
	{name: "queued-absorbed", about: "a prompt typed before a tool runs belongs to the same turn", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:absorb"), held), asked("A", "SCENARIO:absorb")},
		{do(prompt("also that"), release), `message A "ABSORB: a tool first."
			` + done("A", "ABSORB: and that too.")},
		exited,
	}},
	failed("400", "invalid_request"),
	failed("401", "authentication_failed"),
	failed("429", "rate_limited"),
	failed("500", "provider_unavailable"),
	failed("529", "model_at_capacity"),
	{name: "cut", about: "the stream is cut, and the program asks again by itself", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:cut"), asked("A", "SCENARIO:cut") + done("A", "CUT: said twice.")},
		exited,
	}},
	{name: "refusal", about: "the model refuses", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:refusal"), asked("A", "SCENARIO:refusal") + `
			message A "REFUSAL: no."
			failure A policy_blocked
			waiting A`},
		exited,
	}},
	{name: "max-tokens", about: "an answer that was cut off goes on in the same turn", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:maxtokens"), asked("A", "SCENARIO:maxtokens") + `message A "MAXTOKENS: cut off"
			` + done("A", "MAXTOKENS: the rest.")},
		exited,
	}},
	{name: "background", about: "a command in the background answers with a turn of its own", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:background"), asked("A", "SCENARIO:background") + done("A", "BACKGROUND: it runs.") + `
			started B something that was not typed
			working B
			` + done("B", "NOTED: the task is done.")},
		exited,
	}},
	{name: "background-agent", about: "a subagent in the background answers with a turn of its own", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:agents"), asked("A", "SCENARIO:agents") + done("A", "AGENTS: it works.") + `
			started B something that was not typed
			working B
			` + done("B", "NOTED: the task is done.")},
		exited,
	}},
	{name: "subagent", about: "a subagent's words are not the agent's", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:agent"), asked("A", "SCENARIO:agent") + `message A "AGENT: I delegate."
			` + done("A", "AGENT: it reported.")},
		exited,
	}},
	{name: "continue", about: "the session goes on in the same file, in the same pane", steps: []step{
		{claude(), "available"},
		plain("A"),
		left,
		{claude("--continue"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "continue-after-exit", about: "the session goes on after /exit, whose echo has no answer", steps: []step{
		{claude(), "available"},
		plain("A"),
		exited,
		{claude("--continue"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "resume", about: "an older session is resumed by its id", steps: []step{
		{claude("--session-id", sessionID), "available"},
		plain("A"),
		left,
		{claude("--resume", sessionID), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "fork", about: "a fork copies the history, and it is not told again", steps: []step{
		{claude(), "available"},
		plain("A"),
		left,
		{claude("--continue", "--fork-session"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "clear", about: "/clear begins another session in the same process", steps: []step{
		{claude(), "available"},
		plain("A"),
		{do(command("/clear"), gone("PLAIN: one answer.")), ""},
		second("B"),
		exited,
	}},
	{name: "compact", about: "/compact is no turn", steps: []step{
		{claude(), "available"},
		plain("A"),
		second("B"),
		plain("C"),
		{do(command("/compact"), see("Compacted")), ""},
		second("D"),
		exited,
	}},
	{name: "rename", about: "/rename is no turn", steps: []step{
		{claude(), "available"},
		plain("A"),
		{do(command("/rename elm"), see("renamed")), ""},
		second("B"),
		exited,
	}},
	{name: "shell", about: "a ! command that the model answers is a turn", steps: []step{
		{claude(), "available"},
		plain("A"),
		{do(write("!"), write("echo bang"), key("Enter")), `
			started B
			working B
			` + done("B", "OTHER: nothing was asked by name.")},
		exited,
	}},
	{name: "too-long", about: "the prompt is too long for the model; the program compacts by itself and gives up", steps: []step{
		{claude(), "available"},
		plain("A"),
		second("B"),
		plain("C"),
		{prompt("SCENARIO:toolong"), asked("D", "SCENARIO:toolong") + "failure D context_limit\nwaiting D"},
		exited,
	}},
	{name: "oversized", about: "thinking of over 4 MiB is reported; what follows it has no turn until the next prompt", steps: []step{
		{claude(), "available"},
		plain("A"),
		{prompt("SCENARIO:overthought"), asked("B", "SCENARIO:overthought") + "failure -\n" + done("-", "OVERTHOUGHT: a short answer.")},
		second("C"),
		exited,
	}},
	{name: "oversized-text", about: "an answer of over 4 MiB, whose screen takes the program some seconds", steps: []step{
		{claude(), "available"},
		plain("A"),
		{prompt("SCENARIO:lines"), asked("B", "SCENARIO:lines") + "failure -"},
		second("C"),
		exited,
	}},
	{name: "kill", about: "kill -9, and again in the same pane", steps: []step{
		{claude(), "available"},
		plain("A"),
		{kill, "unavailable process_exited"},
		{claude(), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "kill-mid-turn", about: "kill -9 in mid-turn ends no turn", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{claude("--continue"), "available as another incarnation"},
		plain("B"),
		exited,
	}},
	{name: "two-in-one-directory", about: "two processes in one directory keep their own events", steps: []step{
		{claude(), "available"},
		{in("work.other", claude()), "work.other: available"},
		plain("A"),
		{in("work.other", prompt("SCENARIO:second")), `
			work.other: started A "SCENARIO:second"
			work.other: working A
			work.other: message A "SECOND: another answer."
			work.other: final A completed "SECOND: another answer."
			work.other: waiting A`},
		second("B"),
		exited,
		{in("work.other", quit), "work.other: unavailable process_exited"},
	}},
	{name: "steno-restarted", about: "Steno is restarted in mid-turn", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{restart(syscall.SIGTERM), "unavailable mux_restarted\navailable again"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "steno-killed", about: "Steno is killed in mid-turn, and the turn ends while it is away", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{do(down, release, see("and the rest."), up), "unavailable mux_restarted\navailable again\n" +
			done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "late", about: "Steno starts after the first turn, which is not told", steps: []step{
		{do(down, claude(), prompt("SCENARIO:plain"), recorded(`"turn_duration"`), up), "available"},
		second("A"),
		exited,
	}},
	{name: "late-mid-turn", about: "Steno starts in mid-turn: the rest of the turn is told", steps: []step{
		{do(down, claude(), prompt("SCENARIO:held"), held, recorded(`"promptSource":"typed"`), up), "available"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "nested", about: "another program that a tool starts is not the pane's agent", also: []string{"codex"}, steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:nested"), asked("A", "SCENARIO:nested") + `message A "NESTED: I ask another."
			` + done("A", "NESTED: it answered.")},
		exited,
	}},
	{name: "tmux-killed", about: "the tmux server is killed", steps: []step{
		{claude(), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
	}},
	{name: "tmux-killed-continued", about: "the tmux server is killed, and the session continued in another one: the same agent", steps: []step{
		{claude(), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
		{claude("--continue"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "bare", about: "a terminal without a multiplexer", steps: []step{
		{bare("claude"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{hangUpBare, "unavailable process_exited"},
	}},
	{name: "headless-error", about: "claude -p that fails", steps: []step{
		{headlessFails("claude", "-p", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			failure A invalid_request
			waiting A
			unavailable process_exited`},
	}},
	{name: "headless", about: "claude -p, without a terminal", steps: []step{
		{headless("claude", "-p", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
	}},
}
