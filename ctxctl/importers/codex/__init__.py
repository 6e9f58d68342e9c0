"""OpenAI Codex: rollouts (``~/.codex/sessions/…/rollout-*.jsonl``) and the log of ``codex exec --json``.

A rollout is the record from which Codex itself rebuilds a thread: instructions, each item of the history in
order, compactions, rollbacks.  One step is one model request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ctxctl.importers.codex import records
from ctxctl.importers.codex.records import unwrapped
from ctxctl.ingest.about import About, HeldAgainst, absent, derived, in_totals, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import first_lines, text_of_head

_LINES: Final = 20
_SURE: Final = 95
_LIKELY: Final = 75
_ENVELOPES: Final = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
     "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record"}
)  # fmt: skip
_ITEMS: Final = frozenset({"message", "reasoning", "function_call", "function_call_output"})
_ROLLOUT: Final = About(
    reads="A Codex rollout, JSON Lines: the envelope {timestamp, type, payload} of versions 0.4x to 0.169, "
    "and the bare items of older ones.",
    places=("~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl", "~/.codex/archived_sessions/*.jsonl"),
    turns="A turn is a task (`task_started` or `turn_context` with a turn id), or what a prompt sets off."
    " A request ends where the model's answer begins; a bill without an answer is one too: a "
    "`token_usage_record`, before about 0.15 a `token_count` with a grown total.",
    claims={
        "sources": absent(),
        "item_ids": native("calls; messages and reasoning where the version records ids, else derived"),
        "limit": native("the part of the window that Codex uses, from `model_context_window`"),
        "system_prompt": native(
            "`base_instructions`, from about 0.104; from 0.152 derived where they speak of the tool for "
            "plans, which Codex leaves out while that is off"
        ),
        "tool_definitions": native(
            "where they are items of the history (models of GPT-5.6 and newer); else only tools that clients "
            "bring or that tool search found, not the built-in ones"
        ),
        "messages": native(),
        "reasoning": native("summaries, where recorded; the reasoning itself is encrypted"),
        "reminders": native("AGENTS.md, environment, skills, notices"),
        "compaction": native(),
        "summary": native("where Codex made it itself; one made by the provider is encrypted"),
        "order": derived("from the response items, as Codex builds its history"),
        "requests": derived("from the order of items, and bills"),
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
        "The schemas of built-in tools are not in a rollout, but for models that take them as an item of "
        "the history: they are most of what the provider billed beyond what ctxctl counts. What web "
        "search found is not in it either.",
        "A request that only warms the connection up (`generate: false`) is not in a rollout, nor its bill.",
        "The prompt with which Codex asks for a summary is not in it: that request is shown without it.",
        "Whether the tool for plans was on is not in it: what the instructions say of it is taken to be left "
        "out, as Codex comes, unless the model called it.",
        "Encrypted reasoning and encrypted summaries have no text and are not counted.",
        "Reasoning of earlier turns, which the provider leaves out, stays in the window shown.",
        "A compaction with nothing but its summary keeps every prompt; Codex may keep the newest only.",
        "What tools cut themselves is recorded as it was sent, and not marked.",
        "A call of an earlier turn without its output gets the one that Codex sends in its place, derived.",
        "What a fork copied from its parent is history without requests of its own; where it ends is told by"
        " the session's record since about 0.15; before that, by the parent's rollout or another fork of it"
        " if one is next to it, or else by ids and times.",
        "A fork or a thread that was taken back may copy nothing: its history is then read from the other "
        "rollout, if that is in the same Codex home.",
    ),
    held_against=HeldAgainst("Codex", records.NEWEST, records.OLDEST, records.ROLLOUT, key=""),
    origin="openai/codex, codex-rs/core: rollout, compact and context manager; runs of 0.146 to 0.169 "
    "compared with what they sent",
)
_EXEC_LOG: Final = About(
    reads="What `codex exec --json` prints: thread, turn and item events, bare or each under `data`.",
    places=("codex exec --json PROMPT > run.jsonl",),
    turns="A turn is `turn.started` to `turn.completed`. The log tells of no request: a turn's first is "
    "taken for granted, and one more wherever the model says something after a result.",
    claims={
        "messages": native("what the model wrote; commands and results as the log tells them, derived"),
        "reasoning": native("summaries"),
        "requests": derived("those that the order of items proves; there may have been more"),
        "order": derived(),
        "turns": derived("numbered"),
        "threads": native(),
        "item_ids": native(),
        "reminders": derived("plans and notices"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "input_tokens": in_totals("the thread's running total at the end of each turn"),
        "cached_tokens": in_totals("so too"),
        "output_tokens": in_totals("so too"),
    },
    limits=(
        "The log holds no context: neither the prompt nor the system prompt, tools or files read.",
        "Calls that follow one another without a word of the model between them are shown as one answer's: "
        "whether they were is not in the log.",
        "Tool results are the log's own account, not the text that the model got.",
        "The rollout of the same thread under ~/.codex/sessions holds all of it.",
    ),
    held_against=HeldAgainst("Codex", records=records.EXEC, key=""),
    origin="openai/codex, codex-rs/exec; runs of 0.169",
)


def detect_codex(head: bytes) -> int:
    """How sure the first lines look like a rollout's."""
    return _best(head, _rollout_line, (b'"timestamp"', b'"payload"'))


def detect_codex_exec(head: bytes) -> int:
    """How sure the first lines look like such a log's."""
    return _best(head, _exec_line, (b'"type":"thread.started"', b'"thread_id"'))


def _best(head: bytes, score: Callable[[dict[str, Any]], int], marks: tuple[bytes, ...]) -> int:
    found = [value for _, value in first_lines(head, _LINES) if isinstance(value, dict)]
    best = max(map(score, found), default=0)
    body = text_of_head(head)
    if best or not body.startswith(b"{"):
        return best
    return _by_text(body, marks)


def _by_text(body: bytes, marks: tuple[bytes, ...]) -> int:
    """For a first line that is longer than the head, or damaged."""
    start = body[:400].replace(b'": ', b'":')
    if all(mark in start for mark in marks) and any(
        b'"type":"' + t.encode() + b'"' in start for t in _ENVELOPES | records.EXEC
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


def _exec_line(line: dict[str, Any]) -> int:
    value = unwrapped(line) if "event_type" not in line else None
    if value is None:
        return 0
    kind = value.get("type")
    if kind == "thread.started":
        return _SURE if isinstance(value.get("thread_id"), str) else 0
    item = value.get("item")
    if isinstance(item, dict):
        return _LIKELY if isinstance(item.get("id"), str) and "type" in item else 0
    usage = value.get("usage")
    return _LIKELY if isinstance(usage, dict) and "cached_input_tokens" in usage else 0


CODEX: Final = Format(
    name="codex",
    title="Codex rollout",
    detect=detect_codex,
    reader="ctxctl.importers.codex.reader:Rollout",
    going_on="ctxctl.importers.codex.going_on:GOING_ON",
    about=_ROLLOUT,
)

CODEX_EXEC: Final = Format(
    name="codex-exec",
    title="codex exec --json log",
    detect=detect_codex_exec,
    reader="ctxctl.importers.codex.exec_reader:ExecLog",
    about=_EXEC_LOG,
)
