"""Context that Amplifier puts inside messages and the system prompt, told apart by its markers.

`<system-reminder source="…">` blocks ride behind the last tool result or in a message of their own, and are
made anew for each request; `<context_file paths="mention → path">` blocks follow the system prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_OPEN: Final = re.compile(r"<(system-reminders?|context_file)([^<>]*)>")
_SOURCE: Final = re.compile(r"""\bsource=["']([^"'<>]{1,200})["']""")
_PATHS: Final = re.compile(r'\bpaths="([^"]{1,4000})"')
_ARROW: Final = " → "
_INDENT: Final = 64


class Piece(NamedTuple):
    """A stretch of a text; `before` and `text` of all pieces in a row give the text back."""

    before: str
    """White space between the piece and the one before it."""
    text: str
    tag: str | None = None
    """`system-reminder`, `context_file`; None: plain text."""
    source: str | None = None
    """What put it there: a hook, or a path."""
    mention: str | None = None
    """How a file was asked for."""


class _Block(NamedTuple):
    start: int
    end: int
    tag: str
    rest: str


def pieces(text: str) -> list[Piece]:
    """The text cut at Amplifier's markers; one plain piece where there are none.

    A block begins a line.  One that is never closed, and what looks like a block inside another one, is text.
    """
    if "<system-reminder" not in text and "<context_file" not in text:
        return [Piece("", text)]
    found: list[Piece] = []
    done = 0
    for block in _blocks(text):
        plain, space = _trimmed(text[done : block.start], first=not done)
        if plain is not None:
            found.append(plain)
        found.append(_piece(space, text[block.start : block.end], block))
        done = block.end
    if done < len(text) or not found:
        plain, space = _trimmed(text[done:], first=not done)
        if plain is not None:
            found.append(plain._replace(text=plain.text + space))
        elif found:
            found[-1] = found[-1]._replace(text=found[-1].text + space)
        else:
            found.append(Piece("", text))
    return found


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks that are not inside another one."""
    at = 0
    unclosed: set[str] = set()
    while (match := _OPEN.search(text, at)) is not None:
        at = match.end()
        tag = match.group(1)
        indent = text[max(0, match.start() - _INDENT) : match.start()].rstrip(" \t")
        if tag in unclosed or (indent and not indent.endswith("\n")):
            continue
        end = text.find(f"</{tag}>", at)
        if end < 0:
            unclosed.add(tag)
            continue
        at = end + len(tag) + 3
        yield _Block(match.start(), at, tag, match.group(2))


def _trimmed(raw: str, *, first: bool) -> tuple[Piece | None, str]:
    """Plain text as a piece (None if it is blank), and the white space behind it."""
    body = raw.rstrip()
    if not body:
        return None, raw
    inner = body if first else body.lstrip()
    return Piece(body[: len(body) - len(inner)], inner), raw[len(body) :]


def _piece(space: str, text: str, block: _Block) -> Piece:
    if block.tag == "context_file":
        paths = _PATHS.search(block.rest)
        if paths is None:
            return Piece(space, text, block.tag)
        mention, arrow, path = paths.group(1).partition(_ARROW)
        if not arrow:
            return Piece(space, text, block.tag, mention)
        return Piece(space, text, block.tag, path, mention.removeprefix("@"))
    source = _SOURCE.search(block.rest)
    return Piece(space, text, block.tag, source.group(1) if source is not None else None)
