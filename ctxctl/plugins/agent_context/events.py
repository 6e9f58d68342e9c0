"""Grouped records become events: one step a group, in the order of the stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.ingest.build import Place
from ctxctl.ingest.lines import Line
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.plugins.agent_context import conform, records
from ctxctl.plugins.agent_context.admission import Admission
from ctxctl.plugins.agent_context.grouping import Capture
from ctxctl.plugins.agent_context.loose import IDS, Group, LooseRecord
from ctxctl.plugins.agent_context.records import Json
from ctxctl.trace.validate import RECORD_SCHEMAS

_ORDER: Final = (
    "context_source_ref", "context_surface", "context_item", "context_summary", "missing_context",
    "context_redaction", "context_compaction", "context_selection", "context_window", "context_budget",
    "context_assembly", "context_injection",
)  # fmt: skip
_PLACED: Final = frozenset({"session_id", "thread_id", "turn_id", "step_id"})
_SHOWN: Final = 5
_CUT: Final = (
    "the records up to here refer to each other over so many others that, from here on, only the nearest ones"
    " that each refers to were looked at for its group"
)
_BY_SCHEMA: Final = {kind.schema: kind for kind in records.KINDS if kind.schema is not None}


def _kind(event: Json) -> records.Kind | None:
    """The kind of record that an event has to hold by its type."""
    kind = event.get("event_type")
    return _BY_SCHEMA.get(RECORD_SCHEMAS.get(kind, "")) if isinstance(kind, str) else None


def _holds_record(event: Json) -> bool:
    """Whether an event's data are the record that its type names, or nothing is asked of them."""
    kind, data = _kind(event), event.get("data")
    if kind is None:
        return data is None or isinstance(data, dict)
    return isinstance(data, dict) and isinstance(data.get(kind.id), str)


class Emitter:
    """Makes the events of one capture."""

    def __init__(self, run: Run, capture: Capture) -> None:
        self._run = run
        self._capture = capture
        self._items: set[tuple[str | None, str | None, str | None]] = set()
        """Items announced, by session and thread: a thread knows nothing of another's."""
        self._unversioned: set[str] = set()
        self._steps: dict[str, dict[str, str]] = {}
        """By turn, the ids of its first step."""
        self._sources: dict[str, Json] = {}
        self._used: set[str] | None = None
        """Sources that some item names, once they were asked for."""

    def events(self) -> Iterator[Json]:
        """Events that the capture holds as such, then its loose records."""
        admission = Admission(self._run)
        for event, line, file in self._capture.events:
            if _holds_record(event):
                self._run.make.file = file
                made = admission.admitted(self._as_it_is(event, line, file), line)
                self._run.make.file = None
                if made is not None:
                    yield made
            else:
                what = "an event whose data are no record of its kind; skipped"
                self._run.problem("unknown-record", what, Line(line, 0, b""))
        groups = self._capture.groups()
        if self._capture.cut is not None:
            self._problem(self._capture.cut, "windows-too-large", _CUT)
        self._sources = {
            record.id: record.data
            for record in self._capture.loose
            if record.kind is records.SOURCE and record.id is not None
        }
        for number, group in enumerate(groups, 1):
            yield from self._group(group, number, several=len(groups) > 1)

    def _as_it_is(self, event: Json, line: int, file: str | None) -> Json:
        """An event of an array or a bundle, which the reader of traces does not read as such."""
        made = dict(event)
        metadata = made.get("metadata")
        metadata = dict(metadata) if isinstance(metadata, dict) else {}
        ours = metadata.get("ctxctl")
        ours = dict(ours) if isinstance(ours, dict) else {}
        ours["source_line"] = line
        if file is not None:
            ours["source_file"] = file
        made["metadata"] = {**metadata, "ctxctl": ours}
        for name in ("event_id", "source", "time", "context_id", *IDS):
            if name in made and not isinstance(made[name], str):
                made[name] = str(made[name]) if isinstance(made[name], int) else None
        made.setdefault("time", vocab.NO_TIME)
        if made["time"] is None:
            made["time"] = vocab.NO_TIME
        data = made.get("data")
        if isinstance(data, dict):
            kind = _kind(event) or records.kind_of(data)
            if kind is not None:
                made["data"] = conform.conformed_record(kind, data)[0]
        return made

    def _group(self, group: Group, number: int, *, several: bool) -> Iterator[Json]:
        ids = dict(group.ids)
        context = next((e.id for e in group.envelopes if e.id is not None), None)
        if "turn_id" not in ids and context is not None:
            ids["turn_id"] = context
        if "turn_id" not in ids and several:
            ids["turn_id"] = ids.get("task_id", f"records-{number}")
        if "step_id" not in ids and several:
            ids.update(self._beside(ids) if _elsewhere(group) else {})
            ids.setdefault("step_id", context or ids.get("attempt_id") or f"records-{number}")
        if "turn_id" in ids and "step_id" in ids:
            self._steps.setdefault(ids["turn_id"], ids)
        self._run.make.at(group.created or _first_time(group))
        segments = [r for r in group.records if r.kind.name == "context_window"]
        budgets = [r for r in group.records if r.kind.name == "context_budget"]
        for record in self._capture.borrowed(group):
            if self._key(record, ids) not in self._items:
                yield self._event(record, ids, context, [])
        for name in _ORDER:
            for record in group.records:
                if record.kind.name != name:
                    continue
                if name == "context_window" and budgets:
                    continue
                if name == "context_source_ref" and record.id in self._named_sources():
                    continue
                merged = segments if name == "context_budget" and record is budgets[-1] else []
                yield self._event(record, ids, context, merged)
        for envelope in group.envelopes:
            yield self._event(envelope, ids, envelope.id, [])
            self._tell_unresolved(envelope)

    def _beside(self, ids: dict[str, str]) -> dict[str, str]:
        """The place of the same turn's step, which what others than the model saw belongs to."""
        found = self._steps.get(ids.get("turn_id", ""), {})
        same = all(ids.get(name) in (None, found.get(name)) for name in ("session_id", "thread_id"))
        return {name: found[name] for name in _PLACED if name in found} if same else {}

    def _named_sources(self) -> set[str]:
        if self._used is None:
            self._used = set()
            for record in self._capture.loose:
                refs = record.data.get("source_refs") if record.kind is records.ITEM else None
                if isinstance(refs, list):
                    self._used.update(ref for ref in refs if isinstance(ref, str))
        return self._used

    def _tell_unresolved(self, envelope: LooseRecord) -> None:
        lacking = self._capture.unresolved(envelope)
        if lacking:
            names = ", ".join(lacking[:_SHOWN]) + (" …" if len(lacking) > _SHOWN else "")
            what = f"{len(lacking)} record{'s' * (len(lacking) != 1)} that the capture does not hold"
            self._problem(envelope, "unresolved-ref", f"envelope {envelope.id} refers to {what}: {names}")

    def _event(
        self, record: LooseRecord, ids: dict[str, str], context: str | None, windows: list[LooseRecord]
    ) -> Json:
        kind = record.kind
        data, faults = conform.conformed_record(kind, record.data)
        for fault in faults:
            self._problem(record, "bad-field", f"{kind.name} {record.id}: {fault}")
        if "schema_version" not in record.data and kind.name not in self._unversioned:
            self._unversioned.add(kind.name)
            message = (
                f"{kind.name} records without schema_version; read as {vocab.SCHEMA_VERSION} (said once)"
            )
            self._problem(record, "no-schema-version", message)
        if kind is records.ITEM:
            self._with_sources(data)
        if windows:
            conform.with_segments(data, [window.data for window in windows])
        make = self._run.make
        make.file = record.file
        make.at(record.data.get("created_at"))
        own = {name: ids[name] for name in ids if name in _PLACED}
        place = Place(own.get("session_id"), own.get("thread_id"), own.get("turn_id"), own.get("step_id"))
        made = make.event(self._type(record, ids), data, place, record.line)
        make.file = None
        if context is not None:
            made["context_id"] = context
        for name in IDS:
            if name not in _PLACED and name in ids:
                made[name] = ids[name]
        for name in ("policy_refs", "evidence_refs", "telemetry_refs"):
            if isinstance(record.data.get(name), list):
                made[name] = record.data[name]
        return made

    def _key(self, record: LooseRecord, ids: dict[str, str]) -> tuple[str | None, str | None, str | None]:
        return ids.get("session_id"), ids.get("thread_id"), record.id

    def _type(self, record: LooseRecord, ids: dict[str, str]) -> str:
        known = self._key(record, ids) in self._items
        self._items.add(self._key(record, ids))
        if record.kind is records.ITEM:
            return vocab.ITEM_UPDATED if known else vocab.ITEM_ADDED
        if record.kind.event_type == vocab.MISSING_DETECTED:
            status = record.data.get("status")
            if status == "resolved":
                return vocab.MISSING_RESOLVED
            return vocab.MISSING_REQUESTED if status in ("requested", "waiting") else vocab.MISSING_DETECTED
        return record.kind.event_type

    def _with_sources(self, data: Json) -> None:
        """Source refs by id become the source refs themselves, where the capture holds them."""
        refs = data.get("source_refs")
        if isinstance(refs, list):
            data["source_refs"] = [self._source(ref) for ref in refs]

    def _source(self, ref: Any) -> Any:
        if isinstance(ref, str) and ref in self._sources:
            return {"schema_version": vocab.SCHEMA_VERSION, **self._sources[ref]}
        return ref

    def _problem(self, record: LooseRecord, slug: str, message: str) -> None:
        self._run.make.file = record.file
        self._run.problem(slug, message, Line(record.line, 0, b""))
        self._run.make.file = None


def _elsewhere(group: Group) -> bool:
    """Whether a group tells what others than the model saw, and so makes no step of the model's."""
    placed = [r for r in group.records if r.kind.name in ("context_assembly", "context_injection")]
    others = all(r.data.get("target", vocab.MODEL) != vocab.MODEL for r in placed)
    return bool(placed) and others and all(r in placed or r.kind is records.ITEM for r in group.records)


def _first_time(group: Group) -> str | None:
    """When the first dated record of a group was made."""
    times = (build.timestamp(record.data.get("created_at")) for record in group.records)
    return next((time for time in times if time is not None), None)
