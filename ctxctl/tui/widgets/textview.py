"""A text of any size, with the keys to move in it, to fold, to follow its lines and to find words.

It is wrapped and looked through in slices, and painted only where it is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final

from textual import events, on
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from ctxctl.tui import keys
from ctxctl.tui.document import Document, Wrap, WrappedRow
from ctxctl.tui.find import Find
from ctxctl.tui.lineedit import History
from ctxctl.tui.literal import Part
from ctxctl.tui.spans import overlaid, styled_pieces
from ctxctl.tui.widgets.paint import Painted, Scroller
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import CURSOR
from ctxctl.wording import MINUS

_KINDS: Final = {"+": "add", "-": "del", "@": "hunk", "!": "remark"}
_PAUSE: Final = 0.02
"""Seconds between two slices of work on a text."""
_SHOWN: Final = 0.1
"""Seconds between two views on the way to a far place."""
_SHORT: Final = 0.002
"""The same where somebody waits for it."""


_SIDEWAYS: Final = 8
"""Columns by which a text that is not wrapped moves."""
_ONLY: Final = {
    "fold": "fold_regions",
    "fold_all": "fold_regions",
    "choose": "links",
    "unfind": "finding",
    "match": "finding",
    "sideways": "unwrapped",
}
"""Actions that have something to act on only in some texts; elsewhere their keys are the screen's."""


class TextView(Painted, Scroller, can_focus=True):
    """Reads a `Document`.  The first rows are there at once; the rest is wrapped in slices.

    Where single lines can be acted on, one of them has a cursor, and moving moves that.
    """

    BINDINGS = keys.bindings("text")

    class Chosen(Message):
        """Enter was pressed on a line that leads somewhere."""

        def __init__(self, view: TextView, ordinal: int) -> None:
            super().__init__()
            self.view = view
            self.ordinal = ordinal

        @property
        def control(self) -> TextView:
            """The text it comes from."""
            return self.view

    def __init__(self, *, ident: str | None = None, history: History | None = None) -> None:
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
        self._history = history or History()
        self._bar: Prompt | None = None
        self._origin = 0
        """Offset from which the match being typed is looked for."""
        self._wrapped_around = False

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
            return [(mark, "mark"), (self._fold_mark(row), "line-number"), *text]
        digits = document.gutter - (2 if document.fold_regions is None else 3)
        number = f"{row.line + 1:>{digits}} " if row.first else " " * (digits + 1)
        fold = self._fold_mark(row) or " "
        head = [(mark, "mark"), (number[1:], "line-number")] if pointed else [(number, "line-number")]
        return [*head, (fold, "line-number"), *text]

    def _fold_mark(self, row: WrappedRow) -> str:
        """A sign in front of what can be folded."""
        regions = self.document.fold_regions
        if regions is None:
            return ""
        if not row.first or regions.at(row.line) is None:
            return "  "
        return "▸ " if row.line in self._wrap.folded else "▾ "

    def _text(self, row: WrappedRow, style: str) -> list[Part]:
        end = row.start + len(row.text)
        spans = [] if self.document.spans is None else self.document.spans.within(row.start, end)
        if self.finder is not None:
            spans = overlaid(spans, self.finder.within(row.start, end, self.match))
        parts: list[Part] = [(" " * row.hang, style)] if row.hang else []
        parts += styled_pieces(row.text, row.start, spans, style)
        fold = None if self.document.fold_regions is None else self.document.fold_regions.at(row.line)
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

    # What is shown, and who looks

    def show(self, document: Document) -> None:
        """Show another document from its beginning; the same one stays where it is."""
        if document is self.document:
            return
        self.document = document
        self._anchor = None
        self.cursor = self.left = 0
        self._stop_finding()
        self._rewrap(document.folded)
        self.scroll_to(y=0, animate=False, force=True)

    def on_focus(self) -> None:
        """The cursor looks different, and the line that tells of matches is there."""
        self.repaint(self._wrap.count)
        if self._bar is not None:
            self._bar.display = True

    def on_blur(self) -> None:
        """The cursor looks different; another widget's keys are shown."""
        self.repaint(self._wrap.count)
        if self._bar is not None and not self._bar.has_focus:
            self._bar.display = self.screen.focused is self._bar

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a second one folds or follows."""
        row = event.y + self.top - self.gutter.top
        if not self.document.pointed or not 0 <= row < self._wrap.count:
            return
        self._point(row)
        if event.chain == 2:
            if self.document.links is not None:
                self.action_choose()
            else:
                self.action_fold()

    # Moving

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that mean nothing in this text are left to the screen."""
        needs = _ONLY.get(action)
        has = {
            "fold_regions": self.document.fold_regions is not None,
            "links": self.document.links is not None,
            "finding": self.finder is not None,
            "unwrapped": not self.broken,
        }
        return needs is None or has[needs]

    def on_key(self, event: events.Key) -> None:
        """Hand on what was typed behind the key that opened the line of input, in one go with it."""
        if self._bar is not None and not self._bar.over:
            taken = self._bar.take(event.key, event.character if event.is_printable else None)
        else:
            taken = event.key in keys.keys_of(keys.BY_ID["text.find"])
            if taken:
                self.action_find()
        if taken:
            event.stop()
            event.prevent_default()

    def _point(self, row: int) -> None:
        row = min(max(row, 0), max(self._wrap.count - 1, 0))
        before, self.cursor = self.cursor, row
        if row < self.top:
            self.scroll_to(y=row, animate=False, force=True)
        elif row >= self.top + self.size.height:
            self.scroll_to(y=row - self.size.height + 1, animate=False, force=True)
        self.refresh_line(before)
        self.refresh_line(row)

    def to_line(self, line: int) -> None:
        """Put the cursor on a line of the document, or on the last one that is wrapped so far."""
        self._point(self._wrap.row_of(line))

    def action_move(self, by: int) -> None:
        """Move by rows: the cursor where there is one, else the text."""
        self._anchor = None
        if self.document.pointed:
            last = max(self.top + self.size.height - 1, 0)
            self._point(min(max(self.cursor, self.top), last) + by)
        else:
            self.scroll_to(y=self.scroll_y + by, animate=False, force=True)

    def action_page(self, halves: int) -> None:
        """Move by half pages."""
        self.action_move(halves * max(self.size.height // 2, 1))

    def action_edge(self, last: bool) -> None:
        """Move to the beginning or the end; to the end also while rows are still being found."""
        self._anchor = None
        if not last:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True)
            self.repaint(self._wrap.count)
            return
        self._anchor, self._to_top = -1, True
        self._go_on()

    def action_sideways(self, by: int) -> None:
        """Move over long lines."""
        self.left = max(self.left + by * _SIDEWAYS, 0)
        self.repaint(self._wrap.count)

    def toggle_wrap(self) -> None:
        """Break long lines, or do not."""
        self.broken = not self.broken
        self.left = 0
        self._again()

    def link(self) -> int | None:
        """What the line under the cursor leads to; None: to nothing."""
        links = self.document.links
        if links is None or self.cursor >= self._wrap.count:
            return None
        line = self._wrap.line_of(self.cursor)
        return links[line] if line < len(links) and links[line] >= 0 else None

    def action_choose(self) -> None:
        """Go where the line leads."""
        found = self.link()
        if found is not None:
            self.post_message(self.Chosen(self, found))

    # Folding

    def action_fold(self) -> None:
        """Fold or unfold what is at the cursor."""
        regions = self.document.fold_regions
        if regions is None or self.cursor >= self._wrap.count:
            return
        fold = regions.around(self._wrap.line_of(self.cursor))
        if fold is not None:
            self._refold(self._wrap.folded ^ {fold.line}, fold.line)

    def action_fold_all(self) -> None:
        """Unfold everything; where nothing is folded, fold all that the outermost holds."""
        regions = self.document.fold_regions
        if regions is None or self.cursor >= self._wrap.count:
            return
        folded = frozenset[int]() if self._wrap.folded else regions.deeper(1) or regions.deeper(0)
        self._refold(folded, 0, self._wrap.start(self.cursor))

    def _refold(self, folded: frozenset[int], line: int, offset: int | None = None) -> None:
        """Fold other lines; rows before `line` stay.  The cursor is on it, or where `offset` is."""
        row = self._wrap.row_of(line)
        before, offset = self._wrap.count, self._wrap.start(row) if offset is None else offset
        self._wrap.refold(folded, line)
        self._anchor, self._to_top = offset, False
        self._go_on()
        self.repaint(max(before, self._wrap.count))

    # Finding

    def action_find(self) -> None:
        """Ask for a word."""
        self._stop_finding()
        self._origin = self._wrap.start(self.top) if self.top < self._wrap.count else 0
        self._bar = Prompt("/", history=self._history, asker=self, classes="find")
        self._bar.open_over(self.screen)

    @on(Prompt.Changed)
    def _typed(self, message: Prompt.Changed) -> None:
        message.stop()
        if message.prompt is self._bar:
            self._begin_finding(message.value)

    @on(Prompt.Accepted)
    def _accepted(self, message: Prompt.Accepted) -> None:
        message.stop()
        if message.prompt is self._bar and not message.value:
            self._stop_finding()

    @on(Prompt.Cancelled)
    def _cancelled(self, message: Prompt.Cancelled) -> None:
        message.stop()
        if message.prompt is self._bar:
            self.action_unfind()
            self._anchor, self._to_top = self._origin, True
            self._to_anchor()

    def _begin_finding(self, query: str) -> None:
        self.finder = Find(self.document.text, query) if query else None
        self.match = None
        self._wrapped_around = False
        self._go_on()
        self._say()
        self.repaint(self._wrap.count)

    def _stop_finding(self) -> None:
        if self.finder is not None:
            self.finder = None
            self.repaint(self._wrap.count)
        self.match = None
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def action_unfind(self) -> None:
        """Show no matches any more."""
        self._stop_finding()

    def action_match(self, by: int) -> None:
        """Go to the next match or the one before, around the ends."""
        finder = self.finder
        if finder is None or not finder.places:
            return
        current = 0 if self.match is None else self.match + by
        if not 0 <= current < len(finder.places) and not finder.done:
            return  # the one that would be next is still being looked for
        self._wrapped_around = not 0 <= current < len(finder.places)
        self._to_match(current % len(finder.places))

    def look(self) -> None:
        """Look through one slice more of the text."""
        finder = self.finder
        if finder is None:
            return
        before = len(finder.places)
        finder.extend()
        if self.match is None:
            found = finder.from_(self._origin)
            if found is None and finder.done and finder.places:
                found, self._wrapped_around = 0, True
            if found is not None:
                self._to_match(found)
        if len(finder.places) > before:
            self.repaint(self._wrap.count)
        self._say()

    def _to_match(self, n: int) -> None:
        finder = self.finder
        assert finder is not None
        self.match = n
        offset = finder.places[n]
        self._unfold_at(offset)
        self._anchor, self._to_top = offset, False
        self._to_anchor()
        if not self.broken:
            self._show_column(offset)
        if self._anchor is not None and self._timer is None:
            self._go_on()
        self.repaint(self._wrap.count)
        self._say()

    def _show_column(self, offset: int) -> None:
        """In a line that is not wrapped, bring an offset between the left and the right edge."""
        row = self._wrap.row_at(offset)
        if row is not None:
            column = offset - self._wrap.start(row)
            size = len(self.finder.query) if self.finder is not None else 0
            if not self.left <= column <= self.left + self._wrap.width - size:
                self.left = max(column - self._wrap.width // 3, 0)

    def _unfold_at(self, offset: int) -> None:
        """Unfold what hides an offset."""
        regions = self.document.fold_regions
        if regions is None or not self._wrap.folded:
            return
        row = self._wrap.row_at(offset)
        while row is not None:
            line = self._wrap.line_of(row)
            hidden = self.document.text.find("\n", self._wrap.start(row), offset) >= 0
            if regions.at(line) is None or line not in self._wrap.folded or not hidden:
                return
            self._refold(self._wrap.folded - {line}, line)
            row = self._wrap.row_at(offset)

    def _say(self) -> None:
        if self._bar is not None:
            self._bar.note = "" if self.finder is None else self.finder.said(self.match, self._wrapped_around)
