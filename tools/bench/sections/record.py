"""What recording costs the program that is recorded."""

from __future__ import annotations

import sys

from tools.bench import proxy, record
from tools.bench.cases import Bench
from tools.bench.rows import Row, measured
from tools.bench.section import Section

_RUNS = 3
HELD_TO = 2_048
"""Bytes of the event that has a target."""


def _add(bench: Bench) -> None:
    for size in record.SIZES:
        argv = [sys.executable, "-m", "tools.bench.record", str(size)]
        bench.add(f"record, {size} B", argv, runs=min(_RUNS, bench.runs), keep=True, cache="record")
    argv = [sys.executable, "-m", "tools.bench.proxy"]
    bench.add("proxy", argv, runs=min(2, bench.runs), keep=True, cache="record")


def _recorded(bench: Bench, size: int) -> Row:
    """The best of three runs, as for the keys of the UI."""
    name = f"record, {size} B"

    def work() -> tuple[str, bool]:
        p50, p99, bare50, bare99 = (min(bench.cases[name].all_printed(column)) for column in range(4))
        rate = max(bench.cases[name].all_printed(8))
        told = f"{p99:.0f} µs p99, {p50:.0f} µs p50; bare write {bare99:.0f} and {bare50:.0f} µs; {rate:,.0f} events/s"
        return told, size != HELD_TO or p99 <= record.TARGET

    target = f"≤ {record.TARGET} µs p99" if size == HELD_TO else "compared with a bare `os.write`"
    return measured(bench, f"an event of {size:,} B: work of the calling thread", target, (name,), work)


def _relayed(bench: Bench, number: int) -> Row:
    """What the proxy adds until the first byte of an answer comes; the better of two runs."""
    size = proxy.SIZES[number]

    def added() -> tuple[str, bool]:
        columns = [bench.cases["proxy"].all_printed(4 * number + n) for n in range(4)]
        bare50, bare99, p50, p99 = (min(values) for values in columns)
        more = min(by - bare for bare, by in zip(columns[1], columns[3], strict=True))
        told = f"{more:.1f} ms p99 ({p99:.1f} of {bare99:.1f} ms), {p50 - bare50:.1f} ms p50"
        return told, more <= proxy.TARGET or number > 0

    target = f"≤ {proxy.TARGET:.0f} ms p99" if not number else "compared with the same without it"
    label = f"proxy, a request of {size:,} B: added until the first byte of the answer (elapsed)"
    return measured(bench, label, target, ("proxy",), added)


def _rows(bench: Bench) -> list[Row]:
    return [
        *(_recorded(bench, size) for size in record.SIZES),
        *(_relayed(bench, number) for number in range(len(proxy.SIZES))),
    ]


SECTION = Section(
    "record",
    "What does recording cost the program?",
    "Events through `Recorder`, each with a new text: CPU time of the calling thread alone. The recording"
    " proxy runs on loopback, between a client and a server that streams.",
    _add,
    _rows,
)
