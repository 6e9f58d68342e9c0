"""The last line of a screen: the keys worth showing, which can be clicked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events

from ctxctl.text import cells
from ctxctl.tui import keys
from ctxctl.tui.literal import Part
from ctxctl.tui.widgets.paint import Banner


class KeyLine(Banner):
    """A click on a key, or on the word beside it, does what the key does."""

    def __init__(self, lines: Callable[[int], Sequence[Sequence[Part]]]) -> None:
        super().__init__(lines, ident="keys")

    def on_click(self, event: events.Click) -> None:
        """Press the key that was clicked."""
        event.stop()
        key = self.key_at(event.x)
        if key is not None:
            self.app.simulate_key(key)

    def key_at(self, x: int) -> str | None:
        """Textual's name of the key at a column; None between keys, and where something else is said."""
        label, start, column = "", 0, 0
        for text, style in next(iter(self._lines(self.outer_size.width)), ()):
            if style == "key":
                label, start = text.strip(), column
            if column <= x < column + cells(text):
                return keys.clicked(label, x - start) if label and style in ("key", "hint") else None
            if style not in ("key", ""):
                label = ""
            column += cells(text)
        return None
