"""A text over the whole screen; the help, which shows every key, is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual import events
from textual.app import ComposeResult

from ctxctl.text import pad
from ctxctl.tui import keys
from ctxctl.tui.document import Document, Reading
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.literal import content
from ctxctl.tui.requests import Handlers
from ctxctl.tui.spans import Spans
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.textview import TextView
from ctxctl.wording import BREAK, COMPACTION, FINDING, SIGNS, WRITTEN


class Reader(Board[None]):
    """Shows one document; without one yet, that it is on its way."""

    BINDINGS = keys.bindings("reader")

    def __init__(self, title: str, document: Document | None = None) -> None:
        super().__init__()
        self._heading = title
        self._document = document

    def compose(self) -> ComposeResult:
        """Lay out the text and the keys."""
        yield TextView(ident="text")
        yield KeyLine(self._keys)

    def on_mount(self) -> None:
        """Show the document, or wait for it."""
        self.show(self._heading, self._document or Document.of_lines([("!", "one moment…")]))

    def handlers(self) -> Handlers:
        """What takes the document, where one was asked for."""
        return {Reading: lambda reading: self.show(reading.title, reading.document)}

    def show(self, title: str, document: Document) -> None:
        """Show a document."""
        view = self.query_one("#text", TextView)
        view.border_title = content(title)
        view.border_subtitle = content(document.remark)
        view.show(document)
        view.focus()

    def action_wrap(self) -> None:
        """Break long lines, or do not."""
        self.query_one("#text", TextView).toggle_wrap()

    def seen(self) -> VisibleText | None:
        """The document."""
        view = self.query_one("#text", TextView)
        return VisibleText(self._heading, view.document.text)

    def _keys(self, width: int) -> Sequence[Parts]:
        shown = [Piece(word, "hint", rank, key) for key, word, rank in keys.hints(("reader", "text"))]
        return [spread(shown, [], width)]


def _sign_lines() -> list[tuple[str, str]]:
    """What the signs mean; one may stand for several verdicts of a stage."""
    from ctxctl.tui.screens.turns.header import VERDICTS  # slow to import for a list of keys

    verdicts = {
        VERDICTS["recorded"]: "recorded, as the replay has it",
        VERDICTS["differs"]: "differs from it",
        VERDICTS["cannot_tell"]: "cannot be told",
        VERDICTS["not_recorded"]: "not recorded",
    }
    return [
        ("@", "Signs"),
        (" ", "  " + "   ".join(f"{sign} {status}" for status, sign in SIGNS.items())),
        (" ", "  skipped: unchanged; sent again in window mode, not sent in append mode"),
        (" ", "  d derived and s simulated: not recorded by the runtime itself"),
        (" ", f"  ▁▂▃▄▅▆▇█ how full the window is   {COMPACTION} a compaction   ! a warning"),
        (" ", f"  {BREAK} a cache could reuse less than nine tenths of the request before"),
        (" ", f"  {FINDING} what lint finds there: {keys.key_of('findings')} tells all of it"),
        (" ", f"  {WRITTEN} still being written: as if nothing more came"),
        (" ", "  ↳ another thread   ≈ derived: where a thread began, what was billed"),
        (" ", "  " + "   ".join(f"{sign} {words}" for sign, words in verdicts.items())),
        (" ", "  window: tokens of all copies in this frame   new, freed: what entered and left"),
        (" ", "  (52) an omitted item's size: opened, it says what keeping it would have taken"),
        (" ", ""),
    ]


_COLUMN: Final = 76
"""Cells of a column of the help, with the gap behind it."""


class Help(Reader):
    """All keys by where they work, and what the signs mean, in as many columns as there is room for."""

    def __init__(self, front: Sequence[str] = ()) -> None:
        """`front`: the scopes to begin with."""
        self._lines = [*keys.help_lines(front), *_sign_lines()]
        self._columns = 1
        super().__init__("keys", Document.of_lines(self._lines))

    def _keys(self, width: int) -> Sequence[Parts]:
        shown = [
            Piece(word, "hint", rank, key)
            for key, word, rank in keys.hints(("reader", "text"))
            if word != "help"  # it is this
        ]
        return [spread(shown, [], width)]

    def on_resize(self, event: events.Resize) -> None:
        """Lay the keys out anew where there is room for more columns, or for fewer."""
        columns = max(event.size.width // _COLUMN, 1)
        if columns != self._columns:
            self._columns = columns
            self.show(self._heading, in_columns(self._lines, columns))


def in_columns(lines: Sequence[tuple[str, str]], columns: int) -> Document:
    """Paragraphs of (kind, text) lines side by side, the first ones in the first column; none is torn."""
    if columns < 2:
        return Document.of_lines(lines)
    height = -(-len(lines) // columns)
    sides: list[list[tuple[str, str]]] = [[]]
    for block in _paragraphs(lines):
        if sides[-1] and len(sides[-1]) + len(block) > height + _OVER and len(sides) < columns:
            sides.append([])
        sides[-1] += block
    text, spans = "", Spans()
    for n in range(max(map(len, sides))):
        for k, side in enumerate(sides):
            kind, said = side[n] if n < len(side) else (" ", "")
            if kind == "@":
                spans.add(len(text), len(text) + len(said), "hunk")
            text += said if k + 1 == len(sides) else pad(said, _COLUMN)
        text += "\n"
    rows = text.removesuffix("\n")
    return Document(rows, kinds=b" " * (rows.count("\n") + 1), spans=spans)


_OVER: Final = 3
"""Lines by which a column may be longer than its share before a paragraph goes to the next one."""


def _paragraphs(lines: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Lines up to each blank one, that with them."""
    block: list[tuple[str, str]] = []
    for line in lines:
        block.append(line)
        if not line[1]:
            yield block
            block = []
    if block:
        yield block
