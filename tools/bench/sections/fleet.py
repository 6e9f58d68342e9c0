"""How long a question about a whole directory of sessions takes."""

from __future__ import annotations

from tools.bench import generate, load
from tools.bench.cases import Bench, command
from tools.bench.peers.homes import claude_home
from tools.bench.peers.running import add_peer, case_name
from tools.bench.peers.specs import BY_NAME, COSTS
from tools.bench.rows import MB, Row, against_work, measured, megabytes
from tools.bench.section import Section
from tools.bench.sections.start import add_bare_start
from tools.bench.sections.transcript import unique_contents

FLEETS = {"240 sessions": (240, 160_000, 1.0), "5 000 sessions": (5_000, 4_000, 0.1)}
"""Number of sessions, bytes that each has at least, and the length of their texts."""
MOST = 300 * MB
BESIDE = "ccusage"


def _add(bench: Bench) -> None:
    add_bare_start(bench)
    for name, made in FLEETS.items():
        several = bench.runs > 1
        folder = generate.transcripts(*made)
        bench.add_input(name, folder)
        bench.loads[name] = load.of_sessions(folder)
        unique = unique_contents(bench, folder)
        bench.add_probe(f"orjson, {name}", "orjson", str(folder), runs=3 if several else 1)
        bench.add_probe(f"tiktoken, {name}", "tiktoken", str(unique), runs=3 if several else 1)
        cost = ("cost", "--json", str(folder))
        bench.prime(*cost, cache="fleet")
        bench.add_command(
            f"cost, {name}, first", *cost, cache="cold", runs=3 if several and made[0] < 1_000 else 1
        )
        bench.add_command(f"cost, {name}, again", *cost, cache="fleet")
        for state, cache in (("first", "cold"), ("again", "fleet")):
            case = f"memory of cost, {name}, {state}"
            bench.add(case, command(*cost), cache=cache, runs=1, whole_tree=True)
        if BY_NAME[BESIDE].installed(bench.peers):
            home = claude_home(bench.scratch / f"captures {name}", folder)
            add_peer(bench, BY_NAME[BESIDE], COSTS, home, name)


def _beside(bench: Bench, name: str) -> Row:
    ours, theirs = f"cost, {name}, again", case_name(BESIDE, COSTS, name, "again")

    def value() -> tuple[str, bool]:
        times = bench.cases[ours].cpu / bench.cases[theirs].cpu
        return f"{times:.2f} × ({bench.cases[ours].cpu:.2f} of {bench.cases[theirs].cpu:.2f} s)", times <= 1

    label, target = f"{name}, again: `cost DIR`", f"≤ 1 × {BESIDE}"
    if not BY_NAME[BESIDE].installed(bench.peers):
        return Row(
            label, target, f"not measured ({BESIDE} is not installed: `make bench-peers INSTALL=1`)", None
        )
    return measured(bench, label, target, (ours, theirs), value)


def _memory(bench: Bench, name: str, state: str) -> Row:
    case = f"memory of cost, {name}, {state}"

    def value() -> tuple[str, bool]:
        return megabytes(bench.cases[case].rss), bench.cases[case].rss <= MOST

    label = f"{name}, {state}: memory of all its processes together"
    return measured(bench, label, f"≤ {megabytes(MOST)}", (case,), value)


def _rows(bench: Bench) -> list[Row]:
    return [
        row
        for name in FLEETS
        for row in (
            against_work(
                bench, f"{name}, first: `cost DIR`", f"cost, {name}, first", name, f"orjson, {name}",
                f"tiktoken, {name}",
            ),
            _beside(bench, name),
            _memory(bench, name, "first"),
            _memory(bench, name, "again"),
        )
    ]  # fmt: skip


SECTION = Section(
    "fleet",
    "And a directory of sessions?",
    "`ctxctl cost DIR` over 240 Claude Code sessions of 44 MB in total, and over 5 000 of 50 MB. CPU time"
    " is that of all processes. The first time, every session is replayed, as its costs rest on what was counted "
    "where a bill cannot be true; the targets are made as those of a first reading are. The memory of all processes is measured 50 times a second: the pages that"
    " each one holds alone, plus the shared pages of the process that shares most.",
    _add,
    _rows,
)
