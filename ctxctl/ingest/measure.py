"""Ends an import: looks in the file for facts that the import lacks, and tells what was not understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from ctxctl.ingest.about import FACTS, IN_USAGE
from ctxctl.ingest.build import Json
from ctxctl.ingest.fidelity import Meter
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import lines
from ctxctl.ingest.problem_limit import ProblemLimit
from ctxctl.ingest.second_look import SecondLook, Sighting, look_again
from ctxctl.ingest.understood import Understood
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

_ASKS: Final = {fact.name: fact.name.replace("_", " ") for fact in FACTS}


def measure(
    source: Source | Folder, meter: Meter, account: Understood, found: list[Problem], report: ProblemLimit
) -> Json:
    """Report what was not understood; the fields of the event that says what the capture held of each fact.

    Where nothing was made of the capture, and the importer said why, that is enough.

    `found`: further problems of the import as a whole.  Problems: `not-understood`, `unknown-type`,
    `newer-version`, and those.
    """
    missing = tuple(fact for fact in meter.missing() if fact not in account.explained)
    seen = look_again(source, missing, meter.beside(missing)) if missing else SecondLook({}, 0, 0)
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


def _account(
    source: Source | Folder, account: Understood, seen: SecondLook, missing: tuple[str, ...]
) -> Json:
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


def _together(seen: SecondLook) -> list[list[Sighting]]:
    """The hits by place: a bill that was not taken is one problem, and not one for each of its counts."""
    by: dict[tuple[str | None, str], list[Sighting]] = {}
    for hit in sorted(seen.hits.values(), key=lambda hit: (hit.file or "", hit.line)):
        object_of = hit.key.rpartition(".")[0] if hit.fact in IN_USAGE else hit.key
        by.setdefault((hit.file, object_of), []).append(hit)
    return [*by.values()]


def _not_understood(hits: list[Sighting]) -> Problem:
    first = hits[0]
    named = ", ".join(map(_named, hits))
    file = f"{first.file}: " if first.file is not None else ""
    message = f"{file}this looks like {named}, which was not taken from here: not understood"
    return Problem(first.line, first.byte, "not-understood", message)


def _named(hit: Sighting) -> str:
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


_MOST_LINES: Final = 2_000
_MOST_BYTES: Final = 4 << 20
_NAMED: Final = 8
_LONGEST: Final = 60
_KINDS: Final = ("type", "kind", "event", "event_type", "role")


def inventory(source: Source | Folder) -> str:
    """What was looked at, such as `3 records (system 1, result 2; keys type, usage)`.

    Of a long file that is its beginning, and is called so.
    """
    if isinstance(source, Folder):
        return f"{len(source.files):,} files"
    records, whole = _records(source)
    if not records:
        return f"{source.size:,} bytes that are no JSON"
    kinds = Counter(kind for kind in map(_kind, records) if kind)
    keys = dict.fromkeys(key[:_LONGEST] for record in records for key in record)
    told = [", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(_NAMED))] if kinds else []
    told.append(f"keys {', '.join(islice(keys, _NAMED))}{', …' if len(keys) > _NAMED else ''}")
    several = "record" if len(records) == 1 else "records"
    return f"{'' if whole else 'the first '}{len(records):,} {several} ({'; '.join(told)})"


def _records(source: Source) -> tuple[list[dict[str, Any]], bool]:
    """The objects of the lines, or of the document, and whether that is all of them."""
    data = source.read(0, _MOST_BYTES)
    if len(data) == source.size and (found := _loaded(data)) is not None:
        return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)], True
    found_lines = list(islice(_objects(source), _MOST_LINES + 1))
    return found_lines[:_MOST_LINES], len(found_lines) <= _MOST_LINES


def _objects(source: Source) -> Iterator[dict[str, Any]]:
    for line in lines(source, _unheard):
        if line.offset > _MOST_BYTES:
            return
        value = _loaded(line.data)
        if isinstance(value, dict):
            yield value


def _loaded(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _kind(record: dict[str, Any]) -> str | None:
    found = next((record[key] for key in _KINDS if isinstance(record.get(key), str)), None)
    return found[:_LONGEST] if found is not None else None


def _unheard(_problem: Problem) -> None:
    return None
