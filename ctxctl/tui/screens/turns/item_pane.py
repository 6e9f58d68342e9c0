"""The pane of one item on the main screen: shows what the state says of it, and asks for what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.tui import keys
from ctxctl.tui.layout import Parts
from ctxctl.tui.requests import Handlers, Request, ask
from ctxctl.tui.screens.turns import item_view, requests
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.host import Host
from ctxctl.tui.screens.turns.state import ItemKey, ItemText, State
from ctxctl.tui.tabs import TABS, Tab
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView


class ItemPane:
    """Keeps the widgets `#item-head` and `#item` of a screen in step with its state."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._text_asked: tuple[ItemKey, str] | None = None
        """What was last asked for, and in which pane."""
        self._tab_asked: tuple[ItemKey, Tab, int] | None = None
        self._head_shown: tuple[object, ...] | None = None
        """What the lines above the text were painted from."""

    @property
    def is_seen(self) -> bool:
        """Whether the pane is on the screen."""
        return self._host.screen.has_class("-three") or self._host.state.pane == "item"

    def forget(self) -> None:
        """Ask again for whatever is shown next."""
        self._text_asked = self._tab_asked = self._head_shown = None

    def show(self) -> None:
        """Show what the state says of the item, and ask for what it lacks."""
        state = self._host.state
        if not self.is_seen:
            self.forget()
            return
        wanted = state.wanted
        if wanted is not None:
            self._ask_text(wanted)
            self._ask_tab(wanted)
        document = item_view.document(state)
        if document is not None:
            self._host.screen.query_one("#item", TextView).show(document)
        head = (state.selected, state.shown_tab, item_view.tabs(state), document, state.window)
        if head != self._head_shown:
            self._head_shown = head
            self._host.screen.query_one("#item-head", Banner).update()

    def _ask_text(self, wanted: ItemKey) -> None:
        state = self._host.state
        before, self._text_asked = self._text_asked, (wanted, state.pane)
        news = before is None or not wanted.same(before[0]) or before[1] != state.pane
        if news and state.shown_text is None:
            ask(self._host.screen, requests.ItemRequest(wanted))

    def _ask_tab(self, wanted: ItemKey) -> None:
        state = self._host.state
        known, tab = item_view.tabs(state), state.shown_tab
        asked = (wanted, tab, known.back)
        if not known.lacks(tab) or asked == self._tab_asked:
            return
        self._tab_asked = asked
        request: Request
        if tab == "life":
            request = requests.LifeRequest(wanted)
        elif tab == "record":
            request = requests.RecordRequest(wanted)
        else:
            request = requests.VersionRequest(wanted, known.back)
        ask(self._host.screen, request)

    def head(self, width: int) -> Sequence[Parts]:
        """The lines above the item's text."""
        shown_keys: dict[str, str] = {tab: keys.key_of(action) for tab, action in TABS if action}
        return item_view.head(self._host.state, width, shown_keys)

    def handlers(self) -> Handlers:
        """The item's text, what is known so far of its life, its record, and its diff to an older version."""
        return {
            ItemText: lambda text: self._apply(moves.texted(self._state, text)),
            requests.ItemLife: lambda found: self._apply(
                item_view.with_answer(self._state, found.key, life=found.document)
            ),
            requests.ItemRecord: lambda found: self._apply(
                item_view.with_answer(self._state, found.key, record=found.document)
            ),
            requests.VersionDiff: lambda found: self._apply(
                item_view.with_answer(self._state, found.key, compared=found.compared)
            ),
        }

    @property
    def _state(self) -> State:
        return self._host.state

    def _apply(self, state: State) -> None:
        self._host.apply(state)

    # What the keys of the item's tabs do, which may first have to lead to it

    def go_to_step(self, ordinal: int) -> bool:
        """Go to a step of the item's life; whether there is an item."""
        change = self._state.selected
        if change is not None:
            self._host.jump(ordinal, change.item)
        return change is not None

    def toggle_diff(self) -> None:
        """Show the diff instead of the content, or the other way round."""
        if self._chosen():
            self._apply(moves.toggle_tab(self._state) if self.is_seen else self._opened("diff"))

    def to_tab(self, tab: Tab) -> None:
        """Show the item's life or record, or its text again."""
        if self._chosen():
            self._apply(item_view.to_tab(self._state, tab) if self.is_seen else self._opened(tab))

    def to_version(self, by: int) -> None:
        """Compare with an older or newer version."""
        if self._chosen():
            self._apply(item_view.to_version(self._state if self.is_seen else self._opened("diff"), by))

    def _chosen(self) -> bool:
        """Whether there is an item under the cursor; says so where there is none."""
        if self._under_cursor().selected is not None:
            return True
        self._host.say("the cursor is on no item")
        return False

    def _opened(self, tab: Tab) -> State:
        """The item under the cursor, opened at one of its tabs."""
        return item_view.opened(self._under_cursor(), tab)

    def _under_cursor(self) -> State:
        """The state at the list's own cursor, which may be ahead by keys whose messages are under way."""
        return moves.to_change(self._state, self._host.screen.query_one("#changes", Rows).cursor)
