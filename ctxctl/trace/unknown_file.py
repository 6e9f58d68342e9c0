"""Describe what a file that is no trace looks like, for the error message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice

import orjson

_SIGNATURES = (
    (b"\xff\xfe\0\0", "UTF-32 text", "convert it: iconv -f UTF-32 -t UTF-8"),
    (b"\0\0\xfe\xff", "UTF-32 text", "convert it: iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\x1f\x8b", "gzip inside gzip", "decompress it once"),
    (b"\x28\xb5\x2f\xfd", "zstd inside a compressed file", "decompress it once"),
    (b"SQLite format 3\0", "an SQLite database", None),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"version https://git-lfs.github.com/", "a Git LFS pointer instead of the file", "git lfs pull"),
    (b"BZh", "bzip2 data", "decompress it first"),
    (b"\xfd7zXZ", "xz data", "decompress it first"),
    (b"\x7fELF", "a program", None),
    (b"%PDF", "a PDF", None),
    (b"\x89PNG", "an image", None),
)
_ONE_A_LINE = "a trace has one JSON object a line: jq -c "
_FOREIGN = "ctxctl formats lists the captures that can be opened"


HEAD = 4096
"""Bytes at the start of a file that show what it looks like."""
DOCUMENT = 16 << 20
"""Most bytes of a JSON document that are read to describe it."""


def looks_like(head: bytes, whole: Callable[[], bytes] = bytes) -> tuple[str, str | None]:
    """Return a phrase that continues "holds no readable context event", and a hint, by the first 4 KiB.

    `whole` returns the file, or nothing if it is larger than `DOCUMENT`.
    """
    for magic, what, hint in _SIGNATURES:
        if head.startswith(magic):
            return f": it looks like {what}", hint
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not body.strip(b"\0 \t\r\n"):
        return ": it is blank" if b"\0" not in body else ": it is all NUL bytes", None
    if (wide := _wide_encoding(head)) is not None:
        return f": it looks like {wide[:6]} text", f"convert it: iconv -f {wide} -t UTF-8"
    if b"\0" in body:
        return ": it looks like binary data", None
    if body.startswith(b"["):
        return ": it looks like a JSON array", f"{_ONE_A_LINE}'.[]' FILE > trace.jsonl; {_FOREIGN}"
    if body.startswith(b"{"):
        return _object(body, whole)
    if body.startswith(b"<"):
        return ": it looks like markup", None
    return ": it is not JSON Lines", f"a trace has one JSON object a line; {_FOREIGN}"


def _wide_encoding(head: bytes) -> str | None:
    """Return the encoding of text with characters of two or four bytes, all but one of them NUL.

    Without a byte-order mark, the name must include the byte order.
    """
    for width in (4, 2):
        quiet = [head[at::width].count(0) * 3 > len(head) // width * 2 for at in range(width)]
        if sum(quiet) == width - 1 and not (quiet[0] and quiet[-1]):
            return f"UTF-{8 * width}{'BE' if quiet[0] else 'LE'}"
    return None


def _object(body: bytes, whole: Callable[[], bytes]) -> tuple[str, str | None]:
    first, newline, _ = body.partition(b"\n")
    try:
        value = orjson.loads(first)
    except orjson.JSONDecodeError:
        if newline and (keys := _keys(whole())) is not None:
            return f": it is one JSON object over several lines, of no known format (keys: {keys})", _FOREIGN
        if newline and len(first) < 200:
            return ": it looks like pretty-printed JSON", f"{_ONE_A_LINE}. FILE > trace.jsonl; {_FOREIGN}"
        return ": its lines are damaged or foreign", None
    keys = named_keys(value) if isinstance(value, dict) else ""
    return (
        f": it is JSON of another kind (keys of the first line: {keys})",
        _FOREIGN,
    )


def _keys(data: bytes) -> str | None:
    """Return the first keys of a file that is one JSON object and no context event."""
    try:
        value = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None
    return named_keys(value) if isinstance(value, dict) and "event_type" not in value else None


def named_keys(value: Iterable[str]) -> str:
    """Return the first keys of an object, on one line: untrusted ones may be long, or contain line ends."""
    return ", ".join(
        name if len(name) <= _LONGEST_KEY and name.isprintable() else f"{name[: _LONGEST_KEY - 3]!r}..."
        for name in islice(value, 6)
    )


_LONGEST_KEY = 40
"""Most characters of a key that a message shows."""
_NATIVE = re.compile(rb'"event_type"\s*:\s*"(?:context|ctxctl)\.')


def is_native(head: bytes) -> bool:
    """Return whether the first bytes of a file are a context event. Quoted events are escaped."""
    return _NATIVE.search(head) is not None
