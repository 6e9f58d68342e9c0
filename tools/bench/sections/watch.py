"""Whether watching keeps up with a fast writer."""

from __future__ import annotations

from tools.bench.cases import Bench
from tools.bench.rows import Row, measured
from tools.bench.section import Section

SECONDS = 60
"""For which a writer is watched."""


def _add(bench: Bench) -> None:
    seconds = SECONDS if bench.runs > 1 else SECONDS // 6
    folder = bench.scratch / "watched"
    folder.mkdir()
    bench.add_probe("watch", "watch", str(folder), str(seconds), runs=1, keep=True, cache="watch")


def _rows(bench: Bench) -> list[Row]:
    def lag() -> tuple[str, bool]:
        p50, p95, _, written, counted, cpu, _ = (bench.cases["watch"].printed(n) for n in range(7))
        told = f"{p95:.0f} ms p95, {p50:.0f} ms p50, {counted:,.0f} of {written:,.0f} events, {cpu:.0%} CPU"
        return told, p95 <= 150 and counted == written

    label = "a writer at 5 000 events/s: from appended to printed (elapsed)"
    return [measured(bench, label, "≤ 150 ms p95, none lost", ("watch",), lag)]


SECTION = Section(
    "watch",
    "Does watching keep up?",
    "`ctxctl watch --json` next to a program that appends at a steady rate.",
    _add,
    _rows,
)
