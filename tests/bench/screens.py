"""The UI under keys: ``python -m tests.bench.screens FILE ACT``.

Drives the application without a terminal and measures the CPU time of the event loop's own thread from a key
to the time when nothing is under way any more: key, messages from the loader, layout and painting.  What the
loader's threads compute meanwhile is not in it; what they delay is.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

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


_DEEP: Final = ("right_square_bracket",) * 40
_CHANGE: Final = (*_DEEP, "enter")
_TEXT: Final = (*_CHANGE, "a", "j", "j", "j", "enter")

ACTS: Final = (
    Act(
        "turn",
        "next or previous turn",
        MOVING,
        _DEEP,
        ("left_square_bracket", *("right_square_bracket",) * 2),
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
    Act("search", "open the search", OPENING, _DEEP, ("slash",), ("escape",), 15),
    Act(
        "query",
        "a letter of a query over the whole trace",
        OPENING,
        (*_DEEP, "slash"),
        tuple("kind:user"),
        presses=9,
    ),
)


class Watch:
    """Adds up the CPU time of the loop's callbacks."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.longest = 0.0
        plain: Callable[[asyncio.Handle], None] = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            start = time.thread_time()
            plain(handle)
            took = time.thread_time() - start
            self.spent += took
            self.longest = max(self.longest, took)

        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]

    def reset(self) -> None:
        """Begin anew."""
        self.spent = self.longest = 0.0


async def settle(app: object, pilot: object) -> None:
    """Wait until the loader has nothing to do and the screen is painted.

    The waiting itself is cheap: it is done on the loop whose work is measured.
    """
    idle = app.loader.idle  # type: ignore[attr-defined]
    await asyncio.sleep(0.01)
    while not idle.is_set():
        await asyncio.sleep(0.01)
    await pilot.pause()  # type: ignore[attr-defined]


async def perform(path: str, act: Act, watch: Watch) -> dict[str, float]:
    """Do it.

    Milliseconds on the event loop for a key: p50, p95, the worst single callback; and for opening the trace:
    all, the worst; then peak memory of the process in MB.
    """
    from ctxctl.inspector import Inspector
    from ctxctl.tui.app import CtxApp

    app = CtxApp(lambda: Inspector.open(path), path)
    took: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(app, pilot)
        opening, stall = watch.spent, watch.longest
        await _press(app, pilot, act.before)
        worst = 0.0
        for n in range(act.presses):
            watch.reset()
            await _press(app, pilot, [act.keys[n % len(act.keys)]])
            took.append(watch.spent * 1000)
            worst = max(worst, watch.longest * 1000)
            await _press(app, pilot, act.after)
    app.loader.stop()
    took.sort()
    return {
        "p50": took[len(took) // 2],
        "p95": took[min(int(len(took) * 0.95), len(took) - 1)],
        "worst": worst,
        "opening": opening * 1000,
        "stall": stall * 1000,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def _press(app: object, pilot: object, keys: Sequence[str]) -> None:
    for key in keys:
        await pilot.press(key)  # type: ignore[attr-defined]
    if keys:
        await settle(app, pilot)


def main(path: str, name: str) -> None:
    """Print the figures of one act, in the order of `perform`."""
    act = next(act for act in ACTS if act.name == name)
    print(*asyncio.run(perform(path, act, Watch())).values())


if __name__ == "__main__":
    main(*sys.argv[1:])
