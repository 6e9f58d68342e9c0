"""What a capture holds, in words: how many records, of which types and with which keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import orjson

from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.lines import lines
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

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
