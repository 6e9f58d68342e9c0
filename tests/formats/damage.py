"""Damages captures and imports them: what every importer has to survive."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.importers import registry
from ctxctl.ingest.declaration import Format
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from ctxctl.trace.writer import TraceWriter

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
NOT_FOREIGN = frozenset({"damaged"})


class Damaged(NamedTuple):
    """A capture with one line damaged."""

    what: str
    hurt: frozenset[int]
    """Lines of the sound capture that are not there as they were."""
    data: bytes


class Imported(NamedTuple):
    """An import: its events, and what it reported."""

    events: list[dict[str, Any]]
    problems: list[Problem]

    def texts(self) -> Counter[str]:
        """Every content of an item, as often as it was announced."""
        return Counter(
            data["content"]
            for data in (event["data"] for event in self.events if ".item." in event["event_type"])
            if isinstance(data.get("content"), str) and not _is_derived(data)
        )

    def texts_of(self, lines: frozenset[int]) -> set[str]:
        """The contents that come from some lines of the capture."""
        return {
            event["data"]["content"]
            for event in self.events
            if ".item." in event["event_type"]
            and isinstance(event["data"].get("content"), str)
            and event.get("metadata", {}).get("ctxctl", {}).get("source_line") in lines
        }


def _is_derived(item: dict[str, Any]) -> bool:
    return bool(item.get("metadata", {}).get("ctxctl", {}).get("derived"))


def captures() -> Iterator[tuple[str, Path]]:
    """The name of a fixture and its file."""
    for path in sorted(FIXTURES.rglob("*")):
        name = path.relative_to(FIXTURES).as_posix()
        if path.is_file() and path.suffix != ".py" and name.split("/")[0] not in NOT_FOREIGN:
            yield name, path


def is_lines(data: bytes) -> bool:
    """Whether a file is JSON Lines (and not one document spread over lines)."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    return len(lines) > 1 and all(line[:1] in b"{[" and line.rstrip()[-1:] in b"}]" for line in lines)


def each_line_damaged(data: bytes) -> Iterator[Damaged]:
    """The capture with each line deleted, duplicated, cut in the middle, and swapped with the next."""
    lines = data.split(b"\n")
    last = len(lines) - (not lines[-1])
    for at in range(last):
        before, line, after = lines[:at], lines[at], lines[at + 1 :]
        one = frozenset({at + 1})
        yield Damaged(f"line {at + 1} deleted", one, b"\n".join([*before, *after]))
        yield Damaged(f"line {at + 1} twice", one, b"\n".join([*before, line, line, *after]))
        yield Damaged(f"line {at + 1} cut", one, b"\n".join([*before, line[: len(line) // 2], *after]))
        if at + 1 < last:
            swapped = [*before, lines[at + 1], line, *lines[at + 2 :]]
            yield Damaged(f"lines {at + 1} and {at + 2} swapped", one | {at + 2}, b"\n".join(swapped))


def each_place_damaged(data: bytes, places: int = 40) -> Iterator[Damaged]:
    """A capture that is no JSON Lines: cut off, overwritten and bitten at places spread over it."""
    for at in sorted({len(data) * n // places for n in range(places)}):
        yield Damaged(f"cut off at byte {at}", frozenset(), data[:at])
        yield Damaged(f"NUL at byte {at}", frozenset(), data[:at] + b"\0\0\0\0" + data[at + 4 :])
        yield Damaged(f"bitten at byte {at}", frozenset(), data[:at] + data[at + 24 :])


def imported(importer: Format, data: bytes, name: str = "capture") -> Imported:
    """An import of bytes in memory; every event can be written as a valid one."""
    problems: list[Problem] = []
    refused: list[Problem] = []
    writer = TraceWriter(io.BytesIO(), source=importer.name, report=refused.append)
    found = []
    for event in registry.capture_events(importer, Source.from_bytes(name, data), problems.append):
        writer.write(event)
        found.append(event)
    assert not refused, refused[0].message
    return Imported(found, problems)
