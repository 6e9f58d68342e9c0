"""The part of the main screen that shows one item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual import on
from textual.message import Message

from ctxctl.tui import itemview, itemwants, keys, wants
from ctxctl.tui import state as moves
from ctxctl.tui.lines import Parts
from ctxctl.tui.messages import ask
from ctxctl.tui.state import ItemKey, State
from ctxctl.tui.tabs import TABS, Tab
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView


class ItemScreen(Board[None]):
    """A screen with an item pane (`#item-head`, `#item`); `apply` shows another state."""

    state: State

    if TYPE_CHECKING:

        def say(self, text: str) -> None:
            """Say something in the last line, until one moves on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._item_asked: tuple[ItemKey, str] | None = None
        """What was last asked for, and in which pane."""
        self._item_told: tuple[object, ...] | None = None
        """What the lines above the text say."""
        self._tab_asked: tuple[ItemKey, Tab, int] | None = None

    def apply(self, new: State, *, growing: bool = False) -> None:
        """Show another state."""
        raise NotImplementedError

    def item_is_seen(self) -> bool:
        """Whether the pane is on the screen."""
        return self.has_class("-three") or self.state.pane == "item"

    def forget_item(self) -> None:
        """Ask again for whatever is shown next."""
        self._item_asked = self._tab_asked = self._item_told = None

    def show_item(self) -> None:
        """Show what the state says of the item, and ask for what it lacks."""
        state = self.state
        if not self.item_is_seen():
            self.forget_item()
            return
        wanted = state.wanted
        if wanted is not None:
            self._ask_text(wanted)
            self._ask_tab(wanted)
        document = itemview.document(state)
        if document is not None:
            self.query_one("#item", TextView).show(document)
        told = (state.selected, state.shown_tab, itemview.tabs(state), document, state.window)
        if told != self._item_told:
            self._item_told = told
            self.query_one("#item-head", Banner).update()

    def _ask_text(self, wanted: ItemKey) -> None:
        before, self._item_asked = self._item_asked, (wanted, self.state.pane)
        news = before is None or not wanted.same(before[0]) or before[1] != self.state.pane
        if news and self.state.shown_text is None:
            ask(self, wants.WantItem(wanted))

    def _ask_tab(self, wanted: ItemKey) -> None:
        known, tab = itemview.tabs(self.state), self.state.shown_tab
        asked = (wanted, tab, known.back)
        if not known.lacks(tab) or asked == self._tab_asked:
            return
        self._tab_asked = asked
        if tab == "life":
            ask(self, itemwants.WantLife(wanted))
        elif tab == "record":
            ask(self, itemwants.WantRecord(wanted))
        else:
            ask(self, itemwants.WantVersion(wanted, known.back))

    def item_head(self, width: int) -> Sequence[Parts]:
        """The lines above the item's text."""
        return itemview.head(self.state, width, {tab: keys.key_of(action) for tab, action in TABS if action})

    # What the loader says

    @on(wants.Texted)
    def texted(self, message: wants.Texted) -> None:
        """An item's text is there."""
        self.apply(moves.texted(self.state, message.text))

    @on(itemwants.Lived)
    def lived(self, message: itemwants.Lived) -> None:
        """Its life is there, or a part of it."""
        self.apply(itemview.told(self.state, message.key, life=message.document))

    @on(itemwants.Recorded)
    def recorded(self, message: itemwants.Recorded) -> None:
        """Its record is there."""
        self.apply(itemview.told(self.state, message.key, record=message.document))

    @on(itemwants.ComparedWith)
    def compared(self, message: itemwants.ComparedWith) -> None:
        """Its diff to an older version is there."""
        self.apply(itemview.told(self.state, message.key, compared=message.compared))

    @on(TextView.Chosen)
    def chosen_step(self, message: Message) -> None:
        """Enter on a line of the life: go to that step."""
        change = self.state.selected
        if isinstance(message, TextView.Chosen) and change is not None:
            message.stop()
            self.jump(message.ordinal, change.item)

    def jump(self, ordinal: int, item: str | None = None) -> None:
        """Go to a step, and to an item there."""
        raise NotImplementedError

    # Actions

    def action_diff(self) -> None:
        """Show the diff instead of the content, or the other way round."""
        if self._chosen():
            self.apply(self._opened("diff") if self._outside() else moves.toggle_tab(self.state))

    def action_tab(self, tab: Tab) -> None:
        """Show the item's life or record, or its text again."""
        if self._chosen():
            self.apply(self._opened(tab) if self._outside() else itemview.to_tab(self.state, tab))

    def action_version(self, by: int) -> None:
        """Compare with an older or newer version."""
        if self._chosen():
            state = self._opened("diff") if self._outside() else self.state
            self.apply(itemview.to_version(state, by))

    def _chosen(self) -> bool:
        """Whether there is an item under the cursor; says so where there is none."""
        cursor = self.query_one("#changes", Rows).cursor
        if moves.to_change(self.state, cursor).selected is not None:
            return True
        self.say("no item under the cursor of the changes")
        return False

    def _opened(self, tab: Tab) -> State:
        """The item under the cursor, which may be ahead of the state by keys whose messages are under way."""
        cursor = self.query_one("#changes", Rows).cursor
        return itemview.opened(moves.to_change(self.state, cursor), tab)

    def _outside(self) -> bool:
        """Whether the keys of the item's tabs first have to lead to it."""
        return not self.item_is_seen()
