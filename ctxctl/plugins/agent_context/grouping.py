"""Which records belong together: envelopes and what they bind, directly or through another record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from ctxctl.plugins.agent_context import records
from ctxctl.plugins.agent_context.loose import BINDING, REFS, Group, LooseRecord, names, text_of
from ctxctl.plugins.agent_context.reach import Reach
from ctxctl.plugins.agent_context.records import Json, Kind

_BESIDE: Final = frozenset(
    {"context_window", "context_source_ref", "context_summary", "context_redaction", "context_budget",
     "missing_context"}
)  # fmt: skip
"""Records that say more of a step that an envelope binds, and make none of their own."""
_NEAR: Final = 256
"""Groups, from the last one back, that a record without refs may belong to."""


class Capture:
    """All records of a capture, events among them, each distinct one once."""

    def __init__(self) -> None:
        self.loose: list[LooseRecord] = []
        self.events: list[tuple[Json, int, str | None]] = []
        self.schemas = False
        """Some document is a JSON Schema of the standard."""
        self.cut: LooseRecord | None = None
        """From this record on, not all that a record refers to was looked at (`groups`)."""
        self._contents: dict[str, LooseRecord] = {}
        self._marks: set[tuple[str, str]] = set()
        self._held: set[str | None] = set()
        self._counted = 0

    def add(self, record: LooseRecord) -> None:
        """Take a record in; an equal one that was there before is the same record told again.

        Whole records that it holds where others hold refs come in front of it.
        """
        mark = (record.kind.name, record.mark)
        if mark in self._marks:
            return
        self._marks.add(mark)
        for inner in _embedded(record):
            self.add(inner)
        self.loose.append(record)

    def groups(self) -> list[Group]:
        """The records grouped, in the order in which they are told."""
        reach = Reach(self.loose)
        groups: list[Group] = []
        envelopes = [record for record in self.loose if record.kind is records.ENVELOPE]
        for envelope in envelopes:
            _bind(envelope, reach, groups)
        self._bundled(envelopes)
        for record in self.loose:
            if record.group is None:
                _cluster(record, reach, groups)
        self.cut = reach.cut
        dated = [group.created for group in groups]
        if len(groups) > 1 and all(dated):
            groups = [
                group for _, group in sorted(enumerate(groups), key=lambda g: (dated[g[0]] or "", g[0]))
            ]
        return groups

    def _bundled(self, envelopes: list[LooseRecord]) -> None:
        """What came in one bundle with a single envelope belongs to it, named or not."""
        by_bundle: dict[int, list[LooseRecord]] = {}
        for envelope in envelopes:
            by_bundle.setdefault(envelope.bundle, []).append(envelope)
        for record in self.loose:
            beside = by_bundle.get(record.bundle, ())
            if record.group is None and len(beside) == 1 and beside[0].group is not None:
                beside[0].group.add(record)

    def borrowed(self, group: Group) -> list[LooseRecord]:
        """Items and summaries that a group refers to and another group holds, each in its last version."""
        if not self._contents:
            told = (r for r in self.loose if r.kind.name in ("context_item", "context_summary"))
            self._contents = {record.id: record for record in told if record.id is not None}
        own = {record.id for record in group.records}
        found: dict[str, LooseRecord] = {}
        for record in (*group.records, *group.envelopes):
            for ref in record.refs:
                known = self._contents.get(ref) or self._contents.get(ref.rpartition("@")[0])
                if known is not None and known.id is not None and known.id not in own:
                    found[known.id] = known
        return list(found.values())

    def unresolved(self, envelope: LooseRecord) -> list[str]:
        """Refs of an envelope to records that the capture does not hold."""
        if self._counted != len(self.loose):
            self._held, self._counted = {record.id for record in self.loose}, len(self.loose)
        held = self._held
        named = [ref for field in BINDING for ref in names(envelope.data.get(field))]
        return [ref for ref in named if ref not in held and ref.rpartition("@")[0] not in held]


def _bind(envelope: LooseRecord, reach: Reach, groups: list[Group]) -> None:
    """An envelope's own group; one that binds only what others have bound joins the first of them."""
    fresh, held = reach.ungrouped(envelope)
    if all(record.kind is records.ITEM for record in fresh):
        owner = reach.first_shape(envelope) or held
        if owner is not None and owner.group is not None:
            owner.group.add(envelope)
            for record in fresh:
                owner.group.add(record)
            return
    group = Group()
    group.add(envelope)
    for record in fresh:
        group.add(record)
    groups.append(group)


def _cluster(record: LooseRecord, reach: Reach, groups: list[Group]) -> None:
    """A record that no envelope binds: with what it refers to, unless its ids say that it is another's."""
    for other in reach.walk(record):
        if other.group is None or not _agree(record.ids, other.group.ids):
            continue
        if not other.group.envelopes or record.kind.name in _BESIDE:
            other.group.add(record)
            break
    else:
        _put_by_ids(record, groups)
    assert record.group is not None
    reached = reach.unsettled(record)
    for other in reached:
        if other.group is None and _agree(other.ids, record.group.ids):
            record.group.add(other)
    reach.settle(record, reached)


def _put_by_ids(record: LooseRecord, groups: list[Group]) -> None:
    """A record into the last group without envelopes that has its ids, or into one of its own."""
    ids = record.ids
    near = islice(reversed(groups), _NEAR)
    like = next((g for g in near if not g.envelopes and _agree(ids, g.ids) and (ids or not g.ids)), None)
    if like is None:
        like = Group()
        groups.append(like)
    like.add(record)


def _agree(ids: dict[str, str], others: dict[str, str]) -> bool:
    return all(others.get(name, value) == value for name, value in ids.items())


class _Whole(NamedTuple):
    kind: Kind
    data: Json


def _embedded(record: LooseRecord) -> Iterator[LooseRecord]:
    """Whole records that stand where a ref would do; the ref takes their place."""
    data = record.data
    for field in REFS:
        value = data.get(field)
        rows = value if isinstance(value, list) else [value]
        found = [_whole(one) for one in rows]
        if not any(found):
            continue
        refs = [
            one.data[one.kind.id] if one is not None else row for one, row in zip(found, rows, strict=True)
        ]
        data[field] = refs if isinstance(value, list) else refs[0]
        for one in found:
            if one is not None:
                yield LooseRecord(one.kind, one.data, record.line, record.file, record.bundle)


def _whole(value: Any) -> _Whole | None:
    """A record in the place of a ref: it says more than a ref with its reason and score."""
    if not isinstance(value, dict):
        return None
    kind = records.kind_of(value)
    if kind is None or text_of(value.get(kind.id)) is None:
        return None
    return _Whole(kind, value)
