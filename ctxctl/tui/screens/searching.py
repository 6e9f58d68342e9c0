"""The main screen's way to the search and from hit to hit, and the changes of a frame that fit a query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on

from ctxctl.engine.query import QueryError, parse
from ctxctl.tui import keys
from ctxctl.tui.lineedit import History
from ctxctl.tui.lines import Piece
from ctxctl.tui.screens.search import search_screen
from ctxctl.tui.state import Pane, State, Target
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.retyped import Retyped


class Searching(Board[None]):
    """A screen that leads to the search, and that its hits lead to."""

    state: State
    _hit = ""
    """What the last line says: which hit of the search one is at; empty once one has moved on."""
    _said_at: tuple[Target | None, int, Pane] | None = None
    """Where one was when it was said."""
    _filters: History | None = None

    if TYPE_CHECKING:

        def jump(self, ordinal: int, item: str | None = None) -> None:
            """Go to a step, and to an item in it."""

        def apply(self, new: State, *, growing: bool = False) -> None:
            """Show another state."""

    # The search

    def action_search(self) -> None:
        """Search the whole trace."""
        if self.state.phase != "opening":
            self.app.push_screen(search_screen(self))

    def action_hit(self, by: int) -> None:
        """Go to another hit of the search."""
        self.tell_hit(search_screen(self).step(by))

    def lead(self, ordinal: int, item: str | None) -> None:
        """Go to a hit, which is listed whatever was listed before."""
        self.apply(replace(self.state, only=None))
        self.jump(ordinal, item)

    def tell_hit(self, text: str) -> None:
        """Say in the last line which hit one is at, and which keys lead on and back, until one moves on."""
        ways = [keys.key_of(action) for action in ("hit.next", "hit.previous", "jump.back")]
        on = text.startswith("hit ") and all(ways)
        self.say(f"{text} · {ways[0]} {ways[1]} · {ways[2]} back" if on else text)

    def say(self, text: str) -> None:
        """Say something in the last line, until one moves on."""
        self._hit = text
        self._said_at = (self.state.target, self.state.change, self.state.pane)
        self.query_one("#keys", Banner).update()

    def moved_on(self, new: State) -> None:
        """The state has changed; the one before cannot be asked: lists grow, and shrink, in place."""
        if not self._hit or self._said_at is None:
            return
        target, change, pane = self._said_at
        stays = self._hit.startswith("hit ") or (change, pane) == (new.change, new.pane)
        if target != new.target or not stays:
            self.say("")

    def hit_piece(self) -> Piece:
        """What the last line says of it."""
        return Piece(self._hit, "warning", 102)

    # The filter

    def action_filter(self) -> None:
        """Ask which changes are to be listed."""
        if self.state.detail is None:
            return
        if self._filters is None:
            self._filters = History()
        only = "" if self.state.only is None else str(self.state.only)
        prompt = Retyped("only", value=only, history=self._filters, ident="filter")
        prompt.open_over(self.screen)
        prompt.choose()

    @on(Prompt.Changed, "#filter")
    def filter_typed(self, message: Prompt.Changed) -> None:
        """Say what is wrong."""
        message.stop()
        try:
            parse(message.value or "x")
        except QueryError as error:
            message.prompt.note = error.what
        else:
            message.prompt.note = ""

    @on(Prompt.Accepted, "#filter")
    def filter_accepted(self, message: Prompt.Accepted) -> None:
        """List these; all, where nothing is typed."""
        message.stop()
        try:
            only = parse(message.value) if message.value.strip() else None
        except QueryError as error:
            message.prompt.note = error.what
            return
        self._close_filter(message.prompt)
        self.apply(replace(self.state, only=only))

    @on(Prompt.Cancelled, "#filter")
    def filter_cancelled(self, message: Prompt.Cancelled) -> None:
        """As it was."""
        message.stop()
        self._close_filter(message.prompt)

    def _close_filter(self, prompt: Prompt) -> None:
        prompt.close()
        self.set_focus(self.query_one(f"#{self.state.pane}"), scroll_visible=False)
