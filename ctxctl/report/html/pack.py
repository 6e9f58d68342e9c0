"""How values stand in the page: as JSON that no HTML parser takes for markup, or packed in inert blocks."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any, Final

import msgspec

_LEVEL: Final = 6
_SAFE: Final = 1 << 53
"""Integers from here on are no longer exact in a browser."""
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


def packed(name: str, data: bytes) -> bytes:
    """An element of the page that holds the data compressed: nothing executes it, nothing parses it."""
    text = base64.b64encode(zlib.compress(data, _LEVEL))
    return b'<script type="application/octet-stream" id="%s">%s</script>\n' % (name.encode(), text)


def plain(value: Any, depth: int = 0) -> Any:
    """A JSON value without what says nothing (null, empty); integers that a browser would round as text."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        if depth > _DEPTH:
            return "…"
        made = {str(key): plain(one, depth + 1) for key, one in value.items()}
        return {
            key: one for key, one in made.items() if one is not None and one != () and one not in ([], {})
        }
    if isinstance(value, list | tuple):
        return "…" if depth > _DEPTH else [plain(one, depth + 1) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _SAFE:
        return str(value)
    return value


_DEPTH: Final = 100
