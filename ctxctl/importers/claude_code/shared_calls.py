"""Decides which file bills an API call that stands in several transcripts of a directory.

A resumed or forked session begins with a copy of its parent's lines.  Versions differ in what they write
anew: the session's id, the time, both or neither.  The message's id and what its prompt was billed stay, so
they tell a copy; the file that has it earliest owns it, then one whose own session the line names, then the
one that goes on first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.ingest.build import Json
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report, ignore_problem, lines
from ctxctl.ingest.parts import string
from ctxctl.model.problem import Problem

_PROMPT: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

Key = tuple[Any, ...]


class CallCopy(NamedTuple):
    """One file's copy of a call."""

    time: str
    forked: bool
    """Whether the line says that it was copied."""
    session: str | None


class _File(NamedTuple):
    name: str
    calls: dict[Key, CallCopy]
    own: str | None
    """The session with which the file ends."""


class SharedCalls(NamedTuple):
    """What a file holds of another one's session."""

    calls: frozenset[str] = frozenset()
    """The ids of messages that the other file bills."""
    session: str | None = None
    """The file's own session, where it holds such messages; its first lines may name the other's."""


def shared_calls(folder: Folder, names: list[str], report: Report) -> dict[str, SharedCalls]:
    """By file, the messages that another one of these files bills; reported once for each pair of files.

    This is one more pass over the files, which keeps some ids and times of each call.
    """
    if len(names) < 2:
        return {}
    files = [_read(folder, name) for name in names]
    times = Counter(key for file in files for key in file.calls)
    goes_on = {
        file.name: min((copy.time for key, copy in file.calls.items() if times[key] == 1), default="")
        for file in files
    }
    owners: dict[Key, tuple[tuple[Any, ...], str]] = {}
    for file in files:
        for key, copy in file.calls.items():
            if times[key] > 1:
                rank = (copy.forked, copy.time, copy.session != file.own, goes_on[file.name], file.name)
                owners[key] = min(owners.get(key, (rank, file.name)), (rank, file.name))
    found: dict[str, SharedCalls] = {}
    for file in files:
        elsewhere = [key for key in file.calls if key in owners and owners[key][1] != file.name]
        if elsewhere:
            found[file.name] = SharedCalls(frozenset(key[0] for key in elsewhere), file.own)
        for owner, count in Counter(owners[key][1] for key in elsewhere).items():
            calls = "1 API call stands" if count == 1 else f"{count} API calls stand"
            message = f"{file.name}: {calls} in {owner} too: billed there, here they are history"
            report(Problem(0, 0, "carried-history", message))
    return found


def _read(folder: Folder, name: str) -> _File:
    calls: dict[Key, CallCopy] = {}
    own: str | None = None
    for value in _answers(folder, name):
        message: Json = value["message"]
        usage = message.get("usage")
        own = string(value.get("sessionId")) or own
        identity = string(message.get("id"))
        if identity is None or not isinstance(usage, dict) or message.get("model") == "<synthetic>":
            continue
        key = identity, *(usage.get(part) if type(usage.get(part)) is int else None for part in _PROMPT)
        if key not in calls:
            time = string(value.get("timestamp")) or ""
            calls[key] = CallCopy(
                time, isinstance(value.get("forkedFrom"), dict), string(value.get("sessionId"))
            )
    return _File(name, calls, own)


def _answers(folder: Folder, name: str) -> Iterator[Json]:
    """The lines of a file that are answers; what is wrong with others its import tells."""
    try:
        source = folder.open(name)
    except CtxctlError:
        return
    with source:
        for line in lines(source, ignore_problem):
            if b'"assistant"' not in line.data:
                continue
            try:
                value = orjson.loads(line.data)
            except orjson.JSONDecodeError:
                continue
            answer = isinstance(value, dict) and value.get("type") == "assistant"
            if answer and isinstance(value.get("message"), dict):
                yield value
