"""A text of any size, wrapped, painted only where it is seen."""

from __future__ import annotations

from textual.strip import Strip
from textual.timer import Timer

from ctxctl.tui import keys
from ctxctl.tui.document import Document, Wrap
from ctxctl.tui.figures import MINUS
from ctxctl.tui.literal import Part
from ctxctl.tui.widgets.paint import Scroller

_KINDS = {"+": "add", "-": "del", "@": "hunk", "!": "remark"}
_PAUSE = 0.02
"""Seconds between two slices of wrapping."""


class TextView(Scroller, can_focus=True):
    """Reads a `Document`.  The first rows are there at once; the rest is wrapped in slices."""

    BINDINGS = keys.bindings("text")

    def __init__(self, *, ident: str | None = None) -> None:
        super().__init__(ident=ident)
        self.document = Document("")
        self._wrap = Wrap(self.document, 1)
        self._timer: Timer | None = None
        self._anchor: int | None = None
        """Line to bring to the top as soon as it is wrapped; -1: the last row there is."""

    def show(self, document: Document) -> None:
        """Show another document from its beginning; the same one stays where it is."""
        if document is self.document:
            return
        self.document = document
        self._anchor = None
        self._rewrap()
        self.scroll_to(y=0, animate=False, force=True)

    @property
    def rows(self) -> int:
        """Rows known so far."""
        return self._wrap.count

    @property
    def done(self) -> bool:
        """Whether all rows are known."""
        return self._wrap.done

    def _gutter(self) -> int:
        """Cells in front of the text."""
        if self.document.kinds is not None:
            return 2
        if not self.document.numbered:
            return 1
        return 7

    def _rewrap(self) -> None:
        before = self._wrap.count
        self._wrap = Wrap(self.document, self.scrollable_content_region.width - self._gutter() - 1)
        self._extend()
        self.repaint(max(before, self._wrap.count))

    def _extend(self) -> None:
        """Wrap one slice more, and come back for the next."""
        before = self._wrap.count
        self._wrap.extend()
        self.set_height(self._wrap.count)
        if before < round(self.scroll_y) + self.size.height:
            self.repaint(self._wrap.count)
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if not self._wrap.done:
            self._timer = self.set_timer(_PAUSE, self._extend)
        self._to_anchor()

    def _to_anchor(self) -> None:
        if self._anchor is None:
            return
        row = self._wrap.count if self._anchor < 0 else self._wrap.row_of(self._anchor)
        self.scroll_to(y=row, animate=False, force=True)
        if self._wrap.done or 0 <= self._anchor < self._wrap.lines:
            self._anchor = None

    def render_line(self, y: int) -> Strip:
        """One line of the view."""
        n = min(round(self.scroll_y) + y, self._wrap.count)
        width = self.scrollable_content_region.width
        found = self.strips.get((n, width))
        if found is None:
            parts = self._parts(n) if n < self._wrap.count else []
            found = self.strips[n, width] = self.painted(parts, width)
        return found

    def _parts(self, n: int) -> list[Part]:
        row = self._wrap.row(n)
        kind = self.document.kind(row.line)
        style = _KINDS.get(kind, "")
        if self.document.kinds is not None:
            sign = kind if row.first and kind in "+-" else " "
            fill = " " * self.scrollable_content_region.width if style in ("add", "del") else ""
            return [(sign.replace("-", MINUS), style), (" ", style), (row.text, style), (fill, style)]
        if not self.document.numbered:
            return [(" ", ""), (row.text, style)]
        return [(f"{row.line + 1:>5}  " if row.first else " " * 7, "gutter"), (row.text, style)]

    def on_resize(self) -> None:
        """Wrap for the new width, with the same line at the top."""
        if self._wrap.width == max(self.scrollable_content_region.width - self._gutter() - 1, 1):
            return
        top = round(self.scroll_y)
        self._anchor = self._wrap.row(top).line if 0 < top < self._wrap.count else None
        self._rewrap()

    def action_move(self, by: int) -> None:
        """Scroll by rows."""
        self._anchor = None
        self.scroll_to(y=self.scroll_y + by, animate=False, force=True)

    def action_page(self, halves: int) -> None:
        """Scroll by half pages."""
        self.action_move(halves * max(self.size.height // 2, 1))

    def action_edge(self, last: bool) -> None:
        """Scroll to the beginning or the end; to the end also while rows are still being found."""
        self._anchor = None
        if not last:
            self.scroll_to(y=0, animate=False, force=True)
            return
        self._anchor = -1
        self._to_anchor()
