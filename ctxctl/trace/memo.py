"""Bounded memories of records already decoded, keyed by a hash of their bytes."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

GENERATION = 1 << 15


class Memo(Generic[T]):
    """Two generations of at most 32 768 entries: entries in use stay, others are forgotten in time.

    `young` is always the same dict, so that its `get` can be held across calls. Several threads may use one
    memo: a race costs at most a second decode.
    """

    __slots__ = ("old", "young")

    def __init__(self) -> None:
        self.young: dict[bytes, T] = {}
        self.old: dict[bytes, T] = {}

    def get(self, key: bytes) -> T | None:
        """Return the value of `key`. One of the older generation becomes young again."""
        value = self.young.get(key)
        if value is None:
            value = self.old.get(key)
            if value is not None:
                value = self.put(key, value)
        return value

    def put(self, key: bytes, value: T) -> T:
        """Store `value`, unless another thread was first. Return the stored value."""
        if len(self.young) >= GENERATION:
            self.old = self.young.copy()
            self.young.clear()
        return self.young.setdefault(key, value)
