"""Context that a harness put inside a message, between tags of its own; cut out without loss."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

KINDS: Final = {
    "system-reminder": "policy_note",
    "context_file": "external_resource",
    "environment_context": "runtime_state",
    "environment_details": "runtime_state",
    "user_instructions": "policy_note",
}
"""Context kind, by the tag that a harness puts its own context between."""
_TAG: Final = re.compile(
    r"<(/?)(" + "|".join(re.escape(tag) for tag in KINDS) + r")((?:\s++[^<>\n]*+)?)>",
)
_ATTRIBUTE: Final = re.compile(r"""\b(source|paths?)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Piece(NamedTuple):
    """A stretch of a text."""

    text: str
    kind: str | None = None
    """Context kind of what a harness put in; None for the message's own text."""
    source: str | None = None
    """As its opening tag names it (`source=`, `paths=`)."""
    tag: str | None = None


def split(text: str) -> list[Piece]:
    """The text in stretches: joined in order they are the text, character by character.

    A stretch from an opening to its closing tag is cut out where the opening tag begins a line, the closing
    tag ends one, and the same tag does not stand between them; what else stands between them is its content.
    Blank space before and behind goes with it, so that the message's own text is the same with and without.
    If any tag is left over, nothing can be told apart for sure, and the text stays whole.
    """
    if "</" not in text:
        return [Piece(text)]
    spans = _spans(text)
    if not spans:
        return [Piece(text)]
    made: list[Piece] = []
    at = 0
    for start, end, tag, attributes in spans:
        own = text[at:start]
        if own and not own.isspace():
            kept = own.rstrip()
            made.append(Piece(kept))
            at += len(kept)
        tail = _after(text, end)
        made.append(Piece(text[at:tail], KINDS[tag], _source(attributes), tag))
        at = tail
    if at < len(text):
        made.append(Piece(text[at:]))
    return made


def _spans(text: str) -> list[tuple[int, int, str, str]] | None:
    """Start, end, tag and attributes of each stretch; None if they cannot be told apart."""
    found: list[tuple[int, int, str, str]] = []
    opened: re.Match[str] | None = None
    for match in _TAG.finditer(text):
        closing, tag = match.group(1) == "/", match.group(2)
        if opened is None:
            if closing:
                return None
            if not _begins_line(text, match.start()):
                return None
            opened = match
        elif tag == opened.group(2):
            if not closing:
                if _begins_line(text, match.start()):
                    return None
                continue
            if not _ends_line(text, match.end()):
                return None
            found.append((opened.start(), match.end(), tag, opened.group(3)))
            opened = None
    return None if opened is not None else found


def _begins_line(text: str, at: int) -> bool:
    # After another stretch on the same line too: some harnesses put nothing between them.
    before = text[max(0, at - 80) : at].rstrip(" \t")
    return not before or before.endswith(("\n", ">"))


def _ends_line(text: str, at: int) -> bool:
    behind = text[at : at + 80].lstrip(" \t")
    return not behind or behind[0] in "\r\n<"


def _after(text: str, end: int) -> int:
    """Where the blank space behind a stretch ends."""
    rest = len(text)
    at = end
    while at < rest and text[at] in " \t\r\n":
        at += 1
    return at


def _source(attributes: str) -> str | None:
    match = _ATTRIBUTE.search(attributes)
    if match is None:
        return None
    return (match.group(2) or match.group(3) or "").strip() or None
