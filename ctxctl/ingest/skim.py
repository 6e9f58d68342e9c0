"""What the first bytes of a file tell of its layout, however they are cut, damaged or indented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

_TOKEN = re.compile(rb'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"[ \t]*(:)?|([{}\[\]])|("[^\n]*+)|(\n)(?=\{)')
"""A string, and whether it is a key; a bracket; a string that is torn; a line that may be a record."""
_DEPTH: Final = 6
_VALUE: Final = 80
_MOST: Final = 2500
"""The most tokens that are looked at: a layout shows within the first records, and each token costs a
microsecond."""
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b"\0 \t\r\n"


class Layout(NamedTuple):
    """The keys met, as paths: `info.model`, `messages[].role`, `[].task_id`; the root adds nothing."""

    paths: frozenset[str]
    values: dict[str, str]
    """The first short string at a path."""

    def has(self, *paths: str) -> bool:
        """Whether all these paths were met."""
        return self.paths.issuperset(paths)

    def any(self, *paths: str) -> bool:
        """Whether one of these paths was met."""
        return not self.paths.isdisjoint(paths)


@lru_cache(maxsize=2)
def layout_of_head(head: bytes) -> Layout:
    """The layout that the first bytes of a file show; nothing for what is not JSON."""
    body = _body(head)
    if body[:1] not in (b"{", b"["):
        return Layout(frozenset(), {})
    lines = body.startswith(b"{")
    paths: set[str] = set()
    values: dict[str, str] = {}
    stack: list[str] = []
    """Path prefix of each open container."""
    arrays: list[bool] = []
    here = ""
    lost = False
    for token in islice(_TOKEN.finditer(body), _MOST):
        text, colon, mark, torn, line = token.groups()
        if torn is not None:
            lost = True
        elif line is not None:
            if lines:
                lost = False
                stack.clear()
                arrays.clear()
        elif lost:
            continue
        elif mark is None:
            if not stack or len(stack) > _DEPTH:
                continue
            if colon is not None and not arrays[-1]:
                here = stack[-1] + text.decode("utf-8", "replace")
                paths.add(here)
            elif len(text) <= _VALUE:
                values.setdefault(here, text.decode("utf-8", "replace"))
        elif mark in b"{[":
            prefix = stack[-1] if arrays and arrays[-1] else f"{here}."
            here = prefix if arrays else ""
            is_array = mark == b"["
            if is_array:
                here = f"{here.removesuffix('.')}[]."
            # What lies deeper is left out, as its path would cost with each level.
            stack.append(here if len(stack) < _DEPTH else "")
            arrays.append(is_array)
        elif stack:
            here = stack.pop()
            arrays.pop()
    return Layout(frozenset(paths), values)


def _body(head: bytes) -> bytes:
    """From the first record on: of JSON lines, the first one may have lost its beginning."""
    body = head.removeprefix(_BOM).lstrip(_BLANK)
    if body[:1] in (b"{", b"["):
        return body
    first, _, rest = body.partition(b"\n")
    return rest.lstrip(_BLANK) if first.rstrip().endswith(b"}") else b""


_LINES: Final = 20


def text_of_head(head: bytes) -> bytes:
    """The head without a byte-order mark and blank lines."""
    return head.removeprefix(_BOM).lstrip()


def first_lines(head: bytes, most: int) -> Iterator[tuple[bytes, Any]]:
    """The first lines, each with its JSON value; None for a line that is cut off, damaged or no JSON."""
    for line in text_of_head(head).split(b"\n")[:most]:
        try:
            yield line, orjson.loads(line)
        except orjson.JSONDecodeError:
            yield line, None


def objects_of_head(head: bytes) -> list[dict[str, Any]]:
    """The JSON objects of the first lines, or the one object that a short document is."""
    return [value for value in values_of_head(head) if isinstance(value, dict)]


def values_of_head(head: bytes) -> list[Any]:
    """The JSON values of the first lines that are whole, or the one value that a short document is."""
    text = text_of_head(head)
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
