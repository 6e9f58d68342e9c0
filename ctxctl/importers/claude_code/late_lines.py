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
            data, end = block.data, 0
            edited = {data.rfind(b"\n", 0, found.start()) + 1 for found in _EDITED.finditer(data)}
            for found in _ANSWER.finditer(data):
                message = found[1].decode("utf-8", "replace")
                start = data.rfind(b"\n", end, found.start()) + 1 or end
                end = data.find(b"\n", found.end()) + 1 or len(data)
                is_mixed = message in self._seen and message != self._last
                first = self._seen.setdefault(message, self._pass)
                self._last = message
                if (is_mixed or start in edited) and self._take(message, data[start:end]):
                    is_changed |= first < self._pass
            for found in _BOUNDARY.finditer(data) if self.compacted_at is None else ():
                self._boundary(data[data.rfind(b"\n", 0, found.start()) + 1 :].partition(b"\n")[0])
                is_changed |= self.compacted_at is not None and self._pass > 1
            self._offset = block.base + data.rfind(b"\n") + 1
        return is_changed

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
