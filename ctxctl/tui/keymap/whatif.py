"""The what-if screen; its form has the keys of a line of input."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("whatif.open", ("enter",), "enter", "go to the turn; in the form: simulate", "whatif", "open"),
    Action("whatif.next", ("tab",), "field(1)", "the next field, then the turns", "whatif"),
    Action("whatif.previous", ("shift+tab",), "field(-1)", "the field before", "whatif"),
    Action(
        "whatif.edit", ("c", "W"), "edit", "back to the form, to suppose something else", "whatif", "change"
    ),
    Action("whatif.over", ("n",), "over(1)", "the next turn that does not fit", "whatif", "next over"),
    Action("whatif.over_before", ("N",), "over(-1)", "the turn before that does not fit", "whatif"),
    Action("whatif.back", ("escape", "q"), "back", "back to the main screen", "whatif", "back"),
)
