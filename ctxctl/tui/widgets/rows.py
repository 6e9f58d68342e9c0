"""A list of any number of rows with a cursor: values by index, painted only where they are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from ctxctl.tui import keys
from ctxctl.tui.literal import Part
from ctxctl.tui.widgets.paint import Painted, Scroller

CURSOR = "▌"
"""Marks the cursor's row beside its colour."""


class Rows(Painted, Scroller, can_focus=True):
    """Shows `count` rows; asks `line_of(row, width)` for the parts of those in view.

    The widget moves its own cursor at once and tells the screen by `Moved`; only the newest of several such
    messages is delivered.
    """

    BINDINGS = keys.bindings("list")

    class _OfRow(Message):
        def __init__(self, rows: Rows, line: int) -> None:
            super().__init__()
            self.rows = rows
            self.line = line

        @property
        def control(self) -> Rows:
            """The list it comes from."""
            return self.rows

    class Moved(_OfRow):
        """The cursor is on another row."""

        def can_replace(self, message: Message) -> bool:
            """A newer position replaces an older one of the same list."""
            return isinstance(message, Rows.Moved) and message.rows is self.rows

    class Chosen(_OfRow):
        """A row was clicked twice."""

    def __init__(self, line_of: Callable[[int, int], Sequence[Part]], ident: str) -> None:
        super().__init__(ident=ident)
        self._line_of = line_of
        self.count = 0
        self.cursor = 0

    def show(self, count: int, cursor: int) -> None:
        """Show other rows, or the same ones changed, with the cursor on row `cursor`."""
        before, self.count = self.count, count
        self.cursor = min(max(cursor, 0), max(count - 1, 0))
        self.set_height(count)
        self._follow()
        self.repaint(max(before, count))

    def grow(self, count: int, shift: int) -> None:
        """Show more rows; the cursor stays on its row, which has moved down by `shift`."""
        before, self.count = self.count, count
        self.set_height(count)
        if shift:
            self.cursor = min(max(self.cursor + shift, 0), max(count - 1, 0))
            self._follow()
        self.repaint(max(before, count))

    def extend(self, count: int) -> None:
        """Show more rows at the end; those that are there have not changed."""
        before, self.count = self.count, count
        self.set_height(count)
        top, size = round(self.scroll_y), self.size
        first, last = max(before - top, 0), min(count - top, size.height)
        for line in range(before, top + last):
            self.strips.discard((line, self.room, False, False))
        if first < last:
            self.refresh(Region(0, first, size.width, last - first))

    def place(self, line: int) -> bool:
        """Put the cursor on a row, or on the nearest there is; whether it was elsewhere."""
        line = min(max(line, 0), max(self.count - 1, 0))
        if line == self.cursor:
            return False
        before, self.cursor = self.cursor, line
        if not self._follow():
            self.refresh_line(before)
            self.refresh_line(line)
        return True

    def move_to(self, line: int) -> None:
        """Put the cursor on a row and tell the screen."""
        if self.place(line):
            self.post_message(self.Moved(self, self.cursor))

    def _follow(self) -> bool:
        """Scroll so that the cursor is in view; whether that was needed."""
        height, top = self.size.height, round(self.scroll_y)
        if height <= 0:
            return False
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)
        else:
            return False
        return True

    def render_line(self, y: int) -> Strip:
        """One line of the view."""
        line = min(round(self.scroll_y) + y, self.count)
        width = self.room
        at_cursor = line == self.cursor < self.count
        key = (line, width, at_cursor, at_cursor and self.has_focus)
        found = self.strips.get(key)
        if found is None:
            found = self.strips[key] = self._paint(line, width, at_cursor)
        return found

    def parts_of(self, line: int, width: int) -> Sequence[Part]:
        """What a row says in so many cells, whether it is seen or not."""
        return self._line_of(line, width)

    def _paint(self, line: int, width: int, at_cursor: bool) -> Strip:
        if line >= self.count or width <= 0:
            return self.painted([], width)
        over = "" if not at_cursor else "cursor-focused" if self.has_focus else "cursor"
        parts = [(CURSOR if at_cursor else " ", "mark"), *self._line_of(line, width - 1)]
        return self.painted(parts, width, over)

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._follow()

    def on_focus(self) -> None:
        """The cursor's row looks different in a focused list."""
        self.refresh_line(self.cursor)

    on_blur = on_focus

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a second one opens."""
        line = event.y + round(self.scroll_y) - self.gutter.top
        if 0 <= line < self.count:
            self.move_to(line)
            if event.chain == 2:
                self.post_message(self.Chosen(self, line))

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.move_to(self.cursor + by)

    def action_page(self, halves: int) -> None:
        """Move the cursor by half pages."""
        self.move_to(self.cursor + halves * max(self.size.height // 2, 1))

    def action_edge(self, last: bool) -> None:
        """Move the cursor to the first or the last row."""
        self.move_to(self.count - 1 if last else 0)
