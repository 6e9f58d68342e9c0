"""What a format declares and what an import measured of each fact, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxctl.formats.fidelity import FACTS, About, Fact, Level
from ctxctl.model.records import Fidelity
from ctxctl.report.tables import labelled
from ctxctl.text import visible

_LEVELS = tuple(level.value for level in Level)


def declared(about: About) -> list[dict[str, Any]]:
    """The declaration as JSON values, one a fact, in the order of the stages."""
    found = []
    for fact in FACTS:
        claim = about.claim(fact.name)
        found.append(
            {
                "fact": fact.name,
                "stage": fact.stage,
                "asks": fact.asks,
                "level": claim.level.value,
                "note": claim.note or None,
            }
        )
    return found


def declared_lines(about: About, width: int) -> Iterator[str]:
    """The declaration, stage by stage, one paragraph a fact."""
    stage = ""
    for fact in FACTS:
        claim = about.claim(fact.name)
        if fact.stage != stage:
            stage = fact.stage
            yield stage
        text = f"{claim.level.value}: {visible(claim.note)}" if claim.note else claim.level.value
        yield from labelled(fact.name.replace("_", " "), text, width, indent=2, tab=17)


def measured(found: Sequence[Fidelity]) -> list[dict[str, Any]] | None:
    """What imports measured as JSON values, one an import; None where nothing was imported."""
    if not found:
        return None
    return [{"format": one.format, "requests": one.requests, "facts": one.facts} for one in found]


def measured_lines(found: Sequence[Fidelity], width: int, *, indent: int = 2) -> Iterator[str]:
    """What was native, derived, simulated and not recorded, one paragraph each.

    A fact that held for some requests only says for how many.
    """
    for one in found:
        if len(found) > 1:
            yield " " * indent + visible(one.format or "unknown format")
        known: dict[str, list[str]] = {level: [] for level in _LEVELS}
        for fact in FACTS:
            for level, text in _told(fact, one):
                known[level].append(text)
        for level in _LEVELS:
            if known[level]:
                yield from labelled(level, ", ".join(known[level]), width, indent=indent, tab=13)


def _told(fact: Fact, measured: Fidelity) -> Iterator[tuple[str, str]]:
    """The levels at which a fact was met, each with its words."""
    counts = {level: n for level, n in measured.facts.get(fact.name, {}).items() if n and level in _LEVELS}
    name = fact.name.replace("_", " ")
    if not counts:
        yield Level.NOT_RECORDED.value, name
        return
    total = sum(counts.values())
    for level, n in counts.items():
        yield level, name if n == total else f"{name} ({n:,} of {total:,})"
