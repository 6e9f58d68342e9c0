"""Two groups of a dataset's sessions, measure by measure, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ctxctl.dataset.comparing import LEAST, Compared, Side
from ctxctl.report.answers import cell, title
from ctxctl.report.jsonout import VERSION
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, table, wrap
from ctxctl.text import visible
from ctxctl.wording import MINUS, NOT_KNOWN, number, plural, signed_share

if TYPE_CHECKING:
    from ctxctl.dataset.opening import OpenDataset

SURE = "clear"
NOT_SURE = "may be chance"
TOO_FEW = "too few sessions"
ONE_SIDE = "not known"
NOTE = (
    "sessions: those with a value, of A and of B. B less A: with the 95% interval of resampled sessions. "
    "effect: Cliff's delta, how much likelier it is that a session of B has the larger value."
)


def verdict(one: Compared) -> str:
    """How sure a difference is, in words."""
    if one.difference is None:
        return ONE_SIDE
    if one.is_too_small:
        return TOO_FEW
    if not one.is_certain:
        return NOT_SURE
    better = one.measure.better
    if better is None:
        return SURE
    return "worse" if is_worse(one) else "better"


def is_worse(one: Compared) -> bool:
    """Whether B is worse, beyond what the interval leaves open."""
    if not one.is_certain or one.difference is None or one.measure.better is None:
        return False
    return (one.difference > 0) == (one.measure.better == "lower")


def compared_lines(
    found: Sequence[Compared], groups: tuple[str, str], counts: Sequence[int], width: int, paint: Paint
) -> Iterator[str]:
    """Whom is compared, then a line for each measure."""
    for letter, group, count in zip("AB", groups, counts, strict=True):
        yield f"{letter}: {visible(group)}, {plural(count, 'session')}"
    if min(counts) < LEAST:
        yield paint("warn", f"with fewer than {LEAST} sessions on a side no interval is given")
    yield ""
    columns = (
        Column("measure"), Column("A", right=True), Column("B", right=True), Column("change", right=True),
        Column("B less A, 95%", right=True), Column("effect", right=True), Column("verdict"),
        Column("sessions", right=True),
    )  # fmt: skip
    listed = table(columns, [_row(one) for one in found], width)
    yield from (paint("dim", line) for line in listed.head)
    for one, lines in zip(found, listed.rows, strict=True):
        yield from (paint("error", line) for line in lines) if is_worse(one) else lines
    yield ""
    yield from wrap(NOTE, width)


def _row(one: Compared) -> tuple[str, ...]:
    kind, change = one.measure.type, NOT_KNOWN
    if one.difference is not None and one.a.value:
        change = signed_share(one.difference, one.a.value)
    interval = NOT_KNOWN
    if one.low is not None and one.high is not None:
        interval = f"{_signed(one.low, kind)} to {_signed(one.high, kind)}"
    effect = NOT_KNOWN if one.effect is None else _signed_effect(one.effect)
    said = f"{number(one.a.sessions)}, {number(one.b.sessions)}"
    name = title(one.measure.name.replace("-", " "))
    return (
        name,
        cell(one.a.value, kind),
        cell(one.b.value, kind),
        change,
        interval,
        effect,
        verdict(one),
        said,
    )


def _signed(value: float, kind: str) -> str:
    text = cell(abs(value), kind)
    return text if not value else f"{MINUS if value < 0 else '+'}{text}"


def _signed_effect(value: float) -> str:
    return f"{value:+.2f}".replace("-", MINUS)


def compared_objects(
    found: Sequence[Compared], groups: tuple[str, str], counts: Sequence[int], opened: OpenDataset
) -> Iterator[dict[str, Any]]:
    """What is compared, then a line for each measure."""
    yield {
        "type": "fleet_diff", "version": VERSION, "dataset": opened.id, "dataset_version": opened.version,
        "a": groups[0], "b": groups[1], "sessions_a": counts[0], "sessions_b": counts[1],
    }  # fmt: skip
    for one in found:
        yield {
            "type": "measure", "name": one.measure.name, "unit": one.measure.type, "says": one.measure.says,
            "over": one.measure.over, "better": one.measure.better, "a": _side(one.a), "b": _side(one.b),
            "difference": one.difference, "low": one.low, "high": one.high, "effect": one.effect,
            "too_few": one.is_too_small, "verdict": verdict(one),
        }  # fmt: skip


def _side(side: Side) -> dict[str, Any]:
    return {"value": side.value, "sessions": side.sessions, "silent": side.silent}
