"""GitHub Copilot CLI: a session's event log (``~/.copilot/session-state/<id>/events.jsonl``) and the stream
that ``copilot --json`` and the Copilot SDK give.

One step is one model request, which `assistant.turn_start` begins; a turn is what one prompt sets off.
The types of events are from github/copilot-sdk's declaration of session events, and from logs and streams of
the CLI up to 1.0.102.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.ingest.about import About, HeldAgainst, absent, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import first_lines, text_of_head

NEWEST: Final = "1.0.102"
OLDEST: Final = "0.0.354"

READ: Final = frozenset(
    {
        "abort", "assistant.message", "assistant.reasoning", "assistant.turn_end", "assistant.turn_start",
        "assistant.usage", "session.auto_mode_resolved", "session.compaction_complete",
        "session.compaction_start", "session.context_cleared", "session.model_change", "session.resume",
        "session.shutdown", "session.snapshot_rewind", "session.start", "session.truncation",
        "session.usage_info", "session.usage_record", "subagent.started", "system.message",
        "system.notification", "tool.execution_complete", "tool.execution_start", "user.message",
    }
)  # fmt: skip
"""Events that change a window, or tell of a request."""
UNSENT: Final = frozenset(
    {
        "assistant.idle", "assistant.intent", "assistant.message_delta", "assistant.message_start",
        "assistant.reasoning_delta", "assistant.server_tool_progress", "assistant.streaming_delta",
        "assistant.tool_call_delta", "assistant.turn_retry", "auto_mode_switch.completed",
        "auto_mode_switch.requested", "capabilities.changed", "command.completed", "command.execute",
        "command.queued", "commands.changed", "elicitation.completed", "elicitation.requested",
        "exit_plan_mode.completed", "exit_plan_mode.requested", "external_tool.completed",
        "external_tool.requested", "factory.run_settled", "factory.run_started", "factory.run_updated",
        "hook.end", "hook.progress", "hook.start", "mcp.headers_refresh_completed",
        "mcp.headers_refresh_required", "mcp.oauth_completed", "mcp.oauth_required",
        "mcp.prompts.list_changed", "mcp.resources.list_changed", "mcp.tools.list_changed",
        "mcp_app.tool_call_complete", "model.call_failure", "model.call_final_result",
        "model.call_finished", "model.call_start", "pending_messages.modified", "permission.completed",
        "permission.requested", "result", "sampling.completed", "sampling.requested",
        "session.autopilot_objective_changed", "session.background_tasks_changed", "session.binary_asset",
        "session.canvas.closed", "session.canvas.opened", "session.canvas.recorded",
        "session.canvas.registry_changed", "session.canvas.removed", "session.canvas.unavailable",
        "session.context_changed", "session.custom_agents_updated", "session.custom_notification",
        "session.error", "session.extensions.attachments_pushed", "session.extensions_loaded",
        "session.handoff", "session.idle", "session.import_legacy", "session.info",
        "session.managed_settings_enforced", "session.managed_settings_resolved",
        "session.mcp_server_status_changed", "session.mcp_servers_loaded", "session.mode_changed",
        "session.permissions_changed", "session.plan_changed", "session.remote_steerable_changed",
        "session.schedule_cancelled", "session.schedule_created", "session.schedule_rearmed",
        "session.session_limits_changed", "session.skills_loaded", "session.task_complete",
        "session.title_changed", "session.todos_changed", "session.tools_updated",
        "session.usage_checkpoint", "session.warning", "session.workspace_file_changed",
        "session_limits_exhausted.completed", "session_limits_exhausted.requested", "skill.invoked",
        "subagent.completed", "subagent.configured", "subagent.deselected", "subagent.failed",
        "subagent.selected", "tool.execution_partial_result", "tool.execution_progress",
        "tool.shell_output", "tool.user_requested", "tool_search.activated", "ui.ephemeral_query",
        "user_input.completed", "user_input.requested",
    }
)  # fmt: skip
"""Events that no request carries, or whose part of one is another event."""
ALL: Final = READ | UNSENT


_LINES: Final = 40
_SURE: Final = 95
_LIKELY: Final = 85
_TYPE: Final = re.compile(
    r"(session|assistant|user|tool|subagent|hook|system|model|permission|skill|mcp)\.[a-z_.]+|abort"
)

_TOTALS: Final = ("data.modelMetrics", "data.preTruncationTokensInMessages")
"""A session's sums by model, and the size of a history before it was cut."""

_ABOUT: Final = About(
    reads="The events of a Copilot CLI session, JSON Lines, from 0.0.354 to 1.0.102: the log on disk, or the "
    "stream of copilot --json with its transient events.",
    places=("~/.copilot/session-state/*/events.jsonl", "copilot -p PROMPT --json > run.jsonl"),
    turns="A turn is what a person's `user.message` sets off (its interaction id); a request is what "
    "`assistant.turn_start` begins, or in older versions what a message of the model answers.",
    claims={
        "sources": absent(),
        "item_ids": native(),
        "limit": native("where truncation or usage events name it; from about 1.0.100 with every request"),
        "truncation": absent("only how many tokens and messages left"),
        "system_prompt": native("in the log from about 1.0.60; not in the stream"),
        "tool_definitions": absent("only their tokens, at the end of the session"),
        "messages": native(
            "as sent, with what Copilot put around a prompt; before 1.0 as typed; not what it sent of a call "
            "that failed"
        ),
        "reasoning": native("a summary, or sealed"),
        "reminders": native("date, notices, skills"),
        "compaction": native(),
        "summary": native("where the event carries it"),
        "order": native(),
        "requests": native(),
        "turns": native(),
        "threads": native("sub-agents, by the call that started them"),
        "model": native(),
        "times": native(),
        "input_tokens": native(
            "where usage events were kept (1.0.102 keeps them); else a session's total", _TOTALS
        ),
        "cached_tokens": native(
            "where usage events were kept (1.0.102 keeps them); else a session's total", _TOTALS
        ),
        "output_tokens": native("", _TOTALS),
    },
    limits=(
        "Truncation tells how many messages left, not which: the window shown keeps them.",
        "Of a call that failed 1.0.102 logs a short message and sends a longer one, which is not recorded; a "
        "session that is resumed sends the short one.",
        "A resumed session leaves its earlier reasoning out where the provider is OpenAI's Responses.",
        "A compaction is taken to leave the system prompt, the summary and what came after it began; the "
        "text that Copilot puts around a summary is not recorded, and the request that asked for it no step: "
        "what it was billed is told with the compaction.",
        "The context of a sub-agent is recorded in part before about 1.0.100: its prompt is taken from the "
        "call that started it.",
        "The totals of `session.shutdown` are kept as an event; of a single request, they are its bill.",
    ),
    held_against=HeldAgainst("Copilot CLI", NEWEST, OLDEST, ALL),
    origin="github/copilot-sdk (session events), logs of the CLI, and runs of 1.0.102 compared with"
    " what they sent",
)


def detect(head: bytes) -> int:
    """How sure the first lines look like session events."""
    best = max((_score(value) for _, value in first_lines(head, _LINES)), default=0)
    body = text_of_head(head)
    if best or not body.startswith(b"{"):
        return best
    start = body[:200].replace(b" ", b"")
    return _LIKELY if b'"type":"session.start"' in start and b'"data":{' in start else 0


def _score(value: Any) -> int:
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict) or "parentId" not in value:
        return 0
    kind = value.get("type")
    if not isinstance(kind, str) or _TYPE.fullmatch(kind) is None or "event_type" in value:
        return 0
    if kind == "session.start":
        return _SURE if "copilotVersion" in value["data"] or "producer" in value["data"] else _LIKELY
    return _LIKELY if isinstance(value.get("id"), str) else 0


FORMAT: Final = Format(
    name="copilot-cli",
    title="Copilot CLI session",
    detect=detect,
    reader="ctxctl.importers.copilot_cli.reader:Session",
    about=_ABOUT,
)
