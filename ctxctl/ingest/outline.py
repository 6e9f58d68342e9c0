"""The layout of a JSON document or of JSON lines, short enough for detection however long its values are.

A request's tools and system prompt may be longer than what detection reads, and stand before its messages.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

OUTLINED: Final = 16 << 20
"""The most bytes of a file of which an outline is made."""
_LINES: Final = 20
_TEXT: Final = 80
_CODED: Final = 2000
"""The most characters that are kept of a text without blanks: it may be base64, which its beginning tells."""
_DEPTH: Final = 8
_WIDE: Final = 200
"""The most fields of an outer object that are kept."""
_NARROW: Final = 24
_OUTER: Final = 4
"""The number of outer levels: a list of pairs of envelopes with the bodies in them."""
_MOST: Final = 32_000
"""The size of the outline in characters, about."""
_BOM: Final = b"\xef\xbb\xbf"


def outline(data: bytes) -> bytes:
    """JSON of the same layout, with the first values of lists and beginnings of texts; empty if it is none.

    Of JSON lines the first are told, one a line; of a document that is cut off in a list, the first entry.
    """
    body = data.removeprefix(_BOM).lstrip()
    if body[:1] not in (b"{", b"["):
        return b""
    left = [_MOST]
    return b"\n".join(_dumped(_short(value, 0, left)) for value in _values(body))


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # Python's own parser takes lone surrogates and integers of any size
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _values(body: bytes) -> list[Any]:
    try:
        return [orjson.loads(body)]
    except orjson.JSONDecodeError:
        pass
    found = []
    for line in body.split(b"\n", _LINES)[:_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict | list):
            found.append(value)
    return found or _first(body)


def _first(body: bytes) -> list[Any]:
    """The first entry of a list that goes on behind what was read."""
    if not body.startswith(b"["):
        return []
    text = body[1:].lstrip().decode("utf-8", "replace")
    try:
        return [[json.JSONDecoder().raw_decode(text)[0]]]
    except (ValueError, RecursionError):
        return []


def _short(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 8
    if isinstance(value, str):
        return _text(value, depth, left)
    if not isinstance(value, dict | list):
        return value
    if depth >= _DEPTH:
        return type(value)()
    outer = depth < _OUTER
    if isinstance(value, list):
        return [_short(entry, depth + 1, left) for entry in value[: 4 if outer else 2] if left[0] > 0]
    made: dict[str, Any] = {}
    for name in list(value)[: _WIDE if outer else _NARROW]:
        if left[0] <= 0:
            break
        left[0] -= min(len(name), _TEXT)
        made[name[:_TEXT]] = _short(value[name], depth + 1, left)
    return made


def _text(text: str, depth: int, left: list[int]) -> str:
    if len(text) <= _TEXT:
        left[0] -= len(text)
        return text
    if text.lstrip()[:1] in ("{", "[") and depth < _DEPTH and left[0] > 0:
        try:
            inner = orjson.loads(text)
        except orjson.JSONDecodeError:
            left[0] -= _TEXT
            return text[:_TEXT]
        return orjson.dumps(_short(inner, depth + 1, left)).decode()
    shown = text[: _TEXT if " " in text[:_TEXT] else _CODED]
    left[0] -= len(shown)
    return shown
