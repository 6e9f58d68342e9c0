"""Agent Context 0.1.1: loose records and envelopes, without the event lines that a trace has.

One JSON document or JSON lines, a directory of records, or Markdown that holds them in fenced blocks, as the
standard publishes its examples.  Event streams are traces already and are read as such.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.plugins.agent_context import records
from ctxctl.trace.unknown_file import is_native

_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = 20
_FENCE: Final = re.compile(
    rb"^(?:```|~~~)[ \t]*(?:json5?|jsonc?|jsonl|ndjson|ya?ml)\b", re.MULTILINE | re.IGNORECASE
)
_SCHEMA: Final = re.compile(rb'"\$id"\s*:\s*"[^"]*agentcontext[^"]*\.schema\.json"')
_YAML: Final = re.compile(
    rb"^(?:-[ \t]+)?(?:context_id|surface_id|item_id|selection_id|budget_id|assembly_id|injection_id"
    rb"|compaction_id|summary_id|missing_id)[ \t]*:[ \t]*\S", re.MULTILINE,
)  # fmt: skip
_MAX_FILES: Final = 2000
_SURE, _LIKELY, _CUT_OFF = 95, 85, 70

ABOUT: Final = About(
    reads=(
        "Agent Context records (drafts 0.1.0 and 0.1.1) that no event wraps: envelopes, surfaces, items,"
        " source refs, selections, budgets, windows, assemblies, injections, compactions, summaries, missing"
        " context, redactions; one, many, or bundled; as JSON, JSON lines, YAML, in Markdown's fenced blocks,"
        " or in the files of a directory."
    ),
    places=(
        "what a compatible runtime exports for a turn, a review or a handoff",
        "the examples of the standard (docs/*/examples/*.md)",
    ),
    turns=(
        "One envelope is one step: of the turn that its runtime_refs name, or else of a turn of its own."
        " Records that no envelope binds go with those that they refer to. Records are put in the order of"
        " the stages; envelopes by created_at if all have one, or else in the order of the file."
    ),
    claims={
        "candidates": native("context_surface"),
        "sources": native("source_refs"),
        "item_ids": native(),
        "selected": native("context_selection"),
        "omitted": native("with reasons"),
        "limit": native("context_budget"),
        "reserved": native("context_budget"),
        "truncation": native("truncation_records"),
        "system_prompt": native("where an item holds it"),
        "tool_definitions": absent("the standard has no kind for them"),
        "messages": native("where items hold them"),
        "reasoning": absent("the standard has no kind for it"),
        "reminders": native("other items"),
        "compaction": native("context_compaction"),
        "summary": native("context_summary"),
        "order": native("ordered_blocks"),
        "wrapper": native("blocks' wrappers"),
        "requests": native("context_injection"),
        "turns": native("runtime_refs; one for each envelope where they name none"),
        "threads": native("runtime_refs"),
        "model": native("where metadata names it"),
        "times": native("created_at"),
    },
    limits=(
        "Content refs are never fetched: what a record only refers to has no text.",
        "A capture is held in memory whole, as refs may point either way.",
        "JSON Schemas of the standard are recognised; they hold no record.",
    ),
    held_against=HeldAgainst("Agent Context", "0.1.1", "0.1.0"),
    origin="limecloud/agentcontext 0.1.1",
)


def detect(head: bytes) -> int:
    """How sure the first bytes look like records of the standard, bare or in fenced blocks."""
    return sure(head)


def detect_folder(folder: Folder) -> int:
    """A directory of records is one capture: refs go from file to file."""
    if not folder.files or len(folder.files) > _MAX_FILES:
        return 0
    read = [name for name in folder.files if is_read(name)][:50]
    ours = traces = 0
    for left, name in zip(range(len(read), 0, -1), read, strict=True):
        if 2 * (ours + left) <= len(read):
            return 0  # most are something else, whatever the others are
        head = folder.head(name, 1 << 16)
        if sure(head) >= _CUT_OFF:
            ours += 1
            traces += is_native(head)
    # Traces beside each other are sessions, each by itself.
    return 90 if ours > 1 and ours > traces and 2 * ours > len(read) else 0


_ENDINGS: Final = (".json", ".jsonl", ".ndjson", ".md", ".markdown", ".mdx", ".yaml", ".yml", ".txt")


def is_read(name: str) -> bool:
    """Whether a file of a directory may hold records, by the end of its name."""
    return name.lower().endswith(_ENDINGS)


def sure(head: bytes) -> int:
    """See `AgentContext.detect`."""
    body = head.removeprefix(_BOM).lstrip()
    if body[:1] in (b"{", b"["):
        return _json(body, len(head) >= 1 << 16)
    if _FENCE.search(body):
        return _LIKELY if records.SIGNATURE.search(body) or _YAML.search(body) else 0
    return _LIKELY if _YAML.search(body[:4096]) and b"\0" not in body else 0


def _json(body: bytes, cut: bool) -> int:
    if _SCHEMA.search(body[:2048]):
        return _SURE
    values: list[Any] = []
    try:
        values.append(orjson.loads(body))
    except orjson.JSONDecodeError:
        for line in body.split(b"\n", _LINES)[:_LINES]:
            try:
                values.append(orjson.loads(line))
            except orjson.JSONDecodeError:
                continue
    if any(records.holds_records(value) for value in values if isinstance(value, dict | list)):
        return _SURE
    # Damaged, or longer than what was read.
    damaged = not any(isinstance(value, dict | list) for value in values)
    return _CUT_OFF if damaged and records.SIGNATURE.search(body[: 1 << 14]) else 0


FORMAT: Final = Format(
    name="agent-context",
    title="Agent Context records and envelopes",
    detect=detect,
    reader="ctxctl.plugins.agent_context.reader:Reader",
    about=ABOUT,
    detect_folder=detect_folder,
)
