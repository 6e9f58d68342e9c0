"""A question of one line, over whatever screen is in front."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from ctxctl.tui.lineedit import History
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt


class Ask(ModalScreen[str | None]):
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
            yield Banner(lambda width: [[(" ", ""), (self._note, "muted")]], ident="palette-head")
            yield Prompt(self._label, value=self._text, history=self._history, ident="answer")

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
