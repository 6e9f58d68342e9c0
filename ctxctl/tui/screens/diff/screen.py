"""Two frames held against each other: their items, and the texts of one item or of all that changed."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events, on
from textual.app import ComposeResult

from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.requests import Handlers, Unanswered, ask
from ctxctl.tui.screens.diff import lines, requests
from ctxctl.tui.screens.diff import state as moves
from ctxctl.tui.screens.diff.state import BESIDE, DiffState
from ctxctl.tui.screens.diff.values import ItemDiff, Pairing, TextKey
from ctxctl.tui.screens.diff.view import SheetView
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.pane import Backdrop, Pane
from ctxctl.tui.widgets.rows import Rows

_SEEN = 140
"""Columns of the table when it is taken elsewhere."""


class DiffScreen(Board[None]):
    """Shows a `DiffState` and turns keys into the next one; asks for what the new one lacks.

    `pair` is called in a thread once the traces are open.  Where the program began with it (`first`), `q`
    ends the program, and Escape shows the main screen.
    """

    BINDINGS = keys.bindings("diff")

    def __init__(self, pair: Pairing, *, first: bool = False) -> None:
        super().__init__(id="diff-screen")
        self.state = DiffState()
        self._pair = pair
        self._first = first
        self._asked: TextKey | None = None

    def compose(self) -> ComposeResult:
        """Lay out the head, the table, the text and the keys."""
        self.state = self._size_up(*self.app.size, update=False)
        yield Banner(lambda width: lines.head(self.state, width), ident="diff-head")
        yield Banner(lambda width: [lines.remark_line(self.state, width)], ident="diff-remarks")
        with Backdrop(ident="diff-panes"):
            with Pane(ident="diff-items"):
                yield Banner(self._columns, classes="columns")
                yield Rows(self._line, "entries")
            with Pane(ident="diff-text"):
                yield Banner(self._text_head, ident="diff-text-head", classes="columns")
                yield SheetView(ident="sheet")
        yield KeyLine(self._keys)

    def on_mount(self) -> None:
        """Ask for the frames."""
        self._front()
        self._ask_frames()

    def _ask_frames(self) -> None:
        pair = self.state.pair
        ask(self, requests.ComparisonRequest(self._pair if pair is None else lambda _: pair))

    # Answers

    def handlers(self) -> Handlers:
        """What takes the frames, of which more may be known later, and the texts."""
        return {
            requests.FramesCompared: lambda found: self.apply(
                moves.compared(self.state, found.pair, found.diff)
            ),
            Unanswered: lambda found: self.apply(moves.failed(self.state, found.why)),
            ItemDiff: lambda text: self.apply(moves.texted(self.state, text)),
        }

    # Painting

    def apply(self, new: DiffState) -> None:
        """Show another state: repaint what differs, ask for what it lacks."""
        old, self.state = self.state, new
        if new is old or not self.is_attached:
            return
        rows = self.query_one("#entries", Rows)
        if new.listing != old.listing:
            rows.show(new.listing.count, new.row)
        elif new.row != old.row:
            rows.place(new.row)
        if new.level != old.level or new.beside != old.beside:
            self._front()
        self._show_text(old)
        self.query_one("#diff-remarks").display = bool(lines.remarks(new))
        self.query_one("#diff-items", Pane).entitle(self._title(), "" if new.listing.diff else new.error)
        self.query_one("#diff-text", Pane).entitle(lines.text_title(new))
        for banner in self.query(Banner):
            banner.update()

    def _show_text(self, old: DiffState) -> None:
        """Show the text that is wanted, or ask for it; what is in view stays until it is there."""
        new = self.state
        wanted, shown = new.wanted, new.shown
        if wanted is None:
            self._asked = None
        elif shown is None:
            if wanted != self._asked:
                self._asked = wanted
                ask(self, requests.TextRequest(wanted))
        elif shown is not old.shown:
            view = self.query_one("#sheet", SheetView)
            before = None if old.text is None else old.text.key
            keep = before is not None and (before.pair, before.item) == (wanted.pair, wanted.item)
            view.show(shown.sheet, land=new.land, keep=keep)

    def _title(self) -> str:
        listing = self.state.listing
        if listing.diff is None:
            return "items"
        changed, every = len(listing.diff.changed), len(listing.diff.entries)
        if listing.everything:
            return f"all {every:,} items, {changed:,} changed"
        return f"{changed:,} changed of {every:,} items"

    def _columns(self, width: int) -> Sequence[Parts]:
        return [[(" ", ""), *lines.table_heading(self.state.listing, width - 1)]]

    def _line(self, row: int, width: int) -> Parts:
        listing = self.state.listing
        entry, diff = listing.at(row), listing.diff
        return [] if entry is None or diff is None else lines.table_line(listing, diff, entry, width)

    def _text_head(self, width: int) -> Sequence[Parts]:
        shown = self.state.shown
        if shown is not None and shown.sheet is None:
            return [spread([Piece(shown.note, "warning")], [], width)]
        return [lines.text_head(self.state, shown, self.query_one("#sheet", SheetView).where, width)]

    def _keys(self, width: int) -> Sequence[Parts]:
        widget: keys.Scope = "text" if self.state.level == "text" else "list"
        pane = "text" if self.state.level == "text" else "items"
        found = keys.hints(["diff"], pane)
        moving = [hint for hint in keys.hints([widget]) if hint[1] in ("move", "scroll")]
        pieces = [Piece(word, "hint", rank, key) for key, word, rank in [*moving, *found]]
        return [spread(pieces, [], width)]

    def _front(self) -> None:
        """Mark the pane in front, and give it the keys."""
        level = self.state.level
        self.query_one("#diff-items", Pane).put_front(level == "items")
        self.query_one("#diff-text", Pane).put_front(level == "text")
        self.set_class(level == "text", "-text")
        self.set_focus(self.query_one("#sheet" if level == "text" else "#entries"), scroll_visible=False)

    # Size and focus

    def on_resize(self, event: events.Resize) -> None:
        """Choose whether table and text stand side by side."""
        self.apply(self._size_up(event.size.width, event.size.height))

    def _size_up(self, width: int, height: int, *, update: bool = True) -> DiffState:
        """Take the place there is; the state then.  Without `update`, before there is anything to style."""
        classes = {"-beside": width >= BESIDE, "-narrow": width < 60, "-short": height < 16}
        self.update_classes(classes, update=update)
        text = width * 5 // 8 - 3 if width >= BESIDE else width if width < 60 else width - 3
        return moves.arranged(self.state, width, text)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow a click that has focused the other pane."""
        if event.widget is self.focused and event.widget.id in ("entries", "sheet"):
            self.apply(moves.focused(self.state, "text" if event.widget.id == "sheet" else "items"))

    @on(Rows.Moved, "#entries")
    def moved(self, event: Rows.Moved) -> None:
        """Show the item that the cursor is on now."""
        self.apply(moves.to_row(self.state, event.line))

    @on(Rows.Chosen, "#entries")
    def chosen(self) -> None:
        """Open the item that was clicked twice."""
        self.action_enter()

    @on(SheetView.Placed)
    def placed(self) -> None:
        """Show which change is in front."""
        self.query_one("#diff-text-head", Banner).update()

    # Actions

    def action_enter(self) -> None:
        """Go to the item's text."""
        self.apply(moves.enter(self.state))

    def action_back(self) -> None:
        """Go back to the items, then leave."""
        state = moves.back(self.state)
        if state is not None:
            self.apply(state)
        else:
            self.dismiss()

    def action_close(self) -> None:
        """Leave the screen, or the program where it began here."""
        if self._first:
            self.app.exit()
        else:
            self.dismiss()

    def action_change(self, by: int) -> None:
        """Go to the next change: in a text to its last one, then on to the next item's text."""
        inside = self.state.level == "text"
        if inside and self.query_one("#sheet", SheetView).step(by):
            return
        new = self.state if inside and self.state.together else moves.next_change(self.state, by)
        if new is self.state:
            self.app.bell()
        self.apply(new)

    def action_together(self) -> None:
        """Show all texts as one, or one item's text."""
        self.apply(moves.toggle_together(self.state))

    def action_unchanged(self) -> None:
        """List only the changes, or everything."""
        self.apply(moves.toggle_unchanged(self.state))

    def action_unified(self) -> None:
        """Show the text unified, or side by side."""
        self.apply(moves.toggle_unified(self.state))

    def action_swap(self) -> None:
        """Swap the sides."""
        new = moves.swapped(self.state)
        self.apply(new)
        if new.pair is not None:
            self._ask_frames()

    def action_pane(self) -> None:
        """Change between the items and the text."""
        self.apply(
            moves.enter(self.state) if self.state.level == "items" else moves.focused(self.state, "items")
        )

    def seen(self) -> VisibleText | None:
        """The text as a unified diff, or the table."""
        diff = self.state.listing.diff
        if diff is None:
            return None
        name = f"diff from {diff.a.label} to {diff.b.label}"
        shown = self.state.shown
        if self.state.level == "text":
            return None if shown is None or shown.sheet is None else VisibleText(name, shown.sheet.text())
        heads = [*lines.head(self.state, _SEEN), lines.table_heading(self.state.listing, _SEEN)]
        table = (self._line(row, _SEEN) for row in range(self.state.listing.count))
        return VisibleText(
            name, "\n".join("".join(text for text, _ in parts).rstrip() for parts in (*heads, *table)) + "\n"
        )
