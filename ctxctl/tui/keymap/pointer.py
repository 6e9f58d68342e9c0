"""Why, blame and findings: texts whose lines lead to steps and items."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("pointer.back", ("escape", "q"), "back", "back", "pointer", "back"),
    Action("pointer.why", ("w",), "why", "why the line's item is, or is not, there", "pointer", "why"),
    Action("pointer.blame", ("b",), "blame", "blame: whose the blocks of the step are", "pointer", "blame"),
    Action("pointer.findings", ("exclamation_mark",), "findings", "what lint finds", "pointer", "findings"),
    Action("pointer.only", ("o",), "only", "blame: all, the stale ones, the duplicates", "pointer", "only"),
)
