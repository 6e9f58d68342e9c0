"""Requests that several captures of a directory hold, because a session was resumed, forked or copied.

Each counts once: in the capture that has it earliest, then in the one that goes on first with requests of its
own, then in the first by name.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from ctxctl.model.results import Step
    from ctxctl.session.params import Params

_ITS_OWN_IDS: Final = frozenset({"claude-code"})
"""Formats that call a step by the provider's id of the answer, which every copy keeps."""


class RequestsHeld:
    """The requests of one capture, as a pass through its steps meets them.

    Args:
        params: How the capture is replayed; the requests of an imported trace are those of its original
        format.
        elsewhere: Keys of requests that count in another capture.
    """

    def __init__(self, params: Params, elsewhere: Iterable[int] = ()) -> None:
        self._format = params.runtime or params.format
        self._elsewhere = frozenset(elsewhere)
        self._times: dict[int, int] = {}

    def is_copy(self, step: Step) -> bool:
        """Take in a step; whether its request counts in another capture."""
        key = request_key(self._format, step)
        if key is None:
            return False
        told = moment(step.time)
        self._times[key] = 0 if told is None else max(0, int(told.timestamp() * 1000))
        return key in self._elsewhere

    def packed(self) -> bytes:
        """Of each request that can be told from others a key of 8 bytes, then, in the same order, its time in
        milliseconds since the epoch (8 bytes; 0: not known).
        """
        return array("Q", self._times).tobytes() + array("Q", self._times.values()).tobytes()


def packed_keys(keys: list[int]) -> bytes:
    """Keys of requests as a piece of work takes them; nothing where there are none."""
    return msgspec.msgpack.encode(keys) if keys else b""


def unpacked_keys(data: bytes) -> list[int]:
    """Return what `packed_keys` has packed."""
    return msgspec.msgpack.decode(data, type=list[int]) if data else []


class Owned(msgspec.Struct):
    """Which requests are counted in another capture."""

    without: dict[str, list[int]]
    """By capture, their keys, sorted."""
    requests: int
    """How many requests there are of which several captures hold a copy."""
    owners: dict[str, dict[str, int]]
    """By capture, where its copies are counted, and how many."""


def owned_requests(held: Mapping[str, bytes]) -> Owned:
    """Decide in which capture each request counts; `held`: `RequestsHeld.packed` by capture."""
    columns = {name: _columns(data) for name, data in sorted(held.items())}
    shared = _several(column[0] for column in columns.values())
    begins = {
        name: min((t for key, t in zip(keys, times, strict=True) if key not in shared and t), default=0)
        for name, (keys, times) in columns.items()
        if not shared.isdisjoint(keys)
    }
    owner: dict[int, tuple[int, int, str]] = {}
    for name in begins:
        for key, time in zip(*columns[name], strict=True):
            if key in shared:
                rank = (time, begins[name], name)
                owner[key] = min(owner.get(key, rank), rank)
    without: dict[str, list[int]] = {}
    owners: dict[str, dict[str, int]] = {}
    for name in begins:
        elsewhere = sorted({key for key in columns[name][0] if key in shared and owner[key][2] != name})
        if elsewhere:
            without[name] = elsewhere
            counted = owners.setdefault(name, {})
            for key in elsewhere:
                counted[owner[key][2]] = counted.get(owner[key][2], 0) + 1
    return Owned(without, len(shared), owners)


def _columns(data: bytes) -> tuple[array[int], array[int]]:
    keys, times = array("Q"), array("Q")
    half = len(data) // 2
    keys.frombytes(data[:half])
    times.frombytes(data[half:])
    return keys, times


def _several(columns: Iterable[array[int]]) -> set[int]:
    """Keys that more than one capture has; of many, in little memory."""
    every = array("Q")
    for column in columns:
        every.extend(set(column))
    ordered = sorted(every)
    return {a for a, b in pairwise(ordered) if a == b}


def moment(time: str | None) -> datetime | None:
    """Return a step's time in UTC; None if there is none, or it is no time."""
    if time is None:
        return None
    try:
        told = datetime.fromisoformat(time)
        return (told if told.tzinfo is not None else told.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def request_key(format_name: str, step: Step) -> int | None:
    """Return what a request and its copies in other captures have in common and no other request has.

    None if nothing tells: a request without a bill, or of nobody's session.  Where steps are called by ids
    of the provider, that and what the prompt was billed; else the session, thread, step and time, which a
    copied file has too.
    """
    usage, cache = step.usage, step.cache
    if usage is None or usage.reported_input is None:
        return None
    said: tuple[object, ...] = (
        format_name, step.step_id, usage.reported_input, cache.reported_cached, cache.reported_cache_write,
    )  # fmt: skip
    if format_name not in _ITS_OWN_IDS or step.step_id is None:
        if step.time is None or step.session is None:
            return None
        said += (step.session, step.thread, step.turn, step.step, step.time, step.model)
    return int.from_bytes(blake2b(repr(said).encode(), digest_size=8).digest(), "little")
