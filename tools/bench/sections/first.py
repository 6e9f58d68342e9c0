"""How long the first reading of a large trace or capture takes."""

from __future__ import annotations

from pathlib import Path

from tools.bench import generate, load
from tools.bench.cases import Bench, probe
from tools.bench.rows import MB, Row, against_work, measured, megabytes, ratio
from tools.bench.section import Section
from tools.bench.sections.start import add_bare_start
from tools.bench.sections.transcript import FIRST, ORJSON, SESSION, TIKTOKEN, add_first_reading, add_floors

LABELS = {"100mb": "100 MB trace", "1gb": "1 GB trace"}


def _add(bench: Bench) -> None:
    add_bare_start(bench)
    _add_trace(bench, "100mb", generate.megabytes_100(), bench.runs)
    if bench.gigabyte:
        _add_trace(bench, "1gb", generate.gigabyte(), max(1, bench.runs // 2))
    add_floors(bench)
    add_first_reading(bench)


def _add_trace(bench: Bench, size: str, path: Path, runs: int) -> None:
    bench.add_input(LABELS[size], path)
    bench.loads[LABELS[size]] = load.of_trace(path)
    unique = path.with_suffix(".unique")
    if not unique.exists():
        bench.run_once(probe("extract", str(path), str(unique)), "first")
    replay = ("replay", "--json", str(path))
    bench.prime(*replay, cache=f"first-{size}")
    bench.prime(*replay, cache=f"counted-{size}")
    bench.add_probe(f"orjson {size}", "orjson", str(path), runs=runs)
    bench.add_probe(f"tiktoken {size}", "tiktoken", str(unique), runs=runs)
    bench.add_probe(f"index {size}", "index", str(path), runs=runs, cache="cold")
    bench.before(lambda: bench.run_once(probe("index", str(path)), f"index-{size}"))
    bench.add_probe(f"reload {size}", "reload-index", str(path), runs=runs, keep=True, cache=f"index-{size}")
    bench.add_probe(f"why {size}", "why", str(path), runs=runs, keep=True, cache=f"first-{size}")
    bench.add_command(f"cold replay {size}", *replay, runs=runs, cache="cold")
    bench.add_command(f"warm replay {size}", *replay, runs=runs, cache=f"counted-{size}:counted")


def _trace_rows(bench: Bench, size: str) -> list[Row]:
    cases, label = bench.cases, LABELS[size]
    cold, warm = f"cold replay {size}", f"warm replay {size}"
    orjson, tiktoken = f"orjson {size}", f"tiktoken {size}"

    def memory() -> tuple[str, bool]:
        most = max(cases[cold].rss, cases[warm].rss)
        return megabytes(most), most <= 200 * MB

    def reload() -> tuple[str, bool]:
        spent = cases[f"reload {size}"].printed() * 1000
        return f"{spent:.1f} ms", spent < 50

    def why() -> tuple[str, bool]:
        first, middle, worst = (cases[f"why {size}"].printed(column) * 1000 for column in range(3))
        told = f"{worst:.0f} ms the slowest, {middle:.0f} ms p50; {first:.0f} ms with loading the index"
        return told, worst <= 100

    rows = [
        ratio(bench, f"{label}: step index, first time", f"index {size}", orjson, 2, "an orjson pass"),
        measured(bench, f"{label}: step index, loaded again", "< 50 ms", (f"reload {size}",), reload),
        measured(bench, f"{label}: `why`, one answer once indexed", "≤ 100 ms", (f"why {size}",), why),
        against_work(bench, f"{label}: full replay, nothing cached", cold, label, orjson, tiktoken),
        against_work(bench, f"{label}: full replay, counts cached", warm, label, orjson),
    ]
    return [
        *rows,
        measured(bench, f"{label}: peak memory of a full replay", "≤ 200 MB", (cold, warm), memory),
    ]


def _rows(bench: Bench) -> list[Row]:
    sizes = ("100mb", "1gb") if bench.gigabyte else ("100mb",)
    label = "50 MB Claude Code session: `replay --json`, nothing cached"
    return [
        against_work(bench, label, FIRST, SESSION, ORJSON, TIKTOKEN),
        *(row for size in sizes for row in _trace_rows(bench, size)),
    ]


SECTION = Section(
    "first",
    "How long does the first reading of a large capture take?",
    "The traces are logs in which every request writes its whole context again: about 93 items, two of "
    "them new, with compactions. Two hundredths of their bytes are texts that were not there before. The "
    "session repeats nothing. “Counts cached”: the token counts of its texts are known, everything else is "
    "read again. Parsing and counting are done in C and Rust; what stands between them is Python, and grows with "
    "requests and events, not with bytes: each is imported, told from the one before, weighed, priced, kept "
    "and printed, and none of these takes more than a few hundredths of it. So the targets allow what parsing and "
    "counting take, and for the rest a share of a bare start of Python for each request and event. Multiples "
    "of the floor alone (1.3, 1.6) were the targets before: 7,454 requests in 1.8 s of floor would have had "
    "0.14 ms each, which Python does not do. Nor is `wc -l` a floor any more: newer ones read a gigabyte in 0.08 s.",
    _add,
    _rows,
)
