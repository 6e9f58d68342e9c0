"""The types of records that the importers of Codex know, by what is done with each.

They are from the programs themselves, 0.42 to 0.169, and from rollouts.  `event_msg` and `response_item`
name their own type inside, which is written behind a slash here.  The events of ``codex exec --json`` stand
by themselves or are wrapped by what keeps them.  What is in no table is reported as not understood.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json

NEWEST: Final = "0.169.0"
OLDEST: Final = "0.42.0"

READ: Final = frozenset(
    {"session_meta", "turn_context", "compacted", "inter_agent_communication", "token_usage_record",
     "dynamic_tools_updated"}
)  # fmt: skip
"""Types of records that change the window, or tell of a request."""
UNSENT: Final = frozenset(
    {"world_state", "inter_agent_communication_metadata", "security_risk_score", "realtime_item"}
)
"""Types of records that no request carries: what they hold of the window is an item too."""
ITEMS: Final = frozenset(
    {"message", "agent_message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
     "custom_tool_call_output", "local_shell_call", "local_shell_call_output", "web_search_call",
     "tool_search_call", "tool_search_output", "image_generation_call", "code_interpreter_call", "mcp_call",
     "mcp_tool_call_output", "tool_call", "tool_result", "compaction", "context_compaction",
     "compaction_summary", "compaction_trigger", "configuration_update", "additional_tools", "ghost_snapshot"}
)  # fmt: skip
"""Types of items of a history.  An item of another type is shown as it stands, and reported as not
understood."""
BARE: Final = frozenset(
    {"", "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
     "custom_tool_call_output", "local_shell_call", "web_search_call"}
)  # fmt: skip
"""Types of lines of the oldest rollouts, which have no envelope."""
EVENTS_READ: Final = frozenset(
    {"token_count", "task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted",
     "thread_rolled_back", "user_message", "agent_message", "agent_reasoning"}
)  # fmt: skip
"""Events that tell of turns and bills, or that stand for items which an old rollout lacks."""
EVENTS_SHOWN: Final = frozenset(
    [
        "agent_message_content_delta",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "apply_patch_approval_request",
        "auth_recovery_completed",
        "auth_recovery_started",
        "background_event",
        "collab_agent_interaction_begin",
        "collab_agent_interaction_end",
        "collab_agent_spawn_begin",
        "collab_agent_spawn_end",
        "collab_close_begin",
        "collab_close_end",
        "collab_resume_begin",
        "collab_resume_end",
        "collab_waiting_begin",
        "collab_waiting_end",
        "context_compacted",
        "deprecation_notice",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "elicitation_abandoned",
        "elicitation_request",
        "entered_review_mode",
        "environment_connected",
        "environment_disconnected",
        "error",
        "exec_approval_request",
        "exec_command_begin",
        "exec_command_end",
        "exec_command_output_delta",
        "exited_review_mode",
        "guardian_assessment",
        "guardian_warning",
        "hook_completed",
        "hook_started",
        "image_generation_begin",
        "image_generation_end",
        "item_completed",
        "item_started",
        "mcp_startup_complete",
        "mcp_startup_update",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "model_reroute",
        "model_verification",
        "patch_apply_begin",
        "patch_apply_end",
        "patch_apply_updated",
        "plan_delta",
        "plan_update",
        "raw_response_completed",
        "raw_response_item",
        "realtime_conversation_closed",
        "realtime_conversation_list_voices_response",
        "realtime_conversation_realtime",
        "realtime_conversation_sdp",
        "realtime_conversation_started",
        "reasoning_content_delta",
        "reasoning_raw_content_delta",
        "request_permissions",
        "request_user_input",
        "safety_buffering",
        "session_configured",
        "shutdown_complete",
        "stream_error",
        "sub_agent_activity",
        "terminal_interaction",
        "thread_goal_updated",
        "thread_name_updated",
        "thread_queue_changed",
        "thread_settings_applied",
        "turn_diff",
        "turn_moderation_metadata",
        "undo_completed",
        "undo_started",
        "view_image_tool_call",
        "warning",
        "web_search_begin",
        "web_search_end",
    ]
)
"""Events that only show what items say too, or that no request carries."""
ROLLOUT: Final = (
    READ
    | UNSENT
    | BARE
    | {"event_msg", "response_item"}
    | {f"event_msg/{name}" for name in EVENTS_READ | EVENTS_SHOWN}
    | {f"response_item/{name}" for name in ITEMS}
)
EXEC_ITEMS: Final = frozenset(
    {"agent_message", "assistant_message", "reasoning", "command_execution", "file_change", "mcp_tool_call",
     "collab_tool_call", "web_search", "todo_list", "error"}
)  # fmt: skip
EXEC: Final = (
    frozenset(
        {"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated",
         "item.completed", "error"}
    )
    | {f"item/{name}" for name in EXEC_ITEMS}
)  # fmt: skip


_DEPTH: Final = 3
"""The most envelopes that are opened around an event."""
_LONGEST: Final = 4 << 20
"""The most bytes of an event that stands in a string."""


def unwrapped(value: Any) -> Json | None:
    """The event that a line holds: the line itself, or what stands under its `data`; None where it is none.

    Programs that keep such logs put each event under `data`, as an object or a string, or leave its type
    outside.
    """
    for _ in range(_DEPTH):
        if not isinstance(value, dict):
            return None
        inner = value.get("data")
        if isinstance(inner, str) and len(inner) <= _LONGEST and inner.lstrip().startswith("{"):
            try:
                inner = orjson.loads(inner)
            except orjson.JSONDecodeError:
                inner = None
        kind = value.get("type")
        known = _is_exec(kind)
        if not isinstance(inner, dict):
            return value if known else None
        if known and not _is_exec(inner.get("type")):
            return {**inner, "type": kind, "timestamp": inner.get("timestamp", value.get("timestamp"))}
        value = inner if "timestamp" in inner else {**inner, "timestamp": value.get("timestamp")}
    return None


def _is_exec(kind: Any) -> bool:
    return isinstance(kind, str) and kind in EXEC
