"""What the later lines of an answer say of it, known before its step is told at its first line.

An answer is written as one line for each block, and only the last line has the whole usage and what the
provider cleared from the request.  Where two requests run at the same time, lines of one stand among those of
the other.  One pass over the bytes finds the lines that this concerns.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import count
from ctxctl.trace.lines import line_blocks
from ctxctl.trace.source import Source

_ANSWER: Final = re.compile(
    rb'"message":\s*+\{\s*+(?:"(?:model|type|role)":\s*+"[^"\\]{0,200}+",\s*+)*+"id":\s*+"([^"\\]{1,200})"'
)
_EDITED: Final = re.compile(rb'"applied_edits":\s*+\[\s*+\{')
_BOUNDARY: Final = re.compile(rb'"subtype":\s*+"compact_boundary"')
_FACTS: Final = ("usage", "context_management")


class LateLines:
    """Reads a growing transcript once, from where it was read before."""

    def __init__(self) -> None:
        self.facts: dict[str, Json] = {}
        """By message id, fields of its later lines that its first one may lack."""
        self.compacted_at: int | None = None
        """Tokens at which the client first compacts by itself."""
        self._seen: dict[str, int] = {}
        """By message id, in which pass it was first met."""
        self._pass = 0
        self._last: str | None = None
        self._offset = 0

    def read(self, source: Source) -> bool:
        """Go on to the end; whether it says something new of an answer that an earlier pass met."""
        self._pass += 1
        is_changed = False
        for block in line_blocks(source, self._offset):
            for line in block.data.split(b"\n"):
                found = _ANSWER.search(line)
                if found is not None:
                    is_changed |= self._answer(found[1].decode("utf-8", "replace"), line)
                elif self.compacted_at is None and _BOUNDARY.search(line) is not None:
                    self._boundary(line)
                    is_changed |= self.compacted_at is not None and self._pass > 1
            self._offset = block.base + (len(block.data) if block.ended else 0)
        return is_changed

    def _answer(self, message: str, line: bytes) -> bool:
        """Whether the line says something new of an answer that an earlier pass met."""
        is_mixed = message in self._seen and message != self._last
        is_known = self._seen.setdefault(message, self._pass) < self._pass
        self._last = message
        return (is_mixed or _EDITED.search(line) is not None) and self._take(message, line) and is_known

    def _boundary(self, line: bytes) -> None:
        try:
            meta = orjson.loads(line).get("compactMetadata")
        except (orjson.JSONDecodeError, AttributeError):
            return
        if isinstance(meta, dict) and meta.get("trigger") == "auto" and self.compacted_at is None:
            self.compacted_at = count(meta.get("preTokens")) or None

    def _take(self, message: str, line: bytes) -> bool:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            return False
        body = value.get("message") if isinstance(value, dict) else None
        if not isinstance(body, dict) or body.get("id") != message:
            return False  # a sub-agent's message that a line of progress holds
        self.facts.setdefault(message, {}).update({name: body[name] for name in _FACTS if body.get(name)})
        return True
