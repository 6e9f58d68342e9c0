"""Requests that several captures of a directory hold, because a session was resumed, forked or copied.

Each request counts once: in the capture that has it earliest, else in the one that first continues with its
own requests, else in the first by name.
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

_ITS_OWN_IDS: Final = frozenset({"claude-code"})
"""Formats in which a step's id is the provider's id of the answer, which every copy keeps."""


class RequestsHeld:
    """The requests of one capture, collected from its steps.

    Args:
        format_name: The capture's format; of an imported trace its original one.
        elsewhere: Keys of requests that count in another capture.
    """

    def __init__(self, format_name: str, elsewhere: Iterable[int] = ()) -> None:
        self._format = format_name
        self._elsewhere = frozenset(elsewhere)
        self._times: dict[int, int] = {}

    def is_copy(self, step: Step) -> bool:
        """Add a step. Return whether its request counts in another capture."""
        key = request_key(self._format, step)
        if key is None:
            return False
        told = moment(step.time)
        self._times[key] = 0 if told is None else max(0, int(told.timestamp() * 1000))
        return key in self._elsewhere

    def packed(self) -> bytes:
        """Return a key (8 bytes) of each identifiable request, then, in the same order, its time in
        milliseconds since the epoch (8 bytes; 0 if unknown)."""
        return array("Q", self._times).tobytes() + array("Q", self._times.values()).tobytes()


def packed_keys(keys: list[int]) -> bytes:
    """Return keys of requests in packed form; empty without keys."""
    return msgspec.msgpack.encode(keys) if keys else b""


def unpacked_keys(data: bytes) -> list[int]:
    """Return the keys from `packed_keys`."""
    return msgspec.msgpack.decode(data, type=list[int]) if data else []


class Owned(msgspec.Struct):
    """The requests that are counted in another capture."""

    without: dict[str, list[int]]
    """Their keys, sorted, by capture."""
    requests: int
    """Number of requests of which several captures hold a copy."""
    owners: dict[str, dict[str, int]]
    """By capture: where its copies are counted, and how many."""


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
    """Return keys that several captures have, using little memory."""
    every = array("Q")
    for column in columns:
        every.extend(set(column))
    ordered = sorted(every)
    return {a for a, b in pairwise(ordered) if a == b}


def moment(time: str | None) -> datetime | None:
    """Return a step's time in UTC; None if it is missing or invalid."""
    if time is None:
        return None
    try:
        told = datetime.fromisoformat(time)
        return (told if told.tzinfo is not None else told.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def request_key(format_name: str, step: Step) -> int | None:
    """Return a key that a request shares with its copies in other captures, and with no other request.

    None if it cannot be identified: without a bill, or without a session. If steps have the provider's ids,
    the key is that id and the billed prompt; else the session, thread, step and time, which a copied file has
    too.
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
