"""Read ahead the facts of an answer that only its later lines have.

An answer has one line for each block.  Its step is emitted at the first line, but only the last has the whole
usage
and what the provider cleared from the request.  The lines of two requests at the same time are mixed.  One
pass
over the bytes finds such lines.
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
    """Reads each line of a growing transcript once."""

    def __init__(self) -> None:
        self.facts: dict[str, Json] = {}
        """By message id, fields of its later lines that its first one may lack."""
        self.compacted_at: int | None = None
        """Tokens at which the client first compacts by itself."""
        self._seen: dict[str, int] = {}
        """By message id, the pass that first met it."""
        self._pass = 0
        self._last: str | None = None
        self._offset = 0

    def read(self, source: Source) -> bool:
        """Read to the end; returns whether there is something new about an answer of an earlier pass."""
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
        """Whether the line has something new about an answer of an earlier pass."""
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
            return False  # a sub-agent's message in a line of progress
        self.facts.setdefault(message, {}).update({name: body[name] for name in _FACTS if body.get(name)})
        return True
