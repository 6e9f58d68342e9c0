"""The overview of a dataset: its sessions in groups, and the sessions of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from textual import on
from textual.app import ComposeResult

from ctxctl.dataset.session_groups import Group
from ctxctl.dataset.session_values import SessionRow
from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.lineedit import History
from ctxctl.tui.requests import Handlers
from ctxctl.tui.screens.fleet import lines as said
from ctxctl.tui.screens.fleet.state import (
    Arranged,
    Inside,
    Matter,
    Wish,
    front_of,
    front_of_group,
    grouped_next,
    matter_of,
    sorted_next,
    turned,
)
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows

_TYPING: Final = (
    ("line.accept", "open", 100),
    ("line.older", "up", 70),
    ("line.newer", "down", 70),
    ("line.erase_all", "clear", 60),
    ("line.cancel", "all sessions", 90),
)
"""Ids, words and ranks of the hints while one types."""
_WIDE: Final = 200
"""Cells of a line that is taken elsewhere."""


class _Line(Prompt):
    """Up and down move the cursor of the list."""

    def __init__(self, screen: FleetScreen, typed: str) -> None:
        super().__init__("/", value=typed, history=History(), ident="query")
        self._screen = screen

    def action_history(self, by: int) -> None:
        """The line of the list above or below."""
        self._screen.rows.action_move(by)


class FleetScreen(Board[None]):
    """Shows what it is told; says what the user wishes to see, and which session is chosen.

    Args:
        wish: How the list is first.
        tell_wish: Told of another wish, and of what is to be in front.
        again: Has the dataset read again.
        choose: Told of the session to open.
    """

    BINDINGS = keys.bindings("fleet")

    def __init__(
        self,
        wish: Wish,
        tell_wish: Callable[[Wish, str | None], None],
        again: Callable[[], None],
        choose: Callable[[SessionRow], None],
    ) -> None:
        super().__init__(id="fleet")
        self.wish = wish
        self.view = Arranged(wish)
        self._tell_wish = tell_wish
        self._again = again
        self._choose = choose

    def compose(self) -> ComposeResult:
        """Lay out what is listed, the line to find by, the list, what is in front, and the keys."""
        yield Banner(lambda width: [said.head(self.view, width)], ident="fleet-head")
        yield _Line(self, self.wish.typed)
        yield Banner(
            lambda width: [[(" ", ""), *said.heading(self.view, width - 2)]],
            ident="fleet-columns",
            classes="columns",
        )
        yield Rows(self._line, "fleet-rows")
        yield Banner(lambda width: [[], *said.nothing(self.view, width)], ident="fleet-nothing")
        yield Banner(lambda width: said.foot(self.view, self.front, self.matter, width), ident="fleet-foot")
        yield KeyLine(self._keys)

    @property
    def rows(self) -> Rows:
        """The list."""
        return self.query_one("#fleet-rows", Rows)

    @property
    def front(self) -> Group | SessionRow | None:
        """What is under the cursor."""
        listed: Sequence[Group | SessionRow] = self.view.sessions if self.view.wish.flat else self.view.groups
        at = self.rows.cursor
        return listed[at] if at < len(listed) else None

    @property
    def matter(self) -> Matter | None:
        """Where the session under the cursor is opened."""
        front = self.front
        return matter_of(front, self.wish.sorted_by) if isinstance(front, SessionRow) else None

    def on_mount(self) -> None:
        """Nothing is known yet."""
        self.set_focus(self.rows, scroll_visible=False)
        self._show()

    def handlers(self) -> Handlers:
        """The list as it is arranged."""
        return {Arranged: self.apply}

    def apply(self, new: Arranged) -> None:
        """Show another list, with the cursor where the feed has put it."""
        if new.wish != self.wish:
            return  # of a wish before
        self.view = new
        self.rows.show(new.count, new.cursor)
        self.query_one("#query", _Line).note = new.wrong
        self._show()

    def _show(self) -> None:
        empty = not self.view.count
        self.rows.display = self.query_one("#fleet-columns").display = not empty
        self.query_one("#fleet-nothing").display = empty
        for name in ("fleet-head", "fleet-columns", "fleet-nothing", "fleet-foot", "keys"):
            self.query_one(f"#{name}", Banner).update()

    def _line(self, row: int, width: int) -> Parts:
        return said.line(self.view, row, width)

    def _keys(self, width: int) -> Sequence[Parts]:
        typing = isinstance(self.focused, Prompt)
        found = _TYPING if typing else keys.hints(("fleet", "list"))
        shown = [Piece(word, "hint", rank, keys.key_of(key) if typing else key) for key, word, rank in found]
        return [spread(shown, [], width)]

    def on_descendant_focus(self) -> None:
        """The keys are others while one types."""
        self.query_one("#keys", Banner).update()

    @on(Rows.Moved)
    def pointed(self) -> None:
        """Something else is in front."""
        self.query_one("#fleet-foot", Banner).update()

    @on(Rows.Chosen)
    def chosen(self) -> None:
        """A double click opens."""
        self.action_open()

    def seen(self) -> VisibleText:
        """The whole list."""
        made = [
            said.heading(self.view, _WIDE),
            *(said.line(self.view, n, _WIDE) for n in range(self.view.count)),
        ]
        text = "".join("".join(text for text, _ in parts).rstrip() + "\n" for parts in made)
        return VisibleText("sessions" if self.view.wish.flat else "groups", text)

    # What the user wishes

    def _wish(self, wish: Wish, front: str | None = None) -> None:
        if front is None and self.front is not None:
            front = front_of(self.front)
        self.wish = wish
        self._tell_wish(wish, front)

    @on(Prompt.Changed)
    def typed(self, message: Prompt.Changed) -> None:
        """Find as one types."""
        self._wish(replace(self.wish, typed=message.value))

    @on(Prompt.Accepted)
    def accepted(self) -> None:
        """Open what is in front."""
        self.set_focus(self.rows, scroll_visible=False)
        self.action_open()

    @on(Prompt.Cancelled)
    def cancelled(self) -> None:
        """All sessions again."""
        self._unfind()

    def action_find(self) -> None:
        """Type what sessions are to fit."""
        self.set_focus(self.query_one("#query", _Line), scroll_visible=False)

    def action_group(self) -> None:
        """Group by the next thing."""
        self._wish(grouped_next(self.wish))

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._wish(sorted_next(self.wish))

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._wish(turned(self.wish))

    def action_again(self) -> None:
        """Read the dataset again."""
        self.view = replace(self.view, reading=True)
        self.query_one("#fleet-head", Banner).update()
        self._wish(self.wish)
        self._again()

    def action_back(self) -> None:
        """Back to the groups; from there, to all sessions."""
        if self.wish.inside is not None:
            self._wish(replace(self.wish, inside=None), front_of_group(self.wish.inside.key))
        else:
            self._unfind()

    def _unfind(self) -> None:
        if self.wish.typed:
            self.query_one("#query", _Line).value = ""
        self.set_focus(self.rows, scroll_visible=False)

    def action_open(self) -> None:
        """List the sessions of the group in front, or open the session."""
        front = self.front
        if isinstance(front, Group):
            self._wish(replace(self.wish, inside=Inside(self.wish.by, front.key)))
        elif front is not None:
            self._choose(front)
