"""SWE-agent trajectories: `<instance>.traj`, versions 0.x and 1.x, and files that hold the history alone.

One step is one model request; the whole run is one turn.  `history` is the unabridged list of messages.  What
the history processors elided for a request is recorded only where a version stored the list sent (`query`) or
the list that the next step would send (`messages`); elsewhere the window is derived from the history.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, absent, derived, in_totals, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE = 92
_LIKELY = 75
ABOUT: Final = About(
    reads="A run's trajectory of versions 0.x and 1.x, also with several attempts, or its history alone.",
    places=("trajectories/<user>/<run>/<instance>/<instance>.traj",),
    turns="The run is one turn; a step is one answer of the model.",
    claims={
        "item_ids": native("ids of tool calls; messages have none"),
        "system_prompt": native(),
        "tool_definitions": absent("function calling sends them, no version stores them"),
        "messages": native(),
        "reasoning": native("thinking blocks, where the model gave any"),
        "reminders": native("the demonstration"),
        "truncation": derived("observations elided for one request, where a version stored what it sent"),
        "order": derived("native where a step holds the list that was sent"),
        "requests": derived("one for each answer"),
        "turns": derived("the run"),
        "threads": native("agents of one run"),
        "model": native("where the configuration is stored along"),
        "times": absent("only how long each action took"),
        "input_tokens": in_totals("of the run (`model_stats`)"),
        "cached_tokens": absent(),
        "output_tokens": in_totals("of the run"),
        "compaction": absent("history processors elide without a record"),
        "limit": absent(),
    },
    limits=(
        "elisions by history processors are not simulated where the list sent is not stored",
        "answers that were asked again after a format error are not in the history of older versions",
    ),
    origin="trajectories of versions 0.x to 1.1",
)


def detect(head: bytes) -> int:
    """How sure the head is a trajectory's steps, or a history of agents' messages."""
    seen = layout_of_head(head)
    for top in ("", "attempts[]."):
        if seen.has(f"{top}trajectory[].action", f"{top}trajectory[].observation"):
            asked = (
                f"{top}trajectory[].response",
                f"{top}trajectory[].thought",
                f"{top}trajectory[].state",
            )
            return _SURE if seen.any(*asked) else _LIKELY
        if seen.has(f"{top}history[].role", f"{top}history[].content", f"{top}history[].agent"):
            return _SURE
        if seen.has(f"{top}history[].message_type", f"{top}history[].role"):
            return _LIKELY
    return 0


FORMAT: Final = Format(
    name="swe-agent",
    title="SWE-agent trajectory",
    detect=detect,
    reader="ctxctl.importers.swe_agent.reader:Trajectory",
    about=ABOUT,
)
