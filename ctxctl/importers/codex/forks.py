"""How much of a forked rollout is a copy of its parent's, and which of the parent's lines it begins with.

A copy is history that this thread's requests carry, but requests and counts in it are not the thread's own.

From about 0.15 the session's record tells.  `subagent_history_start_ordinal` is the line that the own part
begins with.  `history_base` names a stretch of the parent's rollout that is not copied at all: the parent's
thread, how many of its lines count (`end_ordinal_exclusive`) and where they end (`end_byte_offset`).

Before, where the parent's rollout still lies beside it, what both hold is the copy; what two forks of one
parent hold is a copy at least.  A fork's own requests have running totals and ids of calls, answers and
sealed reasoning that its parent has not, and a copied line keeps those, whatever else is written anew.

Without the parent, times tell: Codex writes a copied line anew, with the time of the fork.  Turn ids are
UUIDs of version 7 and hold their time, so a turn from before the session id is the parent's.  Where there
are no such ids, what was written in one burst with the first line is the copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.ingest.build import Json, moment
from ctxctl.ingest.lines import Line, Report, ignore_problem, lines, values
from ctxctl.ingest.parents import Kinship, Lineage
from ctxctl.ingest.parts import count, string
from ctxctl.trace.inputs import find_files, note_file
from ctxctl.trace.source import Source, open_source

_UUID7: Final = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE
)
_BURST: Final = 0.5
"""The most seconds between two lines of one burst; no request is answered and logged faster."""
_TICK: Final = 1.0
"""The most seconds between two lines of one burst where times are written in whole seconds."""


class Fork:
    """Follows the lines of a forked rollout and says where its own part begins."""

    def __init__(
        self, session: str | None, told: CopiedPart | None = None, *, until: int | None = None
    ) -> None:
        self._told = told
        """What the parent's file, or another fork of the parent, tells."""
        self._until = until
        """The ordinal of the first line of this thread's own, where the session's record names it."""
        self._born = uuid_time(session)
        self._ids = False
        """Whether a turn id has shown that the copy goes on."""
        self._first: float | None = None
        self._last: float | None = None
        self._paused = False
        """Whether more than one burst was seen."""
        self.copying = True

    def line(self, time: Any, number: int, ordinal: Any = None) -> None:
        """Take a line. Its timestamp ends the copy only where neither the session's record nor the parent nor
        turn ids tell."""
        if self._until is not None:
            if type(ordinal) is int:
                self.copying = ordinal < self._until
            return
        told = self._told
        if told is not None and told.exact:
            self.copying = number <= told.until
            return
        seconds = _seconds(time)
        if not self.copying or seconds is None:
            return
        last, self._last = self._last, seconds
        if self._first is None:
            self._first = seconds
        elif not self._ids and last is not None and seconds >= self._first:
            whole = seconds.is_integer() and last.is_integer()
            self._paused = self._paused or seconds - last > (_TICK if whole else _BURST)
            self.copying = not self._paused or (told is not None and number <= told.until)

    def turn(self, turn: str) -> None:
        """Note that a turn begins."""
        exact = self._until is not None or (self._told is not None and self._told.exact)
        made = None if exact else uuid_time(turn)
        if not self.copying or made is None or self._born is None:
            return
        self._ids = made < self._born
        self.copying = self._ids


def uuid_time(name: str | None) -> int | None:
    """Milliseconds since the epoch that a UUID of version 7 was made at; None for other ids."""
    match = _UUID7.match(name) if name is not None else None
    return int(match.group(1) + match.group(2), 16) if match is not None else None


def _seconds(value: Any) -> float | None:
    try:
        return datetime.fromisoformat(moment(value) or "").timestamp()
    except (ValueError, OverflowError, OSError):
        return None


_DEPTH: Final = 16
"""The most forks of forks that are followed."""


class ForkBase(NamedTuple):
    """Where a fork's history begins."""

    thread: str
    """The thread of the rollout that holds it."""
    ordinals: int | None
    """How many of its lines count; None for all before `end`."""
    end: int | None
    """The byte before which they end."""


def base_of(meta: Json) -> ForkBase | None:
    """The base that the session's record names; None where the rollout holds its whole history itself."""
    told = meta.get("history_base")
    thread = string(told.get("thread_id")) if isinstance(told, dict) else None
    if not isinstance(told, dict) or thread is None:
        return None
    ordinals, end = count(told.get("end_ordinal_exclusive")), count(told.get("end_byte_offset"))
    return ForkBase(thread, ordinals, end) if ordinals is not None or end is not None else None


class Inherited(NamedTuple):
    """One line of another thread's rollout that a fork's history begins with."""

    file: str
    """The rollout's name."""
    line: Line
    record: Json


class CircularForkError(LookupError):
    """A fork's history begins with its own.

    Args:
        rollout: The one that closes the circle.
        named: The one that it names.
    """

    def __init__(self, rollout: Path, named: Path) -> None:
        super().__init__(rollout.name, named.name)
        self.rollout = rollout.name
        self.named = named.name


def inherited(path: Path | None, base: ForkBase, report: Report) -> Iterator[Inherited]:
    """Yield the lines of a fork's first history, oldest first, those of the parent's own parent before them.

    Args:
        path: The fork's rollout; None where it has none.
        base: As its session's record names it.
        report: Takes what is wrong in the other files.

    Raises:
        LookupError: One of the rollouts is not to be found, or there are too many.
        CircularForkError: One of them begins with the history of one that begins with its own.
    """
    chain: list[tuple[Path, ForkBase]] = []
    lineage: Lineage[Path] = Lineage()
    wanted: ForkBase | None = base
    while wanted is not None:
        if len(chain) == _DEPTH:
            raise LookupError(f"more than {_DEPTH} others, one behind the other")
        found = rollout_of(path, wanted.thread) if path is not None else None
        if path is None or found is None:
            raise LookupError(f"thread {wanted.thread}, whose rollout is not beside it")
        if lineage.enter(path, found) is Kinship.CIRCLE:
            raise CircularForkError(path, found)
        chain.append((found, wanted))
        path, wanted = found, base_of(first_record(found))
    for found, stretch in reversed(chain):
        yield from _stretch(found, stretch, report)


def _stretch(path: Path, base: ForkBase, report: Report) -> Iterator[Inherited]:
    try:
        with open_source(path) as source:
            for line, record in values(source, report):
                if base.end is not None and line.offset >= base.end:
                    return
                if not isinstance(record, dict):
                    continue
                ordinal: Any = record.get("ordinal")
                if base.ordinals is not None and type(ordinal) is int and ordinal >= base.ordinals:
                    return
                if record.get("type") != "session_meta":
                    yield Inherited(path.name, line, record)
    except (CtxctlError, OSError) as error:
        raise LookupError(base.thread) from error


_HOMES: Final = ("sessions", "archived_sessions")
"""Directories of a Codex home that hold rollouts."""
_HEAD: Final = 256 * 1024
_LOOKED: Final = 500
"""The most files that are opened; the names of all of them are looked at."""
_SIBLINGS: Final = 8
_LISTED: Final = 50_000


class CopiedPart(NamedTuple):
    """How far a forked rollout is a copy."""

    until: int
    """The number of the last line that another rollout has too."""
    exact: bool
    """Whether the other rollout is the parent's. Otherwise it is another fork, and the copy goes at least so
    far."""


def copied_part(source: Source, parent: str | None) -> CopiedPart | None:
    """What the parent's rollout, or another fork of the parent, tells of a fork; None if nothing."""
    if source.path is None or parent is None:
        return None
    found = _rollout_and_forks(source.path, parent)
    known: set[Any] = set()
    for path in [found.parent] if found.parent is not None else found.siblings:
        try:
            with open_source(path) as other:
                known.update(mark for _, marks in _marked(other) for mark in marks)
        except (CtxctlError, OSError):
            continue
    if not known:
        return None
    last = 0
    for number, marks in _marked(source):
        if any(mark in known for mark in marks):
            last = number
    return CopiedPart(last, found.parent is not None) if last else None


def calls_plan_tool(source: Source) -> bool:
    """Whether the model called Codex' tool for plans, which is the only sign in a rollout that it was on."""
    return any(
        b'"update_plan"' in line.data and b'_call"' in line.data for line in lines(source, ignore_problem)
    )


def _marked(source: Source) -> Iterator[tuple[int, list[Any]]]:
    """By line number, a mark that no other line of any session has, of the lines that have one."""
    for line in lines(source, ignore_problem):
        try:
            record = orjson.loads(line.data)
        except orjson.JSONDecodeError:
            continue
        payload = record.get("payload") if isinstance(record, dict) else None
        if isinstance(payload, dict) and record.get("type") != "session_meta":
            marks = list(_marks(payload))
            if marks:
                yield line.number, marks


def _marks(payload: Json) -> Iterator[Any]:
    info = payload.get("info")
    total = info.get("total_token_usage") if isinstance(info, dict) else None
    if isinstance(total, dict) and total.get("input_tokens"):
        yield "total", *sorted((name, n) for name, n in total.items() if type(n) is int)
    for name in ("call_id", "id", "encrypted_content"):
        value = payload.get(name)
        if isinstance(value, str) and value:
            yield name, value


def rollout_of(path: Path, thread: str) -> Path | None:
    """The rollout of a thread among those of the same Codex home as `path`; None where it is not there."""
    for found in _other_rollouts(path):
        if found.stem == thread or found.stem.endswith((f"-{thread}", f"_{thread}")):
            return found
    return _rollout_and_forks(path, thread).parent


class _Relatives(NamedTuple):
    parent: Path | None
    siblings: list[Path]


def _rollout_and_forks(path: Path, parent: str) -> _Relatives:
    """The rollout of a session, named for it or beginning with its record, and its forks."""
    siblings: list[Path] = []
    for looked, found in enumerate(_other_rollouts(path)):
        if found.stem.endswith(parent):
            return _Relatives(found, [])
        meta = first_record(found) if looked < _LOOKED and found != path else {}
        # The session id of a sub-agent is that of the thread which began the whole run.
        if parent == (meta.get("id") or meta.get("session_id")):
            return _Relatives(found, [])
        if meta.get("forked_from_id") == parent and len(siblings) < _SIBLINGS:
            siblings.append(found)
    return _Relatives(None, siblings)


def _other_rollouts(path: Path) -> Iterable[Path]:
    """The rollouts of the same Codex home, those in the same directory first."""
    try:
        yield from find_files(path.parent, "*.jsonl")
        home = next((up.parent for up in path.parents if up.name in _HOMES), None)
        for name in _HOMES if home is not None else ():
            assert home is not None
            for found in find_files(home / name, "**/*.jsonl")[:_LISTED]:
                if found.parent != path.parent:
                    yield found
    except OSError:
        return


def first_record(path: Path) -> Json:
    """The session's record, which a rollout begins with; empty where it does not."""
    note_file(path)
    try:
        with path.open("rb") as file:
            record = orjson.loads(file.readline(_HEAD))
    except (OSError, orjson.JSONDecodeError):
        return {}
    meta = record.get("payload") if isinstance(record, dict) else None
    return meta if isinstance(meta, dict) else {}
