"""Why, blame and findings: texts over the whole screen whose lines lead to steps, items and each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from textual import on
from textual.app import ComposeResult

from ctxctl.tui import keys
from ctxctl.tui.document import Document
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.literal import content
from ctxctl.tui.requests import Handlers, ask
from ctxctl.tui.screens.pointers import requests
from ctxctl.tui.screens.pointers.requests import Goal, Page
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.textview import TextView

_ONLY: Final = ("", "stale", "duplicate")


def why_at(ordinal: int, item: str, address: Callable[[int], str]) -> requests.WhyRequest:
    """The request that asks why an item is, or is not, in the window of a step; the page names the item."""
    return requests.WhyRequest(f"why it is there, or is not, at {address(ordinal)}", ordinal, item)


def blame_of(ordinal: int, address: Callable[[int], str]) -> requests.BlameRequest:
    """The request that asks whose the blocks of a step are."""
    return requests.BlameRequest(f"blame of {address(ordinal)}", ordinal)


class PointerScreen(Board[Goal | None]):
    """Closes with where to go on the main screen, if a line was chosen."""

    BINDINGS = keys.bindings("pointer")

    def __init__(
        self, request: requests.PageRequest, here: Goal | None, address: Callable[[int], str]
    ) -> None:
        super().__init__()
        self._request = request
        self._address = address
        """What a step is called, by its ordinal."""
        self._here = here
        """Where the main screen is: what lines without a goal stand for."""
        self._before: list[tuple[requests.PageRequest, int]] = []
        """What was shown before, and on which row the cursor stood."""
        self._page: Page | None = None
        self._row = 0

    def compose(self) -> ComposeResult:
        """Lay out the text and the keys."""
        yield TextView(ident="text")
        yield KeyLine(self._keys)

    def on_mount(self) -> None:
        """Ask for the page."""
        self._open(self._request)

    @property
    def view(self) -> TextView:
        """The text."""
        return self.query_one("#text", TextView)

    def _open(self, request: requests.PageRequest, row: int = 0) -> None:
        self._request, self._page, self._row = request, None, row
        self._show(request.title, Document.of_lines([("!", "one moment…")]))
        ask(self, request)

    def _show(self, title: str, document: Document) -> None:
        view = self.view
        view.border_title = content(title)
        view.border_subtitle = content(document.remark)
        view.show(document)
        self.set_focus(view, scroll_visible=False)

    def handlers(self) -> Handlers:
        """What takes the page, of which more may come later."""
        return {Page: self._turn_to}

    def _turn_to(self, page: Page) -> None:
        if page.title != self._request.title:
            return
        first, request = self._page is None, self._request
        row = self._row if first else self.view.cursor
        self._page = page
        self._show(page.title, page.document)
        if row:
            self.view.action_move(row)
        elif first and isinstance(request, requests.FindingsRequest):
            item = None if self._here is None else self._here.item
            self.view.to_line(page.line_of(item, request.near))
        elif first and page.first:
            self.view.to_line(page.first)
        self.query_one("#keys", Banner).update()

    def _keys(self, width: int) -> Sequence[Parts]:
        found = keys.hints(("pointer", "text"))
        if not isinstance(self._request, requests.BlameRequest):
            found = [hint for hint in found if hint[1] != "only"]
        own = {"why"} if isinstance(self._request, requests.WhyRequest) else {"ids"}
        own |= {"findings"} if isinstance(self._request, requests.FindingsRequest) else set()
        found = [hint for hint in found if hint[1] not in own]
        if self._page is None or self._page.goals:
            found.insert(0, (keys.key_of("text.choose"), "go", 96))
        else:
            found = [hint for hint in found if hint[1] != "why"]
        return [spread([Piece(word, "hint", rank, key) for key, word, rank in found], [], width)]

    def goal(self) -> Goal | None:
        """Where the line under the cursor leads, else where the main screen is."""
        number = self.view.link()
        if self._page is None or number is None:
            return self._here
        return self._page.goals[number]

    @on(TextView.Chosen)
    def chosen(self, message: TextView.Chosen) -> None:
        """Go where the line leads."""
        message.stop()
        if self._page is not None:
            self.dismiss(self._page.goals[message.ordinal])

    # Actions

    def action_back(self) -> None:
        """Go back to what was shown before, at last to the main screen."""
        if self._before:
            self._open(*self._before.pop())
        else:
            self.dismiss(None)

    def _lead(self, request: requests.PageRequest) -> None:
        self._before.append((self._request, self.view.cursor))
        self._open(request)

    def action_why(self) -> None:
        """Say why the line's item is there, or is not."""
        goal = self.goal()
        if goal is None or goal.item is None:
            self.app.bell()
        else:
            self._lead(why_at(goal.ordinal, goal.item, self._address))

    def action_blame(self) -> None:
        """Say whose the blocks of the line's step are."""
        goal = self.goal()
        if goal is None:
            self.app.bell()
        else:
            self._lead(blame_of(goal.ordinal, self._address))

    def action_ids(self) -> None:
        """Of what is told of an item, the ids too, or no more."""
        request = self._request
        if isinstance(request, requests.WhyRequest):
            self._open(replace(request, ids=not request.ids), self.view.cursor)

    def action_findings(self) -> None:
        """Show what the rules find."""
        if not isinstance(self._request, requests.FindingsRequest):
            self._lead(requests.FindingsRequest("findings"))

    def action_only(self) -> None:
        """Of the blocks all, the stale or the repeated ones."""
        request = self._request
        if isinstance(request, requests.BlameRequest):
            only = _ONLY[(_ONLY.index(request.only) + 1) % len(_ONLY)]
            self._open(requests.BlameRequest(request.title, request.ordinal, only))

    def seen(self) -> VisibleText | None:
        """The page."""
        return VisibleText(self._request.title, self.view.document.text)
