"""The UI under keys: ``python -m tools.bench.screens FILE ACT``.

Drives the application without a terminal and measures the CPU time of the event loop's own thread from a key
to the time when nothing is under way any more: key, messages from the loader, layout and painting.  What the
loader's threads compute meanwhile is not in it; what they delay is.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tools.bench.loop import Watch

MOVING: Final = 16.0
OPENING: Final = 100.0
"""Milliseconds of work on the event loop, 95th percentile: a frame at 60 a second, and what feels instant."""


@dataclass(frozen=True)
class Act:
    """Something a user does again and again."""

    name: str
    label: str
    target: float
    """Milliseconds."""
    before: tuple[str, ...]
    """Keys that lead there, pressed once and not measured."""
    keys: tuple[str, ...]
    """Keys to measure, one after the other, over and over."""
    after: tuple[str, ...] = ()
    """Keys after each measured one that are not measured: they undo it."""
    presses: int = 60


SIZE: Final = (120, 40)
"""Columns and lines."""

_DEEP: Final = ("]",) * 40
_CHANGE: Final = (*_DEEP, "enter")
_TEXT: Final = (*_CHANGE, "a", "j", "j", "j", "enter")

ACTS: Final = (
    Act(
        "turn",
        "next or previous turn",
        MOVING,
        _DEEP,
        ("[", "]", "]"),
    ),
    Act("line", "a line down in the list of turns", MOVING, _DEEP, ("j", "j", "k")),
    Act("page", "half a page in the list of turns", MOVING, _DEEP, ("ctrl+d", "ctrl+d", "ctrl+u")),
    Act("change", "a line down in the changes", MOVING, (*_CHANGE, "a"), ("j", "j", "k")),
    Act("text", "a page in an item's text", MOVING, _TEXT, ("pagedown", "pageup")),
    Act("sort", "sort the changes", OPENING, (*_CHANGE, "a"), ("S",), presses=20),
    Act("group", "group the changes", OPENING, (*_CHANGE, "a"), ("b",), presses=20),
    Act("item", "open an item", OPENING, (*_CHANGE, "a", "j", "j"), ("enter",), ("escape", "j"), 30),
    Act("item diff", "open an item's diff", OPENING, _TEXT, ("d",), presses=20),
    Act("diff", "open the diff of two frames", OPENING, _DEEP, ("D",), ("escape", "j"), 15),
    Act("assembled", "open the assembled text", OPENING, _DEEP, ("t",), ("escape", "j"), 15),
    Act("overview", "open the overview", OPENING, _DEEP, ("v",), ("escape", "j"), 15),
    Act("search", "open the search", OPENING, _DEEP, ("/",), ("escape",), 15),
    Act(
        "query",
        "a letter of a query over the whole trace",
        OPENING,
        (*_DEEP, "/"),
        tuple("kind:user"),
        presses=9,
    ),
)


async def perform(path: str, act: Act, watch: Watch, size: tuple[int, int] = SIZE) -> dict[str, float]:
    """Do it.

    Milliseconds on the event loop for a key: p50, p95, the worst single callback; and for opening the trace:
    all, the worst; then peak memory of the process in MB.
    """
    from ctxctl.session import Inspector
    from ctxctl.tui.app import CtxApp
    from tools.bench.loop import session

    app = CtxApp(lambda: Inspector.open(path), path)
    took: list[float] = []
    async with session(app, watch, size) as here:
        opening, stall = watch.spent, watch.longest
        await here.press(act.before)
        worst = 0.0
        for n in range(act.presses):
            watch.reset()
            await here.press([act.keys[n % len(act.keys)]])
            took.append(watch.spent * 1000)
            worst = max(worst, watch.longest * 1000)
            await here.press(act.after)
    took.sort()
    return {
        "p50": took[len(took) // 2],
        "p95": took[min(int(len(took) * 0.95), len(took) - 1)],
        "worst": worst,
        "opening": opening * 1000,
        "stall": stall * 1000,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(path: str, name: str, size: str = "") -> None:
    """Print the figures of one act, in the order of `perform`; `size` such as 200x50."""
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")  # before Textual looks
    from tools.bench.loop import Watch

    act = next(act for act in ACTS if act.name == name)
    columns, _, lines = size.partition("x")
    where = (int(columns), int(lines)) if size else SIZE
    print(*asyncio.run(perform(path, act, Watch(), where)).values())


if __name__ == "__main__":
    main(*sys.argv[1:])
