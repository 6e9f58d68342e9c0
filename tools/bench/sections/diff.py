"""How long the diff of two large texts takes."""

from __future__ import annotations

from tools.bench.cases import Bench
from tools.bench.rows import Row, measured
from tools.bench.section import Section

PAIRS = (
    ("code, a dozen edits", "code", "0.0005"),
    ("code, a tenth of the lines", "code", "0.1"),
    ("log, a dozen edits", "log", "0.0005"),
)
"""Name, sort of text, share of changed lines."""

_INSTANT = 0.05
"""Seconds of CPU that nobody sees: three frames of a screen."""


def _add(bench: Bench) -> None:
    for name, sort, share in PAIRS:
        bench.add_probe(f"diff, {name}", "diff-ours", sort, share, keep=True)
        bench.add_probe(f"difflib, {name}", "diff-difflib", sort, share, runs=min(2, bench.runs), keep=True)


def _row(bench: Bench, name: str) -> Row:
    ours, theirs = f"diff, {name}", f"difflib, {name}"

    def share() -> tuple[str, bool]:
        spent, other = bench.cases[ours].printed(), bench.cases[theirs].printed()
        minimal = "" if not bench.cases[ours].printed(2) else "; said to be not minimal"
        told = f"1/{other / spent:.0f} ({spent * 1000:.0f} of {other * 1000:.0f} ms{minimal})"
        return told, spent <= max(other / 20, _INSTANT)

    target = f"≤ 1/20 of difflib, or {_INSTANT * 1000:.0f} ms"
    return measured(bench, f"1 MB of {name}", target, (ours, theirs), share)


def _rows(bench: Bench) -> list[Row]:
    return [_row(bench, name) for name, _, _ in PAIRS]


SECTION = Section(
    "diff",
    "How long does the diff of two large texts take?",
    "Source code of Python's standard library, and a log of 24 000 lines, 300 of them different. Lines "
    "are changed at random. The diff is minimal, which difflib's is not, so its work grows with the edits: where a tenth "
    "of the lines changed, no twentieth of difflib is to be had, and what nobody sees will do.",
    _add,
    _rows,
)
