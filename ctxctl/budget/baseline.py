"""A committed baseline: numbers of a plan that may not get worse without somebody saying so."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ctxctl.analysis.baseline_file import BaselineKind, replace_baseline
from ctxctl.budget.check import Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.errors import UnreadableError
from ctxctl.text import visible
from ctxctl.wording import exact, signed_share

_KIND: Final = BaselineKind(
    4 << 20,
    "no baseline of this version",
    missing_hint="--update-baseline writes a first one",
    damaged_hint="--update-baseline writes it anew",
)
_UPDATE: Final = "if that is meant: --update-baseline, and commit it"


def compared_numbers(found: Estimate) -> dict[str, int | str]:
    """What is compared, at the plan's level: tokens, turns as `turn:` (less is worse), dollars as text."""
    level = found.plan.limits.at
    numbers: dict[str, int | str] = {"tokens:total": found.total(level)}
    for part in found.parts:
        numbers[f"tokens:part:{part.part.name}"] = getattr(part, level)
    for server in {part.part.server for part in found.parts if part.part.server is not None}:
        numbers[f"tokens:server:{server}"] = found.server(server, level)
    numbers["tokens:last-turn"] = getattr(found.turns[-1], level)
    turn = getattr(found.first_wanted, level)
    numbers["turn:first-overflow"] = turn if turn is not None else found.plan.last + 1
    # Prices of today would fail a gate by themselves one day.
    if found.bill is not None and (found.plan.model.date is not None or found.bill.source == "settings"):
        numbers["usd:session"] = f"{getattr(found.bill, level).quantize(Decimal('0.000001')):f}"
    return dict(sorted(numbers.items()))


def compare_with_baseline(found: Estimate, path: Path) -> list[Finding]:
    """What is not as the baseline has it; raises UnreadableError (`no-such-file`, `bad-baseline`)."""
    return list(_compared(compared_numbers(found), _read(path), found))


def _compared(now: dict[str, int | str], before: dict[str, Decimal], found: Estimate) -> Iterator[Finding]:
    bounds = found.plan.limits
    band = Decimal(str(bounds.tolerance.share or 0.0))
    for name, number in now.items():
        subject = (
            name.split(":")[-1] if ":part:" not in name and ":server:" not in name else name.split(":", 2)[2]
        )
        if name not in before:
            yield Finding("baseline-new", subject, f"{visible(name)} is not in the baseline", _UPDATE)
            continue
        was, value = before[name], Decimal(number)
        grew = was - value if name.startswith("turn:") else value - was
        change = f"{visible(name)} was {exact(was)} and is {exact(value)}{_share(was, value)}"
        if grew > was * band:
            yield Finding("baseline-worse", subject, change, _UPDATE)
        elif -grew > was * band:
            level = "error" if bounds.ratchet else "note"
            yield Finding(
                "baseline-loose", subject, f"{change}: better than the baseline demands",
                "--update-baseline keeps it so", "error" if level == "error" else "note",
            )  # fmt: skip
    for name in sorted(before.keys() - now.keys()):
        yield Finding(
            "baseline-stale", name, f"the baseline has {visible(name)}, which is no longer there", _UPDATE
        )


def write_baseline(found: Estimate, path: Path) -> list[str]:
    """Write the baseline anew; what changed, one line each.  Raises CtxctlError("write-failed")."""
    try:
        before: dict[str, Decimal] = _read(path)
    except UnreadableError:
        before = {}
    now = compared_numbers(found)
    replace_baseline(path, {"at": found.plan.limits.at, "numbers": now})
    changes = []
    for name in sorted({*now, *before}):
        was, value = before.get(name), now.get(name)
        if was is None:
            changes.append(f"{visible(name)}: {value}, new")
        elif value is None:
            changes.append(f"{visible(name)}: gone")
        elif was != Decimal(value):
            changes.append(f"{visible(name)}: {exact(was)} to {exact(Decimal(value))}")
    return changes


def _read(path: Path) -> dict[str, Decimal]:
    return _KIND.read(path, _parse)


def _parse(data: dict[str, Any]) -> dict[str, Decimal]:
    read = {str(name): Decimal(value) for name, value in data["numbers"].items()}
    if not all(value.is_finite() for value in read.values()):
        raise ValueError
    return read


def _share(was: Decimal, value: Decimal) -> str:
    return f" ({signed_share(value - was, was)})" if was else ""
