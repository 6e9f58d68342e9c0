"""The assembled text of a step, block by block, with what of it a prompt cache could give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events, on
from textual.app import ComposeResult

from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.requests import Handlers, ask
from ctxctl.tui.screens.assembled import lines, requests
from ctxctl.tui.screens.assembled.values import Assembled, BlockDocument
from ctxctl.tui.screens.assembled.view import BlockView
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.pane import Backdrop
from ctxctl.tui.widgets.rows import Rows

OUTLINE: Final = 130
"""Columns from which the list of blocks stands beside the text."""


class AssembledScreen(Board[str | None]):
    """Closes with the item to go to on the main screen, if one was chosen."""

    BINDINGS = keys.bindings("assembled")

    def __init__(self, ordinal: int) -> None:
        super().__init__(id="assembled-screen")
        self._ordinal = ordinal
        self.shown: Assembled | None = None

    def compose(self) -> ComposeResult:
        """Lay out the head, the outline, the text and the keys."""
        self._size_up(*self.app.size, update=False)
        yield Banner(lambda width: lines.head(self.shown, width), ident="assembled-head")
        with Backdrop(ident="assembled-panes"):
            yield Rows(self._outline, "outline")
            yield BlockView(ident="blocks")
        yield KeyLine(self._keys)

    def on_mount(self) -> None:
        """Ask for the text."""
        self.set_focus(self.view, scroll_visible=False)
        ask(self, requests.AssembledRequest(self._ordinal))

    @property
    def view(self) -> BlockView:
        """The text."""
        return self.query_one("#blocks", BlockView)

    @property
    def document(self) -> BlockDocument | None:
        """The text's document, once it is there."""
        return None if self.shown is None else self.shown.document

    def handlers(self) -> Handlers:
        """What takes the text when it arrives."""
        return {Assembled: self._read}

    def _read(self, shown: Assembled) -> None:
        self.shown = shown
        self.query_one("#assembled-head").set_class(lines.remarked(self.shown), "-noted")
        if self.document is not None:
            self.view.read(self.document, prefixed=shown.prefix is not None)
            self.query_one("#outline", Rows).show(len(self.document.blocks), 0)
        for banner in self.query(Banner):
            banner.update()

    def _outline(self, row: int, width: int) -> Parts:
        if self.document is None or self.shown is None:
            return []
        return lines.outline_line(self.document.blocks[row], width, prefix=self.shown.prefix is not None)

    def _keys(self, width: int) -> Sequence[Parts]:
        widget: keys.Scope = "list" if isinstance(self.focused, Rows) else "text"
        moving = [hint for hint in keys.hints([widget]) if hint[1] in ("move", "scroll", "find")]
        found = [*moving, *keys.hints(["assembled"])]
        document = self.document
        place = ""
        if document is not None and document.blocks:
            place = f"block {self.view.block + 1:,} of {len(document.blocks):,}"
        pieces = [Piece(word, "hint", rank, key) for key, word, rank in found]
        return [spread(pieces, [Piece(place, "strong", 95)], width)]

    def on_resize(self, event: events.Resize) -> None:
        """Choose whether the outline is there."""
        width, height = event.size
        self._size_up(width, height)
        if width < OUTLINE and isinstance(self.focused, Rows):
            self.set_focus(self.view, scroll_visible=False)

    def _size_up(self, width: int, height: int, *, update: bool = True) -> None:
        """Take the place there is; without `update`, before there is anything to style."""
        self.update_classes({"-outlined": width >= OUTLINE, "-short": height < 12}, update=update)

    def on_descendant_focus(self) -> None:
        """Show the keys that are in force now."""
        self.query_one("#keys", Banner).update()

    @on(BlockView.Placed)
    def placed(self) -> None:
        """Mark the current block in the outline."""
        self.query_one("#outline", Rows).place(self.view.block)
        self.query_one("#keys", Banner).update()

    @on(Rows.Moved, "#outline")
    def moved(self, event: Rows.Moved) -> None:
        """Go to the block that was chosen in the outline."""
        self.view.go_to(event.line)

    @on(Rows.Chosen, "#outline")
    def chosen(self) -> None:
        """Open the block that was clicked twice."""
        self.action_open()

    # Actions

    def action_back(self) -> None:
        """Leave the screen."""
        self.dismiss(None)

    def action_block(self, by: int) -> None:
        """Go to another block."""
        self.view.go_to(self.view.block + by)

    def action_to_break(self) -> None:
        """Go to where the possible prefix ends."""
        if self.shown is not None and self.shown.break_block is not None:
            self.view.go_to(self.shown.break_block)
        else:
            self.app.bell()

    def action_open(self) -> None:
        """Go to the block's item."""
        if self.document is not None and self.document.blocks:
            self.dismiss(self.document.blocks[self.view.block].item)

    def action_pane(self) -> None:
        """Change between the outline and the text."""
        outline = self.has_class("-outlined") and not isinstance(self.focused, Rows)
        self.set_focus(self.query_one("#outline") if outline else self.view, scroll_visible=False)

    def seen(self) -> VisibleText | None:
        """The exact text of the step."""
        if self.shown is None or self.document is None:
            return None
        return VisibleText(f"assembled text of {self.shown.label}", self.document.text)
