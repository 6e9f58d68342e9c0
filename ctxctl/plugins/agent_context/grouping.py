"""Which records belong together: envelopes and what they bind, directly or through another record."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from ctxctl.ingest import build
from ctxctl.plugins.agent_context import records
from ctxctl.plugins.agent_context.records import Json, Kind

_REFS: Final = (
    "surface_refs", "item_refs", "selection_refs", "budget_ref", "budget_refs", "assembly_refs",
    "injection_refs", "compaction_refs", "missing_context_refs", "summary_ref", "summary_refs",
    "surface_id", "assembly_id", "candidate_item_refs", "selected_item_refs", "omitted_item_refs",
    "available_item_refs", "source_item_refs", "resolution_refs", "item_ref", "item_id",
)  # fmt: skip
"""Fields that name other records."""
_BINDING: Final = (
    "surface_refs", "item_refs", "selection_refs", "budget_ref", "assembly_refs", "injection_refs",
    "compaction_refs", "missing_context_refs",
)  # fmt: skip
_BESIDE: Final = frozenset(
    {"context_window", "context_source_ref", "context_summary", "context_redaction", "context_budget",
     "missing_context"}
)  # fmt: skip
"""Records that say more of a step that an envelope binds, and make none of their own."""
_NEAR: Final = 256
"""Groups, from the last one back, that a record without refs may belong to."""
_NAMES: Final = (*(kind.id for kind in records.KINDS), "item_ref", "ref", "id")
IDS: Final = (
    "session_id", "thread_id", "turn_id", "step_id", "task_id", "run_id", "attempt_id", "runtime_id",
    "tool_call_id", "action_id", "evidence_id",
)  # fmt: skip
_RUNTIME: Final = {name.removesuffix("_id"): name for name in IDS} | {
    "tool_invocation": "tool_call_id", "tool": "tool_call_id", "execution": "run_id", "agent_run": "run_id",
    "conversation": "session_id",
}  # fmt: skip


class LooseRecord:
    """A record as it was found, before its references are resolved."""

    __slots__ = ("bundle", "data", "file", "group", "id", "kind", "line", "mark")

    def __init__(self, kind: Kind, data: Json, line: int, file: str | None, bundle: int = 0) -> None:
        self.bundle = bundle
        """Number of the document or line that held it, with others perhaps."""
        self.kind = kind
        self.data = data
        self.line = line
        self.file = file
        self.id = _text(data.get(kind.id))
        self.mark = build.digest_of(build.canonical(data))
        self.group: Group | None = None


class Group:
    """Records of one step: those of an envelope, or a cluster that no envelope binds."""

    def __init__(self) -> None:
        self.records: list[LooseRecord] = []
        self.envelopes: list[LooseRecord] = []
        self.ids: dict[str, str] = {}

    @property
    def created(self) -> str | None:
        """When its envelope was made, as RFC 3339."""
        found = [build.timestamp(e.data.get("created_at")) for e in self.envelopes]
        return next((time for time in found if time is not None), None)

    def add(self, record: LooseRecord) -> None:
        """Take a record in; what it says of the runtime's ids fills what is not known yet."""
        record.group = self
        into = self.envelopes if record.kind is records.ENVELOPE else self.records
        into.append(record)
        for name, value in ids_of(record.data).items():
            self.ids.setdefault(name, value)


class Capture:
    """All records of a capture, events among them, each distinct one once."""

    def __init__(self) -> None:
        self.loose: list[LooseRecord] = []
        self.events: list[tuple[Json, int, str | None]] = []
        self.schemas = False
        """Some document is a JSON Schema of the standard."""
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
        known: dict[str, list[LooseRecord]] = {}
        for record in self.loose:
            if record.id is not None:
                known.setdefault(record.id, []).append(record)
        groups: list[Group] = []
        envelopes = [record for record in self.loose if record.kind is records.ENVELOPE]
        for envelope in envelopes:
            _bind(envelope, known, groups)
        self._bundled(envelopes)
        for record in self.loose:
            if record.group is None:
                _cluster(record, known, groups)
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
            for ref in _refs(record):
                known = self._contents.get(ref) or self._contents.get(ref.rpartition("@")[0])
                if known is not None and known.id is not None and known.id not in own:
                    found[known.id] = known
        return list(found.values())

    def unresolved(self, envelope: LooseRecord) -> list[str]:
        """Refs of an envelope to records that the capture does not hold."""
        if self._counted != len(self.loose):
            self._held, self._counted = {record.id for record in self.loose}, len(self.loose)
        held = self._held
        named = [ref for field in _BINDING for ref in _names(envelope.data.get(field))]
        return [ref for ref in named if ref not in held and ref.rpartition("@")[0] not in held]


def _bind(envelope: LooseRecord, known: dict[str, list[LooseRecord]], groups: list[Group]) -> None:
    """An envelope's own group; one that binds only what others have bound joins the first of them."""
    reached = list(_reached(envelope, known))
    fresh = [record for record in reached if record.group is None]
    owners = [record for record in reached if record.group is not None]
    owners.sort(key=lambda record: record.kind is records.ITEM)
    owner = owners[0].group if owners else None
    shapes = any(record.kind is not records.ITEM for record in fresh)
    if owner is not None and not shapes:
        owner.add(envelope)
        for record in fresh:
            owner.add(record)
        return
    group = Group()
    group.add(envelope)
    for record in fresh:
        group.add(record)
    groups.append(group)


def _cluster(record: LooseRecord, known: dict[str, list[LooseRecord]], groups: list[Group]) -> None:
    """A record that no envelope binds: with what it refers to, unless its ids say that it is another's."""
    ids = ids_of(record.data)
    reached = list(_reached(record, known))
    for other in reached:
        if other.group is None or not _agree(ids, other.group.ids):
            continue
        if not other.group.envelopes or record.kind.name in _BESIDE:
            other.group.add(record)
            break
    else:
        near = islice(reversed(groups), _NEAR)
        like = next((g for g in near if not g.envelopes and _agree(ids, g.ids) and (ids or not g.ids)), None)
        if like is not None:
            like.add(record)
        else:
            groups.append(Group())
            groups[-1].add(record)
    assert record.group is not None
    for other in reached:
        if other.group is None and _agree(ids_of(other.data), record.group.ids):
            record.group.add(other)


def _agree(ids: dict[str, str], others: dict[str, str]) -> bool:
    return all(others.get(name, value) == value for name, value in ids.items())


def _reached(start: LooseRecord, known: dict[str, list[LooseRecord]]) -> Iterator[LooseRecord]:
    """What a record refers to, and so on; envelopes are not passed through."""
    seen = {id(start)}
    waiting = deque([start])
    while waiting:
        record = waiting.popleft()
        for ref in _refs(record):
            for found in known.get(ref, ()) or known.get(ref.rpartition("@")[0], ()):
                if id(found) not in seen and found.kind is not records.ENVELOPE:
                    seen.add(id(found))
                    waiting.append(found)
                    yield found


def _refs(record: LooseRecord) -> Iterator[str]:
    data = record.data
    for field in _REFS:
        if field != record.kind.id:
            yield from _names(data.get(field))
    yield from _names(data.get("source_refs"))
    for field in ("ordered_blocks", "segments", "window_segments"):
        rows = data.get(field)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield from _names(row.get("item_refs"))


def _names(value: Any) -> Iterator[str]:
    """The ids that a ref, or a list of refs, names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)
    elif isinstance(value, dict):
        name = next((text for key in _NAMES if (text := _text(value.get(key))) is not None), None)
        if name is not None:
            yield name


class _Whole(NamedTuple):
    kind: Kind
    data: Json


def _embedded(record: LooseRecord) -> Iterator[LooseRecord]:
    """Whole records that stand where a ref would do; the ref takes their place."""
    data = record.data
    for field in _REFS:
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
    if kind is None or _text(value.get(kind.id)) is None:
        return None
    return _Whole(kind, value)


def ids_of(data: Json) -> dict[str, str]:
    """The runtime's ids that a record names: in fields of its own, in `runtime_refs`, in its metadata."""
    found: dict[str, str] = {}
    metadata = data.get("metadata")
    for place in (data, metadata if isinstance(metadata, dict) else {}):
        for name in IDS:
            value = _text(place.get(name))
            if value is not None:
                found.setdefault(name, value)
    refs = data.get("runtime_refs")
    for ref in refs if isinstance(refs, list) else [refs]:
        if isinstance(ref, dict):
            kind = ref.get("kind", ref.get("type"))
            known = _RUNTIME.get(kind.lower()) if isinstance(kind, str) else None
            value = _text(ref.get("id", ref.get("ref")))
            if known is not None and value is not None:
                found.setdefault(known, value)
            for field in IDS:
                own = _text(ref.get(field))
                if own is not None:
                    found.setdefault(field, own)
    return found


def _text(value: Any) -> str | None:
    if isinstance(value, str) and value:
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
