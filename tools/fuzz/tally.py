"""What has been fuzzed so far, over all runs: ``python -m tools.fuzz.tally`` prints it.

`.fuzz/tally.json` has, for whole commands and for each parser, how many inputs and commands went through,
what failed how often, and the slowest of all.  Several processes may add to it at the same time.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.fuzz.seeds import ROOT

FILE = ROOT / ".fuzz" / "tally.json"
EVERY: Final = 10.0
"""Seconds between two additions of one process: what is lost if it is killed."""
COMMANDS: Final = "commands"

Row = dict[str, Any]


class Slowest(NamedTuple):
    """The slowest there was: seconds of processor time, and of what."""

    seconds: float
    what: str


NOTHING: Final = Slowest(0.0, "")


class Tally:
    """What one process adds to the file for one name: in memory, and every ten seconds in the file."""

    def __init__(
        self, name: str, file: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._file, self._clock = name, file or FILE, clock
        self._inputs = self._commands = 0
        self._failures: Counter[str] = Counter()
        self._slowest = NOTHING
        self._saved = clock()
        self._began = self._saved

    def add(self, inputs: int, commands: int = 0, slowest: Slowest = NOTHING) -> None:
        """So many inputs and commands went through; the slowest of them."""
        self._inputs += inputs
        self._commands += commands
        self._slowest = max(self._slowest, slowest)
        if self._clock() - self._saved >= EVERY:
            self.save()

    def failed(self, kind: str) -> None:
        """Something failed: kept at once, since the process may end with it."""
        self._failures[kind] += 1
        self.save()

    def save(self) -> None:
        """Add what is not there yet to the file."""
        now = self._clock()
        row = {
            "inputs": self._inputs, "commands": self._commands, "failures": dict(self._failures),
            "seconds": now - self._began, "slowest": list(self._slowest),
        }  # fmt: skip
        _add(self._file, self._name, row)
        self._inputs = self._commands = 0
        self._failures.clear()
        self._slowest = NOTHING
        self._saved = self._began = now


def _add(file: Path, name: str, row: Row) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(file.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = read(file)
        had = rows.setdefault(
            name, {"inputs": 0, "commands": 0, "failures": {}, "seconds": 0.0, "slowest": [0.0, ""]}
        )
        for key in ("inputs", "commands", "seconds"):
            had[key] += row[key]
        had["failures"] = dict(Counter(had["failures"]) + Counter(row["failures"]))
        had["slowest"] = max(had["slowest"], row["slowest"])
        had["until"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        aside = file.with_name(f"{file.name}.{os.getpid()}")
        aside.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        aside.replace(file)


def read(file: Path | None = None) -> dict[str, Row]:
    """By name what is in the file; nothing where there is none."""
    try:
        rows: dict[str, Row] = json.loads((file or FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return rows


def told(rows: dict[str, Row]) -> list[str]:
    """Lines that say what was fuzzed: commands first, then each parser, then the parsers in sum."""
    if not rows:
        return ["nothing was fuzzed here yet"]
    lines = [_line(name, rows[name]) for name in sorted(rows, key=lambda name: (name != COMMANDS, name))]
    parsers = [row for name, row in rows.items() if name != COMMANDS]
    if len(parsers) > 1:
        inputs, failed = (sum(count) for count in zip(*map(_counts, parsers), strict=True))
        lines.append(f"parsers in sum: {inputs:,} inputs, {failed} failures")
    return lines


def _counts(row: Row) -> tuple[int, int]:
    return row["inputs"], sum(row["failures"].values())


def _line(name: str, row: Row) -> str:
    inputs, failed = _counts(row)
    kinds = "".join(f"; {count} times {kind}" for kind, count in sorted(row["failures"].items()))
    commands = f", {row['commands']:,} commands" if row["commands"] else ""
    seconds, what = row["slowest"]
    rate = inputs / row["seconds"] if row["seconds"] else 0.0
    return (
        f"{name}: {inputs:,} inputs{commands}, {failed} failures{kinds}; "
        f"slowest {seconds:.2f} s of CPU{f' ({what})' if what else ''}; {rate:,.1f} inputs/s"
    )


def main() -> int:
    """Print the tally."""
    print("\n".join(told(read())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
