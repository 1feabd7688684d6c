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
	{name: "plain", about: "one prompt, one answer; letters of several scripts; several texts, which are one part; reasoning; cut off; nothing said", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{prompt("SCENARIO:unicode é漢字"), asked("B", "SCENARIO:unicode é漢字") +
			done("B", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		{prompt("SCENARIO:texts"), asked("C", "SCENARIO:texts") + done("C", "FIRST text.SECOND text.THIRD text.")},
		{prompt("SCENARIO:thinking"), asked("D", "SCENARIO:thinking") + done("D", "THINKING: the answer is 42.")},
		{prompt("SCENARIO:maxtokens"), asked("E", "SCENARIO:maxtokens") + done("E", "MAXTOKENS: cut off")},
		{prompt("SCENARIO:empty"), asked("F", "SCENARIO:empty") + "final F completed\nwaiting F"},
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
	{name: "permission", about: "a permission dialog, answered with yes, with no; a subagent's, with words", steps: []step{
		{do(asking, opencode()), "available"},
		{do(prompt("SCENARIO:permission"), see("Permission required")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{status("busy"), ""},
		{answer("Enter", "Permission required"), done("A", "PERMISSION: thanks.")},
		{do(prompt("SCENARIO:permission"), see("Permission required")), asked("B", "SCENARIO:permission") + `message B "PERMISSION: may I?"`},
		{answer("Escape", "Permission required"), "waiting B"},
		second("C"),
		{do(prompt("SCENARIO:agent"), see("Permission required")), asked("D", "SCENARIO:agent") + `message D "AGENT: I delegate."`},
		{do(answer("Escape", "Permission required"), see("Tell OpenCode what to do"), write("another way"), answer("Enter", "Tell OpenCode what to do")), done("D", "AGENT: it reported.")},
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
	{name: "experimental", about: "a plan: approved, which goes on as the same turn; rejected; the agent for plans is chosen by Tab; a subagent in the background, whose report goes on with the turn that had ended", steps: []step{
		{do(experimental("PLAN_MODE"), experimental("BACKGROUND_SUBAGENTS"), opencode("--agent", "plan")), "available"},
		{do(prompt("SCENARIO:plan"), see("Would you like to switch")), asked("A", "SCENARIO:plan") + `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."`},
		{answer("1", "Would you like to switch"), done("A", "PLAN: understood.")},
		{do(prompt("SCENARIO:agentsheld"), held), asked("B", "SCENARIO:agentsheld") + done("B", "AGENTS: it works.")},
		{release, "working B\n" + done("B", "NOTED: the task is done.")},
		{do(key("Tab"), see("Plan · Scripted Model Scripted"), prompt("SCENARIO:plan"), see("Would you like to switch")), asked("C", "SCENARIO:plan") + `
			message C "PLAN: I write it down."
			message C "PLAN: it is ready."`},
		{answer("2", "Would you like to switch"), "waiting C"},
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
	{name: "queued", about: "a prompt typed while the model speaks is a turn at once, and answered next; while a tool is about to run, it is answered in place of the first one", steps: []step{
		{opencode(), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{prompt("SCENARIO:second"), asked("B", "SCENARIO:second")},
		{release, `message A "HELD: first words, and the rest."
			final A completed "HELD: first words, and the rest."
			` + done("B", "SECOND: another answer.")},
		{do(prompt("SCENARIO:absorb"), held), asked("C", "SCENARIO:absorb")},
		{prompt("SCENARIO:second"), asked("D", "SCENARIO:second")},
		{release, `message C "ABSORB: a tool first."
			final C aborted
			` + done("D", "SECOND: another answer.")},
		exited,
	}},
	{name: "errors", about: "what the API answers, each time that it is asked; an error in its stream; a content filter, with and without words", steps: []step{
		{opencode(), "available"},
		opencodeFailed("A", "400", "invalid_request"),
		opencodeFailed("B", "401", "authentication_failed"),
		opencodeFailed("C", "429", "rate_limited"),
		opencodeFailed("D", "500", "provider_unavailable"),
		opencodeFailed("E", "503", "model_at_capacity"),
		opencodeFailed("F", "529", "model_at_capacity"),
		opencodeFailed("G", "limit", "rate_limited"),
		opencodeFailed("H", "quota", "provider_error"),
		opencodeFailed("I", "context", "provider_error"),
		{prompt("SCENARIO:refusal"), asked("J", "SCENARIO:refusal") + `message J "REFUSAL: no."
			failure J policy_blocked
			waiting J`},
		opencodeFailed("K", "blocked", "policy_blocked"),
		plain("L"),
		exited,
	}},
	{name: "retries", about: "all is well the second time: an error, one in the stream, a cut; Esc while the program waits to ask again", steps: []step{
		{opencode(), "available"},
		{prompt("SCENARIO:flaky429"), asked("A", "SCENARIO:flaky429") + done("A", "FLAKY: good at last.")},
		{prompt("SCENARIO:flakytool"), asked("B", "SCENARIO:flakytool") + "message B \"FLAKY: a tool.\"\n" + done("B", "FLAKY: good at last.")},
		{prompt("SCENARIO:flakyevent"), asked("C", "SCENARIO:flakyevent") + done("C", "FLAKY: good at last.")},
		{prompt("SCENARIO:flakycut"), asked("D", "SCENARIO:flakycut") + done("D", "FLAKY: good at last.")},
		{do(prompt("SCENARIO:stubborn"), see("retrying")), asked("E", "SCENARIO:stubborn")},
		{interrupt, "waiting E"},
		plain("F"),
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
	{name: "commands", about: "a ! command, a new name and /undo are no turns; /new begins another session in the same process", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{do(key("!"), write("echo bang-$((6*7))"), key("Enter"), see("bang-42")), ""},
		{do(command("/rename"), see("Rename Session"), key("C-u"), write("a better name"), answer("Enter", "Rename Session"), see("a better name")), ""},
		second("B"),
		{do(command("/undo"), see("1 message reverted"), see("SCENARIO:second"), key("C-u"), gone("SCENARIO:second")), ""},
		plain("C"),
		{do(command("/new"), gone("PLAIN: one answer.")), ""},
		second("D"),
		plain("E"),
		exited,
	}},
	{name: "resume", about: "the session goes on, by its id; kill -9 in mid-turn ends no turn, and it is continued; a fork begins without history", steps: []step{
		{opencode(), "available"},
		plain("A"),
		exited,
		{opencodeAgain(func(id string) action { return do(opencode("-s", id), see("PLAIN: one answer.")) }), "available as another incarnation"},
		second("B"),
		{do(prompt("SCENARIO:held"), held), asked("C", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{do(wiped, opencode("--continue"), see("SECOND: another answer.")), "available as another incarnation"},
		second("D"),
		exited,
		{do(opencode("--continue", "--fork"), opencodeSessions(2), see("SECOND: another answer.")), "available as another incarnation"},
		second("E"),
		exited,
	}},
	{name: "oversized", about: "an answer of over 4 MiB is reported, with its row, and costs only itself", steps: []step{
		{opencode(), "available"},
		plain("A"),
		{prompt("SCENARIO:lines"), asked("B", "SCENARIO:lines") + `
			failure -
			final B completed
			waiting B`},
		// Its screen takes the program minutes, so it goes on without one.
		{kill, "unavailable process_exited"},
		{headless("opencode", "run", "--continue", "SCENARIO:second"), "available as another incarnation\n" +
			asked("C", "SCENARIO:second") + done("C", "SECOND: another answer.") + "unavailable process_exited"},
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
	{name: "linked", about: "the database is a link to another directory", steps: []step{
		{do(elsewhere, opencode()), "available"},
		plain("A"),
		second("B"),
		{restart(syscall.SIGKILL), "unavailable mux_restarted\navailable again"},
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
		{do(opencode("--continue"), see("PLAIN: one answer.")), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "bare", about: "a terminal without a multiplexer", steps: []step{
		{bare("opencode"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{hangUpBare, "unavailable process_exited"},
	}},
	{name: "headless", about: "opencode run, without a terminal; one that fails", steps: []step{
		{headless("opencode", "run", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
		{headlessFails("opencode", "run", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			failure A invalid_request
			waiting A
			unavailable process_exited`},
	}},
}
