"""A text diff of any size in one column or two, painted only where it is seen."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from ctxctl.tui import keys
from ctxctl.tui.screens.diff.sheet import Layout, Sheet, SheetRows, layout, row_parts
from ctxctl.tui.widgets.paint import Painted, Scroller

_PAUSE: Final = 0.02
"""Seconds between two slices of wrapping."""
_ABOVE: Final = 3
"""Rows shown above a change that is gone to."""


class SheetView(Painted, Scroller, can_focus=True):
    """Reads a `Sheet`; one change is in front, and marked."""

    BINDINGS = keys.bindings("text")

    class Placed(Message):
        """Says that another change is in front, or that the text has more of them."""

        def can_replace(self, message: Message) -> bool:
            """Whether the other message makes this one superfluous: only the newest is worth painting."""
            return isinstance(message, SheetView.Placed)

    def __init__(self, *, ident: str | None = None) -> None:
        super().__init__(ident=ident)
        self.sheet: Sheet | None = None
        self.change = 0
        """Index of the change in front."""
        self._rows: SheetRows | None = None
        self._lay = Layout(0, 0, (1,), 0)
        self._timer: Timer | None = None
        self._anchor: int | None = None
        """Line to bring near the top as soon as it is wrapped; -1: the last row there is."""
        self._kept: int | None = None
        """Scroll position that `change` was chosen for; at another one, it follows the view."""

    def show(self, sheet: Sheet | None, *, land: int = 1, keep: bool = False) -> None:
        """Show another sheet at its first change (`land` 1) or its last; with `keep` at the same change."""
        if sheet is self.sheet:
            return
        count = 0 if sheet is None else len(sheet.changes)
        change = self.change if keep else 0 if land > 0 else count - 1
        self.sheet = sheet
        self._rewrap()
        self.go_to(min(max(change, 0), max(count - 1, 0)), top=not keep and land > 0)

    @property
    def changes(self) -> int:
        """Number of changes."""
        return 0 if self.sheet is None else len(self.sheet.changes)

    @property
    def where(self) -> str:
        """Which change is in front."""
        if self.sheet is None or not self.changes:
            return "no changed line" if self.sheet is not None else ""
        return f"change {self.change + 1:,} of {self.changes:,}"

    def step(self, by: int) -> bool:
        """Go to the next change or the one before; False if there is none."""
        if not 0 <= self.change + by < self.changes:
            return False
        self.go_to(self.change + by)
        return True

    def go_to(self, change: int, *, top: bool = False) -> None:
        """Bring a change to the front; with `top`, from the text's beginning if it is in view there."""
        self.change = change
        self.strips.clear()
        self.refresh()
        self.post_message(self.Placed())
        if self.sheet is None or not self.changes:
            self._kept = 0
            self.scroll_to(y=0, animate=False, force=True)
            return
        line = self.sheet.changes[change]
        rows = self._rows
        fits = rows is not None and line < rows.lines and rows.row_of(line + 1) <= max(self.size.height, 1)
        self._anchor = 0 if top and fits else line
        self._to_anchor()

    def _rewrap(self) -> None:
        before = 0 if self._rows is None else self._rows.count
        width = self.room
        self._rows = None
        if self.sheet is not None and width > 0:
            self._lay = layout(self.sheet, width)
            self._rows = SheetRows(self.sheet, self._lay.texts)
        self._extend()
        self.repaint(max(before, 0 if self._rows is None else self._rows.count, self.size.height))

    def _extend(self) -> None:
        """Wrap one slice more, and come back for the next."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        rows = self._rows
        if rows is None:
            self.set_height(0)
            return
        before = rows.count
        rows.extend()
        self.set_height(rows.count)
        if before < round(self.scroll_y) + self.size.height:
            self.repaint(rows.count)
        if not rows.done:
            self._timer = self.set_timer(_PAUSE, self._extend)
        self._to_anchor()

    def _to_anchor(self) -> None:
        rows = self._rows
        if self._anchor is None or rows is None:
            return
        known = rows.done or 0 <= self._anchor < rows.lines
        row = rows.count if self._anchor < 0 else max(rows.row_of(self._anchor) - self._above(), 0)
        top = min(row, max(rows.count - self.size.height, 0))
        if self._anchor >= 0:
            self._kept = top
        self.scroll_to(y=top, animate=False, force=True)
        if known:
            self._anchor = None

    def _above(self) -> int:
        return min(_ABOVE, self.size.height // 4)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Let the change in front follow the view."""
        super().watch_scroll_y(old_value, new_value)
        rows, sheet = self._rows, self.sheet
        if rows is None or sheet is None or not self.changes or round(new_value) == self._kept:
            return
        self._kept = None
        top = round(new_value)
        first = rows.line_at(top)
        change = bisect_right(sheet.changes, first) - 1
        if change < 0 or sheet.ends[change] <= first:
            after = bisect_left(sheet.changes, first)
            near = after < self.changes and rows.row_of(sheet.changes[after]) < top + self.size.height
            change = after if near else max(change, 0)
        if change != self.change:
            self.change = change
            self.strips.clear()
            self.refresh()
            self.post_message(self.Placed())

    def render_line(self, y: int) -> Strip:
        """Paint one line of the view."""
        width = self.room
        rows, sheet = self._rows, self.sheet
        n = round(self.scroll_y) + y
        if rows is None or sheet is None or n >= rows.count:
            return self.painted([], width)
        found = self.strips.get((n, width))
        if found is None:
            row = rows.row(n)
            change = self.change
            current = bool(self.changes) and sheet.changes[change] <= row.line < sheet.ends[change]
            parts = row_parts(sheet, row, self._lay, current=current)
            found = self.strips[n, width] = self.painted(parts, width)
        return found

    def on_resize(self) -> None:
        """Wrap for the new width, with the same line at the top."""
        width = self.room
        if self._lay.width == width and self._rows is not None:
            return
        top = None
        if self._rows is not None and self._rows.count:
            top = self._rows.line_at(round(self.scroll_y))
        self._rewrap()
        if self._rows is None:
            return
        if top is None:
            self.go_to(self.change)
        else:
            self._anchor = top
            self._to_anchor()

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
