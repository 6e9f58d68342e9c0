"""How fast captures of other programs are imported."""

from __future__ import annotations

import os
from pathlib import Path

from tests.bench.cases import Bench
from tests.bench.rows import MB, Row, measured
from tests.bench.section import Section

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
LEAST = 0.25


def _add(bench: Bench) -> None:
    for name, folder in FORMATS:
        if (CAPTURES / folder).is_dir():
            path = str(CAPTURES / folder)
            bench.add_probe(f"import, {name}", "importer", name, path, keep=True, cache="import")


def _row(bench: Bench, name: str) -> Row:
    case = f"import, {name}"

    def speed() -> tuple[str, bool]:
        floor, work, size = (bench.cases[case].printed(column) for column in range(3))
        return f"{floor / work:.0%} ({size / MB:.1f} MB)", floor / work >= LEAST

    return measured(bench, f"import of {name} captures", f"≥ {LEAST:.0%} of an orjson pass", (case,), speed)


def _rows(bench: Bench) -> list[Row]:
    return [_row(bench, name) for name, _ in FORMATS]


SECTION = Section(
    "import",
    "How fast is a format imported?",
    "Real captures kept outside the repository, if there are any: every file of a format. Its events are "
    "made and thrown away; the speed is given as a share of one orjson pass over the same lines in the "
    "same process.",
    _add,
    _rows,
)
