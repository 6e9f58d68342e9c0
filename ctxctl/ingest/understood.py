"""Keeps account of what an importer does not understand of a capture: types of records, bytes, a newer
version.

An importer declares what it was held against (`about.HeldAgainst`); the account of one import is kept here
and reaches the importer with the `report` that it is given (`account_of`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from math import inf
from typing import Any, Final

from ctxctl.ingest.about import HeldAgainst
from ctxctl.model.problem import Problem

MAX_TYPES: Final = 50
"""The most unknown types that are told apart; any more are counted as one."""
_LONGEST: Final = 80
"""The most characters that are kept of a type or a version."""
_OTHERS: Final = "(others)"
_NUMBERS: Final = re.compile(r"[vV]?(\d{1,9}(?:[.\-]\d{1,9})*)")


class _Type:
    """The records of one unknown type."""

    __slots__ = ("bytes", "count", "file", "line", "offset")

    def __init__(self, line: int, offset: int, file: str | None) -> None:
        self.count = self.bytes = 0
        self.line, self.offset, self.file = line, offset, file


class Understood:
    """The account of one import: bounded, whatever the file holds."""

    def __init__(self, held: HeldAgainst | None = None) -> None:
        self.held = held
        self.known: Collection[str] = held.records if held is not None else frozenset()
        """The types that the importer declares; empty where it declares none."""
        self.lost_bytes = 0
        """Bytes of lines that could not be read as anything."""
        self.explained: set[str] = set()
        """Facts that no request has for a reason that the importer has told, so that they are not looked
        for."""
        self.contradictions = 0
        """Records whose parent or id cannot be, or that so many others stand beside as no session has."""
        self.most_work: float = inf
        """How many placements of earlier windows an importer may look at again (`Maker.count_work`)."""
        self.newer: str | None = None
        """The newest version met that is newer than what the importer was held against."""
        self._newer_at = (0, 0)
        self._versions: set[str] = set()
        self._types: dict[str, _Type] = {}

    @property
    def key(self) -> str | None:
        """The key under which a record names its type, where the format has one."""
        return self.held.key or None if self.held is not None and self.known else None

    def met(self, kind: Any, line: int = 0, offset: int = 0, size: int = 0, file: str | None = None) -> bool:
        """Whether a record's type is one that the importer knows; one that is not is counted.

        A type of several levels is written with slashes (`event_msg/token_count`).  What is no text counts as
        the type `""`, which a declaration may name.
        """
        name = kind if isinstance(kind, str) else ""
        if not self.known or name in self.known:
            return True
        self.unknown(name, line, offset, size, file)
        return False

    def unknown(
        self, kind: str, line: int = 0, offset: int = 0, size: int = 0, file: str | None = None
    ) -> None:
        """Count a record that the importer does nothing with because it does not know its type.

        Args:
            kind: The type, as the file spells it.
            line: 1-based line of the record.
            offset: Byte offset of that line.
            size: Bytes of the record; 0 where that is not known.
            file: The sibling file that it is in.
        """
        name = kind[:_LONGEST]
        if name not in self._types and len(self._types) >= MAX_TYPES:
            name = _OTHERS
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = _Type(line, offset, file)
        found.count += 1
        found.bytes += size

    def lost(self, size: int) -> None:
        """Count bytes of a line of which nothing could be read; that itself is a problem of its own."""
        self.lost_bytes += size

    def version(self, text: Any, line: int = 0, offset: int = 0) -> None:
        """Note the version of the client or of the schema that wrote the capture."""
        if isinstance(text, int) and not isinstance(text, bool):
            text = str(text)
        if not isinstance(text, str) or text in self._versions or len(self._versions) >= MAX_TYPES:
            return
        self._versions.add(text)
        held = self.held.newest if self.held is not None else ""
        if held and is_newer(text, held) and (self.newer is None or is_newer(text, self.newer)):
            self.newer, self._newer_at = text[:_LONGEST], (line, offset)

    @property
    def bytes(self) -> int:
        """Bytes of the capture that were not understood."""
        return self.lost_bytes + sum(found.bytes for found in self._types.values())

    def types(self) -> dict[str, int]:
        """By unknown type, how many records; the most frequent first, then by name."""
        counts = {name: found.count for name, found in self._types.items()}
        return dict(sorted(counts.items(), key=lambda row: (-row[1], row[0])))

    def problems(self) -> Iterator[Problem]:
        """One for each unknown type, at the first of its records, and one for a newer version."""
        for name, found in sorted(self._types.items(), key=lambda row: (row[1].line, row[0])):
            several = f"{found.count:,} records" if found.count != 1 else "a record"
            what = (
                "of further types" if name == _OTHERS else f"of type {name!r}" if name else "without a type"
            )
            size = f" ({found.bytes:,} byte{'s' * (found.bytes != 1)})" if found.bytes else ""
            message = f"{several} {what}{size} that this importer does not know: not understood"
            if found.file is not None:
                message = f"{found.file}: {message}"
            yield Problem(found.line, found.offset, "unknown-type", message)
        if self.newer is not None and self.held is not None:
            writer, newest = f"{self.held.client or 'version'} {self.newer}", self.held.newest
            message = f"written by {writer}; this importer was checked against versions up to {newest}"
            yield Problem(*self._newer_at, "newer-version", message)


def account_of(report: Any) -> Understood:
    """The account that goes with an importer's `report`; one that nobody reads where there is none."""
    owner = getattr(report, "__self__", report)
    found = getattr(owner, "understood", None)
    return found if isinstance(found, Understood) else Understood()


def is_newer(version: str, than: str) -> bool:
    """Whether a version is newer than another: by its numbers, `1.10` after `1.9`; dates are such too.

    What follows the numbers (`-beta.2`, a commit) is passed over; what does not begin with a number is newer
    than nothing.
    """
    ours, theirs = _numbers(version), _numbers(than)
    if ours is None or theirs is None:
        return False
    most = max(len(ours), len(theirs))
    return ours + (0,) * (most - len(ours)) > theirs + (0,) * (most - len(theirs))


def _numbers(version: str) -> tuple[int, ...] | None:
    found = _NUMBERS.match(version.strip()[:_LONGEST])
    if found is None:
        return None
    text = found.group(1)
    dated = re.match(r"\d{4}-\d\d-\d\d", text)
    if dated is None:
        # `1.2.3-4` is a pre-release of 1.2.3 or a build of it.
        text = text.partition("-")[0]
    return tuple(int(number) for number in re.split(r"[.\-]", text))
