"""OpenAI Codex: rollouts (``~/.codex/sessions/…/rollout-*.jsonl``) and the log of ``codex exec --json``.

A rollout is the record from which Codex itself rebuilds a thread: instructions, each item of the history in
order, compactions, rollbacks.  One step is one model request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from ctxctl.formats.fidelity import About, absent, derived, native
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = 20
_SURE: Final = 95
_LIKELY: Final = 75
_ENVELOPES: Final = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
     "inter_agent_communication", "inter_agent_communication_metadata"}
)  # fmt: skip
_ITEMS: Final = frozenset({"message", "reasoning", "function_call", "function_call_output"})
_EXEC: Final = frozenset(
    {"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated",
     "item.completed"}
)  # fmt: skip

_ROLLOUT: Final = About(
    reads="A Codex rollout, JSON Lines: the envelope {timestamp, type, payload} of versions 0.4x to 0.146, "
    "and the bare items of older ones.",
    places=("~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl", "~/.codex/archived_sessions/*.jsonl"),
    turns="A turn is a task (`task_started` or `turn_context` with a turn id), or what a prompt sets off."
    " A request ends where the model's answer begins; a `token_count` with a grown total and no answer is "
    "one too.",
    claims={
        "sources": absent(),
        "item_ids": native("calls; messages and reasoning where the version records ids, else derived"),
        "limit": native("the part of the window that Codex uses, from `model_context_window`"),
        "system_prompt": native("`base_instructions`, from about 0.104"),
        "tool_definitions": native(
            "tools that clients bring or that tool search found; not the built-in ones"
        ),
        "messages": native(),
        "reasoning": native("summaries, where recorded; the reasoning itself is encrypted"),
        "reminders": native("AGENTS.md, environment, skills, notices"),
        "compaction": native(),
        "summary": native("where Codex made it itself; one made by the provider is encrypted"),
        "order": native(),
        "requests": derived("from the order of items, and token counts"),
        "turns": native("derived before 0.9x"),
        "threads": native("a sub-agent is a rollout of its own and names its parent"),
        "model": native(),
        "times": native("none in the bare form"),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "truncation": derived("by Codex' own rule, where a turn records the limit and an output is over it"),
    },
    limits=(
        "The schemas of built-in tools are not in a rollout: they are most of what the provider billed "
        "beyond what ctxctl counts. What web search found is not in it either.",
        "Encrypted reasoning and encrypted summaries have no text and are not counted.",
        "Reasoning of earlier turns, which the provider leaves out, stays in the window shown.",
        "A compaction with nothing but its summary keeps every prompt; Codex may keep the newest only.",
        "What tools cut themselves is recorded as it was sent, and not marked.",
        "What a fork copied from its parent is history without requests of its own; where it ends is told by"
        " the parent's rollout or another fork of it where one lies beside it, else by ids and times.",
    ),
    origin="openai/codex, codex-rs/core: rollout, compact and context manager",
)
_EXEC_LOG: Final = About(
    reads="What `codex exec --json` prints: thread, turn and item events.",
    places=("codex exec --json PROMPT > run.jsonl",),
    turns="A turn is `turn.started` to `turn.completed`. Requests are inferred: one at its start, and one "
    "after each command or tool result.",
    claims={
        "messages": native("what the model wrote; commands and results as the log tells them, derived"),
        "reasoning": native("summaries"),
        "requests": derived("from the order of items"),
        "order": derived(),
        "turns": derived("numbered"),
        "threads": native(),
        "item_ids": native(),
        "reminders": derived("plans and notices"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "input_tokens": absent("only the thread's running total at the end of each turn", ("usage",)),
        "cached_tokens": absent("only the thread's running total at the end of each turn", ("usage",)),
        "output_tokens": absent("only the thread's running total at the end of each turn", ("usage",)),
    },
    limits=(
        "The log holds no context: neither the prompt nor the system prompt, tools or files read.",
        "Tool results are the log's own account, not the text that the model got.",
        "The rollout of the same thread under ~/.codex/sessions holds all of it.",
    ),
    origin="openai/codex, codex-rs/exec",
)


class Codex:
    """The importer for Codex rollouts."""

    name: str = "codex"
    title: str = "Codex rollout"
    default_policy: str = "recorded"
    about: About = _ROLLOUT

    def detect(self, head: bytes) -> int:
        """How sure the first lines look like a rollout's."""
        return _best(head, _rollout_line, (b'"timestamp"', b'"payload"'))

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The thread's steps as `context_event` records; linear in the file, holds ids but no texts."""
        from ctxctl.formats.codex.rollout import Rollout

        return Rollout(report).events(source)


class CodexExec:
    """The importer for the event log of `codex exec --json`."""

    name: str = "codex-exec"
    title: str = "codex exec --json log"
    default_policy: str = "recorded"
    about: About = _EXEC_LOG

    def detect(self, head: bytes) -> int:
        """How sure the first lines look like such a log's."""
        return _best(head, _exec_line, (b'"type":"thread.started"', b'"thread_id"'))

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """What the log tells of each turn, marked derived."""
        from ctxctl.formats.codex.execlog import ExecLog

        return ExecLog(report).events(source)


def _best(head: bytes, score: Callable[[dict[str, Any]], int], marks: tuple[bytes, ...]) -> int:
    best = 0
    body = head.removeprefix(_BOM).lstrip()
    for line in body.split(b"\n")[:_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            best = max(best, score(value))
    if best or not body.startswith(b"{"):
        return best
    return _by_text(body, marks)


def _by_text(body: bytes, marks: tuple[bytes, ...]) -> int:
    """For a first line that is longer than the head, or damaged."""
    start = body[:400].replace(b'": ', b'":')
    if all(mark in start for mark in marks) and any(
        b'"type":"' + t.encode() + b'"' in start for t in _ENVELOPES | _EXEC
    ):
        return _LIKELY
    return 0


def _rollout_line(value: dict[str, Any]) -> int:
    kind = value.get("type")
    payload = value.get("payload")
    if (
        isinstance(kind, str)
        and kind in _ENVELOPES
        and isinstance(payload, dict)
        and "event_type" not in value
    ):
        return _SURE
    if value.get("record_type") == "state":
        return _LIKELY
    if kind is None and "instructions" in value and "git" in value and isinstance(value.get("id"), str):
        return _LIKELY
    return 0


def _exec_line(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _EXEC or "event_type" in value:
        return 0
    if kind == "thread.started":
        return _SURE if isinstance(value.get("thread_id"), str) else 0
    item = value.get("item")
    if isinstance(item, dict):
        return _LIKELY if isinstance(item.get("id"), str) and "type" in item else 0
    usage = value.get("usage")
    return _LIKELY if isinstance(usage, dict) and "cached_input_tokens" in usage else 0
