"""What records refer to, directly or through others, found without walking the same ways again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from ctxctl.plugins.agent_context import records
from ctxctl.plugins.agent_context.loose import LooseRecord

_WALKED: Final = 1_000_000
"""Records that all walks may look at, whatever the size of the capture."""
_PER_REF: Final = 8
"""Records more for each ref of the capture."""
_NEAR: Final = 256
"""Records that a walk looks at once the others have looked at so many."""


class Reach:
    """The ways from record to record.  Envelopes are not passed through, nor reached."""

    def __init__(self, loose: list[LooseRecord]) -> None:
        self._loose = loose
        self._named: dict[str, list[LooseRecord]] = {}
        """Records by id; of an envelope's id, those that are none."""
        for record in loose:
            if record.id is not None:
                named = self._named.setdefault(record.id, [])
                if record.kind is not records.ENVELOPE:
                    named.append(record)
        self._first_shapes: dict[LooseRecord, LooseRecord] | None = None
        self._settled: set[LooseRecord] = set()
        """Records that have a group, as has all that they reach."""
        self._left = _WALKED + _PER_REF * sum(1 + len(record.refs) for record in loose)
        self.cut: LooseRecord | None = None
        """The first record whose walk ended early, as the walks before it were so long."""

    def ungrouped(self, envelope: LooseRecord) -> tuple[list[LooseRecord], LooseRecord | None]:
        """What an envelope reaches and no group holds yet, nearest first, and the nearest that one holds.

        For use while envelopes alone are bound: what a grouped record reaches has a group then, too.
        """
        fresh: list[LooseRecord] = []
        held: LooseRecord | None = None
        waiting, seen = deque([envelope]), {envelope}
        ids: set[str] = set()
        while waiting:
            for found in self._next(waiting.popleft(), ids):
                if found in seen:
                    continue
                seen.add(found)
                if found.group is None:
                    fresh.append(found)
                    waiting.append(found)
                elif held is None:
                    held = found
        return fresh, held

    def first_shape(self, envelope: LooseRecord) -> LooseRecord | None:
        """The nearest record other than an item that an envelope reaches."""
        if self._first_shapes is None:
            self._first_shapes = self._found_shapes()
        return self._first_shapes.get(envelope)

    def _found_shapes(self) -> dict[LooseRecord, LooseRecord]:
        """For all records at once, from the shapes back to what refers to them, level by level."""
        users: dict[str, list[LooseRecord]] = {}
        for record in self._loose:
            for name in self._names(record):
                users.setdefault(name, []).append(record)
        by_id = {
            name: shape
            for name, named in self._named.items()
            if (shape := next((one for one in named if one.kind is not records.ITEM), None)) is not None
        }
        found: dict[LooseRecord, LooseRecord] = {}
        level = list(by_id)
        while level:
            users_of = dict.fromkeys(user for name in level for user in users.get(name, ()))
            fresh = [user for user in users_of if user not in found]
            for user in fresh:
                found[user] = by_id[next(name for name in self._names(user) if name in by_id)]
            level = []
            for user in fresh:
                if user.kind is records.ENVELOPE or user.id is None or user.id in by_id:
                    continue
                by_id[user.id] = next(found[one] for one in self._named[user.id] if one in found)
                level.append(user.id)
        return found

    def walk(self, start: LooseRecord) -> Iterator[LooseRecord]:
        """What a record reaches, nearest first."""
        return self._walked(start, settled_too=True)

    def unsettled(self, start: LooseRecord) -> list[LooseRecord]:
        """What a record reaches, nearest first, without what lies behind settled records."""
        return list(self._walked(start, settled_too=False))

    def settle(self, start: LooseRecord, reached: list[LooseRecord]) -> None:
        """Note that a record and all that it reaches have groups, if so."""
        if all(record.group is not None for record in reached):
            self._settled.update((start, *reached))

    def _walked(self, start: LooseRecord, *, settled_too: bool) -> Iterator[LooseRecord]:
        waiting, seen = deque([start]), {start}
        ids: set[str] = set()
        near = _NEAR
        while waiting:
            for found in self._next(waiting.popleft(), ids):
                if found in seen:
                    continue
                seen.add(found)
                self._left -= 1
                near -= 1
                if self._left < 0 and near < 0:
                    self.cut = self.cut or start
                    return
                if settled_too or found not in self._settled:
                    waiting.append(found)
                yield found

    def _next(self, record: LooseRecord, ids: set[str]) -> Iterator[LooseRecord]:
        """What a record's refs name; nothing of `ids`, which the walk has been at and which are added to."""
        for name in self._names(record):
            if name not in ids:
                ids.add(name)
                yield from self._named[name]

    def _names(self, record: LooseRecord) -> Iterator[str]:
        """The ids of records that a record's refs name, with or without a version behind `@`."""
        for ref in record.refs:
            if ref in self._named:
                yield ref
            else:
                name = ref.rpartition("@")[0]
                if name in self._named:
                    yield name
