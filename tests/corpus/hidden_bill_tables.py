"""Tables of bills that were hidden and foretold (docs/calibration.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxctl.tokens.calibrate.calibration import Calibration
from ctxctl.tokens.calibrate.errors import quantile
from tests.corpus.hidden_bills import (
    LEAST_BILL,
    Capture,
    Told,
    all_but,
    every,
    foretold_and_shown,
    tried,
    unrepeated,
    weigher,
)

LEAST = 20
"""Hidden bills of a model below which it stands with others of its kind."""
KINDS = {
    "exact": "others with a public tokenizer",
    "fitted": "others that are fitted",
    "kin": "others, by a relative's fit",
    "estimated": "others that nobody fitted",
}
HIDDEN = (2, 3, 5)


class Line(NamedTuple):
    """Hidden bills of one kind in sum."""

    name: str
    bills: int
    p50: float
    p95: float
    within: float
    half: float
    """The median of the stated error, as a share of what is expected."""


def line(name: str, told: Sequence[Told]) -> Line:
    """Errors and coverage of some."""
    errors = sorted(one.error for one in told)
    halves = sorted(one.half / max(1, one.expected) for one in told)
    within = sum(one.within for one in told) / len(told)
    return Line(name, len(told), quantile(errors, 0.5), quantile(errors, 0.95), within, quantile(halves, 0.5))


class Withheld(NamedTuple):
    """What came of hiding bills, foretold by calibrations that were fitted to other captures."""

    hidden: dict[int, list[Told]]
    """Every k-th hidden."""
    shown: list[Told]
    """All but every fifth hidden."""
    breaks: list[Told]
    """Every bill after a break, from all those before it."""
    switches: list[Told]
    """The same after another model's bill."""


def withheld(dealt: Sequence[Sequence[Capture]], made: Sequence[Calibration]) -> Withheld:
    """Foretell the bills of all folds."""
    hidden = {k: _plain(tried(dealt, made, every(k))) for k in HIDDEN}
    shown = _plain(tried(dealt, made, all_but(5)))
    after = [
        told
        for fold, calibration in zip(dealt, made, strict=True)
        for weigh in [weigher(calibration)]
        for trail in unrepeated(fold)
        for told in foretold_and_shown(trail, weigh)
        if told.truth >= LEAST_BILL
    ]
    breaks = [told for told in after if told.broken and not told.switched]
    return Withheld(hidden, shown, breaks, [told for told in after if told.switched])


def _plain(told: Sequence[Told]) -> list[Told]:
    return [one for one in told if not one.broken and not one.switched]


def named(told: Sequence[Told], most: Sequence[Told]) -> dict[str, list[Told]]:
    """By model where there are enough in `most`, else by kind; those of most bills first, kinds last."""
    counts = Counter(one.model for one in most)
    groups: dict[str, list[Told]] = defaultdict(list)
    for one in told:
        groups[one.model if counts[one.model] >= LEAST else KINDS[one.basis]].append(one)
    last = list(KINDS.values())
    order = sorted(groups, key=lambda name: (name in last, -len(groups[name]), name))
    return {name: groups[name] for name in order}


def per_cent(share: float) -> str:
    """Two digits that say something."""
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:,.0f} %"


def table(found: Withheld) -> Iterator[str]:
    """By model, every second, third and fifth bill hidden; in Markdown."""
    yield (
        "| model | "
        + " | ".join(f"k = {k}: bills | p50 | p95 | within" for k in HIDDEN)
        + " | stated error |"
    )
    yield "|---|" + "---:|" * (4 * len(HIDDEN) + 1)
    most = found.hidden[HIDDEN[0]]
    groups = {k: named(told, most) for k, told in found.hidden.items()}
    for name, told in groups[HIDDEN[0]].items():
        cells = []
        for k in HIDDEN:
            own = groups[k].get(name)
            cells.append(_cells(line(name, own)) if own else "0 | - | - | -")
        yield f"| {name} | " + " | ".join(cells) + f" | {per_cent(line(name, told).half)} |"
    cells = [_cells(line("all", told)) for told in found.hidden.values()]
    yield "| all | " + " | ".join(cells) + f" | {per_cent(line('all', most).half)} |"


def others_table(found: Withheld) -> Iterator[str]:
    """Where four of five bills are hidden, and after breaks."""
    yield "| what is expected | bills | p50 | p95 | within | stated error |"
    yield "|---|---:|---:|---:|---:|---:|"
    groups = {basis: [one for one in found.shown if one.basis == basis] for basis in KINDS}
    rows = [line(f"four of five bills hidden, {basis}", told) for basis, told in groups.items() if told]
    rows.append(line("after a compaction, all models", found.breaks))
    rows.append(line("after another model's bill", found.switches))
    for row in rows:
        yield f"| {row.name} | {_cells(row)} | {per_cent(row.half)} |"


def _cells(row: Line) -> str:
    return f"{row.bills:,} | {per_cent(row.p50)} | {per_cent(row.p95)} | {row.within:.0%}"
