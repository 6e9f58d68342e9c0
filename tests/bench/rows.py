"""A target, what was reached, and the arithmetic between the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.bench.cases import Bench

MB = 1_000_000


@dataclass(frozen=True)
class Row:
    """One target: what is to be reached, what was, and whether that is enough (None: not measured)."""

    what: str
    target: str
    reached: str
    met: bool | None


def measured(
    bench: Bench, label: str, target: str, names: tuple[str, ...], value: Callable[[], tuple[str, bool]]
) -> Row:
    """A row of these cases; not measured where one of them has no result."""
    if not bench.ready(*names):
        return absent(bench, label, target, *names)
    try:
        reached, met = value()
    except (ArithmeticError, LookupError, ValueError) as error:  # a program printed something else
        return Row(label, target, f"not measured (what was printed is not understood: {error})", None)
    return Row(label, target, reached, met)


def absent(bench: Bench, label: str, target: str, *names: str) -> Row:
    """A row without a result, with the reason if there is one."""
    why = next((bench.cases[n].failed for n in names if n in bench.cases and bench.cases[n].failed), None)
    return Row(label, target, f"not measured ({why[:160]})" if why else "not measured", None)


def ratio(bench: Bench, label: str, case: str, floor: str, limit: float, unit: str) -> Row:
    """CPU time of a case as a multiple of another's."""

    def value() -> tuple[str, bool]:
        times = bench.cases[case].cpu / bench.cases[floor].cpu
        return f"{times:.1f} ×", times <= limit

    return measured(bench, label, f"≤ {limit:g} × {unit}", (case, floor), value)


def reading_floor(bench: Bench, orjson: str, tiktoken: str) -> float:
    """CPU seconds of parsing every line and counting every content once, without two interpreter starts."""
    cases = bench.cases
    return cases[orjson].cpu + cases[tiktoken].cpu - 2 * cases["pass"].cpu


def against_reading(bench: Bench, label: str, case: str, orjson: str, tiktoken: str, limit: float) -> Row:
    """CPU time of a case against `reading_floor`."""

    def value() -> tuple[str, bool]:
        times = bench.cases[case].cpu / reading_floor(bench, orjson, tiktoken)
        return f"{times:.2f} ×", times <= limit

    return measured(
        bench, label, f"≤ {limit:g} × (orjson + tiktoken)", (case, orjson, tiktoken, "pass"), value
    )


def megabytes(size: float) -> str:
    """Bytes as the page writes them."""
    return f"{size / MB:.0f} MB"
