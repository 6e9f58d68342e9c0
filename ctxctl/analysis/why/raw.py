"""Whether the capture itself holds a text that no item has: then its importer did not take it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.analysis.lacks import fidelity_of
from ctxctl.errors import CtxctlError
from ctxctl.importers.capture import NATIVE
from ctxctl.ingest.about import FACTS, Level
from ctxctl.ingest.folder import Folder
from ctxctl.model.why import Link
from ctxctl.trace.source import Source, open_source

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector

LEAST: Final = 4
"""Characters of a text that is looked for in the capture; shorter ones stand everywhere."""
FAR: Final = 256 << 20
"""Bytes of a capture that are looked through."""
_BLOCK: Final = 1 << 20
_LINE: Final = 4 << 20
"""Bytes of the longest line whose keys are named."""
_NODES: Final = 100_000
_HELD: Final = ("system_prompt", "tool_definitions", "reminders")


class Spot(NamedTuple):
    """Where the text stands."""

    line: int
    byte: int
    key: str
    """The keys that lead to it, with dots between them; empty where the line is not JSON."""
    file: str | None


def left_in_capture(inspector: Inspector, text: str) -> list[Link]:
    """A sentence if the capture holds the text; else one on what such a capture does not record.

    Reads the foreign file again, so it is for when somebody asked.  What was redacted is never searched.
    """
    if inspector.format == NATIVE:
        return []
    spot = None if inspector.redactor or len(text.strip()) < LEAST else _spot(inspector, text.strip())
    if spot is not None:
        file = f" of {spot.file}" if spot.file is not None else ""
        under = f", under {spot.key}" if spot.key else ""
        told = f"the capture holds it on line {spot.line:,}{file} (byte {spot.byte:,}){under}"
        sentence = f"{told}, and its importer did not take it: whether it was sent is not known"
        return [Link("surface", "not-understood", sentence)]
    lacking = _lacking(inspector)
    if not lacking:
        return []
    sentence = f"such a capture does not record {lacking}: what stood there is not known"
    return [Link("surface", "not-recorded", sentence, provenance="derived")]


def _lacking(inspector: Inspector) -> str:
    """Parts of a request of which no import of the trace has anything, in words."""
    found = fidelity_of(inspector)
    names = [
        fact.asks.partition(" (")[0]
        for fact in FACTS
        if fact.name in _HELD
        and found
        and all(set(one.facts.get(fact.name, {})) <= {Level.NOT_RECORDED.value} for one in found)
    ]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _spot(inspector: Inspector, text: str) -> Spot | None:
    path = inspector.trace.source.path
    if path is None:
        return None
    try:
        if Path(path).is_dir():
            return _in_folder(Folder(str(path), Path(path)), text)
        with open_source(path) as source:
            return _in_source(source, text, None)
    except (CtxctlError, OSError):
        return None


def _in_folder(folder: Folder, text: str) -> Spot | None:
    left = FAR
    for name in folder.files:
        try:
            with folder.open(name) as source:
                spot = _in_source(source, text, name) if source.size <= left else None
                left -= source.size
        except (CtxctlError, OSError):
            continue
        if spot is not None or left <= 0:
            return spot
    return None


def _in_source(source: Source, text: str, name: str | None) -> Spot | None:
    """The first place, whatever its capitals: as it is, or as JSON writes it."""
    spellings = [text.encode(), json.dumps(text)[1:-1].encode(), orjson.dumps(text)[1:-1]]
    needles = tuple(dict.fromkeys(one.lower() for one in (*spellings, spellings[1].replace(b"\\", b"\\\\"))))
    overlap, line = max(map(len, needles)), 1
    for at in range(0, min(source.size, FAR), _BLOCK):
        data = source.read(at, _BLOCK + overlap)
        small = data.lower()
        places = [place for place in (small.find(needle) for needle in needles) if 0 <= place < _BLOCK]
        if places:
            place = min(places)
            byte = at + place
            return Spot(line + data.count(b"\n", 0, place), byte, _key(source, byte, text), name)
        line += data.count(b"\n", 0, _BLOCK)
    return None


def _key(source: Source, byte: int, text: str) -> str:
    """The keys that lead to the text in the JSON value of its line, or of the whole document."""
    before = source.read(max(0, byte - _LINE), min(byte, _LINE))
    start = max(0, byte - _LINE) + before.rfind(b"\n") + 1
    data = source.read(start, _LINE).partition(b"\n")[0]
    for candidate in (data, source.read(0, _LINE) if source.size <= _LINE else b""):
        try:
            value = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        return next(_keys(value, text.casefold()), "")
    return ""


def _keys(value: Any, text: str) -> Iterator[str]:
    waiting: list[tuple[Any, str]] = [(value, "")]
    for _ in range(_NODES):
        if not waiting:
            return
        one, path = waiting.pop()
        if isinstance(one, str):
            if text in one.casefold():
                yield path
        elif isinstance(one, list):
            waiting += reversed([(inner, path) for inner in one])
        elif isinstance(one, dict):
            members = [(inner, f"{path}.{key}" if path else key) for key, inner in one.items()]
            yield from (under for key, (_, under) in zip(one, members, strict=True) if text in key.casefold())
            waiting += reversed(members)
