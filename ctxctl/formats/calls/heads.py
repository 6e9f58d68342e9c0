"""The first bytes of a file, for detection: what can be told of them, cut, damaged or indented."""

from __future__ import annotations

from typing import Any, Final

import orjson

_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = 20


def body(head: bytes) -> bytes:
    """The head without a byte-order mark and blank lines."""
    return head.removeprefix(_BOM).lstrip()


def objects(head: bytes) -> list[dict[str, Any]]:
    """The JSON objects of the first lines, or the one object that a short document is."""
    return [value for value in values(head) if isinstance(value, dict)]


def values(head: bytes) -> list[Any]:
    """The JSON values of the first lines that are whole, or the one value that a short document is."""
    text = body(head)
    found: list[Any] = []
    for line in text.split(b"\n")[:_LINES]:
        if len(line) < 2:
            continue
        try:
            found.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            continue
    if not any(isinstance(value, dict | list) for value in found) and text[:1] in (b"{", b"["):
        try:
            return [orjson.loads(text)]
        except orjson.JSONDecodeError:
            return []
    return found
