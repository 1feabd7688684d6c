//go:build e2e

package e2e

import "syscall"

// aborted is a turn that Codex ends by itself without an answer.
func aborted(status, reason string) scenario {
	return scenario{
		name: "error-" + status, about: "the API answers " + status,
		steps: []step{
			{codex("--no-daemon"), "available"},
			{prompt("SCENARIO:" + status), asked("A", "SCENARIO:"+status) + "final A aborted " + reason + "\nwaiting A"},
			plain("B"),
			exited,
		},
	}
}

var codexScenarios = []scenario{
	{name: "plain", about: "one prompt, one answer", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		exited,
	}},
	{name: "two-turns", about: "two prompts one after the other", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		second("B"),
		exited,
	}},
	{name: "unicode", about: "letters of several scripts, quotes and markup", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:unicode é漢字"), asked("A", "SCENARIO:unicode é漢字") +
			done("A", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		exited,
	}},
	{name: "several-texts", about: "three messages in one answer; the last is the final", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:texts"), asked("A", "SCENARIO:texts") + `
			message A "FIRST text."
			message A "SECOND text."
			` + done("A", "THIRD text.")},
		exited,
	}},
	{name: "thinking", about: "reasoning before the answer", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:thinking"), asked("A", "SCENARIO:thinking") + done("A", "THINKING: the answer is 42.")},
		exited,
	}},
	{name: "tool", about: "a tool call", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:tool"), asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.")},
		exited,
	}},
	{name: "parallel-tools", about: "two tools in one answer", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:tools"), asked("A", "SCENARIO:tools") + `message A "TOOLS: two at once."
			` + done("A", "TOOLS: both ran.")},
		exited,
	}},
	{name: "failed-tool", about: "a tool that fails", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:toolfail"), asked("A", "SCENARIO:toolfail") + done("A", "TOOLFAIL: it failed.")},
		exited,
	}},
	{name: "approval-granted", about: "an approval dialog leaves no record; it is answered with yes", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:escalate"), see("Would you like to run")), asked("A", "SCENARIO:escalate") + `message A "ESCALATE: may I?"`},
		{answer("y", "Would you like to run"), done("A", "ESCALATE: thanks.")},
		exited,
	}},
	{name: "approval-escaped", about: "an approval dialog, left with Esc", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:escalate"), see("Would you like to run")), asked("A", "SCENARIO:escalate") + `message A "ESCALATE: may I?"`},
		{answer("Escape", "Would you like to run"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "question-answered", about: "a question leaves no record until it is answered", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:ask"), see("Which colour?")), asked("A", "SCENARIO:ask")},
		{answer("2", "enter to submit answer"), done("A", "ASK: thanks.")},
		exited,
	}},
	{name: "question-escaped", about: "a question, left with Esc", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:ask"), see("Which colour?")), asked("A", "SCENARIO:ask")},
		{answer("Escape", "enter to submit answer"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "plan", about: "a plan that is proposed in plan mode", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(command("/plan"), see("Plan mode")), ""},
		{do(prompt("SCENARIO:proposal"), see("Implement this plan?")), asked("A", "SCENARIO:proposal") + `
			plan A "# The plan\n\n- Look\n- Leap"
			` + done("A", "PROPOSAL: look.")},
		{answer("Escape", "Implement this plan?"), ""},
		exited,
	}},
	{name: "plan-approved", about: "a plan that is approved is carried out in a turn of its own", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(command("/plan"), see("Plan mode")), ""},
		{do(prompt("SCENARIO:proposal"), see("Implement this plan?")), asked("A", "SCENARIO:proposal") + `
			plan A "# The plan\n\n- Look\n- Leap"
			` + done("A", "PROPOSAL: look.")},
		{answer("Enter", "Implement this plan?"), "started B something that was not typed\nworking B\n" + done("B", "OTHER: nothing was asked by name.")},
		exited,
	}},
	{name: "rename", about: "/rename is no turn", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{do(command("/rename"), see("Rename thread"), key("C-u"), write("label 2"), answer("Enter", "Rename thread"), see("label 2")), ""},
		second("B"),
		exited,
	}},
	{name: "esc-silent", about: "Esc before any output", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:silent"), held), asked("A", "SCENARIO:silent")},
		{key("Escape"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "esc-text", about: "Esc during a text; what was said so far is in no record", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{key("Escape"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "esc-tool", about: "Esc while a tool runs", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:slowtool"), running("sleep 300")), asked("A", "SCENARIO:slowtool") + `message A "SLOWTOOL: wait."`},
		{key("Escape"), "final A aborted\nwaiting A"},
		plain("B"),
		exited,
	}},
	{name: "steered", about: "a prompt typed while the model speaks cuts the text, and belongs to the same turn", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{prompt("also that"), done("A", "OTHER: nothing was asked by name.")},
		exited,
	}},
	aborted("400", "provider_error"),
	aborted("401", "authentication_failed"),
	aborted("429", "rate_limited"),
	aborted("limit", "usage_limit"),
	aborted("500", "provider_unavailable"),
	aborted("503", "model_at_capacity"),
	aborted("cut", "provider_error"),
	aborted("context", "context_limit"),
	aborted("quota", "usage_limit"),
	aborted("policy", "policy_blocked"),
	{name: "resume", about: "the session goes on in the same file, in the same pane", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		exited,
		{codex("--no-daemon", "resume", "--last"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "fork", about: "a fork is a session of its own, without history", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		exited,
		{codex("--no-daemon", "fork", "--last"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "new", about: "/new begins another session in the same process", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{do(command("/new"), gone("PLAIN: one answer."), see("? for shortcuts")), ""},
		second("B"),
		exited,
	}},
	{name: "compact", about: "/compact is a turn without a prompt", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{command("/compact"), `
			started B
			working B
			final B completed
			waiting B`},
		second("C"),
		exited,
	}},
	{name: "oversized", about: "reasoning of over 4 MiB, in two records, is reported and costs only itself", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{prompt("SCENARIO:overthought"), asked("B", "SCENARIO:overthought") + "failure -\nfailure -\n" + done("B", "OVERTHOUGHT: a short answer.")},
		second("C"),
		exited,
	}},
	{name: "kill", about: "kill -9, and again in the same pane", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{kill, "unavailable process_exited"},
		{codex("--no-daemon"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "kill-mid-turn", about: "kill -9 in mid-turn ends no turn", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{codex("--no-daemon", "resume", "--last"), "available as another incarnation"},
		plain("B"),
		exited,
	}},
	{name: "two-in-one-directory", about: "two embedded processes in one directory keep their own events", steps: []step{
		{codex("--no-daemon"), "available"},
		{in("work.other", codex("--no-daemon")), "work.other: available"},
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
	{name: "daemon", about: "the program's shared daemon holds the session, two terminals in one directory", steps: []step{
		{codex(), "available"},
		{in("work.other", codex()), "work.other: available"},
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
	{name: "daemon-again", about: "the shared daemon outlives its terminal; another terminal in the same pane has a session of its own", steps: []step{
		{codex(), "available"},
		plain("A"),
		exited,
		{codex(), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "daemon-new", about: "/new in a terminal of the shared daemon", steps: []step{
		{codex(), "available"},
		plain("A"),
		{do(command("/new"), gone("PLAIN: one answer."), see("? for shortcuts")), ""},
		second("B"),
		exited,
	}},
	{name: "daemon-resume", about: "a session is resumed in a terminal of the shared daemon", steps: []step{
		{codex(), "available"},
		plain("A"),
		exited,
		{codex("resume", "--last"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "shell", about: "a ! command is a turn without a prompt and an answer", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{do(write("!echo bang"), key("Enter")), `
			started B
			working B
			final B completed
			waiting B`},
		second("C"),
		exited,
	}},
	{name: "steno-restarted", about: "Steno is restarted in mid-turn", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{restart(syscall.SIGTERM), "unavailable mux_restarted\navailable again"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "steno-killed", about: "Steno is killed in mid-turn, and the turn ends while it is away", steps: []step{
		{codex("--no-daemon"), "available"},
		{do(prompt("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{do(down, release, see("and the rest."), up), "unavailable mux_restarted\navailable again\n" +
			done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "late", about: "Steno starts after the first turn, which is not told", steps: []step{
		{do(down, codex("--no-daemon"), prompt("SCENARIO:plain"), recorded(`"task_complete"`), up), "available"},
		second("A"),
		exited,
	}},
	{name: "late-mid-turn", about: "Steno starts in mid-turn: the rest of the turn is told", steps: []step{
		{do(down, codex("--no-daemon"), prompt("SCENARIO:held"), held, recorded(`"SCENARIO:held"`), up), "available"},
		{release, done("A", "HELD: first words, and the rest.")},
		second("B"),
		exited,
	}},
	{name: "daemon-steno-killed", about: "Steno is killed in mid-turn of a terminal of the shared daemon", steps: []step{
		{codex(), "available"},
		plain("A"),
		{do(prompt("SCENARIO:held"), held), asked("B", "SCENARIO:held")},
		{do(down, release, see("and the rest."), up), "unavailable mux_restarted\navailable again\n" +
			done("B", "HELD: first words, and the rest.")},
		second("C"),
		exited,
	}},
	{name: "tmux-killed", about: "the tmux server is killed", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
	}},
	{name: "headless-error", about: "codex exec that fails", steps: []step{
		{headlessFails("codex", "exec", "--skip-git-repo-check", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			final A aborted provider_error
			waiting A
			unavailable process_exited`},
	}},
	{name: "bare", about: "a terminal without a multiplexer", steps: []step{
		{bare("codex", "--no-daemon"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{hangUpBare, "unavailable process_exited"},
	}},
	{name: "tmux-killed-resumed", about: "the tmux server is killed, and the session resumed in another one: the same agent", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{hangUp, "unavailable process_exited"},
		{codex("--no-daemon", "resume", "--last"), "available as another incarnation"},
		second("B"),
		exited,
	}},
	{name: "headless", about: "codex exec, without a terminal", steps: []step{
		{headless("codex", "exec", "--skip-git-repo-check", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
	}},
}
