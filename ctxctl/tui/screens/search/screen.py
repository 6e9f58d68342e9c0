"""Searching the whole trace: a query, its hits as they are found, and the way to them and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from textual import on
from textual.app import App, ComposeResult
from textual.timer import Timer

from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.lineedit import History
from ctxctl.tui.requests import Handlers, Unanswered, ask
from ctxctl.tui.screens.search import lines as said
from ctxctl.tui.screens.search import state as moves
from ctxctl.tui.screens.search.requests import Hits, SearchRequest
from ctxctl.tui.screens.search.state import Search
from ctxctl.tui.screens.turns.view import State
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows

NAME: Final = "search"
_WAIT: Final = 0.15
"""Seconds without a key after which what is typed is searched for."""
_LABEL: Final = "/"
_TYPING: Final = (
    ("line.accept", "search, to the hits", 90),
    ("line.older", "older", 70),
    ("line.erase_all", "clear", 60),
    ("line.cancel", "back", 100),
)
"""Ids, words and ranks of the hints while one types."""


class _Line(Prompt):
    """Down leads to the hits."""

    def __init__(self, screen: SearchScreen) -> None:
        super().__init__(_LABEL, history=History(), ident="query")
        self._screen = screen

    def action_history(self, by: int) -> None:
        """An older line; down from the newest one leads to the hits."""
        if by > 0 and not self.history.browsing:
            self._screen.to_hits()
        else:
            super().action_history(by)


class SearchHost(Protocol):
    """Where one comes from, and where hits lead to."""

    @property
    def state(self) -> State:
        """What the main screen shows: the turns that the hits speak of, and where one is in them."""
        ...

    def lead(self, ordinal: int, item: str | None) -> None:
        """Go to a hit: a step, and perhaps an item in it."""
        ...

    def tell_hit(self, text: str) -> None:
        """Say which hit one is at."""
        ...


class SearchScreen(Board[None]):
    """Lives as long as the application: what it has found, and goes on finding, is there when one is back."""

    BINDINGS = keys.bindings("search")

    def __init__(self, turns: SearchHost) -> None:
        super().__init__()
        self.state = Search()
        self._turns = turns
        self._timer: Timer | None = None
        self._of: object = None
        """The list of turns that the hits speak of: another one, and they mean nothing."""
        self._before = ""
        """What stood in the line when it was taken up again."""

    def compose(self) -> ComposeResult:
        """Lay out the line, what is wrong with it, the hits, how far the search is, and the keys."""
        yield _Line(self)
        yield Banner(lambda width: [said.note_parts(self.state, width, len(_LABEL) + 2)], ident="query-note")
        yield Banner(lambda width: [said.heading(self.state, width)], ident="hits-head", classes="columns")
        yield Rows(self._hit, "hits")
        yield Banner(self._remarks, ident="search-help")
        yield Banner(lambda width: [said.foot(self.state, width, self._known)], ident="search-foot")
        yield KeyLine(self._keys)

    @property
    def prompt(self) -> Prompt:
        """The line that the query is typed in."""
        return self.query_one("#query", Prompt)

    @property
    def _known(self) -> int:
        return len(self._turns.state.list.turns.rows)

    def on_mount(self) -> None:
        """Nothing is searched for yet."""
        self._show()
        self.set_focus(self.prompt, scroll_visible=False)

    def on_screen_resume(self) -> None:
        """Another trace may have taken the place of the one that was searched; this one may have grown."""
        turns = self._turns.state.list.turns
        if self._of is not None and self._of is not turns:
            typed = self.state.typed
            self.apply(moves.typed(Search(serial=self.state.serial + 1), typed))
            self.set_focus(self.prompt, scroll_visible=False)
        self._of = turns
        self.query_one("#search-foot", Banner).update()

    # Typing

    @on(Prompt.Changed)
    def typed(self, message: Prompt.Changed) -> None:
        """Say at once what is wrong; search once the user stops to think."""
        self.apply(moves.typed(self.state, message.value))
        self._stop_waiting()
        if self.state.query is not None:
            self._timer = self.set_timer(_WAIT, self._search)

    @on(Prompt.Accepted)
    def accepted(self) -> None:
        """Search now, and go to the hits."""
        self._search()
        if self.state.query is not None:
            self.to_hits()

    @on(Prompt.Cancelled)
    def cancelled(self) -> None:
        """Back to the hits where the line was taken up from them, else to the main screen."""
        if self._before:
            before, self._before = self._before, ""
            self.prompt.value = before
            self.apply(moves.typed(self.state, before))
            self._search()
            self.to_hits()
        else:
            self.action_back()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _search(self, *, again: bool = False) -> None:
        self._stop_waiting()
        state = moves.asked(self.state, again=again)
        if state is not self.state and state.asked is not None:
            self.apply(state)
            self._of = self._turns.state.list.turns
            ask(self, SearchRequest(state.asked.query, state.serial))

    def to_hits(self) -> None:
        """Go to the list, if there is one or will be."""
        if self.state.finds is not None or self.state.running:
            self._before = ""
            self.set_focus(self.query_one("#hits"), scroll_visible=False)
            self.query_one("#keys", Banner).update()

    # What the search says

    def handlers(self) -> Handlers:
        """Hits as they are found, or why there are none."""
        return {
            Hits: lambda hits: self.apply(moves.found(self.state, hits.serial, hits.found)),
            Unanswered: self._failed,
        }

    def _failed(self, found: Unanswered) -> None:
        if isinstance(found.request, SearchRequest):
            self.apply(moves.failed(self.state, found.request.serial, found.why))

    # Painting

    def apply(self, new: Search) -> None:
        """Show another state."""
        old, self.state = self.state, new
        if new is old or not self.is_attached:
            return
        hits = self.query_one("#hits", Rows)
        before, after = old.finds, new.finds
        count = 0 if after is None else after.count
        if (before and before.serial) != (after and after.serial):
            hits.show(count, new.cursor)
        elif before is not after:
            if said.places(old) == said.places(new) and before is not None and before.count:
                hits.extend(count)
            else:
                hits.grow(count, 0)
        elif new.cursor != old.cursor:
            hits.place(new.cursor)
        self._show()

    def _show(self) -> None:
        helping = not self.state.typed.strip() or bool(said.nothing(self.state, 80))
        self.query_one("#search-help").display = helping
        self.query_one("#hits").display = not helping
        self.query_one("#hits-head").display = not helping
        for name in ("query-note", "hits-head", "search-help", "search-foot", "keys"):
            self.query_one(f"#{name}", Banner).update()

    def _remarks(self, width: int) -> Sequence[Parts]:
        if not self.state.typed.strip():
            return [[], *said.help_parts(width)]
        return [[], *said.nothing(self.state, width)]

    def _hit(self, line: int, width: int) -> Parts:
        turns = self._turns.state.list.turns
        return said.hit_parts(
            self.state,
            line,
            width,
            sessions=len(turns.sessions) > 1,
            threads=turns.tree.names if turns.several else None,
        )

    def _keys(self, width: int) -> Sequence[Parts]:
        typing = isinstance(self.focused, Prompt)
        # While one types, the keys of other scopes are typed too.
        found = _TYPING if typing else keys.hints(("search", "list"))
        if not typing and self.state.hit is None:
            found = [hint for hint in found if hint[1] not in ("move", "go there")]
        shown = [Piece(word, "hint", rank, keys.key_of(key) if typing else key) for key, word, rank in found]
        return [spread(shown, [], width)]

    def on_descendant_focus(self) -> None:
        """A click may have gone to the list, or to the line."""
        self.query_one("#keys", Banner).update()

    @on(Rows.Moved)
    def pointed(self, message: Rows.Moved) -> None:
        """The cursor is on another hit."""
        self.state = moves.moved(self.state, message.line)

    @on(Rows.Chosen)
    def chosen(self) -> None:
        """A double click goes there."""
        self.action_go()

    def seen(self) -> VisibleText | None:
        """The hits."""
        finds = self.state.finds
        return None if finds is None else VisibleText("hits of a search", said.plain(self.state))

    # Actions

    def action_go(self) -> None:
        """Go to the hit under the cursor, on the main screen."""
        # The list's own cursor may be ahead by keys whose messages are still under way.
        self.state = moves.moved(self.state, self.query_one("#hits", Rows).cursor)
        hit = self.state.hit
        if hit is not None:
            self.dismiss()
            self._turns.lead(hit.ordinal, hit.item)
            self._turns.tell_hit(said.label_of(self.state.finds, self.state.cursor))

    def action_edit(self) -> None:
        """Type another query; the first key replaces the one that is there."""
        self._before = self.state.typed
        line = self.query_one("#query", _Line)
        line.choose()
        self.set_focus(line, scroll_visible=False)

    def action_again(self) -> None:
        """Search once more."""
        self._search(again=True)

    def action_back(self) -> None:
        """Back to the main screen, where it was left."""
        self._stop_waiting()
        self.dismiss()

    def step(self, by: int) -> str:
        """Go to the next hit or the one before, seen from the main screen; where that is, in words."""
        target = self._turns.state.target
        if target is None or self.state.finds is None or self._of is not self._turns.state.list.turns:
            return f"nothing was searched for yet: {keys.key_of('search')} searches"
        before = self.state.hit
        at = (target.first, target.ordinal)
        new = moves.stepped(self.state, by, *at)
        if not new.finds or new.hit is None:
            return "nothing was found"
        self.apply(new)
        if new.hit is before and before is not None and at[0] <= before.ordinal <= at[1]:
            return f"no hit {'after' if by > 0 else 'before'} this one"
        self._turns.lead(new.hit.ordinal, new.hit.item)
        return said.label_of(new.finds, new.cursor)


def search_screen(app: App[object], host: SearchHost) -> SearchScreen:
    """The one search screen of an application, made when it is first needed."""
    if not app.is_screen_installed(NAME):
        app.install_screen(SearchScreen(host), NAME)
    return cast("SearchScreen", app.get_screen(NAME))
