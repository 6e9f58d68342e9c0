"""A question of one line, over whatever screen is in front."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from ctxctl.tui import keys
from ctxctl.tui.lineedit import History
from ctxctl.tui.lines import Parts, Piece, spread
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt


class Ask(Board[str | None], ModalScreen[str | None]):
    """Is left with what was typed, or with None."""

    def __init__(self, label: str, note: str, *, text: str = "", history: History | None = None) -> None:
        super().__init__()
        self._label = label
        self._note = note
        self._text = text
        self._history = history

    def compose(self) -> ComposeResult:
        """What is asked, and the line."""
        with Vertical(id="palette"):
            yield Banner(self._head, ident="palette-head")
            yield Prompt(self._label, value=self._text, history=self._history, ident="answer")

    def _head(self, width: int) -> list[Parts]:
        """What it is about, and the keys that end it."""
        hints = (("line.erase_all", "clear", 3), ("line.accept", "accept", 8), ("line.cancel", "cancel", 7))
        right = [Piece(word, "hint", rank, keys.key_of(action)) for action, word, rank in hints]
        return [spread([Piece(self._note, "muted", 9)], right, width)]

    def on_mount(self) -> None:
        """Type at once."""
        self.set_focus(self.query_one("#answer"), scroll_visible=False)

    @on(Prompt.Accepted)
    def accepted(self, message: Prompt.Accepted) -> None:
        """An answer."""
        self.dismiss(message.value)

    @on(Prompt.Cancelled)
    def cancelled(self) -> None:
        """None."""
        self.dismiss(None)
