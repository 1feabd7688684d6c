package kimi

import (
	"strings"

	"steno/providers/scan"
)

// What 2.1.0 writes into a session's record, by the schemas in the program
// (protocol 1.5), with what its migrations read of earlier protocols. Most of it
// is ignored on purpose: it repeats the conversation, or keeps the program's
// own books. A type that is not here is one that the program did not have.
var knownTypes = set(
	"metadata", "forked", "agent.switched", "config.update", "profile.bind", "runtime.set_binding",
	"context.append_loop_event", "context.append_message", "context.apply_compaction", "context.clear", "context.undo",
	"context.undone", "context.update_token_count", "full_compaction.begin", "full_compaction.cancel",
	"full_compaction.complete", "micro_compaction.apply",
	"turn.prompt", "turn.steer", "turn.cancel", "turn.ended", "turn.step.interrupted", "turn.step.retrying",
	"prompt.accepted", "prompt.aborted", "prompt.completed", "prompt.steered",
	"interaction.request", "interaction.resolved", "interruptionReminder.recorded",
	"llm.request", "llm.tools_snapshot", "usage.record",
	"token_counting.measured", "token_counting.rebased", "token_counting.truncated", "token_counting.turn_recorded",
	"permission.record_approval_result", "permission.set_mode", "permission.rules.add",
	"plan.revision", "plan_mode.cancel", "plan_mode.enter", "plan_mode.exit",
	"subagent.cancelled", "subagent.completed", "subagent.failed", "subagent.spawned", "subagent.started",
	"swarm_mode.enter", "swarm_mode.exit", "tower_mode.enter", "tower_mode.exit",
	"task.started", "task.terminated", "task.waitDelivered",
	"goal.create", "goal.update", "goal.clear", "goal.account_usage", "goal.continuation",
	"cron.add", "cron.cursor", "cron.delete", "file_history.checkpoint", "file_history.tracked",
	"mcp.tools_discovered", "plugin.session_start", "staleGuard.recorded", "staleGuard.cleared",
	"tools.register_user_tool", "tools.unregister_user_tool", "tools.set_active_tools", "tools.reset_active_tools",
	"tools.update_store",
)

// The second stream of records, of kind "event": late, with a count of turns of
// its own, and with failures in the middle of a turn that goes on.
var knownLate = set("agent.message.appended", "agent.turn.started", "agent.turn.ended")

var (
	knownEvents   = set("step.begin", "step.end", "content.part", "tool.call", "tool.result")
	knownParts    = set("text", "think", "image_url", "audio_url", "video_url")
	knownReasons  = set("completed", "cancelled", "failed", "blocked")
	knownRequests = set("approval", "question")
	knownOrigins  = set("user", "task", "system_trigger", "skill_activation", "plugin_command", "cron_job",
		"cron_missed", "hook_result", "injection", "retry", "shell_command", "compaction_summary")
	knownVersions = set("1.0", "1.1", "1.2", "1.3", "1.4", "1.5")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// unknownType is the type of a record that has no entry, else "".
func unknownType(name string, kind, version []byte) string {
	late := scan.Is(kind, "event")
	switch {
	case name == "":
		return "no-type"
	case late && !knownLate[name]:
		return "event/" + name
	case !late && !knownTypes[name]:
		return name
	case name == "metadata" && !knownVersions[scan.Text(version)]:
		return "metadata/" + scan.Text(version)
	}
	return ""
}

// note reports a nested kind that has no entry.
func (f *fact) note(where string, kind []byte, known map[string]bool) {
	if name := scan.Text(kind); f.unknown == "" && !known[name] {
		f.unknown = where + "/" + name
	}
}

// maxDrift bounds the types that are reported at a time.
const maxDrift = 16

// drift collects types that the provider has no entry for.
type drift struct{ names []string }

func (d *drift) add(name string) {
	if name == "" || len(d.names) >= maxDrift {
		return
	}
	name = clean(name)
	for _, n := range d.names {
		if n == name {
			return
		}
	}
	d.names = append(d.names, name)
}

// Drift lists the types since the last call.
func (d *drift) Drift() []string {
	names := d.names
	d.names = nil
	return names
}

// clean keeps a name that can be a type; anything else might be content.
func clean(name string) string {
	ok := len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("._-/:$", c) >= 0
	}
	if !ok {
		return "not-a-name"
	}
	return name
}
