"""A text whose lines lead somewhere.  Plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ctxctl.tui.document import Document

Kind = Literal["why", "blame", "findings"]


class Goal(NamedTuple):
    """Where a line leads."""

    ordinal: int
    """The step's."""
    item: str | None = None


class Line(NamedTuple):
    """One line: its kind (`@` heads, `!` warns), its text (raw), and where it leads."""

    text: str
    kind: str = " "
    goal: Goal | None = None


class Page(NamedTuple):
    """A text and where its lines lead."""

    title: str
    document: Document
    goals: tuple[Goal, ...] = ()
    """What the document's links are numbers of."""
    whole: bool = True
    """False while more of it is on its way."""


def page(title: str, lines: Iterable[Line], *, whole: bool = True, remark: str = "") -> Page:
    """A page of these lines; those without a goal lead nowhere."""
    texts, kinds = list[str](), bytearray()
    goals, links = dict[Goal, int](), list[int]()
    for line in lines:
        texts.append(line.text.replace("\n", "␊"))
        kinds.append(ord(line.kind))
        links.append(-1 if line.goal is None else goals.setdefault(line.goal, len(goals)))
    document = Document("\n".join(texts), kinds=bytes(kinds), links=links, remark=remark)
    return Page(title, document, tuple(goals), whole)
