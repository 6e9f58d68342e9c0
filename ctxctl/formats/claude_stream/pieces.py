"""Partial messages (`stream_event`): what they add where a message's own lines are missing."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import parsed, string

_MAX_BLOCKS: Final = 10_000
_GROWS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class Pieces:
    """The events of one streamed message."""

    def __init__(self, message: Json, line: int) -> None:
        self.message = message
        """As `message_start` gave it."""
        self.line = line
        self.identity = string(message.get("id"))
        self.usage: Json | None = None
        """Of `message_delta`: the final counts."""
        self._open: dict[int, tuple[Json, dict[str, list[str]]]] = {}
        self.blocks: dict[int, Json] = {}
        """Blocks that came to their end, by index."""

    def take(self, event: Json) -> None:
        """The next event."""
        kind = event.get("type")
        index = event.get("index")
        if kind == "message_delta":
            usage = event.get("usage")
            if isinstance(usage, dict):
                self.usage = usage
        elif not isinstance(index, int) or not 0 <= index < _MAX_BLOCKS:
            return
        elif kind == "content_block_start":
            block = event.get("content_block")
            self._open[index] = (dict(block) if isinstance(block, dict) else {}, {})
        elif kind == "content_block_delta" and index in self._open:
            _grow(self._open[index][1], event.get("delta"))
        elif kind == "content_block_stop" and index in self._open:
            self.blocks[index] = _closed(*self._open.pop(index))


def _grow(grown: dict[str, list[str]], delta: Any) -> None:
    if not isinstance(delta, dict):
        return
    kind = delta.get("type")
    if kind == "input_json_delta":
        field, text = "input", delta.get("partial_json")
    else:
        field = _GROWS.get(kind, "") if isinstance(kind, str) else ""
        text = delta.get(field)
    if field and isinstance(text, str):
        grown.setdefault(field, []).append(text)


def _closed(block: Json, grown: dict[str, list[str]]) -> Json:
    for field, pieces in grown.items():
        text = "".join(pieces)
        if field != "input":
            begun = block.get(field)
            block[field] = (begun if isinstance(begun, str) else "") + text
        elif text:
            block[field] = parsed(text)
    return block
