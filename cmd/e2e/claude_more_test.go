//go:build e2e

package e2e

// flaky is a turn whose first request fails, and the program asks again: it is
// told once, and of the failure nothing.
func flaky(turn, script string) step {
	return step{prompt("SCENARIO:" + script), asked(turn, "SCENARIO:"+script) + done(turn, "FLAKY: good at last.")}
}

// flakyTool is such a turn with a tool between two failures.
func flakyTool(turn string) step {
	return step{prompt("SCENARIO:flakytool"), asked(turn, "SCENARIO:flakytool") + "message " + turn + " \"FLAKY: a tool.\"\n" + done(turn, "FLAKY: good at last.")}
}

// stopHook sends the model on once, when the file "go" is there.
const stopHook = `{"permissions":{"allow":["Bash(echo:*)"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":` +
	`"if [ -e went ]; then exit 0; fi; while [ ! -e go ]; do sleep 0.05; done; touch went; echo '{\"decision\":\"block\",\"reason\":\"SCENARIO:again\"}'"}]}]}}`

var claudeMoreScenarios = []scenario{
	{name: "permission-denied", about: "a permission is denied with words; the same turn goes on", steps: []step{
		{claude(), "available"},
		{do(prompt("SCENARIO:permission"), see("Do you want to")), asked("A", "SCENARIO:permission") + `message A "PERMISSION: may I?"`},
		{do(pointed("No"), key("Tab"), see("tell Claude"), write("not that one"), key("Enter")), done("A", "PERMISSION: thanks.")},
		plain("B"),
		exited,
	}},
	{name: "stop-hook", about: "a Stop hook takes its time and sends the model on: the turn goes on, and its final is told once more", steps: []step{
		{do(configured(".claude/settings.json", stopHook), claude()), "available"},
		{prompt("SCENARIO:plain"), asked("A", "SCENARIO:plain") + done("A", "PLAIN: one answer.")},
		{created("go"), "working A\n" + done("A", "AGAIN: after all.")},
		second("B"),
		exited,
	}},
	{name: "trust", about: "a directory that is not trusted: the session begins when it is", steps: []step{
		{do(reconfigured(".claude.json", `"hasTrustDialogAccepted":true`, `"hasTrustDialogAccepted":false`), launch("claude"), see("trust this folder")), "available"},
		{do(pointed("Yes, I trust this folder"), answer("Enter", "trust this folder"), ready), ""},
		plain("A"),
		exited,
	}},
	failed("limit", "rate_limited"),
	{name: "stream-error", about: "an error event in the stream, and the program asks again by itself", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:streamerror"), asked("A", "SCENARIO:streamerror") + done("A", "STREAMERROR: said twice.")},
		exited,
	}},
	{name: "stream-error-late", about: "an error event behind a whole text, which the screen keeps", steps: []step{
		{claude(), "available"},
		{prompt("SCENARIO:lateerror"), asked("A", "SCENARIO:lateerror") + `
			message A "LATEERROR: all of it."
			failure A provider_error
			waiting A`},
		plain("B"),
		exited,
	}},
	{name: "retries", about: "the API fails once and is good then: each turn is told once", steps: []step{
		{claude(), "available"},
		flaky("A", "flaky429"),
		flaky("B", "flaky500"),
		flaky("C", "flaky529"),
		flaky("D", "flakycut"),
		flaky("E", "flakyevent"),
		flakyTool("F"),
		exited,
	}},
	{name: "auto-compact", about: "the program compacts in mid-turn before its window is full, as it was told to, and the turn goes on", steps: []step{
		{do(shell("export CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000"), claude()), "available"},
		plain("A"),
		{prompt("SCENARIO:fill"), asked("B", "SCENARIO:fill") + `message B "FILL: much to read."
			` + done("B", "COMPACTED: it goes on.")},
		second("C"),
		exited,
	}},
	{name: "overrun", about: "the API says in mid-turn that the prompt is too long; the program compacts by itself, and the turn goes on", steps: []step{
		{claude(), "available"},
		plain("A"),
		{prompt("SCENARIO:overrun"), asked("B", "SCENARIO:overrun") + `message B "OVERRUN: much to read."
			` + done("B", "COMPACTED: it goes on.")},
		second("C"),
		exited,
	}},
	{name: "headless-three", about: "three claude -p in one directory at once keep their own events", steps: []step{
		{do(
			in("work.one", apart("claude", "-p", "SCENARIO:held")),
			in("work.two", apart("claude", "-p", "SCENARIO:held")),
			in("work.three", apart("claude", "-p", "SCENARIO:held")),
			held, held, held,
		), eachOf(`available
			started A "SCENARIO:held"
			working A`)},
		{do(release, release, release, in("work.one", joined), in("work.two", joined), in("work.three", joined)),
			eachOf(done("A", "HELD: first words, and the rest.") + "unavailable process_exited")},
	}},
	{name: "moved", about: "a session that ended goes on in another pane: the same agent", steps: []step{
		{claude("--session-id", sessionID), "available"},
		plain("A"),
		left,
		{in("work.other", claude("--resume", sessionID)), "available as another incarnation"},
		{in("work.other", prompt("SCENARIO:second")), asked("B", "SCENARIO:second") + done("B", "SECOND: another answer.")},
		{in("work.other", quit), "unavailable process_exited"},
	}},
	{name: "moved-onto", about: "a session that ended goes on in a pane that had an agent: the agent of that pane", steps: []step{
		{claude("--session-id", sessionID), "available"},
		plain("A"),
		left,
		{in("work.other", claude()), "work.other: available"},
		{in("work.other", do(prompt("SCENARIO:second"), see("SECOND: another answer."))), `
			work.other: started A "SCENARIO:second"
			work.other: working A
			work.other: message A "SECOND: another answer."
			work.other: final A completed "SECOND: another answer."
			work.other: waiting A`},
		{in("work.other", ctrlD), "work.other: unavailable process_exited"},
		{in("work.other", claude("--resume", sessionID)), "work.other: available as another incarnation"},
		{in("work.other", prompt("SCENARIO:plain")), `
			work.other: started B "SCENARIO:plain"
			work.other: working B
			work.other: message B "PLAIN: one answer."
			work.other: final B completed "PLAIN: one answer."
			work.other: waiting B`},
		{in("work.other", quit), "work.other: unavailable process_exited"},
	}},
}

// eachOf gives the rows to each of three that run apart.
func eachOf(rows string) string {
	out := ""
	for _, name := range []string{"one", "two", "three"} {
		for _, row := range split(rows)["work"] {
			out += "work." + name + ": " + row + "\n"
		}
	}
	return out
}
