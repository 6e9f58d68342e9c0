"""The main screen."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("turn.previous", ("left_square_bracket",), "turn(-1)", "previous turn, from any pane", "turns"),
    Action("turn.next", ("right_square_bracket",), "turn(1)", "next turn, from any pane", "turns", "turn"),
    Action(
        "steps.unfold",
        ("l", "right"),
        "steps(True)",
        "show the steps of the turn",
        "turns",
        "steps",
        ("turns",),
    ),
    Action("steps.fold", ("h", "left"), "steps(False)", "hide the steps of the turn", "turns"),
    Action("steps.toggle", ("space",), "fold", "show or hide: the turn's steps, a group of changes", "turns"),
    Action(
        "open",
        ("enter",),
        "enter",
        "open: the turn's changes, then an item's text",
        "turns",
        "open",
        ("turns", "changes"),
    ),
    Action(
        "back", ("escape",), "go_back", "back to where Enter came from", "turns", "back", ("changes", "item")
    ),
    Action("pane.next", ("tab",), "pane(1)", "next pane", "turns", "pane"),
    Action("pane.previous", ("shift+tab",), "pane(-1)", "previous pane", "turns"),
    Action(
        "item.diff", ("d",), "diff", "an item's diff to its version before, or its content", "turns", "diff"
    ),
    Action("skipped", ("a",), "skipped", "list the skipped items too, or only their number", "turns", "all"),
    Action("assembled", ("t",), "assembled", "the assembled text of the step", "turns", "text"),
    Action("stages", ("s",), "stages", "the stages of the step, from available to injected", "turns"),
    Action("problems", ("p",), "problems", "what was wrong with the trace", "turns"),
    Action("about", ("i",), "about", "what the trace records, and what it does not", "turns"),
)
