//go:build e2e

package e2e

import "syscall"

// reported is an error that Copilot reports.
func reported(turn, status, reason string) step {
	return step{prompt("SCENARIO:" + status), asked(turn, "SCENARIO:"+status) + "failure " + turn + " " + reason + "\nwaiting " + turn}
}

// told is a turn of a script whose first answer comes with a tool.
func told(turn, script, before, after string) step {
	return step{prompt("SCENARIO:" + script), asked(turn, "SCENARIO:"+script) + "message " + turn + " \"" + before + "\"\n" + done(turn, after)}
}

// copilotExited is how it ends. A command that comes in the moment between an
// answer and its being idle is queued, and /exit stays in the queue (1.0.102).
var copilotExited = step{do(see("/ commands ·"), quit), "unavailable process_exited"}

// shownPlan is how a plan comes.
func shownPlan(turn string) string {
	return "message " + turn + " \"PLAN: I write it down.\"\nmessage " + turn + " \"PLAN: it is ready.\"\nplan " + turn + ` "- Look\n- Leap"`
}

var copilotScenarios = []scenario{
	{name: "plain", about: "one prompt, one answer", steps: []step{
		{copilot(), "available"},
		plain("A"),
		copilotExited,
	}},
	{name: "texts", about: "letters of several scripts; several texts, which are one message; reasoning; a filtered answer; a blocked one, of which the program says words of its own", steps: []step{
		{copilot(), "available"},
		{prompt("SCENARIO:unicode é漢字"), asked("A", "SCENARIO:unicode é漢字") +
			done("A", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		{prompt("SCENARIO:texts"), asked("B", "SCENARIO:texts") + done("B", "FIRST text.SECOND text.THIRD text.")},
		{prompt("SCENARIO:thinking"), asked("C", "SCENARIO:thinking") + done("C", "THINKING: the answer is 42.")},
		{prompt("SCENARIO:refusal"), asked("D", "SCENARIO:refusal") + done("D", "REFUSAL: no.")},
		{prompt("SCENARIO:blocked"), asked("E", "SCENARIO:blocked") + done("E", "The model returned no content because the response was blocked by content filtering.")},
		second("F"),
		copilotExited,
	}},
	{name: "tools", about: "a tool call, two at once, one that fails", steps: []step{
		{copilot(), "available"},
		told("A", "tool", "TOOL: I run it.", "TOOL: it ran."),
		told("B", "tools", "TOOLS: two at once.", "TOOLS: both ran."),
		{prompt("SCENARIO:toolfail"), asked("C", "SCENARIO:toolfail") + done("C", "TOOLFAIL: it failed.")},
		copilotExited,
	}},
	{name: "permission", about: "a permission dialog, answered with yes, with no and words, left with Esc", steps: []step{
		{copilot(), "available"},
		{do(prompt("SCENARIO:permission"), see("Do you want to")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{status("busy"), ""},
		{key("1"), done("A", "PERMISSION: thanks.")},
		{do(prompt("SCENARIO:permission"), see("Do you want to")), asked("B", "SCENARIO:permission") + `message B "PERMISSION: may I?"`},
		{do(key("3"), write("rather not"), key("Enter")), done("B", "PERMISSION: thanks.")},
		{do(prompt("SCENARIO:permission"), see("Do you want to")), asked("C", "SCENARIO:permission") + `message C "PERMISSION: may I?"`},
		{key("Escape"), "final C aborted\nwaiting C"},
		{status("idle"), ""},
		copilotExited,
	}},
	{name: "question", about: "a question with two options, answered, and left with Esc, after which the turn goes on; a form of two is no event", steps: []step{
		{copilot(), "available"},
		{do(prompt("SCENARIO:question"), see("enter accept")), asked("A", "SCENARIO:question") + `
			message A "QUESTION: I have to know."
			question A user_question "" "Which colour?" Red|Blue`},
		{do(key("Down"), key("Enter")), done("A", "QUESTION: thanks.")},
		{do(prompt("SCENARIO:question"), see("enter accept")), asked("B", "SCENARIO:question") + `
			message B "QUESTION: I have to know."
			question B user_question "" "Which colour?" Red|Blue`},
		{key("Escape"), done("B", "QUESTION: thanks.")},
		{do(prompt("SCENARIO:form"), see("Copilot needs information")), asked("C", "SCENARIO:form")},
		{key("Escape"), done("C", "FORM: thanks.")},
		copilotExited,
	}},
	{name: "plan", about: "a plan, left with Esc; rejected with words, after which the turn goes on; approved, which the program tells the model in words of its own", steps: []step{
		{copilot("--plan"), "available"},
		{do(prompt("SCENARIO:plan"), see("Plan Ready for Review")), asked("A", "SCENARIO:plan") + shownPlan("A")},
		{key("Escape"), "final A aborted\nwaiting A"},
		{do(gone("Plan Ready for Review"), prompt("SCENARIO:plan"), see("Plan Ready for Review")), asked("B", "SCENARIO:plan") + shownPlan("B")},
		{do(key("4"), write("look twice"), key("Enter")), done("B", "PLAN: understood.")},
		{do(prompt("SCENARIO:plan"), see("Plan Ready for Review")), asked("C", "SCENARIO:plan") + shownPlan("C")},
		{key("1"), done("C", "OTHER: nothing was asked by name.")},
		copilotExited,
	}},
	{name: "esc-silent", about: "Esc Esc before any output: the program takes the turn back, out of its file, too", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{do(prompt("SCENARIO:silent"), held), asked("B", "SCENARIO:silent")},
		{escEsc, "final B aborted\nwaiting B\nfailure -"},
		{do(key("C-u"), gone("❯ SCENARIO:silent")), ""}, // the prompt is back to be edited
		second("C"),
		copilotExited,
	}},
	{name: "esc", about: "Esc Esc during a text, Ctrl-C while a tool runs; what was said so far is in no record", steps: []step{
		{copilot("--allow-all-tools"), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{escEsc, "final A aborted\nwaiting A"},
		{do(prompt("SCENARIO:slowtool"), running("sleep 300")), asked("B", "SCENARIO:slowtool") + `message B "SLOWTOOL: wait."`},
		{key("C-c"), "final B aborted\nwaiting B"},
		plain("C"),
		copilotExited,
	}},
	{name: "busy", about: "a prompt typed while the model speaks is the next turn; one that comes before a tool has run joins the turn, as a notice to the model", steps: []step{
		{copilot(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{do(prompt("SCENARIO:second"), release), done("A", "HELD: first words, and the rest.") +
			asked("B", "SCENARIO:second") + done("B", "SECOND: another answer.")},
		{do(prompt("SCENARIO:absorb"), held), asked("C", "SCENARIO:absorb")},
		{do(write("SCENARIO:notification"), key("Enter"), release), `message C "ABSORB: a tool first."
			` + done("C", "NOTED: the task is done.")},
		copilotExited,
	}},
	{name: "errors", about: "the API answers 400 and 401; the conversation is too long; no answer at all", steps: []step{
		{copilot(), "available"},
		reported("A", "400", "invalid_request"),
		reported("B", "401", "authentication_failed"),
		reported("C", "overflow", "invalid_request"),
		reported("D", "empty", "provider_error"),
		plain("E"),
		copilotExited,
	}},
	{name: "errors-again", about: "429, 500, 503, an error in the stream, each of the six times that it is asked", steps: []step{
		{copilot(), "available"},
		reported("A", "429", "rate_limited"),
		reported("B", "500", "provider_unavailable"),
		reported("C", "503", "provider_unavailable"),
		reported("D", "streamerror", "provider_error"),
		plain("E"),
		copilotExited,
	}},
	{name: "error-cut", about: "the stream is cut, every time", steps: []step{
		{copilot(), "available"},
		reported("A", "cut", "provider_error"),
		plain("B"),
		copilotExited,
	}},
	{name: "flaky", about: "an error, a cut, then all is well: one answer, no failure", steps: []step{
		{copilot(), "available"},
		{prompt("SCENARIO:flaky500"), asked("A", "SCENARIO:flaky500") + done("A", "FLAKY: good at last.")},
		{prompt("SCENARIO:flakycut"), asked("B", "SCENARIO:flakycut") + done("B", "FLAKY: good at last.")},
		copilotExited,
	}},
	{name: "background", about: "a shell command in the background ends after the answer: a turn of its own", steps: []step{
		{copilot("--allow-all-tools"), "available"},
		{prompt("SCENARIO:backgroundwait"), asked("A", "SCENARIO:backgroundwait") + done("A", "BACKGROUND: it runs.")},
		{made("go"), "started B\nworking B\n" + done("B", "NOTED: the task is done.")},
		second("C"),
		copilotExited,
	}},
	{name: "subagent", about: "what a subagent says is no event", steps: []step{
		{copilot("--allow-all-tools"), "available"},
		told("A", "agent", "AGENT: I delegate.", "AGENT: it reported."),
		copilotExited,
	}},
	{name: "autopilot", about: "the program's own prompts go on with the turn of the person", steps: []step{
		{copilot("--autopilot", "--allow-all", "--max-autopilot-continues", "1"), "available"},
		{prompt("SCENARIO:plain"), asked("A", "SCENARIO:plain") + `message A "PLAIN: one answer."
			` + done("A", "OTHER: nothing was asked by name.")},
		copilotExited,
	}},
	{name: "shell", about: "a ! command and a new name are no turns", steps: []step{
		{copilot(), "available"},
		{do(command("!echo bang"), see("Shell echo bang")), ""},
		plain("A"),
		{do(slash("/rename another"), see("Session renamed")), ""},
		second("B"),
		copilotExited,
	}},
	{name: "compact", about: "/compact is no turn; a conversation that fills the window is compacted within its turn", steps: []step{
		{copilot("--allow-all-tools"), "available"},
		plain("A"),
		{do(slash("/compact"), see("Compaction completed")), ""},
		second("B"),
		{do(prompt("SCENARIO:fill"), see("Compacting conversation history")), asked("C", "SCENARIO:fill") + "message C \"FILL: much to read.\"\n" + done("C", "FILL: it goes on.")},
		plain("D"),
		copilotExited,
	}},
	{name: "new", about: "/new begins another session in the same process, which keeps the first one open, and goes back to it at its end", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{do(slash("/new"), sessions(2), gone("PLAIN: one answer.")), ""},
		second("B"),
		{do(see("/ commands ·"), command("/exit"), see("PLAIN: one answer.")), ""},
		{prompt("SCENARIO:unicode"), asked("C", "SCENARIO:unicode") +
			done("C", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		copilotExited,
	}},
	{name: "fork", about: "/fork begins another session in the same process with a copy of the first one's events, which are not told again", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{do(slash("/fork"), sessions(2), see("Forked from")), ""},
		second("B"),
		{do(see("/ commands ·"), command("/exit"), gone("SECOND: another answer.")), ""},
		copilotExited,
	}},
	{name: "clear", about: "/clear begins another session in the same process", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{do(slash("/clear"), sessions(2), gone("PLAIN: one answer.")), ""},
		second("B"),
		copilotExited,
	}},
	{name: "resume", about: "the session goes on in the same file, by its id and by --continue", steps: []step{
		{copilot(), "available"},
		plain("A"),
		copilotExited,
		{resumed("--resume=", func(arg string) action { return copilot(arg) }), "available as another incarnation"},
		second("B"),
		copilotExited,
		{copilot("--continue"), "available as another incarnation"},
		plain("C"),
		copilotExited,
	}},
	{name: "oversized", about: "an answer of over 4 MiB is reported and costs only itself", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{prompt("SCENARIO:overthought"), asked("B", "SCENARIO:overthought") + "failure -"},
		second("C"),
		copilotExited,
	}},
	{name: "kill", about: "kill -9, and again in the same pane", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{kill, "unavailable process_exited"},
		{copilot(), "available as another incarnation"},
		second("B"),
		copilotExited,
	}},
	{name: "kill-mid-turn", about: "kill -9 in mid-turn ends no turn; the session is resumed over the stale lock", steps: []step{
		{copilot(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{copilot("--continue"), "available as another incarnation"},
		plain("B"),
		copilotExited,
	}},
	{name: "two-in-one-directory", about: "two processes in one directory keep their own events", steps: []step{
		{copilot(), "available"},
		{in("work.other", copilot()), "work.other: available"},
		plain("A"),
		{in("work.other", prompt("SCENARIO:second")), `
			work.other: started A "SCENARIO:second"
			work.other: working A
			work.other: message A "SECOND: another answer."
			work.other: final A completed "SECOND: another answer."
			work.other: waiting A`},
		second("B"),
		copilotExited,
		{in("work.other", quit), "work.other: unavailable process_exited"},
	}},
	{name: "steno-restarted", about: "Steno is restarted in mid-turn", steps: []step{
		{copilot(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{restart(syscall.SIGTERM), "unavailable mux_restarted\navailable again"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		copilotExited,
	}},
	{name: "steno-killed", about: "Steno is killed in mid-turn, and the turn ends while it is away", steps: []step{
		{copilot(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{do(down, release, see("and the rest."), recorded("and the rest."), up), "unavailable mux_restarted\navailable again\n" +
			done("A", "HELD: first words, and the rest.")},
		second("B"),
		copilotExited,
	}},
	{name: "late", about: "Steno starts after the first turn, which is not told", steps: []step{
		{do(down, copilot(), prompt("SCENARIO:plain"), recorded(`"assistant.turn_end"`), up), "available"},
		second("A"),
		copilotExited,
	}},
	{name: "late-mid-turn", about: "Steno starts in mid-turn: the rest of the turn is told", steps: []step{
		{do(down, copilot(), prompt("SCENARIO:held"), held, recorded("SCENARIO:held"), up), "available"},
		{release, done("A", "HELD: first words, and the rest.")},
		copilotExited,
	}},
	{name: "tmux-killed-resumed", about: "the tmux server is killed, and the session resumed in another one: the same agent", steps: []step{
		{copilot(), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
		{resumed("--resume=", func(arg string) action { return copilot(arg) }), "available as another incarnation"},
		second("B"),
		copilotExited,
	}},
	{name: "bare", about: "a terminal without a multiplexer", steps: []step{
		{bare("copilot"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{hangUpBare, "unavailable process_exited"},
	}},
	{name: "direct", about: "the program itself, without npm's script, headless", steps: []step{
		{headless("copilot-direct", "-p", "SCENARIO:second"), "available\n" + asked("A", "SCENARIO:second") +
			done("A", "SECOND: another answer.") + "unavailable process_exited"},
	}},
	{name: "headless", about: "copilot -p, without a terminal", steps: []step{
		{headless("copilot", "--allow-all-tools", "-p", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
	}},
	{name: "headless-error", about: "copilot -p that fails", steps: []step{
		{headlessFails("copilot", "-p", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			failure A invalid_request
			waiting A
			unavailable process_exited`},
	}},
}
