"""Smaller agents: Kimi Code, Qwen Code, Factory Droid, and the HAIL interchange lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format

_LINES: Final = 20
_KIMI: Final = (
    "llm.request",
    "context.append_message",
    "context.append_loop_event",
    "context.apply_compaction",
)
_KIMI_TOO: Final = ("llm.tools_snapshot", "tools.set_active_tools", "full_compaction.begin", "usage.record")

ABOUT_KIMI: Final = About(
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
ABOUT_HAIL: Final = About(
    reads="Session files of HAIL 1.0: a header, events, totals.",
    places=("opensession: *.hail.jsonl",),
    turns="A turn is a user's message; a request is told by the answer that follows messages or results.",
    claims={
        "item_ids": native("event ids"),
        "messages": native(),
        "reasoning": native(),
        "reminders": native("system messages"),
        "order": derived("the events as they come"),
        "requests": derived("answers in a row are one request's"),
        "turns": native(),
        "threads": native(),
        "model": native("one for the session"),
        "times": native(),
        "input_tokens": native("where a count was added to the session's total"),
        "output_tokens": native("so too"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "cached_tokens": absent(),
        "compaction": absent(),
        "limit": absent(),
    },
    limits=("What an agent's own session held beside these events is not there.",),
    held_against=HeldAgainst("HAIL", "1.0.0", "1.0.0", frozenset({"header", "event", "stats"})),
    origin="hwisu/opensession: hail-1.0.0",
)
ABOUT_QWEN: Final = About(
    reads="Recorded chats, JSON lines.",
    places=("~/.qwen/projects/<project>/chats/<session>.jsonl",),
    turns="A turn is a `user` record without a subtype; each `assistant` record is one request.",
    claims={
        "item_ids": native("uuid of the record, id of the tool call"),
        "messages": native(),
        "reminders": native("in messages, between tags"),
        "compaction": native(),
        "summary": native("where the compressed history is stored"),
        "order": derived("the records up to the last parent"),
        "requests": derived("one for each answer"),
        "turns": native(),
        "threads": native(),
        "model": native(),
        "times": native(),
        "limit": native("`contextWindowSize`, in later versions"),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "reasoning": absent("thoughts are stored, and not sent back"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
    },
    held_against=HeldAgainst(
        "Qwen Code", "0.18.2", "0.18.2", frozenset({"user", "assistant", "tool_result", "system"})
    ),
    origin="QwenLM/qwen-code: chatRecordingService.ts",
)
ABOUT_DROID: Final = About(
    reads="Sessions, JSON lines, with the settings (`<session>.settings.json`) beside them.",
    places=("~/.factory/sessions/<project>/<session>.jsonl",),
    turns="A turn is a user's message with words of its own; each assistant's message is one request.",
    claims={
        "item_ids": native("ids of messages and tool calls"),
        "sources": native("where a reminder names one"),
        "messages": native(),
        "reasoning": native("sealed where the provider seals it"),
        "reminders": native("system reminders, and messages for the model only"),
        "compaction": native(),
        "summary": native(),
        "order": derived("the messages as stored"),
        "requests": derived("one for each answer"),
        "turns": derived(),
        "threads": native(),
        "model": native("where a message or the settings beside the session name it"),
        "times": native(),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "limit": absent(),
        "input_tokens": native("where a message has its bill, or the session's sum is that of one request"),
        "cached_tokens": native("likewise"),
        "output_tokens": native("likewise"),
    },
    held_against=HeldAgainst(
        "session version", "2", "2", frozenset({"session_start", "message", "todo_state", "compaction_state"})
    ),
    origin="sessions of Factory's droid CLI, version 2",
)


def detect_kimi(head: bytes) -> int:
    """How sure the first lines look like a wire log's."""
    return _best(head, _kimi)


def detect_hail(head: bytes) -> int:
    """How sure the first lines look like HAIL's."""
    return _best(head, _hail)


def detect_qwen_code(head: bytes) -> int:
    """How sure the first lines look like a chat of Qwen Code's."""
    return _best(head, _qwen)


def detect_droid(head: bytes) -> int:
    """How sure the first lines look like a session of droid's."""
    return _best(head, _droid)


def _best(head: bytes, score: Callable[[dict[str, Any]], int]) -> int:
    best = 0
    for line in head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n")[:_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            best = max(best, score(value))
    return best


def _kimi(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind in _KIMI:
        return 95
    if kind in _KIMI_TOO and "time" in value:
        return 85
    return 80 if kind == "metadata" and "protocol_version" in value and "created_at" in value else 0


def _hail(value: dict[str, Any]) -> int:
    if value.get("type") == "header":
        return 95 if str(value.get("version")).startswith("hail-") else 0
    told = value.get("event_type")
    return 90 if value.get("type") == "event" and "event_id" in value and isinstance(told, dict) else 0


def _qwen(value: dict[str, Any]) -> int:
    if "uuid" not in value or "sessionId" not in value:
        return 0
    message = value.get("message")
    if isinstance(message, dict) and isinstance(message.get("parts"), list):
        return 98
    if value.get("type") == "system" and "systemPayload" in value:
        return 96
    return 90 if value.get("type") == "tool_result" and "toolCallResult" in value else 0


def _droid(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind == "session_start":
        named = isinstance(value.get("id"), str) and any(n in value for n in ("cwd", "title", "sessionTitle"))
        return 95 if named and "session_id" not in value and "model" not in value else 0
    if kind == "compaction_state" and "summaryText" in value:
        return 90
    message = value.get("message")
    return 60 if kind == "message" and isinstance(message, dict) and "visibility" in value else 0


KIMI: Final = Format(
    name="kimi",
    title="Kimi Code wire log",
    detect=detect_kimi,
    reader="ctxctl.importers.others.kimi:Kimi",
    about=ABOUT_KIMI,
)

HAIL: Final = Format(
    name="hail",
    title="HAIL session",
    detect=detect_hail,
    reader="ctxctl.importers.others.hail:Hail",
    about=ABOUT_HAIL,
)

QWEN_CODE: Final = Format(
    name="qwen-code",
    title="Qwen Code chat",
    detect=detect_qwen_code,
    reader="ctxctl.importers.others.qwen:Qwen",
    about=ABOUT_QWEN,
)

DROID: Final = Format(
    name="droid",
    title="Factory Droid session",
    detect=detect_droid,
    reader="ctxctl.importers.others.droid:Droid",
    about=ABOUT_DROID,
)
