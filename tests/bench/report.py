# ruff: noqa: E501, RUF001 - the page is written with its own signs and line lengths
"""Writes docs/benchmarks.md from the cases that ran."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.bench import proxy, record, screens
from tests.bench.cases import DIFFS, IMPORTERS, WHATIF_WINDOW, WHATIFS, Bench, whatif

MB = 1_000_000
STARTS = (
    ("replay", "trace", "small replay", 12),
    ("show", "trace", "small show", 16),
    ("diff", "trace", "small diff", 18),
    ("why", "trace", "small why", 18),
    ("cost", "trace", "small cost", 18),
    ("replay", "Claude Code session", "foreign replay", 18),
    ("cost", "Claude Code session", "foreign cost", 20),
)
"""Commands that start and do little more: of what, the case, and how many times a bare start they may take."""


@dataclass(frozen=True)
class Row:
    """One target: what is to be reached, what was, and whether that is enough (None: not measured)."""

    what: str
    target: str
    reached: str
    met: bool | None


def _ratio(bench: Bench, label: str, case: str, floor: str, limit: float, unit: str) -> Row:
    target = f"≤ {limit:g} × {unit}"
    if not bench.ready(case, floor):
        return _absent(bench, label, target, case, floor)
    value = bench.cases[case].cpu / bench.cases[floor].cpu
    return Row(label, target, f"{value:.1f} ×", value <= limit)


def _absent(bench: Bench, label: str, target: str, *names: str) -> Row:
    why = next((bench.cases[n].failed for n in names if n in bench.cases and bench.cases[n].failed), None)
    return Row(label, target, f"not measured ({why})" if why else "not measured", None)


def _measured(
    bench: Bench, label: str, target: str, names: tuple[str, ...], value: Callable[[], tuple[str, bool]]
) -> Row:
    if not bench.ready(*names):
        return _absent(bench, label, target, *names)
    reached, met = value()
    return Row(label, target, reached, met)


def rows(bench: Bench) -> list[Row]:
    """All targets, in the order of the design page."""
    start = [
        _ratio(bench, "`ctxctl --version`", "--version", "pass", 6, "`python -c pass`"),
        _ratio(bench, "`ctxctl --help`", "--help", "pass", 6, "`python -c pass`"),
        *(
            _ratio(bench, f"`ctxctl {command} --json`, small {what}, counts cached", case, "pass", target,
                   "`python -c pass`")
            for command, what, case, target in STARTS
        ),
    ]  # fmt: skip
    large = [row for size in bench.files for row in _large(bench, size)]
    diffs = [
        _measured(
            bench, f"diff of a 1 MB item, {name}", "≤ 1/20 of difflib", (f"diff: {name}", f"difflib: {name}"),
            lambda name=name: _diff(bench, name),  # type: ignore[misc]
        )
        for name, _, _ in DIFFS
    ]  # fmt: skip
    keys = [_key(bench, act) for act in screens.ACTS]
    importers = [_importer(bench, name) for name, _ in IMPORTERS]
    recorded = [_recorded(bench, size) for size in record.SIZES]
    recorded += [_relayed(bench, number) for number in range(len(proxy.SIZES))]
    return [
        *start,
        *large,
        *(_whatif(bench, policy) for policy in WHATIFS),
        *keys,
        _opening(bench),
        _memory(bench, cached=True),
        _memory(bench, cached=False),
        _watch(bench),
        *recorded,
        *diffs,
        *importers,
    ]


def _whatif(bench: Bench, policy: str) -> Row:
    """A what-if of a whole session against its plain replay."""
    supposed = f"--window {WHATIF_WINDOW}" + (f" --policy {policy}" if policy else "")
    plain, case = "plain 1 000 turns", whatif(policy)

    def ratio() -> tuple[str, bool]:
        value = bench.cases[case].cpu / bench.cases[plain].cpu
        return f"{value:.2f} ×", value < 2

    label = f"what-if of 1 000 turns, 4 000 requests: `replay --json {supposed}`"
    return _measured(bench, label, "< 2 × its plain replay", (case, plain), ratio)


def _recorded(bench: Bench, size: int) -> Row:
    """An event on its caller's thread; the better of two runs, as for the keys of the UI."""
    name = f"record {size}"

    def work() -> tuple[str, bool]:
        p50, p99, bare50, bare99 = (min(bench.cases[name].all_printed(column)) for column in range(4))
        rate = max(bench.cases[name].all_printed(8))
        reached = f"{p99:.0f} µs p99, {p50:.0f} µs p50; bare write {bare99:.0f} and {bare50:.0f} µs; {rate:,.0f} events/s"
        return reached, size != 2048 or p99 <= record.TARGET

    target = f"≤ {record.TARGET} µs p99" if size == 2048 else "beside a bare `os.write`"
    return _measured(
        bench, f"recorder, an event of {size:,} B: work of the calling thread", target, (name,), work
    )


def _relayed(bench: Bench, number: int) -> Row:
    """What the proxy adds until the first byte of an answer comes; the better of two runs."""
    size = proxy.SIZES[number]

    def added() -> tuple[str, bool]:
        columns = [bench.cases["proxy"].all_printed(4 * number + n) for n in range(4)]
        bare50, bare99, p50, p99 = (min(values) for values in columns)
        more = min(by - bare for bare, by in zip(columns[1], columns[3], strict=True))
        reached = f"{more:.1f} ms p99 ({p99:.1f} of {bare99:.1f} ms), {p50 - bare50:.1f} ms p50"
        return reached, more <= proxy.TARGET or number > 0

    target = f"≤ {proxy.TARGET:.0f} ms p99" if not number else "beside the same without it"
    label = f"proxy, recording, a request of {size:,} B: added until the first byte of the answer"
    return _measured(bench, label, target, ("proxy",), added)


def _key(bench: Bench, act: screens.Act) -> Row:
    """A key in the UI; the better of two runs, as another program's work makes any number worse, never better."""
    name = f"ui: {act.name}"

    def work() -> tuple[str, bool]:
        p50, p95 = (min(bench.cases[name].all_printed(column)) for column in (0, 1))
        return f"{p95:.1f} ms p95, {p50:.1f} ms p50", p95 <= act.target

    label = f"UI, 10 000 turns × 200 items: {act.label}, work on the event loop"
    return _measured(bench, label, f"≤ {act.target:.0f} ms p95", (name,), work)


def _opening(bench: Bench) -> Row:
    """The longest that opening holds the loop, over all runs: none is picked out."""
    names = tuple(f"ui: {act.name}" for act in screens.ACTS)

    def held() -> tuple[str, bool]:
        found = sorted(value for name in names for value in bench.cases[name].all_printed(4))
        p50, p95 = found[len(found) // 2], found[min(int(len(found) * 0.95), len(found) - 1)]
        return f"{p95:.1f} ms p95, {p50:.1f} ms p50", p95 <= screens.OPENING

    label = "UI, 10 000 turns × 200 items: first screen and reading on, the longest the event loop is held"
    return _measured(bench, label, f"≤ {screens.OPENING:.0f} ms p95", names, held)


def _memory(bench: Bench, *, cached: bool) -> Row:
    """Peak memory: with cached counts in the leaner of two runs; else in all, the one that counts first too."""
    names = tuple(f"ui: {act.name}" for act in screens.ACTS)
    of = min if cached else max

    def most() -> tuple[str, bool]:
        peak = max(of(bench.cases[name].all_printed(5)) for name in names)
        return f"{peak:.0f} MB", peak <= 200

    how = "counts cached" if cached else "with the run that counts for the first time"
    label = f"UI, 10 000 turns × 200 items: peak memory of any of these, {how}"
    return _measured(bench, label, "≤ 200 MB", names, most)


def _watch(bench: Bench) -> Row:
    def lag() -> tuple[str, bool]:
        p50, p95, _, written, counted, cpu, _ = (bench.cases["watch"].printed(n) for n in range(7))
        reached = (
            f"{p95:.0f} ms p95, {p50:.0f} ms p50, {counted:,.0f} of {written:,.0f} events, {cpu:.0%} CPU"
        )
        return reached, p95 <= 150 and counted == written

    return _measured(
        bench, "watch, a writer at 5 000 events/s: from appended to printed (elapsed)",
        "≤ 150 ms p95, none lost", ("watch",), lag,
    )  # fmt: skip


def _importer(bench: Bench, name: str) -> Row:
    case = f"import: {name}"

    def speed() -> tuple[str, bool]:
        floor, work, size = (bench.cases[case].printed(column) for column in range(3))
        return f"{floor / work:.0%} ({size / MB:.1f} MB)", floor / work >= 0.25

    return _measured(bench, f"import of {name} captures", "≥ 25 % of an orjson pass", (case,), speed)


def _diff(bench: Bench, name: str) -> tuple[str, bool]:
    case = bench.cases[f"diff: {name}"]
    ours, theirs = case.printed(), bench.cases[f"difflib: {name}"].printed()
    minimal = "" if not case.printed(2) else "; said to be not minimal"
    return (
        f"1/{theirs / ours:.0f} ({ours * 1000:.0f} of {theirs * 1000:.0f} ms{minimal})",
        ours <= theirs / 20,
    )


def _large(bench: Bench, size: str) -> list[Row]:
    cases = bench.cases
    label = {"100mb": "100 MB", "1gb": "1 GB"}[size]
    wc, cold, warm = f"wc -l {size}", f"cold replay {size}", f"warm replay {size}"
    orjson, tiktoken, index = f"orjson {size}", f"tiktoken {size}", f"index {size}"

    def floor() -> tuple[str, bool]:
        least = cases[orjson].cpu + cases[tiktoken].cpu - 2 * cases["pass"].cpu
        value = cases[cold].cpu / least
        return f"{value:.2f} ×", value <= 1.3

    def memory() -> tuple[str, bool]:
        most = max(cases[cold].rss, cases[warm].rss)
        return f"{most / MB:.0f} MB", most <= 200 * MB

    def reload() -> tuple[str, bool]:
        spent = cases[f"reload {size}"].printed() * 1000
        return f"{spent:.1f} ms", spent < 50

    def why() -> tuple[str, bool]:
        first, middle, worst = (cases[f"why {size}"].printed(column) * 1000 for column in range(3))
        reached = (
            f"{worst:.0f} ms the slowest, {middle:.0f} ms p50; {first:.0f} ms with loading what is indexed"
        )
        return reached, worst <= 100

    def screen() -> tuple[str, bool]:
        more = cases[f"first screen {size}"].wall - cases["first screen small"].wall
        return f"{more:+.2f} s", more <= 0.3

    return [
        _ratio(bench, f"{label}: step index, first time", index, wc, 10, "`wc -l`"),
        _measured(bench, f"{label}: step index, loaded again", "milliseconds", (f"reload {size}",), reload),
        _measured(bench, f"{label}: `why`, one answer once indexed", "≤ 100 ms", (f"why {size}",), why),
        _ratio(bench, f"{label}: full replay, nothing cached", cold, wc, 25, "`wc -l`"),
        _measured(bench, f"{label}: the same against the work that cannot be avoided",
                  "≤ 1.3 × (orjson + tiktoken)", (cold, orjson, tiktoken, "pass"), floor),
        _ratio(bench, f"{label}: full replay, counts cached", warm, wc, 12, "`wc -l`"),
        _measured(bench, f"{label}: peak memory of a full replay", "≤ 200 MB", (cold, warm), memory),
        _measured(bench, f"{label}: first turns on the screen, above those of a small trace (elapsed)",
                  "≤ 0.3 s", (f"first screen {size}", "first screen small"), screen),
    ]  # fmt: skip


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB of memory, {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def _packages() -> str:
    names = ("tiktoken", "orjson", "msgspec", "xxhash", "rapidfuzz", "textual", "typer")
    return ", ".join(f"{name} {version(name)}" for name in names)


_METHOD = """\
# Benchmarks

Written by `make bench`; do not edit. Every number is a ratio to a floor that was measured in the same run, because
absolute times mean little on a shared machine. Where the table says so, a number is elapsed time or memory instead.

**How.** Each program runs as a child process of its own, and what counts is its CPU time, user and system
(`wait4`), interpreter start included. The programs take turns: one run of each, then again, {runs} rounds and more
for the short ones; the table holds medians, and for memory the highest peak. The page cache is warm. Stdout goes to
the null device. "Nothing cached" means an empty cache directory; "counts cached" means that the same command ran once
before. Byte code is compiled beforehand, as installers do. Peak memory is that of the child, but never reads less than
what the measuring process itself held (25 MB).

**Floors.** `wc -l` of the file; one orjson pass over its lines; tiktoken over its unique contents, each once, with
the vocabulary loaded from the package; `python -c pass`. For the sum of orjson and tiktoken one interpreter start is
subtracted from each.

**Input.** Made by `tests/bench/generate.py`, the same bytes every time: a log whose every request writes its whole
context out again, about 93 items of which two are new, with compactions. Of its bytes two hundredths are contents that
were not there before. A real log may repeat itself less; then counting tokens is most of the work. The small trace is
`traces/coding-agent.jsonl`. What is supposed is supposed of one session of an agent: 1 000 turns of one to seven requests, a window
that only grows, to 3 million tokens in 11 000 items. The turns of the UI are a session of 10 000 turns over a window of 200 items; 60 key
presses or fewer in a headless terminal, counting the CPU time of the event loop's thread until nothing is under way any more. The items of
1 MB are source code of Python's standard library, and a log of 24 000 lines of which 300 are different; lines are
changed at random. Importers run over real captures kept outside the repository, where there are any: every file of a format,
its events made and thrown away, against one orjson pass over the same lines in the same process.
"""


def page(bench: Bench, load: float) -> str:
    """The whole page as Markdown."""
    lines = [_METHOD.format(runs=bench.runs)]
    lines += [f"**Machine.** {_machine()}; {_packages()}. Load average when the run began: {load:.1f}.", ""]
    lines += ["## Targets", "", "| what | target | reached | met |", "|---|---|---|---|"]
    told = rows(bench)
    for row in told:
        met = {True: "yes", False: "**no**", None: "-"}[row.met]
        lines.append(f"| {row.what} | {row.target} | {row.reached} | {met} |")
    missed = [row for row in told if row.met is False]
    lines += ["", f"{sum(row.met is True for row in told)} of {len(told)} targets met, {len(missed)} missed."]
    lines += ["", "## What the ratios are made of", ""]
    lines += ["| program | CPU s (median) | elapsed s | peak memory | runs |", "|---|---|---|---|---|"]
    for case in bench.cases.values():
        if case.ready:
            lines.append(
                f"| {case.name} | {case.cpu:.3f} | {case.wall:.3f} | {case.rss / MB:.0f} MB | "
                f"{len(case.samples)} |"
            )
    sizes = ", ".join(f"{size}: {path.stat().st_size:,} bytes" for size, path in bench.files.items())
    lines += ["", f"Files: {sizes.replace(',', ' ')}.", ""]
    return "\n".join(lines)


def write(bench: Bench, path: Path, load: float) -> None:
    """Write the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(bench, load), encoding="utf-8")
