"""Whether the parents of a transcript's lines can be what they say.

Other programs write lines of the same shape whose parents are none: every line names the prompt.  A walk over
them would show requests that carry nothing but it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from ctxctl.formats.claude_code.blocks import blocks_of, string
from ctxctl.formats.lines import Json
from ctxctl.trace.source import Source

_HEAD: Final = 512 * 1024
_LINES: Final = 400
_ANSWERS: Final = 2
"""Answers behind results that must be wrong, at least."""


def impossible(source: Source) -> int:
    """The first line of a file whose parents cannot be right; 0 where nothing speaks against them.

    They cannot where every line of every answer follows a prompt, though tools answered behind it: an answer
    behind a result follows that result, what came along with it, or a later prompt.
    """
    prompts: set[str] = set()
    answers: set[str] = set()
    first = 0
    before: set[str] = set()
    """Prompts in front of the last result."""
    for number, value in _messages(source):
        uuid, parent = string(value.get("uuid")), value.get("parentUuid")
        if value["type"] == "assistant":
            if parent is not None and parent not in prompts:
                return 0
            if before and (parent is None or parent in before):
                first = first or number
                answers.add(str(value["message"].get("id")))
            continue
        results = any(
            isinstance(block, dict) and block.get("type") == "tool_result"
            for block in blocks_of(value["message"].get("content"))
        )
        if results:
            before |= prompts
        elif uuid is not None:
            prompts.add(uuid)
    return first if len(answers) >= _ANSWERS else 0


def _messages(source: Source) -> Iterator[tuple[int, Json]]:
    """The first messages of the main conversation, with their lines."""
    head = source.read(0, _HEAD)
    rows = head.split(b"\n", _LINES)[:_LINES]
    for number, row in enumerate(rows, 1):
        if b'"parentUuid"' not in row:
            continue
        try:
            value = orjson.loads(row)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(value, dict) or value.get("type") not in ("user", "assistant"):
            continue
        if isinstance(value.get("message"), dict) and value.get("isSidechain") is not True:
            yield number, value
