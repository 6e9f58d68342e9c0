"""The assembled text of a frame, piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import orjson

from ctxctl.engine.replay.renderings import json_in
from ctxctl.model.content import Content
from ctxctl.model.results import Placement, Step

_NAME: Final = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_NAMED: Final = {
    "none": "",
    "space": " ",
    "newline": "\n",
    "line": "\n",
    "blank_line": "\n\n",
    "double_newline": "\n\n",
    "paragraph": "\n\n",
}
"""Separators given by name instead of by text (`separator_policy` is a free string)."""


class Joint(NamedTuple):
    """The text between two placements."""

    text: str
    known: bool
    """Whether the assembly records it. Otherwise it is assumed to be a line end."""
    name: str = ""
    """The name that the assembly gives instead of a text, such as `message`."""


def joint(step: Step) -> Joint:
    """Return what the step's assembly puts between placements: a text, or the name of one.

    A single word is a name, because nobody joins messages with the word `message`.
    """
    stage = step.stages.get("assembly")
    separator = None if stage is None else stage.facts.get("separator")
    return _joint_of(separator if isinstance(separator, str) else None)


class Joints(NamedTuple):
    """The text between and after the placements of a frame."""

    between: Joint
    """The text between any two placements."""
    closes: list[str]
    """The text after each placement, before the joint."""


def joints_of(step: Step, placements: Sequence[Placement]) -> Joints:
    """Return a frame's text besides the texts of its placements.

    In `append` mode each assembly's separator is between its own blocks only, and what is between the blocks
    of two steps is not recorded.
    """
    closes = [p.closes for p in placements]
    if step.mode != "append":
        return Joints(joint(step), closes)
    if all(p.separator is None for p in placements[1:]):
        return Joints(_joint_of(None), closes)
    each = [_joint_of(p.separator) for p in placements[1:]]
    closes[:-1] = [text + one.text for one, text in zip(each, closes[:-1], strict=True)]
    return Joints(Joint("", all(one.known for one in each)), closes)


def _joint_of(separator: str | None) -> Joint:
    if separator is None:
        return Joint("\n", False)
    if not _NAME.fullmatch(separator):
        return Joint(separator, True)
    named = _NAMED.get(separator.lower())
    return Joint("\n", False, separator) if named is None else Joint(named, True)


def text_of(read: Callable[[Content], str], placement: Placement, *, canonical: bool = False) -> str:
    """Return a placement's text without its surroundings, or a note in brackets if it has none.

    It is the text that was sent; with `canonical`, JSON is in its canonical form (`canonical_of`). `read`
    returns a content's text as a view may show it (`Inspector.text`).
    """
    if placement.content is None:
        why = f"withheld, {placement.redaction}" if placement.redaction else "text not recorded"
        if placement.truncated and placement.method == "declared" and not placement.redaction:
            why = f"cut to {placement.tokens:,} tokens; which part of its text is left is not recorded"
        return f"[{placement.item}: {why}]"
    text = read(placement.content)
    return canonical_of(placement, text) if canonical else text


def canonical_of(placement: Placement, text: str) -> str:
    """Return the text with its JSON in canonical form: sorted keys, no spaces.

    Only content whose version derives from that form is changed.
    """
    found = json_in(text) if placement.version is not None else None
    if found is None:
        return text
    start, value = found
    made = text[:start] + orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return (
        made
        if made != text and sha256(made.encode()).hexdigest().startswith(placement.version or "-")
        else text
    )


def assembled_text(
    step: Step, placements: Sequence[Placement], read: Callable[[Content], str], *, canonical: bool = False
) -> str:
    """Return a frame's texts as sent, in order, with what is between them."""
    between, closes = joints_of(step, placements)
    pairs = zip(placements, closes, strict=True)
    return between.text.join(
        f"{p.opens}{text_of(read, p, canonical=canonical)}{behind}" for p, behind in pairs
    )
