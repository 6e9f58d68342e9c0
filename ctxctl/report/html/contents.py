"""The contents of a page: each once, numbered as they are met, in blocks that are opened one by one.

Values stand in the page as JSON that no HTML parser takes for markup, or packed in inert blocks.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.model.results import Placement
from ctxctl.session import Inspector
from ctxctl.text import preview

NONE: Final = -1
"""The trace has no text."""
WITHHELD: Final = -2
"""The trace has a text, and it says what was redacted."""

_BLOCK: Final = 256 << 10
"""Characters after which a block is full."""
_HEAD: Final = 56
_LEAST: Final = 512
"""No text is cut to less, however little there is room for."""


class PageText(NamedTuple):
    """One content, as the page has it (an array)."""

    text: str
    ordinal: int
    """The first step that held it."""
    item: str
    """The item that it was the text of there."""
    left_out: int
    """Characters cut out of the middle; the text then holds the beginning and the end, parted by `split`."""
    split: int


def limit_for(sizes: Collection[int], room: int) -> int | None:
    """The size to which each text is cut so that all together need no more than `room`; None: all fit.

    The longest ones are cut first; below `_LEAST` none is.
    """
    left, count = room, len(sizes)
    if sum(sizes) <= room:
        return None
    for size in sorted(sizes):
        if size * count > left:
            return max(left // count, _LEAST)
        left -= size
        count -= 1
    return None


class Texts:
    """Numbers contents and packs them.

    Args:
        emit: Takes each finished block.
        limit: Characters of the longest text; longer ones lose their middle.
    """

    def __init__(self, inspector: Inspector, emit: Callable[[bytes], None], limit: int | None) -> None:
        self._inspector = inspector
        self._emit = emit
        self._limit = limit
        self._numbers: dict[str, int] = {}
        self._heads: list[str] = []
        self._open: list[PageText] = []
        self._held = 0
        self.count = 0
        self.blocks: list[int] = []
        """The number of the first content of each block."""
        self.cut = 0
        """Texts that were cut."""
        self.left_out = 0
        """Characters that were cut out of them."""
        self.withheld = 0
        """Texts that were withheld because they say what was redacted."""
        self.characters = 0
        """Characters of all texts as they are in the page."""

    def number(self, placement: Placement, ordinal: int) -> int:
        """The number of a placement's text, `NONE` or `WITHHELD`."""
        content = placement.content
        if content is None:
            return NONE
        found = self._numbers.get(content.digest)
        if found is None:
            found = self._numbers[content.digest] = self._add(placement, ordinal)
        return found

    def _add(self, placement: Placement, ordinal: int) -> int:
        assert placement.content is not None
        if self._inspector.redactor.touches(placement.content):
            self.withheld += 1
            return WITHHELD
        text = self._inspector.text(placement.content)
        self._heads.append(preview(text, _HEAD))
        left_out = split = 0
        if self._limit is not None and len(text) > self._limit:
            split = self._limit * 2 // 3
            left_out = len(text) - self._limit
            text = text[:split] + text[split + left_out :]
            self.cut += 1
            self.left_out += left_out
        if not self._open:
            self.blocks.append(self.count)
        self._open.append(PageText(text, ordinal, placement.item, left_out, split))
        self._held += len(text)
        self.characters += len(text)
        self.count += 1
        if self._held >= _BLOCK:
            self.flush()
        return self.count - 1

    def head(self, number: int) -> str | None:
        """First words of a content, made visible; what an item without a title is shown as."""
        return self._heads[number] if number >= 0 else None

    def flush(self) -> None:
        """Close the open block."""
        if self._open:
            self._emit(packed(f"c{len(self.blocks) - 1}", (dumped(self._open),)))
            self._open, self._held = [], 0


_LEVEL: Final = 6
_SAFE: Final = 1 << 53
"""Integers from here on are no longer exact in a browser."""
_AS_IS: Final = frozenset({str, bool, float, type(None)})
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
_ESCAPES: Final = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def dumped(value: Any) -> bytes:
    """A value as JSON."""
    try:
        return _ENCODER.encode(value)
    except (UnicodeError, OverflowError, TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return json.dumps(
            value, separators=(",", ":"), default=str
        ).encode()  # lone surrogates, huge integers


def escaped(data: bytes) -> bytes:
    """JSON that can stand in a `script` element: it ends no element and opens none."""
    for character, escape in _ESCAPES:
        data = data.replace(character, escape)
    return data


def packed(name: str, data: Iterable[bytes]) -> bytes:
    """An element of the page that holds the data compressed: nothing executes it, nothing parses it.

    The data comes in pieces, as all of it may be large.
    """
    packer = zlib.compressobj(_LEVEL)
    text = base64.b64encode(b"".join([*map(packer.compress, data), packer.flush()]))
    return b'<script type="application/octet-stream" id="%s">%s</script>\n' % (name.encode(), text)


def without_empty(value: Any, depth: int = 0) -> Any:
    """A JSON value without what says nothing (null, empty); integers that a browser would round as text."""
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind is int:
        return value if -_SAFE < value < _SAFE else str(value)
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        if depth > _DEPTH:
            return "…"
        made = {}
        for key, held in value.items():
            if held is None:
                continue
            kind = type(held)
            stays = kind in _AS_IS or (kind is int and -_SAFE < held < _SAFE)
            one = held if stays else without_empty(held, depth + 1)
            if one or type(one) not in (list, dict):
                made[str(key)] = one
        return made
    if isinstance(value, list | tuple):
        if depth > _DEPTH:
            return "…"
        return [one if type(one) in _AS_IS else without_empty(one, depth + 1) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _SAFE:
        return str(value)
    return value


_DEPTH: Final = 100
