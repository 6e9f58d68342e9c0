"""What a process and its children hold at a moment, and how late things came."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import quantiles
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Sample(NamedTuple):
    """One line of a table."""

    at: float
    """Seconds since the beginning."""
    descriptors: int
    memory: float
    """Resident, in MB, of all processes together."""
    cpu: float
    """Seconds of CPU so far."""
    done: int
    """Requests, posts or turns since the sample before."""
    median: float | None
    """Seconds of lag since the sample before; None where nothing came."""
    late: float | None
    """The lag that one in a hundred is above."""


class Sampler:
    """Takes samples of a process with its children; `note` is told each lag."""

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self._pid = pid
        self._began = time.monotonic()
        self._lags: list[float] = []
        self._done = 0

    def note(self, lag: float) -> None:
        """Something came, so many seconds after it was sent."""
        self._lags.append(lag)

    def did(self) -> None:
        """A request, a post or a turn is over."""
        self._done += 1

    def take(self) -> Sample:
        """The state now."""
        lags, self._lags = self._lags, []
        done, self._done = self._done, 0
        cuts = quantiles(lags, n=100) if len(lags) > 1 else lags * 99
        held = [_held(pid) for pid in tree(self._pid)]
        found = Sample(
            time.monotonic() - self._began, sum(one[0] for one in held), sum(one[1] for one in held),
            sum(one[2] for one in held), done, cuts[49] if cuts else None, cuts[98] if cuts else None,
        )  # fmt: skip
        self.samples.append(found)
        return found


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        for children in PROC.glob(f"{one}/task/*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def _held(pid: int) -> tuple[int, float, float]:
    try:
        descriptors = len(os.listdir(PROC / str(pid) / "fd"))
        pages = int((PROC / str(pid) / "statm").read_text().split()[1])
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0.0, 0.0
    return descriptors, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, (int(fields[11]) + int(fields[12])) / _TICKS


HEAD: Final = (
    "| minute | descriptors | memory | CPU | done | lag, median | lag, 1 in 100 |\n"
    "|--:|--:|--:|--:|--:|--:|--:|"
)


def row(sample: Sample) -> str:
    """A line of the table."""
    lags = ["-" if lag is None else f"{lag * 1000:,.0f} ms" for lag in (sample.median, sample.late)]
    return (
        f"| {sample.at / 60:.1f} | {sample.descriptors:,} | {sample.memory:,.0f} MB | {sample.cpu:,.0f} s"
        f" | {sample.done:,} | {lags[0]} | {lags[1]} |"
    )
