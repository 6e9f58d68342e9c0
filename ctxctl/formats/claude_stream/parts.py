"""A line's content blocks as parts, by the rules that hold for Claude Code's transcripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.claude_code import blocks, prompts
from ctxctl.formats.claude_code.blocks import Entry
from ctxctl.formats.kit.parts import Part

_FIELDS = ("mime_type", "byte_size")


def of_entries(entries: Iterable[Entry], *, derived: bool = False, keyed: bool = True) -> list[Part]:
    """Items of a transcript as parts of a conversation.

    Args:
        entries: The items.
        derived: They were put together from pieces of a stream.
        keyed: False where their line has no id, so that only results of calls have one.
    """
    return [_part(entry, derived, keyed or entry.tool is not None) for entry in entries]


def _part(entry: Entry, derived: bool, keyed: bool) -> Part:
    record: Json = entry.record if entry.record is not None else {}
    text = record.get("content")
    meta = record.get("metadata")
    part = Part(
        entry.kind,
        None,
        entry.role,
        key=entry.item if keyed else None,
        title=entry.title,
        native=meta.get("native") if meta is not None else None,
        line=entry.line,
        version=entry.version if text is None else None,
        derived=derived,
        **({name: record[name] for name in _FIELDS if name in record} if text is None else {}),
    )
    # Its digest is known: it is not worked out again.
    part.text, part.digest = text, entry.digest
    return part


def user_entries(
    content: Any, base: str, line: int, titles: dict[str, str | None], reading: prompts.Reading | None
) -> tuple[list[Entry], list[Entry]]:
    """The items of a user message: results of calls, and everything else; `reading` is that of its texts."""
    results: list[Entry] = []
    others: list[Entry] = []
    for index, block in enumerate(blocks.blocks_of(content)):
        item = blocks.part(base, index)
        if isinstance(block, dict) and block.get("type") == "tool_result":
            tool = block.get("tool_use_id")
            title = titles.get(tool) if isinstance(tool, str) else None
            results += blocks.result(block, item, line, title)
        else:
            entry = blocks.user(block, item, line, reading)
            if entry is not None:
                others.append(entry)
    return results, others
