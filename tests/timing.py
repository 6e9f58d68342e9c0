"""Says before a run how many tests it has and about how long they take here, and keeps what they took.

What each test took last time stays in pytest's cache.  Where that tells of less than half of the tests, the
speed of this machine has to do: a loop is timed, and `LOOPS_A_TEST` says how many of it a test takes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KEY = "ctxctl/seconds"
SLOW = "ctxctl/seconds-slow"
"""Names in pytest's cache: of what tests took, and of what those took that are marked slow."""

LOOPS_A_TEST = 11.0
"""What a test that is not slow takes on average, in runs of `a_loop` (November 2026)."""

MANY = 50
"""So many tests are worth a word before they are run."""

Seconds = Mapping[str, float]
"""What each test took, by its id."""


class Expected(NamedTuple):
    """How long tests may take."""

    seconds: float
    """One after the other."""
    known: bool
    """Whether that is how long most of them took last time."""


def a_loop() -> None:
    """Work of a fixed size in plain Python."""
    found: dict[int, str] = {}
    for number in range(60_000):
        found[number & 1023] = str(number)


def speed() -> float:
    """Seconds of a core that `a_loop` takes on this machine, whatever else runs: the best of five."""
    took = []
    for _ in range(5):
        began = time.thread_time()
        a_loop()
        took.append(time.thread_time() - began)
    return min(took)


def expected(ids: Collection[str], kept: Seconds) -> Expected:
    """How long tests may take: those not known, as long as the others do on average."""
    known = [kept[one] for one in ids if one in kept]
    if len(known) * 2 < len(ids) or not known:
        return Expected(len(ids) * LOOPS_A_TEST * speed(), known=False)
    return Expected(sum(known) * len(ids) / len(known), known=True)


def told(count: int, workers: int, how_long: Expected) -> str:
    """The line before a run."""
    # What tests took last time, they took beside each other; the speed is that of one core.
    at_once = workers if how_long.known else min(workers, os.cpu_count() or 1)
    seconds = how_long.seconds / max(at_once, 1)
    unit = "minute" if seconds >= 90 else "second"
    number = max(round(seconds / 60 if unit == "minute" else seconds), 1)
    beside = f" on {workers} workers" if workers > 1 else ""
    why = (
        "as they took last time" if how_long.known else "judged by this machine's speed, if nothing else runs"
    )
    return f"{count:,} tests{beside}: about {number:,} {unit}{'s' * (number != 1)}, {why}"


def kept_in(cache: Path) -> dict[str, float]:
    """What tests took last time but the slow ones, out of the folder of pytest's cache; empty without one."""
    try:
        found = json.loads((cache / "v" / KEY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def merged(kept: Seconds, took: Seconds, root: Path) -> dict[str, float]:
    """What is kept for the next run: without the tests of files that are gone."""
    both = {**kept, **{name: round(seconds, 4) for name, seconds in took.items()}}
    files = {name.partition("::")[0] for name in both}
    there = {file for file in files if (root / file).is_file()}
    return {name: seconds for name, seconds in sorted(both.items()) if name.partition("::")[0] in there}


class Timing:
    """The plugin: the same with workers and without; in a worker it does nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.took: dict[str, Counter[str]] = {KEY: Counter(), SLOW: Counter()}
        self.said = False

    def say(self, ids: Collection[str]) -> None:
        """Say it on standard error, once."""
        if self.said or len(ids) < MANY or self.config.option.collectonly:
            return
        self.said = True
        workers = len(getattr(self.config.option, "tx", None) or [])
        line = told(len(ids), workers, expected(ids, {**self._kept(KEY), **self._kept(SLOW)}))
        capture: Any = self.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            print(f"\n{line}", file=sys.stderr, flush=True)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers: the tests are known."""
        self.say([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """With workers: the first of them knows the tests."""
        self.say(list(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a test took: before, in and after itself."""
        took = self.took[SLOW if "slow" in report.keywords else KEY]
        took[report.nodeid] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        """Keep it."""
        cache = getattr(self.config, "cache", None)
        for name, took in self.took.items():
            if cache is not None and took:
                cache.set(name, merged(self._kept(name), took, self.config.rootpath))

    def _kept(self, name: str) -> dict[str, float]:
        cache = getattr(self.config, "cache", None)
        found = cache.get(name, None) if cache is not None else None
        return found if isinstance(found, dict) else {}


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin where the run is led."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timing(config), "ctxctl-timing")
