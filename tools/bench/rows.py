"""A target, what was reached, and the arithmetic between the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.bench.cases import Bench
from tools.bench.load import START

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


def against_work(bench: Bench, label: str, case: str, of: str, *floors: str) -> Row:
    """CPU time of a reading against what its capture makes Python do, beside the floors that it is given.

    `of`: the input, as in `Bench.loads`.  `floors`: cases; of each a bare start is taken off.
    """
    load = bench.loads.get(of)

    def value() -> tuple[str, bool]:
        assert load is not None
        start, spent = bench.cases["pass"].cpu, bench.cases[case].cpu
        floor = sum(bench.cases[name].cpu - start for name in floors)
        rest = spent - floor - START * start
        reached = f"{spent:.2f} s"
        if floor:
            reached += f", {spent / floor:.2f} × the floor"
        one, number = ("request", load.requests) if load.requests else ("event", load.events)
        reached += f"; {1e3 * rest / number:.3g} ms a{'n' * (one == 'event')} {one}"
        return reached, rest <= load.starts() * start

    floor = " + ".join(name.partition(",")[0].partition(" ")[0] for name in floors)
    if load is None:
        return absent(bench, label, f"≤ {floor}", case)
    target = f"≤ {f'{floor} + ' if floor else ''}{load.words()}"
    return measured(bench, label, target, (case, "pass", *floors), value)


def megabytes(size: float) -> str:
    """Bytes as the page writes them."""
    return f"{size / MB:.0f} MB"
