"""A text over the whole screen."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult

from ctxctl.tui import keys, lines
from ctxctl.tui.document import Document
from ctxctl.tui.lines import Parts, Piece
from ctxctl.tui.literal import content
from ctxctl.tui.seen import Seen
from ctxctl.tui.wants import Reading
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.textview import TextView


class Reader(Board[None]):
    """Shows one document; without one yet, that it is on its way."""

    BINDINGS = keys.bindings("reader")

    def __init__(self, title: str, document: Document | None = None) -> None:
        super().__init__()
        self._heading = title
        self._document = document

    def compose(self) -> ComposeResult:
        """The text, and the keys."""
        yield TextView(ident="text")
        yield Banner(self._keys, ident="keys")

    def on_mount(self) -> None:
        """Show the document, or wait for it."""
        self.show(self._heading, self._document or Document.of_lines([("!", "one moment…")]))

    @on(Reading)
    def reading(self, message: Reading) -> None:
        """The document is there."""
        self.show(message.title, message.document)

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

    def seen(self) -> Seen | None:
        """The document."""
        view = self.query_one("#text", TextView)
        return Seen(self._heading, view.document.text)

    def _keys(self, width: int) -> Sequence[Parts]:
        shown = [Piece(word, "hint", rank, key) for key, word, rank in keys.hints(("reader", "text"))]
        return [lines.spread(shown, [], width)]
