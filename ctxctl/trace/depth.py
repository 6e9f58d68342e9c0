"""Nesting depth of JSON, without recursion and without parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

DEPTH_LIMIT = 200
"""Levels that ctxctl parses. Deeper ones are kept as text."""

_FOLD = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(code for code in range(256) if code not in b"[]")
_STRETCH = 1 << 20
"""Bytes that are scanned together: each string in them becomes a temporary object."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def may_nest_deeper(limit: int, raw: bytes) -> bool:
    """Return whether `raw` has enough brackets that a value may nest more than `limit` deep."""
    return raw.count(b"[") + raw.count(b"{") > limit


def deeper_than(limit: int, raw: bytes) -> bool:
    """Return whether `raw` nests arrays and objects more than `limit` deep; linear time, in C."""
    if not may_nest_deeper(limit, raw):
        return False
    shape = b"".join(_brackets(raw))
    for _ in range(limit):
        if b"[]" not in shape:
            break
        shape = shape.replace(b"[]", b"")
    return b"[]" in shape or shape.count(b"[") > limit


def _brackets(raw: bytes) -> Iterator[bytes]:
    """Yield the brackets outside of strings, all as `[` and `]`, in pieces."""
    bare = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = 0
    for at in range(0, len(bare), _STRETCH):
        pieces = bare[at : at + _STRETCH].split(b'"')
        yield b"".join(pieces[outside::2]).translate(_FOLD).translate(None, _OTHERS)
        outside ^= (len(pieces) - 1) & 1


def flatten_below(raw: bytes, limit: int = DEPTH_LIMIT) -> bytes:
    """`raw` with every subtree below `limit` levels replaced by a JSON string of its own text."""
    out: list[bytes] = []
    depth = done = start = 0
    for token in _TOKEN.finditer(raw):
        code = raw[token.start()]
        if code in b"[{":
            depth += 1
            if depth == limit + 1:
                start = token.start()
        elif code in b"]}":
            if depth == limit + 1:
                out.append(raw[done:start])
                out.append(_quoted(raw[start : token.end()]))
                done = token.end()
            depth = max(0, depth - 1)
    if depth > limit:
        return raw
    out.append(raw[done:])
    return b"".join(out)


def _quoted(raw: bytes) -> bytes:
    return orjson.dumps(raw.decode("utf-8", "replace"))


def nests_deeper(limit: int, value: object) -> bool:
    """Return whether a parsed value nests arrays and objects more than `limit` deep."""
    level: list[dict[Any, Any] | list[Any]] = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    return bool(level)
