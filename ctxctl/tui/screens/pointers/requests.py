"""Requests of the screen of why, blame and findings; a `Page` answers them, or as much of it as is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxctl.tui.requests import Request
from ctxctl.tui.screens.pointers.values import Line, Page, page


@dataclass(frozen=True, slots=True)
class PageRequest(Request):
    """Why, blame or findings; they may take a pass over the trace."""

    worker: ClassVar[str] = "pointers"
    newest_only: ClassVar[bool] = True

    title: str

    def failed(self, why: str) -> Page:
        """The answer that gives the reason."""
        return page(self.title, [Line(why, "!")])


@dataclass(frozen=True, slots=True)
class WhyRequest(PageRequest):
    """Why an item is, or is not, in the window of a step."""

    ordinal: int
    item: str


@dataclass(frozen=True, slots=True)
class BlameRequest(PageRequest):
    """Whose the blocks of a step's window are; `only`: all where empty, else the stale or repeated ones."""

    ordinal: int
    only: str = ""


@dataclass(frozen=True, slots=True)
class FindingsRequest(PageRequest):
    """What the rules find in the trace."""
