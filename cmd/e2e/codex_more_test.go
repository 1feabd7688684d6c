//go:build e2e

package e2e

var codexMoreScenarios = []scenario{
	{name: "trust", about: "a directory that is not trusted: the session begins when it is", steps: []step{
		{do(outOfSight("git", "init", "-q"), reconfigured(".codex/config.toml", `[projects."`, `[projects."/nowhere`), launch("codex", "--no-daemon"), see("Trust this folder?")), "available"},
		{do(answer("Enter", "Trust this folder?"), ready), ""},
		plain("A"),
		exited,
	}},
	aborted("streamerror", "provider_error"),
	{name: "stream-error-late", about: "an error event behind a whole text, twice: the screen shows the text twice", steps: []step{
		{codex("--no-daemon"), "available"},
		{prompt("SCENARIO:lateerror"), asked("A", "SCENARIO:lateerror") + `
			message A "LATEERROR: all of it."
			message A "LATEERROR: all of it."
			final A aborted provider_error
			waiting A`},
		plain("B"),
		exited,
	}},
	{name: "retries", about: "the API fails once and is good then: each turn is told once", steps: []step{
		{codex("--no-daemon"), "available"},
		flaky("A", "flaky500"),
		flaky("B", "flakycut"),
		flaky("C", "flakyevent"),
		flakyTool("D"),
		exited,
	}},
	{name: "auto-compact", about: "the program compacts by itself in mid-turn, and the turn goes on", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		{prompt("SCENARIO:fill"), asked("B", "SCENARIO:fill") + `message B "FILL: much to read."
			` + done("B", "COMPACTED: it goes on.")},
		second("C"),
		exited,
	}},
	{name: "subagent", about: "a subagent has a rollout of its own in the same process; its words are not the agent's", steps: []step{
		{do(reconfigured(".codex/config.toml", "[features]", "[features]\nmulti_agent_v2 = true"), codex("--no-daemon")), "available"},
		{prompt("SCENARIO:spawn"), asked("A", "SCENARIO:spawn") + `message A "SPAWN: I delegate."
			` + done("A", "SPAWN: it reported.")},
		second("B"),
		exited,
	}},
	{name: "review", about: "/review: a reviewer has a rollout of its own; only what it found is the agent's", steps: []step{
		{do(outOfSight("git", "init", "-q"), created("changed.txt"), codex("--no-daemon")), "available"},
		{do(write("/review"), key("Enter"), see("Review uncommitted changes"), key("2"), see("REVIEW: it is fine.")), `
			started A
			working A
			` + done("A", "REVIEW: it is fine.")},
		second("B"),
		exited,
	}},
	{name: "headless-three", about: "three codex exec in one directory at once keep their own events", steps: []step{
		{do(
			in("work.one", apart("codex", "exec", "--skip-git-repo-check", "SCENARIO:held")),
			in("work.two", apart("codex", "exec", "--skip-git-repo-check", "SCENARIO:held")),
			in("work.three", apart("codex", "exec", "--skip-git-repo-check", "SCENARIO:held")),
			held, held, held,
		), eachOf(`available
			started A "SCENARIO:held"
			working A`)},
		{do(release, release, release, in("work.one", joined), in("work.two", joined), in("work.three", joined)),
			eachOf(done("A", "HELD: first words, and the rest.") + "unavailable process_exited")},
	}},
	{name: "moved", about: "a session that ended goes on in another pane: the same agent", steps: []step{
		{codex("--no-daemon"), "available"},
		plain("A"),
		exited,
		{in("work.other", codex("--no-daemon", "resume", "--last")), "available as another incarnation"},
		{in("work.other", prompt("SCENARIO:second")), asked("B", "SCENARIO:second") + done("B", "SECOND: another answer.")},
		{in("work.other", quit), "unavailable process_exited"},
	}},
}
