"""What a what-if costs."""

from __future__ import annotations

from tools.bench import generate
from tools.bench.cases import Bench
from tools.bench.rows import Row, measured
from tools.bench.section import Section

WINDOW = "128k"
"""What the session holds exceeds it for most of its turns."""
POLICIES = (
    "",
    "fifo",
    "priority",
    "truncate_middle",
    "truncate_tail",
    "summarize_oldest",
    "summarize_low_priority",
    "defer_to_retrieval",
    "reject",
    "amplifier",
    "amplifier_contract",
    "sibyl",
)
"""Empty: the window alone."""
PLAIN = "replay of 1 000 turns as recorded"


def _case(policy: str) -> str:
    return f"what-if, {policy or 'window alone'}"


def _options(policy: str) -> list[str]:
    return ["--window", WINDOW, *(["--policy", policy] if policy else [])]


def _add(bench: Bench) -> None:
    path = generate.turns_1k()
    bench.add_input("1 000 turns", path)
    replay = ("replay", "--json", str(path))
    runs = min(3, bench.runs)
    bench.prime(*replay, cache="whatif")
    bench.add_command(PLAIN, *replay, cache="whatif:counted", runs=runs)
    for policy in POLICIES:
        bench.prime(*replay, *_options(policy), cache="whatif")
        bench.add_command(_case(policy), *replay, *_options(policy), cache="whatif:counted", runs=runs)


def _row(bench: Bench, policy: str) -> Row:
    case = _case(policy)

    def times() -> tuple[str, bool]:
        value = bench.cases[case].cpu / bench.cases[PLAIN].cpu
        return f"{value:.2f} ×", value < 2

    label = f"`replay --json {' '.join(_options(policy))}`"
    return measured(bench, label, "< 2 × its plain replay", (case, PLAIN), times)


def _rows(bench: Bench) -> list[Row]:
    return [_row(bench, policy) for policy in POLICIES]


SECTION = Section(
    "whatif",
    "What does a what-if cost?",
    "An agent's session: 1 000 turns, 4 000 requests, and a window that only grows, to 3 million tokens "
    "in 11 000 items. Counts are cached; the replay as recorded is also computed again, not taken from "
    "the cache.",
    _add,
    _rows,
)
