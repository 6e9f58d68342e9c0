"""A line of input that comes back with what stood in it: to be typed over, or to be gone on with."""

from __future__ import annotations

from textual import events

from ctxctl.tui.lineedit import Line
from ctxctl.tui.widgets.prompt import Prompt


class Retyped(Prompt):
    """After `choose`, the first key that types replaces everything; any other key leaves it."""

    _chosen = False
    """The whole text is chosen."""

    def choose(self) -> None:
        """Choose the whole text."""
        self._chosen = bool(self.value)
        self.refresh()

    def _text(self, room: int) -> list[tuple[str, str]]:
        parts = super()._text(room)
        return [(text, "caret" if text else "") for text, _ in parts] if self._chosen else parts

    def on_key(self, event: events.Key) -> None:
        """The first key replaces what is chosen."""
        if self._chosen and event.is_printable and event.character is not None:
            self.typed = Line()

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted replaces what is chosen."""
        if self._chosen:
            self.typed = Line()

    def action_delete(self, by: int) -> None:
        """Delete what is chosen, or a character."""
        if self._chosen:
            self._become(Line())
        else:
            super().action_delete(by)

    def _become(self, line: Line) -> None:
        super()._become(line)
        self._chosen = False
