"""Ends an import: what it lacks is looked for in the file, and what was not understood is told."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ctxctl.formats.about import FACTS, IN_USAGE
from ctxctl.formats.enough import Enough
from ctxctl.formats.fidelity import Meter
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.inventory import inventory
from ctxctl.formats.kit.look import Hit, Look, look
from ctxctl.formats.understood import Json, Understood
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

_ASKS: Final = {fact.name: fact.name.replace("_", " ") for fact in FACTS}


def measure(
    source: Source | Folder, meter: Meter, account: Understood, found: list[Problem], report: Enough
) -> Json:
    """Report what was not understood; the fields of the event that says what the capture held of each fact.

    Where nothing was made of the capture, and the importer said why, that is enough.

    `found`: further problems of the import as a whole.  Problems: `not-understood`, `unknown-type`,
    `newer-version`, and those.
    """
    missing = tuple(fact for fact in meter.missing() if fact not in account.explained)
    seen = look(source, missing, meter.beside(missing)) if missing else Look({}, 0, 0)
    told = [] if meter.empty and report.said_any else _together(seen)
    for problem in report.held():
        held_text = [problem.message, f"looked at {inventory(source)}"]
        held_text += [f"not understood: {', '.join(map(_named, seen.hits.values()))}"] * bool(seen.hits)
        report(Problem(problem.line, problem.byte, problem.slug, "; ".join(held_text)))
    for problem in (*account.problems(), *map(_not_understood, told), *found):
        report(problem)
    return {
        "requests": meter.requests,
        "facts": meter.measured(seen.hits),
        "understood": _account(source, account, seen, missing),
    }


def _account(source: Source | Folder, account: Understood, seen: Look, missing: tuple[str, ...]) -> Json:
    held = account.held
    return {
        "bytes": _size(source),
        "not_understood": account.bytes,
        "unknown_records": account.types(),
        "newer_version": account.newer,
        "held_against": held.newest or None if held is not None else None,
        "looked_for": [*missing],
        "looked_at": seen.looked if missing else None,
        "places": {
            fact: {"key": hit.key, "line": hit.line, "file": hit.file} for fact, hit in seen.hits.items()
        },
    }


def _together(seen: Look) -> list[list[Hit]]:
    """The hits by place: a bill that was not taken is one problem, and not one for each of its counts."""
    by: dict[tuple[str | None, str], list[Hit]] = {}
    for hit in sorted(seen.hits.values(), key=lambda hit: (hit.file or "", hit.line)):
        object_of = hit.key.rpartition(".")[0] if hit.fact in IN_USAGE else hit.key
        by.setdefault((hit.file, object_of), []).append(hit)
    return [*by.values()]


def _not_understood(hits: list[Hit]) -> Problem:
    first = hits[0]
    named = ", ".join(map(_named, hits))
    file = f"{first.file}: " if first.file is not None else ""
    message = f"{file}this looks like {named}, which was not taken from here: not understood"
    return Problem(first.line, first.byte, "not-understood", message)


def _named(hit: Hit) -> str:
    return f"{_ASKS[hit.fact]} ({hit.key or 'the outermost list'}, line {hit.line:,})"


def _size(source: Source | Folder) -> int:
    """Bytes of the capture; of a directory, of all its files."""
    if isinstance(source, Source):
        return source.size
    total = 0
    for name in source.files:
        try:
            total += Path(source.path, name).stat().st_size
        except OSError:
            continue
    return total
