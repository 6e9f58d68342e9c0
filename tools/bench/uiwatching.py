"""What watching in the UI costs: a writer at a steady rate, and the screen that shows what it writes.

The application runs without a terminal.  The lag of an event is the time from the end of the call that wrote
it to the end of the first paint that shows a state in which it was read, on one clock.
"""

from __future__ import annotations

import asyncio
import faulthandler
import resource
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any, Final

_STUCK: Final = 60.0
"""Seconds without anything new after which a watch that has not shown everything stands still."""


class Paints:
    """When what was shown: the events read, and the time after the paint."""

    def __init__(self) -> None:
        self.shown = 0
        """Events of the newest state that the screen was told of."""
        self.seen: list[tuple[int, int]] = []
        """Events and nanoseconds, both ascending."""

    def painted(self) -> None:
        """A frame was made of the state as it is."""
        if not self.seen or self.seen[-1][0] != self.shown:
            self.seen.append((self.shown, time.monotonic_ns()))


class Gaps:
    """How late the event loop wakes: what a key would wait."""

    def __init__(self) -> None:
        self.late: list[float] = []

    async def run(self) -> None:
        """Ask to be woken every 5 ms."""
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.005)
            self.late.append((time.monotonic() - begun - 0.005) * 1e3)


async def _caught_up(app: Any, paints: Paints, events: int) -> None:
    """Wait until everything is shown; where nothing goes on, say what every thread is at, and end."""
    last, since = -1, time.monotonic()
    while not app.farewell and (not paints.seen or paints.seen[-1][0] < events):
        if paints.shown != last:
            last, since = paints.shown, time.monotonic()
        elif time.monotonic() - since > _STUCK:
            faulthandler.dump_traceback(all_threads=True)
            sys.exit(f"stopped at {last} of {events} events; {app.turns.state.watching}; {paints.seen[-1:]}")
        await asyncio.sleep(0.05)


async def perform(trace: Path, seconds: str, out: Path, work: str) -> dict[str, Any]:
    """Write and watch."""
    from textual.screen import Screen

    from ctxctl.session.live import LiveSession
    from ctxctl.tui.app import CtxApp

    paints, gaps = Paints(), Gaps()
    probes = [sys.executable, "-m", "tools.bench.probes", "watch-write"]
    writer = subprocess.Popen(
        [*probes, str(trace), seconds, str(out), work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdout.readline()
    app = CtxApp(lambda: None, str(trace), lambda: LiveSession(trace))  # type: ignore[arg-type, return-value]
    watched = app.turns.watched
    display = app._display

    def told(watching: Any, problems: int) -> None:
        watched(watching, problems)
        paints.shown = watching.events

    def painted(screen: Screen[Any], renderable: Any) -> None:
        display(screen, renderable)
        if renderable is not None and not app._batch_count:
            paints.painted()

    app.turns.watched = told  # type: ignore[method-assign]
    app._display = painted  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)):
        await asyncio.sleep(1.5)
        waking = asyncio.create_task(gaps.run())
        used = resource.getrusage(resource.RUSAGE_SELF)
        begun = time.monotonic()
        writer.stdin.write(b"\n")
        writer.stdin.flush()
        while writer.poll() is None:
            await asyncio.sleep(0.05)
        spent = time.monotonic() - begun
        after = resource.getrusage(resource.RUSAGE_SELF)
        times = array("q")
        times.frombytes(out.read_bytes())
        await _caught_up(app, paints, len(times))
        waking.cancel()
    app.loader.stop()
    assert not app.farewell, app.farewell
    lags, at = [], 0
    for number, written in enumerate(times, 1):
        while at < len(paints.seen) and paints.seen[at][0] < number:
            at += 1
        if at == len(paints.seen):
            break
        lags.append((paints.seen[at][1] - written) / 1e6)
    lags.sort()
    late = sorted(gaps.late)
    cpu = (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / spent

    def share(values: list[float], part: float) -> float:
        return values[min(int(len(values) * part), len(values) - 1)]

    return {
        "lag": (share(lags, 0.5), share(lags, 0.95), lags[-1]),
        "late": (share(late, 0.5), share(late, 0.95), late[-1]),
        "written": len(times), "shown": len(lags), "paints": len(paints.seen), "cpu": cpu, "spent": spent,
    }  # fmt: skip


def main(folder: str, seconds: str, work: str = "repeating") -> None:
    """Print what came of it."""
    trace, out = Path(folder) / "watched-ui.jsonl", Path(folder) / "written-ui.bin"
    trace.unlink(missing_ok=True)
    print(asyncio.run(perform(trace, seconds, out, work)))


if __name__ == "__main__":
    main(*sys.argv[1:])
