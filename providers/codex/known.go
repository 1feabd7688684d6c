package codex

import (
	"slices"

	"steno/providers"
	"steno/providers/scan"
)

// Types that 0.171.0 has, as the names in the program tell, with what older
// versions wrote (0.138.0). Most are ignored on purpose: they repeat the
// conversation, count tokens, or are never written to a rollout. A type that is
// not here is one that the program did not have.
var (
	knownTypes = set("session_meta", "dynamic_tools_updated", "response_item", "inter_agent_communication",
		"inter_agent_communication_metadata", "compacted", "turn_context", "token_usage_record", "world_state",
		"security_risk_score", "event_msg", "realtime_item", "retained_context")

	knownEvents = set("error", "warning", "auth_recovery_started", "auth_recovery_completed", "guardian_warning",
		"guardian_assessment", "realtime_conversation_started", "realtime_conversation_realtime",
		"realtime_conversation_closed", "realtime_conversation_sdp", "realtime_conversation_list_voices_response",
		"model_reroute", "model_verification", "turn_moderation_metadata", "safety_buffering", "context_compacted",
		"thread_rolled_back", "task_started", "turn_started", "thread_settings_applied", "task_complete",
		"turn_complete", "token_count", "agent_message", "user_message", "agent_reasoning",
		"agent_reasoning_raw_content", "agent_reasoning_section_break", "session_configured",
		"environment_connected", "environment_disconnected", "thread_goal_updated", "thread_queue_changed",
		"mcp_startup_update", "mcp_startup_complete", "mcp_tool_call_begin", "mcp_tool_call_end",
		"web_search_begin", "web_search_end", "image_generation_begin", "image_generation_end",
		"exec_command_begin", "exec_command_output_delta", "terminal_interaction", "exec_command_end",
		"view_image_tool_call", "exec_approval_request", "request_permissions", "request_user_input",
		"dynamic_tool_call_request", "dynamic_tool_call_response", "elicitation_request", "elicitation_abandoned",
		"apply_patch_approval_request", "deprecation_notice", "stream_error", "patch_apply_begin",
		"patch_apply_updated", "patch_apply_end", "turn_diff", "plan_update", "turn_aborted", "shutdown_complete",
		"entered_review_mode", "exited_review_mode", "raw_response_item", "raw_response_completed", "item_started",
		"item_completed", "hook_started", "hook_completed", "agent_message_content_delta", "plan_delta",
		"reasoning_content_delta", "reasoning_raw_content_delta", "collab_agent_spawn_begin",
		"collab_agent_spawn_end", "collab_agent_interaction_begin", "collab_agent_interaction_end",
		"collab_waiting_begin", "collab_waiting_end", "collab_close_begin", "collab_close_end",
		"collab_resume_begin", "collab_resume_end", "sub_agent_activity")

	knownResponses = set("message", "agent_message", "reasoning", "local_shell_call", "function_call",
		"function_call_output", "custom_tool_call", "custom_tool_call_output", "tool_search_call",
		"tool_search_output", "web_search_call", "image_generation_call", "compaction", "compaction_trigger",
		"context_compaction", "configuration_update", "additional_tools", "other")

	knownItems = set("UserMessage", "FunctionCallOutput", "HookPrompt", "AgentMessage", "Plan", "Reasoning",
		"CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "CollabAgentToolCall",
		"SubAgentActivity", "WebSearch", "ImageView", "ImageGeneration", "EnteredReviewMode", "ExitedReviewMode",
		"ContextCompaction")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// typeNames are what a type can be called; anything else might be content.
var typeNames = scan.NewNames(40, "_-.")

// note keeps a type that has no entry.
func (f *fact) note(where string, typ []byte, known map[string]bool) {
	if scan.IsString(typ) && known[string(typ[1:len(typ)-1])] {
		return
	}
	name := typeNames.Read(typ)
	if name == "" {
		name = "unreadable"
	}
	f.unknown = where + name
}

// maxDrift is what Surveyor allows.
const maxDrift = 16

// drift collects types that have no entry.
type drift struct{ names []string }

func (d *drift) add(name string) {
	if name != "" && len(d.names) < maxDrift && !slices.Contains(d.names, name) {
		d.names = append(d.names, name)
	}
}

// Drift lists the types since the last call.
func (d *drift) Drift() []string {
	names := d.names
	d.names = nil
	return names
}

var _ providers.Surveyor = (*projector)(nil)
