"""What a format declares and what an import measured of each fact, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ctxctl.model.records import Fidelity
from ctxctl.model.vocab import Level
from ctxctl.report.tables import labelled
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.ingest.about import About, Fact

_LEVELS = tuple(level.value for level in Level)
WRITTEN_BY = "written by"
"""The label of a version that is newer than the importer was held against."""
LOOKED_AT = "looked at"
"""The label of how far was looked for what is not recorded."""
_TAB = 13
_TYPES = 6
"""How many unknown types of records are named."""


def declared(about: About) -> list[dict[str, Any]]:
    """The declaration as JSON values, one a fact, in the order of the stages."""
    from ctxctl.ingest.about import FACTS

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
    from ctxctl.ingest.about import FACTS

    stage = ""
    for fact in FACTS:
        claim = about.claim(fact.name)
        if fact.stage != stage:
            stage = fact.stage
            yield stage
        text = f"{claim.level.value}: {visible(claim.note)}" if claim.note else claim.level.value
        yield from labelled(fact.name.replace("_", " "), text, width, indent=2, tab=17)


def held_against(about: About) -> dict[str, Any] | None:
    """What an importer was held against as JSON values; None where it declares nothing."""
    held = about.held_against
    if held is None:
        return None
    return {
        "client": held.client or None,
        "oldest": held.oldest or None,
        "newest": held.newest or None,
        "records": sorted(held.records),
    }


def held_words(about: About) -> str:
    """What an importer was held against, in words; empty where it declares nothing."""
    held = about.held_against
    if held is None:
        return ""
    versions = (
        f"{held.oldest} to {held.newest}" if held.oldest and held.oldest != held.newest else held.newest
    )
    parts = [f"{held.client or 'version'} {versions}"] if versions else [held.client] * bool(held.client)
    names = [name or "(none)" for name in sorted(held.records)]
    parts += [f"records of the types {', '.join(names)}"] * bool(names)
    return "; ".join(parts)


def measured(found: Sequence[Fidelity]) -> list[dict[str, Any]] | None:
    """What imports measured as JSON values, one an import; None where nothing was imported."""
    if not found:
        return None
    return [
        {
            "format": one.format,
            "requests": one.requests,
            "facts": one.facts,
            "understood": one.understood or None,
        }
        for one in found
    ]


def measured_lines(found: Sequence[Fidelity], width: int, *, indent: int = 2) -> Iterator[str]:
    """What was native, derived, simulated, not recorded and not understood, one paragraph each.

    A fact that held for some requests only says for how many.
    """
    from ctxctl.ingest.about import FACTS

    for one in found:
        if len(found) > 1:
            yield " " * indent + visible(one.format or "unknown format")
        known: dict[str, list[str]] = {level: [] for level in _LEVELS}
        for fact in FACTS:
            for level, text in _told(fact, one):
                known[level].append(text)
        tab = _TAB + 2 * bool(known[Level.NOT_UNDERSTOOD.value])
        for level in _LEVELS:
            if known[level]:
                yield from labelled(level, ", ".join(known[level]), width, indent=indent, tab=tab)
        for label, text in not_understood(one):
            yield from labelled(label, text, width, indent=indent, tab=tab)


def not_understood(found: Fidelity) -> Iterator[tuple[str, str]]:
    """What of the file the importer did not understand, and how far it looked; nothing where it is all."""
    facts = found.understood
    newer, held = facts.get("newer_version"), facts.get("held_against")
    if isinstance(newer, str):
        yield WRITTEN_BY, f"version {visible(newer)}; read as {visible(str(held))} is, the newest one known"
    missed, size = _count(facts, "not_understood"), _count(facts, "bytes")
    kinds = facts.get("unknown_records")
    if missed or kinds:
        text = f"{missed:,} of {size:,} bytes not understood"
        if isinstance(kinds, dict) and kinds:
            text += f": {_kinds(kinds)}"
        yield "file", text
    looked = _count(facts, "looked_at")
    if 0 < looked < size and facts.get("looked_for"):
        yield LOOKED_AT, f"{looked:,} of {size:,} bytes for what is not recorded"


def _kinds(kinds: dict[str, Any]) -> str:
    """Types of records with how many there are of each."""
    shown = [
        f"{visible(name) or '(no type)'} {count:,}" for name, count in kinds.items() if isinstance(count, int)
    ]
    more = f" and {len(shown) - _TYPES:,} more types" if len(shown) > _TYPES else ""
    return f"records of unknown types ({', '.join(shown[:_TYPES])}{more})"


def _count(counts: dict[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def place(found: Fidelity, fact: str) -> str:
    """Where something stands that looks like a fact and was not taken: `usage.in on line 3`; may be empty."""
    places = found.understood.get("places")
    seen = places.get(fact) if isinstance(places, dict) else None
    if not isinstance(seen, dict):
        return ""
    file = seen.get("file")
    where = f" of {visible(file)}" if isinstance(file, str) else ""
    key = visible(str(seen.get("key") or "")) or "the outermost list"
    return f"{key} on line {_count(seen, 'line'):,}{where}"


def _told(fact: Fact, measured: Fidelity) -> Iterator[tuple[str, str]]:
    """The levels at which a fact was met, each with its words."""
    counts = {level: n for level, n in measured.facts.get(fact.name, {}).items() if n and level in _LEVELS}
    name = fact.name.replace("_", " ")
    if not counts:
        yield Level.NOT_RECORDED.value, name
        return
    total = sum(counts.values())
    for level, n in counts.items():
        where = place(measured, fact.name) if level == Level.NOT_UNDERSTOOD.value else ""
        said = [f"{n:,} of {total:,}"] * (n != total) + [where] * bool(where)
        yield level, f"{name} ({'; '.join(said)})" if said else name
