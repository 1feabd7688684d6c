//go:build e2e

package e2e

import "syscall"

// yolo starts Gemini CLI so that it runs tools without asking.
func yolo(args ...string) action { return gemini(append([]string{"--yolo"}, args...)...) }

var geminiScenarios = []scenario{
	{name: "plain", about: "one prompt, one answer; letters of several scripts; several texts, which are one message; reasoning; cut off; refused", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{typed("SCENARIO:unicode é漢字"), asked("B", "SCENARIO:unicode é漢字") +
			done("B", `UNICODE: é 漢字 한국어 😀 \"quoted\" <tag> &amp; back\\slash`)},
		{typed("SCENARIO:texts"), asked("C", "SCENARIO:texts") + done("C", "FIRST text.SECOND text.THIRD text.")},
		{typed("SCENARIO:thinking"), asked("D", "SCENARIO:thinking") + done("D", "THINKING: the answer is 42.")},
		{typed("SCENARIO:maxtokens"), asked("E", "SCENARIO:maxtokens") + done("E", "MAXTOKENS: cut off")},
		{typed("SCENARIO:refusal"), asked("F", "SCENARIO:refusal") + done("F", "REFUSAL: no.")},
		goneGemini,
	}},
	{name: "tools", about: "a tool call, two at once, one that fails, todos, a subagent, a background command", steps: []step{
		{yolo(), "available"},
		toldGemini("A", "tool", "TOOL: I run it.", "TOOL: it ran."),
		toldGemini("B", "tools", "TOOLS: two at once.", "TOOLS: both ran."),
		{typed("SCENARIO:toolfail"), asked("C", "SCENARIO:toolfail") + done("C", "TOOLFAIL: it failed.")},
		toldGemini("D", "todos", "TODOS: I list them.", "TODOS: all done."),
		toldGemini("E", "agent", "AGENT: I delegate.", "AGENT: it reported."),
		{typed("SCENARIO:background"), asked("F", "SCENARIO:background") + done("F", "BACKGROUND: it runs.")},
		geminiSecond("G"),
		goneGemini,
	}},
	{name: "permission", about: "a permission dialog leaves no record, the title shows it; answered with yes, left with Esc", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:permission"), see("Allow execution of")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{status("busy"), ""},
		{answer("1", "Allow execution of"), done("A", "PERMISSION: thanks.")},
		{do(typed("SCENARIO:permission"), see("Allow execution of")), asked("B", "SCENARIO:permission") + `message B "PERMISSION: may I?"`},
		{answer("Escape", "Allow execution of"), "final B aborted\nwaiting B"},
		geminiSecond("C"),
		goneGemini,
	}},
	{name: "question", about: "a question leaves no record until it is answered, or left with Esc", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:question"), see("Which colour?")), asked("A", "SCENARIO:question") + `message A "QUESTION: I have to know."`},
		{answer("2", "Which colour?"), done("A", "QUESTION: thanks.")},
		{do(typed("SCENARIO:question"), see("Which colour?")), asked("B", "SCENARIO:question") + `message B "QUESTION: I have to know."`},
		{answer("Escape", "Enter to select"), "final B aborted\nwaiting B"},
		geminiSecond("C"),
		goneGemini,
	}},
	{name: "plan", about: "a plan, approved", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:enterplan"), see("Do you want to proceed?")), asked("A", "SCENARIO:enterplan") + `message A "PLAN: I think first."`},
		{do(answer("1", "Do you want to proceed?"), see("Ready to start implementation?")), `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."`},
		{answer("1", "Ready to start implementation?"), `
			plan A "# The plan\n\n1. Look\n2. Leap"
			` + done("A", "PLAN: understood.")},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "plan-refused", about: "a plan, sent back with words", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:enterplan"), see("Do you want to proceed?")), asked("A", "SCENARIO:enterplan") + `message A "PLAN: I think first."`},
		{do(answer("1", "Do you want to proceed?"), see("Ready to start implementation?")), `
			message A "PLAN: I write it down."
			message A "PLAN: it is ready."`},
		{do(chosen("Down", "● 2."), chosen("Down", "● 3."), write("shorter"), key("Enter")), `
			plan A "# The plan\n\n1. Look\n2. Leap"
			` + done("A", "PLAN: understood.")},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "esc", about: "Esc before any output, during a text, while a tool runs", steps: []step{
		{yolo(), "available"},
		{do(typed("SCENARIO:silent"), held), asked("A", "SCENARIO:silent")},
		{key("Escape"), "final A aborted\nwaiting A"},
		geminiSecond("B"),
		{do(typed("SCENARIO:held"), held), asked("C", "SCENARIO:held")},
		{key("Escape"), "final C aborted\nwaiting C"},
		geminiSecond("D"),
		{do(typed("SCENARIO:slowtool"), running("sleep 300")), asked("E", "SCENARIO:slowtool") + `message E "SLOWTOOL: wait."`},
		{key("Escape"), "final E aborted\nwaiting E"},
		geminiSecond("F"),
		goneGemini,
	}},
	{name: "queued", about: "a prompt typed while the model speaks is the next turn", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{typed("SCENARIO:second"), ""},
		{release, done("A", "HELD: first words, and the rest.") + asked("B", "SCENARIO:second") + done("B", "SECOND: another answer.")},
		goneGemini,
	}},
	{name: "errors", about: "what the API answers: each ends the work on its turn; one that is good when the program asks once more", steps: []step{
		{gemini(), "available"},
		failedGemini("A", "400", "invalid_request"),
		failedGemini("B", "401", "authentication_failed"),
		answered("C", "flaky500", "FLAKY: good at last."),
		answered("D", "flaky503", "FLAKY: good at last."),
		failedGemini("E", "toolong", "invalid_request"),
		geminiPlain("F"),
		goneGemini,
	}},
	{name: "gives-up", about: "a stream that is cut off, one with an error event, a blocked prompt, each until the program gives up; a used-up quota, whose dialog is answered with stop; one 429 and then good", steps: []step{
		{do(reconfigured(".gemini/settings.json", `{"general":{`, `{"general":{"maxAttempts":2,`), gemini()), "available"},
		failedGemini("A", "cut", "provider_error"),
		failedGemini("B", "streamerror", "provider_error"),
		answered("C", "flaky429", "FLAKY: good at last."),
		failedGemini("D", "blocked", "provider_error"),
		{do(typed("SCENARIO:limit"), see("Usage limit reached")), asked("E", "SCENARIO:limit")},
		{answer("2", "Usage limit reached"), "failure E usage_limit\nwaiting E"},
		geminiPlain("F"),
		goneGemini,
	}},
	{name: "asks-again", about: "429, 500 and 503, each time that it is asked: on a terminal the program asks without end, and tells nothing, until a person presses Esc", steps: []step{
		{gemini(), "available"},
		stubbornGemini("A", "429"), leftGemini("A"),
		stubbornGemini("B", "500"), leftGemini("B"),
		stubbornGemini("C", "503"), leftGemini("C"),
		geminiPlain("D"),
		goneGemini,
	}},
	{name: "commands", about: "/compress, a ! command and /chat save are no turns", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{do(typedCommand("/compress"), see("Chat history compressed")), ""},
		geminiSecond("B"),
		{do(typedCommand("/chat save it"), see("Conversation checkpoint saved")), ""},
		geminiPlain("C"),
		{do(key("!"), see("! Type your shell command"), write("echo bang"), key("Enter"), see("Shell Command echo bang")), ""},
		goneGemini,
	}},
	{name: "compression", about: "a conversation that fills the window is compressed within its turn", steps: []step{
		{yolo(), "available"},
		geminiPlain("A"),
		{do(typed("SCENARIO:fill"), see("Context compressed")), asked("B", "SCENARIO:fill") + "message B \"FILL: much to read.\"\n" + done("B", "FILL: it goes on.")},
		geminiSecond("C"),
		goneGemini,
	}},
	{name: "rewind", about: "/rewind takes back the last turn and tells nothing; its prompt, sent once more, is a new turn", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		geminiSecond("B"),
		{rewoundGemini("SCENARIO:second"), ""},
		{resentGemini("SCENARIO:second"), asked("C", "SCENARIO:second") + done("C", "SECOND: another answer.")},
		goneGemini,
	}},
	{name: "clear", about: "/clear begins another session in the same process", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{do(typedCommand("/clear"), gone("PLAIN: one answer.")), ""},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "resume", about: "the session goes on in the same file, the newest one and one by its id", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		goneGemini,
		{resumedGemini("latest"), "available as another incarnation"},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "legacy", about: "a session of an older version goes on in a file beside its own; what it had is not told", steps: []step{
		{do(oldGemini, gemini("--resume", oldGeminiID)), "available"},
		geminiSecond("A"),
		goneGemini,
	}},
	{name: "oversized", about: "an answer with thoughts of over 4 MiB, in one record, is reported and costs only itself", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{typed("SCENARIO:overthought"), asked("B", "SCENARIO:overthought") + "failure -"},
		geminiSecond("C"),
		goneGemini,
	}},
	{name: "kill", about: "kill -9 in mid-turn ends no turn; the session is resumed", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{do(typed("SCENARIO:held"), held), asked("B", "SCENARIO:held")},
		{kill, "unavailable process_exited"},
		{resumedGemini("latest"), "available as another incarnation"},
		geminiSecond("C"),
		goneGemini,
	}},
	{name: "two-in-one-directory", about: "two processes in one directory keep their own events where their command lines name the sessions", steps: []step{
		{gemini("--session-id", "11111111-2222-4333-8444-555555555555"), "available"},
		geminiPlain("A"),
		{in("work.other", gemini("--session-id", "66666666-7777-4888-9999-aaaaaaaaaaaa")), "work.other: available"},
		{in("work.other", typed("SCENARIO:second")), `
			work.other: started A "SCENARIO:second"
			work.other: working A
			work.other: message A "SECOND: another answer."
			work.other: final A completed "SECOND: another answer."
			work.other: waiting A`},
		goneGemini,
		{in("work.other", leaveGemini), "work.other: unavailable process_exited"},
	}},
	{name: "two-without-ids", about: "two processes in one directory that name no session: the first, which was bound, is told; the second when it is alone, from its beginning", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{in("work.other", gemini()), "work.other: available"},
		{in("work.other", do(typed("SCENARIO:second"), see("SECOND: another answer."), recorded("SECOND: another answer."))), ""},
		{typed("SCENARIO:thinking"), asked("B", "SCENARIO:thinking") + done("B", "THINKING: the answer is 42.")},
		{leaveGemini, "unavailable process_exited\n" + otherSecond},
		{in("work.other", typed("SCENARIO:texts")), `
			work.other: started B "SCENARIO:texts"
			work.other: working B
			work.other: message B "FIRST text.SECOND text.THIRD text."
			work.other: final B completed "FIRST text.SECOND text.THIRD text."
			work.other: waiting B`},
		{in("work.other", leaveGemini), "work.other: unavailable process_exited"},
	}},
	{name: "steno-restarted", about: "Steno is restarted in mid-turn", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{restart(syscall.SIGTERM), "unavailable mux_restarted\navailable again"},
		{release, done("A", "HELD: first words, and the rest.")},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "steno-killed", about: "Steno is killed in mid-turn, and the turn ends while it is away", steps: []step{
		{gemini(), "available"},
		{do(typed("SCENARIO:held"), held), asked("A", "SCENARIO:held")},
		{do(down, release, see("and the rest."), recorded("and the rest."), up), "unavailable mux_restarted\navailable again\n" +
			done("A", "HELD: first words, and the rest.")},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "late", about: "Steno starts in mid-turn: the rest of the turn is told, the turn before is not", steps: []step{
		{do(down, gemini(), typed("SCENARIO:plain"), recorded("PLAIN: one answer."), typed("SCENARIO:held"), held, recorded("SCENARIO:held"), up), "available"},
		{release, done("A", "HELD: first words, and the rest.")},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "tmux-killed-resumed", about: "the tmux server is killed, and the session resumed in another one: the same agent", steps: []step{
		{gemini(), "available"},
		geminiPlain("A"),
		{hangUp, "unavailable process_exited"},
		{geminiSession(resumedGemini), "available as another incarnation"},
		geminiSecond("B"),
		goneGemini,
	}},
	{name: "bare", about: "a terminal without a multiplexer: no title, so silence ends the turn", steps: []step{
		{bare("gemini"), "available"},
		{say("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{killBare, "unavailable process_exited"},
	}},
	{name: "headless", about: "gemini -p, without a terminal", steps: []step{
		{headless("gemini", "--yolo", "-p", "SCENARIO:tool"), "available\n" + asked("A", "SCENARIO:tool") + `message A "TOOL: I run it."
			` + done("A", "TOOL: it ran.") + "unavailable process_exited"},
	}},
	{name: "headless-error", about: "gemini -p that fails: only the rollback tells it", steps: []step{
		{headlessFails("gemini", "-p", "SCENARIO:400"), "available\n" + asked("A", "SCENARIO:400") + `
			failure A provider_error
			waiting A
			unavailable process_exited`},
	}},
	{name: "headless-gives-up", about: "gemini -p: 500 until it gives up", steps: []step{
		{do(reconfigured(".gemini/settings.json", `{"general":{`, `{"general":{"maxAttempts":2,`), headlessFails("gemini", "-p", "SCENARIO:500")), "available\n" + asked("A", "SCENARIO:500") + `
			failure A provider_error
			waiting A
			unavailable process_exited`},
	}},
}
