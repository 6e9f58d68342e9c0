"""The help: every key, from the table that the bindings are made from."""

from __future__ import annotations

from ctxctl.tui import keys
from ctxctl.tui.document import Document
from ctxctl.tui.figures import SIGNS
from ctxctl.tui.screens.reader import Reader

_SIGNS = (
    ("@", "Signs"),
    (" ", "  " + "   ".join(f"{sign} {status}" for status, sign in SIGNS.items())),
    (" ", "  skipped: in the window as before, nothing enters again"),
    (" ", "  d derived and s simulated: not recorded by the runtime itself"),
    (" ", "  ▁▂▃▄▅▆▇█ how full the window is   ◇ a compaction   ! a warning   ↳ another thread"),
    (" ", "  window: tokens of all copies in this frame   new, freed: what entered and left"),
    (" ", ""),
)


class Help(Reader):
    """All keys by where they work, and what the signs mean."""

    def __init__(self) -> None:
        super().__init__("keys", Document.of_lines([*keys.help_lines(), *_SIGNS]))
