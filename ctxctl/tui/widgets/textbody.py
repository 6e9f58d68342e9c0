"""A text of any size on the screen: wrapped and looked through in slices, painted only where it is seen."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final

from textual.strip import Strip
from textual.timer import Timer

from ctxctl.labels import MINUS
from ctxctl.tui.document import Document, Wrap, WrappedRow
from ctxctl.tui.find import Find
from ctxctl.tui.literal import Part
from ctxctl.tui.spans import over, pieces
from ctxctl.tui.widgets.paint import Scroller
from ctxctl.tui.widgets.rows import CURSOR

_KINDS: Final = {"+": "add", "-": "del", "@": "hunk", "!": "remark"}
_PAUSE: Final = 0.02
"""Seconds between two slices of work on a text."""
_SHOWN: Final = 0.1
"""Seconds between two views on the way to a far place."""
_SHORT: Final = 0.002
"""The same where somebody waits for it."""


class TextBody(Scroller):
    """Shows a `Document`, a row of it pointed at, and the matches of a `Find`; keys are for who inherits."""

    def __init__(self, *, ident: str | None = None) -> None:
        super().__init__(ident=ident)
        self.document = Document("")
        self.broken = True
        """Whether long lines are wrapped."""
        self.left = 0
        """Characters scrolled out at the left, where they are not."""
        self.cursor = 0
        """Row, in texts that have one."""
        self.finder: Find | None = None
        self.match: int | None = None
        """The match that one is at."""
        self._wrap = Wrap(self.document, 1)
        self._timer: Timer | None = None
        self._anchor: int | None = None
        """Offset to bring into view as soon as it is wrapped; -1: the last row there is."""
        self._shown = 0.0
        self._to_top = True
        """Whether the anchor is to be the first row in view."""

    @property
    def rows(self) -> int:
        """Rows known so far."""
        return self._wrap.count

    @property
    def done(self) -> bool:
        """Whether all rows are known."""
        return self._wrap.done

    @property
    def top(self) -> int:
        """The first row in view."""
        return round(self.scroll_y)

    def look(self) -> None:
        """Look through one slice more of the text."""

    # Slices

    def _rewrap(self, folded: frozenset[int]) -> None:
        before = self._wrap.count
        width = self.room - self.document.gutter - 1
        self._wrap = Wrap(self.document, width, broken=self.broken, folded=folded)
        self._go_on()
        self.repaint(max(before, self._wrap.count))

    def _go_on(self) -> None:
        """Wrap one slice more and look through one, and come back for the next."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if not self._wrap.done:
            self._extend()
        elif self.finder is not None and not self.finder.done:
            self.look()
        self._to_anchor()
        if not self._wrap.done or (self.finder is not None and not self.finder.done):
            waiting = self._anchor is not None or self.finder is not None
            self._timer = self.set_timer(_SHORT if waiting else _PAUSE, self._go_on)

    def _extend(self) -> None:
        before = self._wrap.count
        self._wrap.extend()
        self.set_height(self._wrap.count)
        if before < self.top + self.size.height:
            self.repaint(self._wrap.count)
        if self.finder is not None and not self.finder.done:
            self.look()

    def _to_anchor(self) -> None:
        """Go to the anchor once it is wrapped; on the way to the end, show now and then how far it is."""
        if self._anchor is None:
            return
        last = self._wrap.count - 1
        row = last if self._anchor < 0 else self._wrap.row_at(self._anchor)
        if self._wrap.done:
            self._anchor = None
            self._bring(last if row is None else row)
        elif row is not None and self._anchor >= 0:
            self._anchor = None
            self._bring(row)
        elif monotonic() - self._shown > _SHOWN:
            self._shown = monotonic()
            self._bring(last)

    def _bring(self, row: int) -> None:
        """Bring a row into view: to the top, or where there is room around it."""
        self.cursor = max(row, 0)
        height = self.size.height
        if self._to_top:
            self.scroll_to(y=row, animate=False, force=True)
        elif not self.top <= row < self.top + height:
            self.scroll_to(y=max(row - height // 3, 0), animate=False, force=True)
        self.repaint(self._wrap.count)

    # Painting

    def render_line(self, y: int) -> Strip:
        """One line of the view."""
        n = min(self.top + y, self._wrap.count)
        width = self.room
        pointed = self.document.pointed and n == self.cursor < self._wrap.count
        focused = pointed and self.has_focus
        key = (n, width, pointed, focused)
        found = self.strips.get(key)
        if found is None:
            parts = self._parts(n, pointed) if n < self._wrap.count else []
            name = "" if not pointed else "cursor-focused" if focused else "cursor"
            found = self.strips[key] = self.painted(parts, width, name)
        return found

    def _parts(self, n: int, pointed: bool) -> Sequence[Part]:
        document = self.document
        row = self._wrap.row(n, self.left)
        kind = document.kind(row.line)
        style = _KINDS.get(kind, "")
        text = self._text(row, style)
        if document.kinds is not None:
            sign = kind if row.first and kind in "+-" else " "
            mark = CURSOR if pointed and not sign.strip() else sign.replace("-", MINUS)
            fill = " " * self.room if style in ("add", "del") else ""
            return [(mark, "mark" if mark == CURSOR else style), (" ", style), *text, (fill, style)]
        mark = CURSOR if pointed else " "
        if not document.numbered:
            return [(mark, "mark"), (self._fold_mark(row), "gutter"), *text]
        digits = document.gutter - (2 if document.folds is None else 3)
        number = f"{row.line + 1:>{digits}} " if row.first else " " * (digits + 1)
        fold = self._fold_mark(row) or " "
        head = [(mark, "mark"), (number[1:], "gutter")] if pointed else [(number, "gutter")]
        return [*head, (fold, "gutter"), *text]

    def _fold_mark(self, row: WrappedRow) -> str:
        """A sign in front of what can be folded."""
        folds = self.document.folds
        if folds is None:
            return ""
        if not row.first or folds.at(row.line) is None:
            return "  "
        return "▸ " if row.line in self._wrap.folded else "▾ "

    def _text(self, row: WrappedRow, style: str) -> list[Part]:
        end = row.start + len(row.text)
        spans = [] if self.document.spans is None else self.document.spans.within(row.start, end)
        if self.finder is not None:
            spans = over(spans, self.finder.within(row.start, end, self.match))
        parts: list[Part] = list(pieces(row.text, row.start, spans, style))
        fold = None if self.document.folds is None else self.document.folds.at(row.line)
        if fold is not None and row.last and row.line in self._wrap.folded:
            parts.append((fold.hint, "muted"))
        return parts

    def on_resize(self) -> None:
        """Wrap for the new width, with the same line at the top."""
        width = self.room - self.document.gutter - 1
        if self._wrap.width == max(width, 1):
            return
        self._again()

    def _again(self) -> None:
        """Wrap anew, with the same text at the top."""
        top = self.cursor if self.document.pointed else self.top
        self._anchor = self._wrap.start(top) if 0 < top < self._wrap.count else None
        self._to_top = not self.document.pointed
        self._rewrap(self._wrap.folded)
