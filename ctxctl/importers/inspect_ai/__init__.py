"""Inspect AI logs: `.eval` archives and `.json` logs; a sample's epoch is a session, a `model` event a step.

Where the event holds the request as it went over the wire (`call.request`), that is the window; else it is
the event's `input` and `tools`.  `attachment://` texts and pooled messages are put back.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE = 96
_LIKELY = 80
_ZIP: Final = b"PK\x03\x04"
_ENTRIES: Final = (b"_journal/", b"header.json", b"samples/", b"summaries.json", b"reductions.json")
_EVENTS: Final = frozenset(
    {
        "sample_init", "sample_limit", "sandbox", "state", "store", "model", "tool", "approval",
        "compaction", "input", "score", "score_edit", "error", "logger", "info", "span_begin", "span_end",
        "step", "subtask",
    }
)  # fmt: skip
"""The kinds of a sample's events."""
ABOUT: Final = About(
    reads=(
        "Logs of version 2, `.json` and `.eval` (also with zstd, pooled messages, chunked samples);"
        " logs without events are read from their samples' messages."
    ),
    places=("logs/<time>_<task>_<id>.eval", "logs/<time>_<task>_<id>.json"),
    turns="A turn begins with a message of the user; a step is one `model` event.",
    claims={
        "item_ids": native("ids of messages and tool calls; of wire bodies, tool calls only"),
        "system_prompt": native("", ("results",)),
        "tool_definitions": native(),
        "messages": native(),
        "reasoning": native(),
        "reminders": native(),
        "compaction": native("compaction events; what left is derived"),
        "summary": native(),
        "order": native("derived where a log has no events"),
        "wrapper": native("as part of the request's text"),
        "requests": native(),
        "turns": derived(),
        "threads": derived("scorers, sub-agents and side requests, by spans and by their first message"),
        "model": native("", ("eval",)),
        "times": native(),
        "input_tokens": native(
            "cache reads and writes added where the model's total says they are left out", ("stats",)
        ),
        "cached_tokens": native("", ("stats",)),
        "output_tokens": native("", ("stats",)),
        "limit": absent(),
    },
    limits=(
        "texts of attachments that a log lost stay as `attachment://…`",
        "answers from Inspect's own cache are steps without usage",
    ),
    held_against=HeldAgainst("log version", "2", "2", _EVENTS, key=""),
    origin="logs of 2024 to 2026; the pools and chunked samples of inspect_ai's source",
)


def detect(head: bytes) -> int:
    """How sure the head is a log: an archive with its entries, or a document with an `eval`."""
    if head.startswith(_ZIP):
        return _archive(head)
    seen = layout_of_head(head)
    if seen.has("eval.run_id", "eval.task") or seen.has("eval.task_id", "eval.model", "eval.task"):
        return _SURE
    return _LIKELY if seen.has("eval.model", "eval.task", "version") else 0


def _archive(head: bytes) -> int:
    """How sure an archive is a log, by the names of its first entries in their local headers."""
    found = at = 0
    while at >= 0 and found < 3:
        size = int.from_bytes(head[at + 26 : at + 28], "little")
        name = head[at + 30 : at + 30 + size]
        if name.startswith(_ENTRIES):
            return _SURE
        found += 1
        at = head.find(_ZIP, at + 30 + size)
    return 0


FORMAT: Final = Format(
    name="inspect-ai",
    title="Inspect AI log",
    detect=detect,
    reader="ctxctl.importers.inspect_ai.reader:Log",
    about=ABOUT,
)
