"""Reading raw files with nothing but the json module: lines, whole objects, server-sent events.

What is damaged is mended as far as its own bytes allow (two records glued on one line, a path's backslash
that nobody escaped) and is left out otherwise: a reader that stops at the first damaged line agrees with
nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Object = dict[str, Any]

_BARE = re.compile(r'(?<!\\)((?:\\\\)*)\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
"""A backslash that escapes nothing JSON knows."""


def values(text: str) -> Iterator[Any]:
    """All JSON values of a text that holds them side by side; what is none is passed over up to its end."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            mended = _BARE.sub(r"\1\\\\", text[at:])
            if mended != text[at:]:
                yield from values(mended)
            return
        yield value


def lines(path: Path) -> Iterator[Any]:
    """The JSON values of a file of lines, in order."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            if line.strip():
                yield from values(line)


def objects(path: Path) -> list[Object]:
    """The objects of a file: one of them, one a line, or a list of them."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        whole = json.loads(text, strict=False)
    except ValueError:
        found = [one for one in lines(path) if isinstance(one, dict)]
        # A document over many lines with a damaged one in it: no line of it is an object of its own.
        whole = found or next(values(text), [])
    return [one for one in (whole if isinstance(whole, list) else [whole]) if isinstance(one, dict)]


def events(text: str) -> list[Object]:
    """The data of server-sent events, in order."""
    found = []
    for line in text.splitlines():
        if line.startswith("data:") and line[5:].strip() not in {"", "[DONE]"}:
            found += [one for one in values(line[5:]) if isinstance(one, dict)]
    return found


def at(value: Any, *path: str | int) -> Any:
    """What lies at a path of keys and positions, or None."""
    for key in path:
        if isinstance(key, int):
            if not isinstance(value, list) or not -len(value) <= key < len(value):
                return None
            value = value[key]
        else:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
    return value


def number(value: Any) -> int | None:
    """A count of tokens, or None where none is told."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value)
