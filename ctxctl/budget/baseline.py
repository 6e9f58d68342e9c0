"""A committed baseline: numbers of a plan that may not get worse without somebody saying so."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from ctxctl.budget.check import Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.labels import signed_share
from ctxctl.text import visible

_MOST: Final = 4 << 20
_VERSION: Final = 1
_UPDATE: Final = "if that is meant: --update-baseline, and commit it"


def compared_numbers(found: Estimate) -> dict[str, int | str]:
    """What is compared, at the plan's level: tokens, turns as `turn:` (less is worse), dollars as text."""
    level = found.plan.limits.at
    told: dict[str, int | str] = {"tokens:total": found.total(level)}
    for part in found.parts:
        told[f"tokens:part:{part.part.name}"] = getattr(part, level)
    for server in {part.part.server for part in found.parts if part.part.server is not None}:
        told[f"tokens:server:{server}"] = found.server(server, level)
    told["tokens:last-turn"] = getattr(found.turns[-1], level)
    turn = getattr(found.first_wanted, level)
    told["turn:first-overflow"] = turn if turn is not None else found.plan.last + 1
    # Prices of today would fail a gate by themselves one day.
    if found.bill is not None and (found.plan.model.date is not None or found.bill.source == "settings"):
        told["usd:session"] = f"{getattr(found.bill, level).quantize(Decimal('0.000001')):f}"
    return dict(sorted(told.items()))


def compare_with_baseline(found: Estimate, path: Path) -> list[Finding]:
    """What is not as the baseline has it; raises UnreadableError (`no-such-file`, `bad-baseline`)."""
    return list(_compared(compared_numbers(found), _read(path), found))


def _compared(now: dict[str, int | str], before: dict[str, Decimal], found: Estimate) -> Iterator[Finding]:
    bounds = found.plan.limits
    band = Decimal(str(bounds.tolerance.share or 0.0))
    for name, told in now.items():
        subject = (
            name.split(":")[-1] if ":part:" not in name and ":server:" not in name else name.split(":", 2)[2]
        )
        if name not in before:
            yield Finding("baseline-new", subject, f"{visible(name)} is not in the baseline", _UPDATE)
            continue
        was, value = before[name], Decimal(told)
        grew = was - value if name.startswith("turn:") else value - was
        change = f"{visible(name)} was {_shown(was)} and is {_shown(value)}{_share(was, value)}"
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
    import json
    import os

    try:
        before: dict[str, Decimal] = _read(path)
    except UnreadableError:
        before = {}
    now = compared_numbers(found)
    text = json.dumps({"version": _VERSION, "at": found.plan.limits.at, "numbers": now}, indent=2)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise CtxctlError("write-failed", f"{visible(str(path))}: {why}") from None
    changes = []
    for name in sorted({*now, *before}):
        was, value = before.get(name), now.get(name)
        if was is None:
            changes.append(f"{visible(name)}: {value}, new")
        elif value is None:
            changes.append(f"{visible(name)}: gone")
        elif was != Decimal(value):
            changes.append(f"{visible(name)}: {_shown(was)} to {_shown(Decimal(value))}")
    return changes


def _read(path: Path) -> dict[str, Decimal]:
    import json

    shown = visible(str(path))
    try:
        if not path.is_file():
            raise UnreadableError(
                "no-such-file", f"{shown}: no such file", hint="--update-baseline writes a first one"
            )
        with path.open("rb") as file:
            data: Any = json.loads(file.read(_MOST))
        if data["version"] != _VERSION:
            raise ValueError
        table: dict[str, Any] = data["numbers"]
        read = {str(name): Decimal(value) for name, value in table.items()}
        if not all(value.is_finite() for value in read.values()):
            raise ValueError
    except OSError as error:
        raise UnreadableError("bad-baseline", f"{shown}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation, RecursionError):
        raise UnreadableError(
            "bad-baseline", f"{shown} is no baseline of this version", hint="--update-baseline writes it anew"
        ) from None
    return read


def _shown(value: Decimal) -> str:
    return f"{value:,f}"


def _share(was: Decimal, value: Decimal) -> str:
    return f" ({signed_share(value - was, was)})" if was else ""
