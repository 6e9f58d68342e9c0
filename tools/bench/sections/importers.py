"""How fast captures of other programs are imported."""

from __future__ import annotations

import os
from pathlib import Path

from tools.bench.cases import Bench
from tools.bench.rows import MB, Row, measured
from tools.bench.section import Section
from tools.bench.sections.start import add_bare_start

CAPTURES = Path(os.environ.get("CTXCTL_CORPUS") or Path("..") / "shared") / "data"
"""Captures kept outside the repository."""
FORMATS = (
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("pi", "pi"),
    ("amplifier", "amplifier"),
    ("copilot-cli", "copilot-sdk-events"),
    ("claude-stream-json", "claude-stream-json"),
    ("claude-trace", "api-captures"),
    ("swe-agent-calls", "api-captures"),
)
"""Formats of JSON Lines, and the folder that holds captures of each."""
PASSES = 4
"""Passes of orjson over the lines of a capture that its import may take."""
EVENT = 150
"""Events that an import may make meanwhile of which each has as long as a bare start of Python lasts.

An event is Python: a record is told from others, its parts are named, digested and put in their place.  Without it an
import is as fast as its lines are long: a format of short ones would never come near orjson.  What was reached in
November 2026 is 1/250 to 1/800; formats whose events carry a whole request, 1/140.
"""


def _add(bench: Bench) -> None:
    add_bare_start(bench)
    for name, folder in FORMATS:
        if (CAPTURES / folder).is_dir():
            path = str(CAPTURES / folder)
            bench.add_probe(f"import, {name}", "importer", name, path, keep=True, cache="import")


def _row(bench: Bench, name: str) -> Row:
    case = f"import, {name}"

    def speed() -> tuple[str, bool]:
        floor, work, size, events = (bench.cases[case].printed(column) for column in range(4))
        told = f"{work / floor:.1f} × ({size / MB / work:.0f} MB a second), {1e6 * work / events:.0f} µs an event"
        return told, work <= PASSES * floor + events / EVENT * bench.cases["pass"].cpu

    target = f"≤ {PASSES} × an orjson pass + 1/{EVENT} of a bare start an event"
    return measured(bench, f"import of {name} captures", target, (case, "pass"), speed)


def _rows(bench: Bench) -> list[Row]:
    return [_row(bench, name) for name, _ in FORMATS]


SECTION = Section(
    "import",
    "How fast is a format imported?",
    "Real captures kept outside the repository, if there are any: every file of a format. Its events are "
    "made and thrown away. The floor is one orjson pass over the same lines in the same process. It does not grow "
    "with the number of records, and what an importer does with each is Python: so beside four passes it may take "
    f"1/{EVENT} of a bare start of Python for each event that it makes. Four passes alone were the target before.",
    _add,
    _rows,
)
