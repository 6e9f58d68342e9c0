"""Kimi Code's wire logs."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.build import Json
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

_OWN: Final = (
    "llm.request",
    "context.append_message",
    "context.append_loop_event",
    "context.apply_compaction",
)
_TIMED: Final = ("llm.tools_snapshot", "tools.set_active_tools", "full_compaction.begin", "usage.record")
"""Types that other formats may have too; they count only with a `time` beside them."""

ABOUT: Final = About(
    reads="The wire log of an agent or a sub-agent, protocol 1.x.",
    places=("~/.kimi/sessions/<project>/<session>/agents/<agent>/wire.jsonl",),
    turns="A turn is the first number of a request's `turnStep`; each `llm.request` is a step.",
    claims={
        "item_ids": native("content parts and tool calls"),
        "system_prompt": native(),
        "tool_definitions": native("as the snapshot that a request names by its hash"),
        "messages": native(),
        "reasoning": native(),
        "reminders": native("messages of injected origin"),
        "compaction": native(),
        "summary": native(),
        "order": derived("the context as its ledger adds up"),
        "requests": native("a compaction's own request is one of them; its instruction is not recorded"),
        "turns": native(),
        "threads": native("a sub-agent's log is a file of its own"),
        "model": native(),
        "times": native(),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "limit": absent("`maxTokens` is what was left for the answer"),
    },
    limits=("Messages in a row of one role are sent as one; they are shown as they were added.",),
    held_against=HeldAgainst(
        client="wire protocol",
        newest="1.4",
        oldest="1.4",
        records=frozenset(
            {
                "metadata",
                "config.update",
                "llm.tools_snapshot",
                "llm.request",
                "usage.record",
                "turn.prompt",
                "context.append_message",
                "context.append_loop_event",
                "context.apply_compaction",
                "context.clear",
                "tools.set_active_tools",
                "full_compaction.begin",
                "full_compaction.complete",
                "permission.record_approval_result",
                "plan_mode.enter",
                "plan_mode.exit",
            }
        ),
    ),
    origin="MoonshotAI kimi-code, wire protocol 1.4",
)


def detect(head: bytes) -> int:
    """How sure the first lines look like a wire log's."""
    return max(map(_score, objects_of_head(head)), default=0)


def _score(value: Json) -> int:
    kind = value.get("type")
    if kind in _OWN:
        return 95
    if kind in _TIMED and "time" in value:
        return 85
    return 80 if kind == "metadata" and "protocol_version" in value and "created_at" in value else 0


FORMAT: Final = Format(
    name="kimi",
    title="Kimi Code wire log",
    detect=detect,
    reader="ctxctl.importers.kimi.reader:Kimi",
    about=ABOUT,
)
