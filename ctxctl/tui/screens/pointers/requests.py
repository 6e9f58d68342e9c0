"""The requests of the screen of why, blame, findings and compactions.

Each is answered by a `Page`, a text whose lines lead somewhere; as much as is known of it comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from ctxctl.tui.document import Document
from ctxctl.tui.requests import Request


@dataclass(frozen=True, slots=True)
class PageRequest(Request):
    """Why, blame, findings or compactions; they may take a pass over the trace."""

    worker: ClassVar[str] = "pointers"
    newest_only: ClassVar[bool] = True

    title: str

    def failed(self, why: str) -> Page:
        """The answer that gives the reason."""
        return page_of(self.title, [Line(why, "!")])


@dataclass(frozen=True, slots=True)
class WhyRequest(PageRequest):
    """Why an item is, or is not, in the window of a step."""

    ordinal: int
    item: str
    ids: bool = False
    """Items, versions and events are named by their ids too."""


@dataclass(frozen=True, slots=True)
class BlameRequest(PageRequest):
    """Whose the blocks of a step's window are; `only`: all where empty, else the stale or repeated ones."""

    ordinal: int
    only: str = ""


@dataclass(frozen=True, slots=True)
class FindingsRequest(PageRequest):
    """What the rules find in the trace."""

    worker: ClassVar[str] = "findings"

    near: range = range(0)
    """Ordinals of the steps in front: the page opens at the first finding there."""


@dataclass(frozen=True, slots=True)
class CompactionsRequest(PageRequest):
    """What compactions took, and what of it is handed on: those of some steps, else all."""

    ordinals: range


Kind = Literal["why", "blame", "findings"]


class Goal(NamedTuple):
    """Where a line leads."""

    ordinal: int
    """The step's."""
    item: str | None = None


class Line(NamedTuple):
    """One line: its kind (`@` heads, `!` warns), its text (raw), where it leads, and by how many cells
    its further rows are moved in.
    """

    text: str
    kind: str = " "
    goal: Goal | None = None
    hang: int = 0


class Page(NamedTuple):
    """A text and where its lines lead."""

    title: str
    document: Document
    goals: tuple[Goal, ...] = ()
    """What the document's links are numbers of."""
    whole: bool = True
    """False while more of it is on its way."""

    @property
    def first(self) -> int:
        """The first line that leads anywhere; 0 where none does."""
        return next((n for n, link in enumerate(self.document.links or ()) if link >= 0), 0)

    def line_of(self, item: str | None, steps: range) -> int:
        """The first line that leads to an item, else to one of some steps, else anywhere; 0: none does."""
        links = self.document.links or ()
        goals = [self.goals[link] if link >= 0 else None for link in links]
        named = [n for n, goal in enumerate(goals) if goal and goal.item == item] if item is not None else []
        there = (n for n, goal in enumerate(goals) if goal and goal.ordinal in steps)
        return named[0] if named else next(there, self.first)


def page_of(title: str, lines: Iterable[Line], *, whole: bool = True, remark: str = "") -> Page:
    """A page of these lines; those without a goal lead nowhere."""
    texts, kinds = list[str](), bytearray()
    goals, links, hangs = dict[Goal, int](), list[int](), list[int]()
    for line in lines:
        texts.append(line.text.replace("\n", "␊"))
        kinds.append(ord(line.kind))
        hangs.append(line.hang)
        links.append(-1 if line.goal is None else goals.setdefault(line.goal, len(goals)))
    document = Document("\n".join(texts), kinds=bytes(kinds), links=links, hangs=hangs, remark=remark)
    return Page(title, document, tuple(goals), whole)
