"""Shows the assembled text of a frame: its blocks have headings and a gutter."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message

from ctxctl.tui.lineedit import History
from ctxctl.tui.literal import Part
from ctxctl.tui.screens.assembled import lines
from ctxctl.tui.screens.assembled.values import BREAK, HEADING, TEXT, BlockDocument, BlockWrap
from ctxctl.tui.spans import Spans
from ctxctl.tui.widgets.textview import TextView

_EMPTY = BlockDocument("", (), Spans())


class BlockView(TextView):
    """Reads a `BlockDocument`; one block is the current one: the last gone to, or the one the view is at."""

    class Placed(Message):
        """Says that another block is the current one."""

        def can_replace(self, message: Message) -> bool:
            """Whether the other message makes this one superfluous: only the newest is worth painting."""
            return isinstance(message, BlockView.Placed)

    def __init__(self, *, ident: str | None = None, history: History | None = None) -> None:
        super().__init__(ident=ident, history=history)
        self.document = self.text = _EMPTY
        self.block = 0
        self.prefixed = False
        """Whether there is a possible prefix to show."""
        self._wrap: BlockWrap = BlockWrap(_EMPTY, 1)
        self._kept: int | None = 0
        """Scroll position that `block` was chosen for; at another one, it follows the view."""
        self._moving = False
        self._target: int | None = None
        """The block that is being gone to."""

    def read(self, document: BlockDocument, *, prefixed: bool) -> None:
        """Show a document from its beginning."""
        self.text = document
        self.block = 0
        self._kept = 0
        self.prefixed = prefixed
        self.show(document)

    def go_to(self, block: int) -> None:
        """Make a block the current one, with its heading at the top."""
        if not 0 <= block < len(self.text.blocks):
            return
        self.block = block
        self._anchor, self._to_top = self.text.blocks[block].start, True
        self._target = block
        self._to_anchor()
        if self._anchor is not None and self._timer is None:
            self._go_on()
        self.repaint(self._wrap.count)
        self.post_message(self.Placed())

    def _bring(self, row: int) -> None:
        """Make the block of a match the current one; at the end of the text, the last block."""
        self._moving = True
        super()._bring(row)
        self._moving = False
        self._kept = self.top
        if 0 <= row < self._wrap.count:
            self._become(self._wrap.block_of(self._focus_row() if self._to_top else row))

    def _become(self, block: int) -> None:
        if block != self.block:
            self.block = block
            self.repaint(self._wrap.count)
            self.post_message(self.Placed())

    def _to_anchor(self) -> None:
        """Bring the heading of a block to the top, if the anchor is a block."""
        if self._target is None or self._anchor is None:
            self._target = None
            super()._to_anchor()
            return
        row = self._wrap.first_of(self._target)
        if row is None and not self._wrap.done:
            return
        # As far as the last rows let it: until they are found, the view may come to lie higher.
        height = self.size.height
        known = self._wrap.done or (row or 0) + height <= self._wrap.count
        self._moving = True
        self.scroll_to(y=row or 0, animate=False, force=True)
        self._moving = False
        self._kept = self.top
        if known:
            self._anchor = self._target = None

    def _rewrap(self, folded: frozenset[int]) -> None:
        before = self._wrap.count
        width = self.room - self.document.gutter - 1
        self._wrap = BlockWrap(self.text, width)
        self._go_on()
        self.repaint(max(before, self._wrap.count))

    def _parts(self, n: int, pointed: bool) -> Sequence[Part]:
        index = self._wrap.block_of(n)
        block = self.text.blocks[index]
        kind = self._wrap.kind_of(n)
        current = index == self.block
        width = max(self.room - self.text.gutter - 1, 0)
        edge = lines.gutter(block, current=current, heading=kind == HEADING, prefix=self.prefixed)
        if kind == TEXT:
            return [*edge, *self._text(self._wrap.row(n), "")]
        if kind == BREAK:
            return [*edge[:1], (" " * 3, ""), *lines.break_line(block, width)]
        return [*edge, *lines.heading(block, width, current=current)]

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The current block follows the view: at the top the first, at the end the last."""
        super().watch_scroll_y(old_value, new_value)
        if self._moving or not self._wrap.count or round(new_value) == self._kept:
            return
        self._kept = None
        self._become(self._wrap.block_of(self._focus_row()))

    def _focus_row(self) -> int:
        """The row that is read: as far down the view as the view is down the text."""
        height, count = self.size.height, self._wrap.count
        spare = max(count - height, 1)
        below = min(self.top / spare, 1.0) * max(height - 1, 0)
        return min(self.top + round(below), count - 1)
