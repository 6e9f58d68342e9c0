"""The sessions of this machine, to choose one from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from textual import on
from textual.app import ComposeResult

from ctxctl.model.session_list import ListedSession
from ctxctl.report import session_list as report
from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.lineedit import History
from ctxctl.tui.requests import Handlers
from ctxctl.tui.screens.sessions import lines as said
from ctxctl.tui.screens.sessions.state import Arranged, Wish, next_order
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows

_LABEL: Final = "/"
_TYPING: Final = (
    ("line.accept", "open", 100),
    ("line.older", "up", 70),
    ("line.newer", "down", 70),
    ("line.erase_all", "clear", 60),
    ("line.cancel", "all sessions", 90),
)
"""Ids, words and ranks of the hints while one types."""


class _Line(Prompt):
    """Up and down move the cursor of the list."""

    def __init__(self, screen: SessionsScreen, typed: str) -> None:
        super().__init__(_LABEL, value=typed, history=History(), ident="query")
        self._screen = screen

    def action_history(self, by: int) -> None:
        """The line of the list above or below."""
        self._screen.rows.action_move(by)


class SessionsScreen(Board[None]):
    """Shows what it is told; says what the user wishes to see, and which session is chosen."""

    BINDINGS = keys.bindings("sessions")

    def __init__(
        self,
        wish: Wish,
        tell_wish: Callable[[Wish], None],
        tell_front: Callable[[str], None],
        choose: Callable[[ListedSession], None],
    ) -> None:
        super().__init__(id="sessions")
        self.view = Arranged((), wish, 0.0)
        self.wish = wish
        self._tell_wish = tell_wish
        self._tell_front = tell_front
        self._choose = choose

    def compose(self) -> ComposeResult:
        """Lay out how many there are, the line to find by, the list, the session in front, and the keys."""
        yield Banner(lambda width: [said.head(self.view, width)], ident="sessions-head")
        yield _Line(self, self.wish.typed)
        yield Banner(
            lambda width: [[(" ", ""), *said.heading(self.view, width - 1)]], ident="sessions-columns",
            classes="columns",
        )  # fmt: skip
        yield Rows(self._line, "session-rows")
        yield Banner(lambda width: [[], *said.nothing(self.view, width)], ident="sessions-nothing")
        yield Banner(lambda width: said.foot(self.view, self.front, width), ident="sessions-foot")
        yield KeyLine(self._keys)

    @property
    def rows(self) -> Rows:
        """The list."""
        return self.query_one("#session-rows", Rows)

    @property
    def front(self) -> ListedSession | None:
        """The session under the cursor."""
        at = self.rows.cursor
        return self.view.rows[at] if at < len(self.view.rows) else None

    def on_mount(self) -> None:
        """Nothing is known yet."""
        self.set_focus(self.rows, scroll_visible=False)
        self._show()

    def handlers(self) -> Handlers:
        """The sessions as they are arranged."""
        return {Arranged: self.apply}

    def apply(self, new: Arranged) -> None:
        """Show other sessions, or the same with more known; the cursor stays on its session."""
        if new.wish != self.wish:
            return  # of a wish before
        front, before = self.front, self.rows.cursor
        old, self.view = self.view, new
        stays = front is not None and before < len(new.rows) and new.rows[before].path == front.path
        at = before if stays else new.cursor
        self.rows.show(len(new.rows), at if old.wish == new.wish or not old.looked else 0)
        self._show()

    def _show(self) -> None:
        empty = not self.view.rows
        self.rows.display = self.query_one("#sessions-columns").display = not empty
        self.query_one("#sessions-nothing").display = empty
        for name in ("sessions-head", "sessions-columns", "sessions-nothing", "sessions-foot", "keys"):
            self.query_one(f"#{name}", Banner).update()

    def _line(self, row: int, width: int) -> Parts:
        view, session = self.view, self.view.rows[row]
        return said.line(session, view.now, view.wish.typed, width, twin=session.path in view.twins)

    def _keys(self, width: int) -> Sequence[Parts]:
        typing = isinstance(self.focused, Prompt)
        found = _TYPING if typing else keys.hints(("sessions", "list"))
        shown = [Piece(word, "hint", rank, keys.key_of(key) if typing else key) for key, word, rank in found]
        return [spread(shown, [], width)]

    def on_descendant_focus(self) -> None:
        """The keys are others while one types."""
        self.query_one("#keys", Banner).update()

    @on(Rows.Moved)
    def pointed(self) -> None:
        """Another session is in front."""
        if self.front is not None:
            self._tell_front(self.front.path)
        self.query_one("#sessions-foot", Banner).update()

    @on(Rows.Chosen)
    def chosen(self) -> None:
        """A double click opens."""
        self.action_open()

    def seen(self) -> VisibleText:
        """The whole list, with paths."""
        now = self.view.now
        text = "".join(f"{report.plain_line(one, now, one.path)}\n" for one in self.view.rows)
        return VisibleText("sessions", text)

    # What the user wishes

    def _wish(self, wish: Wish) -> None:
        self.wish = wish
        self._tell_wish(wish)

    @on(Prompt.Changed)
    def typed(self, message: Prompt.Changed) -> None:
        """Find as one types."""
        self._wish(replace(self.wish, typed=message.value))

    @on(Prompt.Accepted)
    def accepted(self) -> None:
        """Open what is in front."""
        self.action_open()

    @on(Prompt.Cancelled)
    def cancelled(self) -> None:
        """All sessions again."""
        self.action_back()

    def action_find(self) -> None:
        """Type words of a project, a prompt or a client."""
        self.set_focus(self.query_one("#query", _Line), scroll_visible=False)

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._wish(replace(self.wish, order=next_order(self.wish.order), reverse=False))

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._wish(replace(self.wish, reverse=not self.wish.reverse))

    def action_back(self) -> None:
        """All sessions, where only some were looked for."""
        if self.wish.typed:
            self.query_one("#query", _Line).value = ""
            self._wish(replace(self.wish, typed=""))
        self.set_focus(self.rows, scroll_visible=False)

    def action_open(self) -> None:
        """Open the session in front."""
        front = self.front
        if front is not None:
            self._choose(front)
