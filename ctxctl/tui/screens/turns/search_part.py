"""The main screen's way to the search and from hit to hit, and the changes of a frame that fit a query."""

from __future__ import annotations

from dataclasses import replace

from ctxctl.engine.query import QueryError, parse_query
from ctxctl.tui import keys
from ctxctl.tui.layout import Piece
from ctxctl.tui.lineedit import History
from ctxctl.tui.screens.search.screen import search_screen
from ctxctl.tui.screens.turns.host import Host
from ctxctl.tui.screens.turns.state import Pane, State, Target
from ctxctl.tui.widgets.prompt import Prompt


class Remark:
    """What the last line says, such as which hit of the search one is at, until one has moved on."""

    def __init__(self) -> None:
        self._text = ""
        self._said_at: tuple[Target | None, int, Pane] | None = None
        """Where one was when it was said."""

    def say(self, text: str, state: State) -> None:
        """Say something where one is; nothing takes back what was said."""
        self._text = text
        self._said_at = (state.target, state.change, state.pane)

    def is_of_the_past(self, new: State) -> bool:
        """Whether one has moved on; the state before cannot be asked: lists grow, and shrink, in place."""
        if not self._text or self._said_at is None:
            return False
        target, change, pane = self._said_at
        stays = self._text.startswith("hit ") or (change, pane) == (new.change, new.pane)
        return target != new.target or not stays

    def piece(self) -> Piece:
        """The words for the last line."""
        return Piece(self._text, "warning", 102)


class SearchPart:
    """Leads from a screen to the search; the hits lead to the screen."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._filters = History()

    # The search

    @property
    def state(self) -> State:
        """The main screen's."""
        return self._host.state

    def open_search(self) -> None:
        """Search the whole trace."""
        if self.state.phase != "opening":
            app = self._host.screen.app
            app.push_screen(search_screen(app, self))

    def next_hit(self, by: int) -> None:
        """Go to another hit of the search."""
        self.tell_hit(search_screen(self._host.screen.app, self).step(by))

    def lead(self, ordinal: int, item: str | None) -> None:
        """Go to a hit, which is listed whatever was listed before."""
        self._host.apply(replace(self.state, only=None))
        self._host.jump(ordinal, item)

    def tell_hit(self, text: str) -> None:
        """Say in the last line which hit one is at, and which keys lead on and back, until one moves on."""
        ways = [keys.key_of(action) for action in ("hit.next", "hit.previous", "jump.back")]
        on = text.startswith("hit ") and all(ways)
        self._host.say(f"{text} · {ways[0]} {ways[1]} · {ways[2]} back" if on else text)

    # The filter

    def open_filter(self) -> None:
        """Ask which changes are to be listed."""
        if self.state.detail is None:
            return
        only = "" if self.state.only is None else str(self.state.only)
        prompt = Prompt("only", value=only, history=self._filters, ident="filter")
        prompt.open_over(self._host.screen)
        prompt.choose()

    def check_filter(self, prompt: Prompt, text: str) -> None:
        """Say what is wrong with what is typed."""
        try:
            parse_query(text or "x")
        except QueryError as error:
            prompt.note = error.what
        else:
            prompt.note = ""

    def take_filter(self, prompt: Prompt, text: str) -> None:
        """List these changes; all, where nothing is typed."""
        try:
            only = parse_query(text) if text.strip() else None
        except QueryError as error:
            prompt.note = error.what
            return
        self.close_filter(prompt)
        self._host.apply(replace(self.state, only=only))

    def close_filter(self, prompt: Prompt) -> None:
        """List what was listed before."""
        prompt.close()
        screen = self._host.screen
        screen.set_focus(screen.query_one(f"#{self.state.pane}"), scroll_visible=False)
