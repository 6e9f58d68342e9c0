"""The main screen."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("turn.previous", ("left_square_bracket",), "turn(-1)", "previous turn, from any pane", "turns"),
    Action("turn.next", ("right_square_bracket",), "turn(1)", "next turn, from any pane", "turns", "turn"),
    Action(
        "notable.previous",
        ("left_curly_bracket",),
        "notable(-1)",
        "previous turn of note: compaction, cache break, warning, omission",
        "turns",
    ),
    Action(
        "notable.next",
        ("right_curly_bracket",),
        "notable(1)",
        "next turn of note: compaction, cache break, warning, omission",
        "turns",
        "of note",
    ),
    Action("overview", ("v",), "overview", "the whole session on one screen", "turns", "overview"),
    Action("jump.back", ("backspace",), "jump_back", "back to where a jump came from", "turns"),
    Action("follow", ("F",), "follow", "go with the newest turn of a trace that is being written", "turns"),
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
    Action("item.life", ("L",), "tab('life')", "an item's life: every step that changed it", "turns"),
    Action("item.record", ("x",), "tab('record')", "an item's record: source and every field", "turns"),
    Action(
        "version.older",
        ("comma",),
        "version(1)",
        "diff to an older version of the item",
        "turns",
        "older",
        ("item",),
    ),
    Action("version.newer", ("full_stop",), "version(-1)", "diff to a newer version again", "turns"),
    Action("fold.all", ("z",), "fold_all", "fold or unfold: all groups of changes, all threads", "turns"),
    Action("sort", ("S",), "sort", "sort: as in the frame, window, new, freed, name, kind", "turns"),
    Action("reverse", ("R",), "reverse", "sort the other way round", "turns"),
    Action("group", ("B",), "group", "group by: status, kind, source, segment, server, nothing", "turns"),
    Action("skipped", ("a",), "skipped", "list the skipped items too, or only their number", "turns", "all"),
    Action("assembled", ("t",), "assembled", "the assembled text of the step", "turns", "text"),
    Action("mark", ("m",), "mark", "mark this frame, to compare others with it", "turns"),
    Action("frames", ("D",), "frames", "this frame beside the marked one, else the one before it", "turns"),
    Action("stages", ("s",), "stages", "the stages of the step, from available to injected", "turns"),
    Action("why", ("w",), "why", "why the item is, or is not, in the window", "turns"),
    Action("blame", ("b",), "blame", "blame: whose the blocks are, and since when", "turns"),
    Action("findings", ("exclamation_mark",), "findings", "what lint finds in the trace", "turns"),
    Action("whatif", ("W",), "whatif", "what if: another window, model or policy, simulated", "turns"),
    Action("search", ("slash",), "search", "search the whole trace", "turns", "search", ("turns", "changes")),
    Action("filter", ("f",), "filter", "list only changes that fit a query", "turns", panes=("changes",)),
    Action("hit.next", ("n",), "hit(1)", "the next hit of the search", "turns"),
    Action("hit.previous", ("N",), "hit(-1)", "the hit before", "turns"),
    Action("problems", ("p",), "problems", "what was wrong with the trace", "turns"),
    Action("about", ("i",), "about", "what the trace records, and what it does not", "turns"),
)
