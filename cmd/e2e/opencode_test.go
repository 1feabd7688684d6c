//go:build e2e

package e2e

import "syscall"

// opencodeFailed is an error that OpenCode reports.
func opencodeFailed(turn, script, reason string) step {
	return step{prompt("SCENARIO:" + script), asked(turn, "SCENARIO:"+script) + "failure " + turn + " " + reason + "\nwaiting " + turn}
}

// otherSecond is a turn of work.other.
const otherSecond = `
	work.other: started A "SCENARIO:second"
	work.other: working A
	work.other: message A "SECOND: another answer."
	work.other: final A completed "SECOND: another answer."
	work.other: waiting A`

var opencodeScenarios = []scenario{
	{name: "plain", about: "one prompt, one answer; letters of several scripts; reasoning; cut off", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{prompt("SCENARIO:unicode é漢字"), asked("B", "SCENARIO:unicode é漢字") +
			done("B", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		{prompt("SCENARIO:thinking"), asked("C", "SCENARIO:thinking") + done("C", "THINKING: the answer is 42.")},
		{prompt("SCENARIO:maxtokens"), asked("D", "SCENARIO:maxtokens") + done("D", "MAXTOKENS: cut off")},
		exited,
	}},
	{name: "tools", about: "a tool call, two at once, one that fails, todos, a subagent, whose words are no events", steps: []step{
		{opencode(), "available"},
		told("A", "tool", "TOOL: I run it.", "TOOL: it ran."),
		told("B", "tools", "TOOLS: two at once.", "TOOLS: both ran."),
		{prompt("SCENARIO:toolfail"), asked("C", "SCENARIO:toolfail") + done("C", "TOOLFAIL: it failed.")},
		told("D", "todos", "TODOS: I list them.", "TODOS: all done."),
		told("E", "agent", "AGENT: I delegate.", "AGENT: it reported."),
		exited,
	}},
	{name: "permission", about: "a permission dialog, answered with yes, with no", steps: []step{
		{do(asking, opencode()), "available"},
		{do(prompt("SCENARIO:permission"), see("Permission required")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{answer("Enter", "Permission required"), done("A", "PERMISSION: thanks.")},
		{do(prompt("SCENARIO:permission"), see("Permission required")), asked("B", "SCENARIO:permission") + `message B "PERMISSION: may I?"`},
		{answer("Escape", "Permission required"), "waiting B"},
		second("C"),
		exited,
	}},
	{name: "question", about: "a question, answered, and left with Esc; a form of two is no event", steps: []step{
		{opencode(), "available"},
		{do(prompt("SCENARIO:question"), see("Which colour?")), asked("A", "SCENARIO:question") + `
			message A "QUESTION: I have to know."
			question A user_question "Colour" "Which colour?" Red|Blue`},
		{key("2"), done("A", "QUESTION: thanks.")},
		{do(prompt("SCENARIO:question"), see("esc dismiss")), asked("B", "SCENARIO:question") + `
			message B "QUESTION: I have to know."
			question B user_question "Colour" "Which colour?" Red|Blue`},
		{answer("Escape", "esc dismiss"), "waiting B"},
		{do(prompt("SCENARIO:form"), see("esc dismiss")), asked("C", "SCENARIO:form")},
		{answer("Escape", "esc dismiss"), "waiting C"},
		second("D"),
		exited,
	}},
	{name: "esc", about: "Esc before any output, during a text, while a tool runs", steps: []step{
		{opencode(), "available"},
		{do(prompt("SCENARIO:silent"), held), asked("A", "SCENARIO:silent")},
		{interrupt, "final A aborted\nwaiting A"},
		second("B"),
		{do(prompt("SCENARIO:held"), held), asked("C", "SCENARIO:held")},
		{interrupt, "message C \"HELD: first words,\"\nfinal C aborted\nwaiting C"},
		second("D"),
		{do(prompt("SCENARIO:slowtool"), running("sleep 300")), asked("E", "SCENARIO:slowtool") + `message E "SLOWTOOL: wait."`},
		{interrupt, "final E aborted\nwaiting E"},
		second("F"),
		exited,
	}},
	{name: "queued", about: "a prompt typed while the model speaks is a turn at once, and answered next", steps: []step{
		{opencode(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{prompt("SCENARIO:second"), asked("B", "SCENARIO:second")},
		{release, `message A "HELD: first words, and the rest."
			final A completed "HELD: first words, and the rest."
			` + done("B", "SECOND: another answer.")},
		exited,
	}},
	{name: "queued-in-tools", about: "a prompt typed while a tool is about to run is answered in place of the first one", steps: []step{
		{opencode(), "available"},
		{do(prompt("SCENARIO:absorb"), held), asked("A", "SCENARIO:absorb")},
		{prompt("SCENARIO:second"), asked("B", "SCENARIO:second")},
		{release, `message A "ABSORB: a tool first."
			final A aborted
			` + done("B", "SECOND: another answer.")},
		exited,
	}},
	{name: "errors", about: "what the API answers, each time that it is asked", steps: []step{
		{opencode(), "available"},
		opencodeFailed("A", "400", "invalid_request"),
		opencodeFailed("B", "401", "authentication_failed"),
		plain("C"),
		exited,
	}},
	{name: "retry-aborted", about: "overload, and Esc while the program waits to ask again; all is well the second time", steps: []step{
		{opencode(), "available"},
		{prompt("SCENARIO:flaky429"), asked("A", "SCENARIO:flaky429") + done("A", "FLAKY: good at last.")},
		{prompt("SCENARIO:flaky500"), asked("B", "SCENARIO:flaky500") + done("B", "FLAKY: good at last.")},
		{do(prompt("SCENARIO:stubborn"), see("retrying")), asked("C", "SCENARIO:stubborn")},
		{interrupt, "waiting C"},
		plain("D"),
		exited,
	}},
	{name: "blocked", about: "a content filter", steps: []step{
		{opencode(), "available"},
		{prompt("SCENARIO:refusal"), asked("A", "SCENARIO:refusal") + `message A "REFUSAL: no."
			failure A policy_blocked
			waiting A`},
		plain("B"),
		exited,
	}},
	{name: "compaction", about: "/compact is no turn; a conversation that is too long for the API, or fills the window, is compacted within its turn", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{do(command("/compact"), see("SUMMARY: they talked.")), ""},
		second("B"),
		{prompt("SCENARIO:overflow"), asked("C", "SCENARIO:overflow") + done("C", "COMPACTED: it goes on.")},
		{prompt("SCENARIO:fill"), asked("D", "SCENARIO:fill") + "message D \"FILL: much to read.\"\n" + done("D", "COMPACTED: it goes on.")},
		exited,
	}},
	{name: "commands", about: "a ! command and /undo are no turns", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{do(key("!"), write("echo bang-$((6*7))"), key("Enter"), see("bang-42")), ""},
		second("B"),
		{do(command("/undo"), see("1 message reverted"), see("SCENARIO:second"), key("C-u"), gone("SCENARIO:second")), ""},
		exited,
	}},
	{name: "new", about: "/new begins another session in the same process", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{do(command("/new"), gone("PLAIN: one answer.")), ""},
		second("B"),
		plain("C"),
		exited,
	}},
	{name: "resume", about: "the session goes on, by its id and by --continue", steps: []step{
		{opencode(), "available"},
		plain("A"),
		exited,
		{opencodeAgain(func(id string) action { return opencode("-s", id) }), "available as another incarnation"},
		second("B"),
		exited,
		{opencode("--continue"), "available as another incarnation"},
		plain("C"),
		exited,
	}},
	{name: "fork", about: "a fork begins without history", steps: []step{
		{opencode(), "available"},
		plain("A"),
		exited,
		{do(opencode("--continue", "--fork"), opencodeSessions(2)), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "oversized", about: "an answer of over 4 MiB is reported, with its row, and costs only itself", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{prompt("SCENARIO:lines"), asked("B", "SCENARIO:lines") + `
			failure -
			final B completed
			waiting B`},
		second("C"),
		exited,
	}},
	{name: "kill", about: "kill -9 in mid-turn ends no turn; the session is continued", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{do(prompt("SCENARIO:held"), held), asked("B", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{do(wiped, opencode("--continue")), "available as another incarnation"},
		second("C"),
		exited,
	}},
	{name: "two-in-one-directory", about: "two processes in one directory, with one database and one log, keep their own events", steps: []step{
		{opencode(), "available"},
		{in("work.other", opencode()), "work.other: available"},
		plain("A"),
		{in("work.other", prompt("SCENARIO:second")), otherSecond},
		second("B"),
		exited,
		{in("work.other", quit), "work.other: unavailable process_exited"},
	}},
	{name: "steno-restarted", about: "Steno is restarted in mid-turn, then killed, and the turn ends while it is away", steps: []step{
		{opencode(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{restart(syscall.SIGTERM), "unavailable mux_restarted\navailable again"},
		{release, done("A", "HELD: first words, and the rest.")},
		{do(prompt("SCENARIO:held"), held), asked("B", "SCENARIO:held")},
		{do(down, release, see("and the rest."), opencodeAnswered(2), up), "unavailable mux_restarted\navailable again\n" +
			done("B", "HELD: first words, and the rest.")},
		second("C"),
		exited,
	}},
	{name: "late", about: "Steno starts in mid-turn: the rest of the turn is told, the turn before is not", steps: []step{
		{do(down, opencode(), prompt("SCENARIO:plain"), opencodeAnswered(1), prompt("SCENARIO:held"), held, opencodeFiled(2, "message.updated.1", `%"role":"assistant"%`), up), "available"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "tmux-killed-resumed", about: "the tmux server is killed, and the session continued in another one: the same agent", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
		{opencode("--continue"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "bare", about: "a terminal without a multiplexer", steps: []step{
		{bare("opencode"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{hangUpBare, "unavailable process_exited"},
	}},
	{name: "headless", about: "opencode run, without a terminal", steps: []step{
		{headless("opencode", "run", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
	}},
	{name: "headless-error", about: "opencode run that fails", steps: []step{
		{headlessFails("opencode", "run", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			failure A invalid_request
			waiting A
			unavailable process_exited`},
	}},
}
