"""The rollout that a forked one was copied from, where it still lies beside it: what both hold is the copy.

A fork's own requests have running totals and ids of calls, answers and sealed reasoning that its parent has
not; a copied line keeps them, whatever else is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.formats.build import Json
from ctxctl.formats.lines import lines
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source, open_source

_HOMES: Final = ("sessions", "archived_sessions")
"""Directories of a Codex home that hold rollouts."""
_HEAD: Final = 256 * 1024
_LOOKED: Final = 500
"""Files that are looked into, at most; their names are looked at all the same."""
_SIBLINGS: Final = 8
_LISTED: Final = 50_000


class Copied(NamedTuple):
    """How far a forked rollout is a copy."""

    until: int
    """Number of the last line that another rollout has too."""
    exact: bool
    """The other one is the parent.  Else it is another fork of it: the copy goes at least so far."""


def copied(source: Source, parent: str | None) -> Copied | None:
    """What the parent's rollout, or another fork of the same parent, tells of a fork; None: nothing."""
    if source.path is None or parent is None:
        return None
    found = _kin(source.path, parent)
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
    return Copied(last, found.parent is not None) if last else None


def plans(source: Source) -> bool:
    """Whether the model called Codex' tool for plans, which is the only sign in a rollout that it was on."""
    return any(b'"update_plan"' in line.data and b'_call"' in line.data for line in lines(source, _unheard))


def _marked(source: Source) -> Iterator[tuple[int, list[Any]]]:
    """By line, what tells it from any other line of any session; of lines that have such a thing."""
    for line in lines(source, _unheard):
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
    for found in _around(path):
        if found.stem == thread or found.stem.endswith((f"-{thread}", f"_{thread}")):
            return found
    return _kin(path, thread).parent


class _Kin(NamedTuple):
    parent: Path | None
    siblings: list[Path]


def _kin(path: Path, parent: str) -> _Kin:
    """The rollout of a session, named for it or beginning with its record, and the forks of it."""
    siblings: list[Path] = []
    for looked, found in enumerate(_around(path)):
        if found.stem.endswith(parent):
            return _Kin(found, [])
        meta = first_record(found) if looked < _LOOKED and found != path else {}
        # The session id of a sub-agent is that of the thread which began it all.
        if parent == (meta.get("id") or meta.get("session_id")):
            return _Kin(found, [])
        if meta.get("forked_from_id") == parent and len(siblings) < _SIBLINGS:
            siblings.append(found)
    return _Kin(None, siblings)


def _around(path: Path) -> Iterable[Path]:
    """Rollouts of the same Codex home, those in the same directory first."""
    try:
        yield from sorted(path.parent.glob("*.jsonl"))
        home = next((up.parent for up in path.parents if up.name in _HOMES), None)
        for name in _HOMES if home is not None else ():
            assert home is not None
            for number, found in enumerate((home / name).rglob("*.jsonl")):
                if number >= _LISTED:
                    break
                if found.parent != path.parent:
                    yield found
    except OSError:
        return


def first_record(path: Path) -> Json:
    """The session's record, which a rollout begins with; empty where it does not."""
    try:
        with path.open("rb") as file:
            record = orjson.loads(file.readline(_HEAD))
    except (OSError, orjson.JSONDecodeError):
        return {}
    meta = record.get("payload") if isinstance(record, dict) else None
    return meta if isinstance(meta, dict) else {}


def _unheard(_problem: Problem) -> None:
    """The import of either file reports it."""
