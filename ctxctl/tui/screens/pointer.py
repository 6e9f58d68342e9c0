"""Why, blame and findings: texts over the whole screen whose lines lead to steps, items and each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual import on
from textual.app import ComposeResult

from ctxctl.tui import keys, lines
from ctxctl.tui.document import Document
from ctxctl.tui.lines import Parts, Piece
from ctxctl.tui.literal import content
from ctxctl.tui.messages import ask
from ctxctl.tui.pointers import wants
from ctxctl.tui.pointers.values import Goal, Page
from ctxctl.tui.seen import Seen
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.textview import TextView

_ONLY: Final = ("", "stale", "duplicate")


def why_at(ordinal: int, item: str, address: Callable[[int], str]) -> wants.WantWhy:
    """Why an item is, or is not, in the window of a step."""
    return wants.WantWhy(f"why {item}, at {address(ordinal)}", ordinal, item)


def blame_of(ordinal: int, address: Callable[[int], str]) -> wants.WantBlame:
    """Whose the blocks of a step are."""
    return wants.WantBlame(f"blame of {address(ordinal)}", ordinal)


class PointerScreen(Board[Goal | None]):
    """Closes with where to go on the main screen, if a line was chosen."""

    BINDINGS = keys.bindings("pointer")

    def __init__(self, want: wants.WantPage, here: Goal | None, address: Callable[[int], str]) -> None:
        super().__init__()
        self._want = want
        self._address = address
        """What a step is called, by its ordinal."""
        self._here = here
        """Where the main screen is: what lines without a goal stand for."""
        self._before: list[tuple[wants.WantPage, int]] = []
        """What was shown before, and on which row the cursor stood."""
        self._page: Page | None = None
        self._row = 0

    def compose(self) -> ComposeResult:
        """The text, and the keys."""
        yield TextView(ident="text")
        yield Banner(self._keys, ident="keys")

    def on_mount(self) -> None:
        """Ask for the page."""
        self._open(self._want)

    @property
    def view(self) -> TextView:
        """The text."""
        return self.query_one("#text", TextView)

    def _open(self, want: wants.WantPage, row: int = 0) -> None:
        self._want, self._page, self._row = want, None, row
        self._show(want.title, Document.of_lines([("!", "one moment…")]))
        ask(self, want)

    def _show(self, title: str, document: Document) -> None:
        view = self.view
        view.border_title = content(title)
        view.border_subtitle = content(document.remark)
        view.show(document)
        self.set_focus(view, scroll_visible=False)

    @on(wants.Paged)
    def paged(self, message: wants.Paged) -> None:
        """The page is there, or more of it."""
        if message.shown.title != self._want.title:
            return
        row = self._row if self._page is None else self.view.cursor
        self._page = message.shown
        self._show(message.shown.title, message.shown.document)
        if row:
            self.view.action_move(row)
        self.query_one("#keys", Banner).update()

    def _keys(self, width: int) -> Sequence[Parts]:
        found = keys.hints(("pointer", "text"))
        if not isinstance(self._want, wants.WantBlame):
            found = [hint for hint in found if hint[1] != "only"]
        found.insert(0, (keys.key_of("text.choose"), "go", 96))
        return [lines.spread([Piece(word, "hint", rank, key) for key, word, rank in found], [], width)]

    def goal(self) -> Goal | None:
        """Where the line under the cursor leads, else where the main screen is."""
        number = self.view.link()
        if self._page is None or number is None:
            return self._here
        return self._page.goals[number]

    @on(TextView.Chosen)
    def chosen(self, message: TextView.Chosen) -> None:
        """Enter: go there."""
        message.stop()
        if self._page is not None:
            self.dismiss(self._page.goals[message.ordinal])

    # Actions

    def action_back(self) -> None:
        """To what was shown before, at last to the main screen."""
        if self._before:
            self._open(*self._before.pop())
        else:
            self.dismiss(None)

    def _lead(self, want: wants.WantPage) -> None:
        self._before.append((self._want, self.view.cursor))
        self._open(want)

    def action_why(self) -> None:
        """Why the line's item is there, or is not."""
        goal = self.goal()
        if goal is None or goal.item is None:
            self.app.bell()
        else:
            self._lead(why_at(goal.ordinal, goal.item, self._address))

    def action_blame(self) -> None:
        """Whose the blocks of the line's step are."""
        goal = self.goal()
        if goal is None:
            self.app.bell()
        else:
            self._lead(blame_of(goal.ordinal, self._address))

    def action_findings(self) -> None:
        """What the rules find."""
        if not isinstance(self._want, wants.WantFindings):
            self._lead(wants.WantFindings("findings"))

    def action_only(self) -> None:
        """Of the blocks all, the stale or the repeated ones."""
        want = self._want
        if isinstance(want, wants.WantBlame):
            only = _ONLY[(_ONLY.index(want.only) + 1) % len(_ONLY)]
            self._open(wants.WantBlame(want.title, want.ordinal, only))

    def seen(self) -> Seen | None:
        """The page."""
        return Seen(self._want.title, self.view.document.text)
