"""The help: every key, from the table that the bindings are made from."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.labels import BREAK, COMPACTION, SIGNS, WRITTEN
from ctxctl.tui import keys
from ctxctl.tui.document import Document
from ctxctl.tui.screens.reader import Reader
from ctxctl.tui.strip import VERDICTS

_VERDICTS = {
    VERDICTS["recorded"]: "recorded, as the replay has it",
    VERDICTS["differs"]: "differs from it",
    VERDICTS["cannot_tell"]: "cannot be told",
    VERDICTS["not_recorded"]: "not recorded",
}
"""What the stages of a step say; one sign may stand for several verdicts."""

_SIGNS = (
    ("@", "Signs"),
    (" ", "  " + "   ".join(f"{sign} {status}" for status, sign in SIGNS.items())),
    (" ", "  skipped: in the window as before, nothing enters again"),
    (" ", "  d derived and s simulated: not recorded by the runtime itself"),
    (" ", f"  ▁▂▃▄▅▆▇█ how full the window is   {COMPACTION} a compaction   ! a warning"),
    (" ", f"  {BREAK} a cache could reuse less than nine tenths of the request before"),
    (" ", f"  {WRITTEN} still being written: as if nothing more came"),
    (" ", "  ↳ another thread   ≈ derived: where a thread began, what was billed"),
    (" ", "  " + "   ".join(f"{sign} {words}" for sign, words in _VERDICTS.items())),
    (" ", "  window: tokens of all copies in this frame   new, freed: what entered and left"),
    (" ", "  (52) an omitted item's size: opened, it says what keeping it would have taken"),
    (" ", ""),
)


class Help(Reader):
    """All keys by where they work, and what the signs mean."""

    def __init__(self, front: Sequence[str] = ()) -> None:
        """`front`: the scopes to begin with."""
        super().__init__("keys", Document.of_lines([*keys.help_lines(front), *_SIGNS]))
