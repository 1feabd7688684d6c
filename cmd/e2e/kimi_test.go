//go:build e2e

package e2e

import "syscall"

// gaveUp is a prompt that Kimi Code gives up on.
func gaveUp(turn, script, reason string) step {
	return step{prompt("SCENARIO:" + script), asked(turn, "SCENARIO:"+script) + "final " + turn + " aborted " + reason + "\nwaiting " + turn}
}

var kimiScenarios = []scenario{
	{name: "plain", about: "one prompt, one answer; letters of several scripts; several texts, which are one message; reasoning; cut off; refused with and without words", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{prompt("SCENARIO:unicode é漢字"), asked("B", "SCENARIO:unicode é漢字") +
			done("B", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		{prompt("SCENARIO:texts"), asked("C", "SCENARIO:texts") + done("C", "FIRST text.SECOND text.THIRD text.")},
		{prompt("SCENARIO:thinking"), asked("D", "SCENARIO:thinking") + done("D", "THINKING: the answer is 42.")},
		{prompt("SCENARIO:maxtokens"), asked("E", "SCENARIO:maxtokens") + done("E", "MAXTOKENS: cut off")},
		{prompt("SCENARIO:refusal"), asked("F", "SCENARIO:refusal") + `message F "REFUSAL: no."
			final F aborted policy_blocked
			waiting F`},
		gaveUp("G", "blocked", "policy_blocked"),
		exited,
	}},
	{name: "tools", about: "a tool call, two at once, one that fails, todos, a subagent, whose words are no events", steps: []step{
		{kimi("-y"), "available"},
		told("A", "tool", "TOOL: I run it.", "TOOL: it ran."),
		told("B", "tools", "TOOLS: two at once.", "TOOLS: both ran."),
		{prompt("SCENARIO:toolfail"), asked("C", "SCENARIO:toolfail") + done("C", "TOOLFAIL: it failed.")},
		told("D", "todos", "TODOS: I list them.", "TODOS: all done."),
		told("E", "agent", "AGENT: I delegate.", "AGENT: it reported."),
		exited,
	}},
	{name: "background", about: "a shell command, and a subagent, in the background end after the answer: turns of their own", steps: []step{
		{kimi("-y"), "available"},
		{prompt("SCENARIO:background"), asked("A", "SCENARIO:background") + done("A", "BACKGROUND: it runs.") + `
			started B something that was not typed
			working B
			` + done("B", "NOTED: the task is done.")},
		{prompt("SCENARIO:agents"), asked("C", "SCENARIO:agents") + done("C", "AGENTS: it works.") + `
			started D something that was not typed
			working D
			` + done("D", "NOTED: the task is done.")},
		second("E"),
		exited,
	}},
	{name: "permission", about: "a permission dialog, answered with yes, with no, left with Esc", steps: []step{
		{kimi(), "available"},
		{do(prompt("SCENARIO:permission"), see("Run this command?")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{status("busy"), ""},
		{answer("1", "Run this command?"), done("A", "PERMISSION: thanks.")},
		{do(prompt("SCENARIO:permission"), see("Run this command?")), asked("B", "SCENARIO:permission") + `message B "PERMISSION: may I?"`},
		{answer("3", "Run this command?"), done("B", "PERMISSION: thanks.")},
		{do(prompt("SCENARIO:permission"), see("Run this command?")), asked("C", "SCENARIO:permission") + `message C "PERMISSION: may I?"`},
		{answer("Escape", "Run this command?"), done("C", "PERMISSION: thanks.")},
		exited,
	}},
	{name: "question", about: "a question, answered, and left with Esc; a form of two is no event", steps: []step{
		{kimi(), "available"},
		{do(prompt("SCENARIO:question"), see("Which colour?")), asked("A", "SCENARIO:question") + `
			message A "QUESTION: I have to know."
			question A user_question "Colour" "Which colour?" Red|Blue`},
		{do(key("2"), see("Review your answer"), answer("1", "Review your answer")), done("A", "QUESTION: thanks.")},
		{do(prompt("SCENARIO:question"), see("Which colour?")), asked("B", "SCENARIO:question") + `
			message B "QUESTION: I have to know."
			question B user_question "Colour" "Which colour?" Red|Blue`},
		{key("Escape"), done("B", "QUESTION: thanks.")},
		{do(prompt("SCENARIO:form"), see("Sizes")), asked("C", "SCENARIO:form")},
		{key("Escape"), done("C", "FORM: thanks.")},
		exited,
	}},
	{name: "plan", about: "a plan, approved", steps: []step{
		{kimi("--plan"), "available"},
		{do(prompt("SCENARIO:plan"), see("Ready to build")), asked("A", "SCENARIO:plan") + `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."
			plan A "# The plan\n\n1. Look\n2. Leap"`},
		{answer("1", "Ready to build"), done("A", "PLAN: understood.")},
		exited,
	}},
	{name: "plan-rejected", about: "a plan, to be revised, with words; the same turn goes on", steps: []step{
		{kimi("--plan"), "available"},
		{do(prompt("SCENARIO:plan"), see("Ready to build")), asked("A", "SCENARIO:plan") + `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."
			plan A "# The plan\n\n1. Look\n2. Leap"`},
		{do(key("3"), write("look twice"), key("Enter")), done("A", "PLAN: understood.")},
		exited,
	}},
	{name: "esc", about: "Esc before any output, during a text, while a tool runs", steps: []step{
		{kimi("-y"), "available"},
		{do(prompt("SCENARIO:silent"), held), asked("A", "SCENARIO:silent")},
		{key("Escape"), "final A aborted\nwaiting A"},
		second("B"),
		{do(prompt("SCENARIO:held"), held), asked("C", "SCENARIO:held")},
		{key("Escape"), "message C \"HELD: first words,\"\nfinal C aborted\nwaiting C"},
		second("D"),
		{do(prompt("SCENARIO:slowtool"), running("sleep 300")), asked("E", "SCENARIO:slowtool") + `message E "SLOWTOOL: wait."`},
		{key("Escape"), "final E aborted\nwaiting E"},
		second("F"),
		exited,
	}},
	{name: "queued", about: "a prompt typed while the model speaks is the next turn; Ctrl-S makes it part of this one", steps: []step{
		{kimi(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{prompt("SCENARIO:second"), ""},
		{release, done("A", "HELD: first words, and the rest.") + asked("B", "SCENARIO:second") + done("B", "SECOND: another answer.")},
		{do(prompt("SCENARIO:held"), held), asked("C", "SCENARIO:held")},
		{do(write("and SCENARIO:plain"), key("C-s"), recorded(`"prompt.steered"`), release), `message C "HELD: first words, and the rest."
			` + done("C", "PLAIN: one answer.")},
		exited,
	}},
	{name: "errors", about: "what the API answers, each time that it is asked", steps: []step{
		{kimi(), "available"},
		gaveUp("A", "400", "invalid_request"),
		gaveUp("B", "401", "authentication_failed"),
		gaveUp("C", "429", "rate_limited"),
		gaveUp("D", "500", "provider_unavailable"),
		gaveUp("E", "529", "model_at_capacity"),
		plain("F"),
		exited,
	}},
	{name: "errors-in-the-stream", about: "the stream is cut, or has an error in it, every time; nothing is said", steps: []step{
		{kimi(), "available"},
		gaveUp("A", "cut", "provider_unavailable"),
		gaveUp("B", "streamerror", "provider_error"),
		gaveUp("C", "empty", "provider_error"),
		plain("D"),
		exited,
	}},
	{name: "flaky", about: "an error, a cut, then all is well: one answer, and nothing of the words that were cut", steps: []step{
		{kimi(), "available"},
		{prompt("SCENARIO:flaky500"), asked("A", "SCENARIO:flaky500") + done("A", "FLAKY: good at last.")},
		{prompt("SCENARIO:flakycut"), asked("B", "SCENARIO:flakycut") + done("B", "FLAKY: good at last.")},
		exited,
	}},
	{name: "compaction", about: "/compact is no turn; a conversation that fills the window, or is too long for the API, is compacted within its turn", steps: []step{
		{kimi("-y"), "available"},
		plain("A"),
		{do(command("/compact"), see("Compaction complete")), ""},
		second("B"),
		{prompt("SCENARIO:fill"), asked("C", "SCENARIO:fill") + "message C \"FILL: much to read.\"\n" + done("C", "COMPACTED: it goes on.")},
		{prompt("SCENARIO:overflow"), asked("D", "SCENARIO:overflow") + done("D", "COMPACTED: it goes on.")},
		exited,
	}},
	{name: "commands", about: "a ! command, a new name, /btw and /undo are no turns", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{do(command("!echo bang-out"), see("bang-out")), ""},
		{do(command("/title another name"), see("another name")), ""},
		{do(command("/btw SCENARIO:second"), see("SECOND: another answer."), key("Escape"), gone("Esc close")), ""},
		second("B"),
		{do(command("/undo"), see("Select messages to undo"), answer("Enter", "Select messages to undo"),
			see("> SCENARIO:second"), key("C-u"), gone("SCENARIO:second")), ""},
		plain("C"),
		exited,
	}},
	{name: "new", about: "/new and /clear begin another session in the same process; going back to the first one", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{do(command("/new"), kimiSessions(2), gone("PLAIN: one answer.")), ""},
		second("B"),
		{do(command("/clear"), kimiSessions(3), gone("SECOND: another answer.")), ""},
		plain("C"),
		{do(command("/sessions"), see("type to search"), key("Down"), answer("Enter", "type to search"), see("SECOND: another answer.")), ""},
		{prompt("SCENARIO:thinking"), asked("D", "SCENARIO:thinking") + done("D", "THINKING: the answer is 42.")},
		exited,
	}},
	{name: "resume", about: "the session goes on in the same file, by its id and by --continue", steps: []step{
		{kimi(), "available"},
		plain("A"),
		exited,
		{kimiAgain(func(id string) action { return kimi("-r", id) }), "available as another incarnation"},
		second("B"),
		exited,
		{kimi("--continue"), "available as another incarnation"},
		plain("C"),
		exited,
	}},
	{name: "fork", about: "/fork makes a session and stays in its own", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{do(command("/fork"), kimiSessions(2)), ""},
		second("B"),
		exited,
	}},
	{name: "fork-opened", about: "a fork, opened in another pane while the first one is there, begins without history", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{do(command("/fork"), kimiSessions(2)), ""},
		{kimiAgain(func(id string) action { return in("work.other", kimi("-r", id)) }), "work.other: available"},
		{in("work.other", prompt("SCENARIO:second")), `
			work.other: started A "SCENARIO:second"
			work.other: working A
			work.other: message A "SECOND: another answer."
			work.other: final A completed "SECOND: another answer."
			work.other: waiting A`},
		plain("B"),
		exited,
		{in("work.other", quit), "work.other: unavailable process_exited"},
	}},
	{name: "oversized", about: "an answer of over 4 MiB, in two records, is reported and costs only itself", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{prompt("SCENARIO:lines"), asked("B", "SCENARIO:lines") + `
			failure -
			failure -
			final B completed
			waiting B`},
		second("C"),
		exited,
	}},
	{name: "kill", about: "kill -9 in mid-turn ends no turn; the session is continued", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{do(prompt("SCENARIO:held"), held), asked("B", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{kimi("--continue"), "available as another incarnation"},
		second("C"),
		exited,
	}},
	{name: "two-in-one-directory", about: "two processes in one directory keep their own events", steps: []step{
		{kimi(), "available"},
		{in("work.other", kimi()), "work.other: available"},
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
	{name: "steno-restarted", about: "Steno is restarted in mid-turn, then killed, and the turn ends while it is away", steps: []step{
		{kimi(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{restart(syscall.SIGTERM), "unavailable mux_restarted\navailable again"},
		{release, done("A", "HELD: first words, and the rest.")},
		{do(prompt("SCENARIO:held"), held), asked("B", "SCENARIO:held")},
		{do(down, release, see("and the rest."), recorded("turn_recorded\",\"agentId\":\"main\",\"turnId\":1"), up), "unavailable mux_restarted\navailable again\n" +
			done("B", "HELD: first words, and the rest.")},
		second("C"),
		exited,
	}},
	{name: "late", about: "Steno starts in mid-turn: the rest of the turn is told, the turn before is not", steps: []step{
		{do(down, kimi(), prompt("SCENARIO:plain"), recorded(`"prompt.completed"`), prompt("SCENARIO:held"), held, recorded(`"step.begin","uuid":`), recorded(`"turnId":"1"`), up), "available"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "tmux-killed-resumed", about: "the tmux server is killed, and the session continued in another one: the same agent", steps: []step{
		{kimi(), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
		{kimi("--continue"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "bare", about: "a terminal without a multiplexer", steps: []step{
		{bare("kimi"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{hangUpBare, "unavailable process_exited"},
	}},
	{name: "headless", about: "kimi -p, without a terminal", steps: []step{
		{headless("kimi", "-p", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
	}},
	{name: "headless-error", about: "kimi -p that fails", steps: []step{
		{headlessFails("kimi", "-p", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			final A aborted invalid_request
			waiting A
			unavailable process_exited`},
	}},
}
