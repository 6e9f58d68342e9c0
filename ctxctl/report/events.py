"""Events written out again: as ctxctl writes them, or so that every line follows the published schemas alone.

A strict export knows nothing of our additions: splices become whole assemblies, content refs the contents,
and kinds that the draft lacks `custom`.  Contents are inlined, cited by digest, or withheld
(`content_policy`).  Neither kind of export holds what was redacted anywhere in the trace, not even on the
lines before the redaction: an export is made after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import IO, Any, Final, cast

import orjson

from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import Assembly
from ctxctl.plugins.agent_context import conform, records
from ctxctl.report.content_policy import ContentPolicy
from ctxctl.session import Inspector
from ctxctl.trace.around_content import parsed_around_content
from ctxctl.trace.decode import parse_line
from ctxctl.trace.migrate import upgrade_event
from ctxctl.trace.validate import RECORD_SCHEMAS, validate_event
from ctxctl.trace.writer import TraceWriter

Json = dict[str, Any]
Report = Callable[[Problem], None]

STANDARD_KINDS: Final = frozenset(
    {
        "user_message", "system_prompt", "developer_instruction", "session_history", "thread_summary",
        "working_memory", "durable_memory", "knowledge_pack_item", "document_excerpt", "file_excerpt",
        "artifact_ref", "tool_result", "browser_state", "runtime_state", "team_memory", "policy_note",
        "external_resource", "manual_note", "computed_summary", "peer_agent_message", "retrieval_result",
        "custom",
    }
)  # fmt: skip
"""The draft's context kinds; all others are somebody's own."""

_IDS: Final = (
    "event_id", "source", "subject", "time", "context_id", "runtime_id", "session_id", "thread_id", "turn_id",
    "task_id", "run_id", "attempt_id", "step_id", "tool_call_id", "action_id", "evidence_id",
)  # fmt: skip
_ITEMS: Final = frozenset({vocab.ITEM_ADDED, vocab.ITEM_UPDATED})
_KIND_OF: Final = {kind.event_type: kind for kind in records.KINDS if kind.schema is not None} | {
    other: records.BY_NAME[name]
    for other, name in (
        (vocab.ITEM_UPDATED, "context_item"),
        (vocab.SURFACE_UPDATED, "context_surface"),
        (vocab.SELECTION_STARTED, "context_selection"),
        (vocab.COMPACTION_STARTED, "context_compaction"),
        (vocab.MISSING_REQUESTED, "missing_context"),
        (vocab.MISSING_RESOLVED, "missing_context"),
    )
}


def strict_lines(
    inspector: Inspector, report: Report, progress: Callable[[float], None], *, cite: bool
) -> Iterator[bytes]:
    """Lines of which each validates against the published schemas by itself; reads the trace twice.

    `cite`: contents are named by their digest instead of being copied.
    """
    writer = _Strict(inspector, cite=cite)
    for event, line in _lines(inspector, progress, writer.passes_on):
        made = writer.event(event, line)
        faults = validate_event(made)
        if faults:
            message = f"cannot be made to follow the schemas: {'; '.join(faults)}; left out"
            report(Problem(event.line, event.offset, "not-exported", message))
            continue
        yield _dumped(made) + b"\n"


def native_lines(
    inspector: Inspector, report: Report, progress: Callable[[float], None], *, cite: bool
) -> Iterator[bytes]:
    """The trace as ctxctl writes it: contents once, windows as differences."""
    policy = ContentPolicy(inspector.trace.contents, inspector.redactor, cite=cite)
    buffer = BytesIO()
    writer = TraceWriter(cast("IO[bytes]", buffer), source="ctxctl", report=report)
    for event, line in _lines(inspector, progress, policy.passes_on):
        writer.write(policy.applied(event, line))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _lines(
    inspector: Inspector, progress: Callable[[float], None], passes_on: Callable[[Event], bool]
) -> Iterator[tuple[Event, Json]]:
    """Every line as it stands in the trace, redacted or not: what is written of it is settled later.

    A large content of what `passes_on` says yes to is not parsed (`trace.around_content`).
    """
    trace = inspector.trace
    size = max(1, trace.source.size)
    for count, event in enumerate(trace.events()):
        raw = trace.line(event.offset, event.length)
        line = parsed_around_content(raw) if passes_on(event) else None
        line = parse_line(raw) if line is None else upgrade_event(line)
        if line is not None:
            yield event, line
        if not count & 255:
            progress(event.offset / size)


class _Strict:
    """Makes events that need no other line to be understood."""

    def __init__(self, inspector: Inspector, *, cite: bool) -> None:
        self._policy = ContentPolicy(inspector.trace.contents, inspector.redactor, cite=cite)
        self._blocks = Blocks()
        self._time = vocab.NO_TIME

    def passes_on(self, event: Event) -> bool:
        """Whether the event's content is written as it stands in the trace."""
        return self._policy.passes_on(event)

    def event(self, event: Event, line: Json) -> Json:
        """The event as a strict export has it."""
        line = dict(line)
        data = line.get("data")
        if isinstance(data, dict):
            line["data"] = self._record(event, dict(data))
        elif data is not None:
            line["metadata"] = _noted(line.get("metadata"), {"data": line.pop("data")})
        line = self._policy.applied(event, line, whole=True)
        return self._enveloped(event, line)

    def _enveloped(self, event: Event, line: Json) -> Json:
        line["schema_version"] = vocab.SCHEMA_VERSION
        for name in _IDS:
            value = line.get(name)
            if value is None:
                line.pop(name, None)
            elif not isinstance(value, str):
                line[name] = str(value)
        for name in ("policy_refs", "evidence_refs", "telemetry_refs"):
            if name in line and not isinstance(line[name], list):
                line[name] = [line[name]] if isinstance(line[name], str | dict) else []
        if not isinstance(line.get("metadata", {}), dict):
            line["metadata"] = {"native": {"metadata": line["metadata"]}}
        line.setdefault("event_id", f"line-{event.line}")
        line.setdefault("source", "unknown")
        self._time = line.setdefault("time", self._time)
        return line

    def _record(self, event: Event, data: Json) -> Json:
        kind = event.event_type
        if kind == vocab.ASSEMBLY_CREATED:
            data = self._blocks.whole(event, data)
        if kind in _ITEMS:
            data = _standard_kind(data)
        data["schema_version"] = vocab.SCHEMA_VERSION
        known = _KIND_OF.get(kind)
        if known is not None and kind in RECORD_SCHEMAS:
            data = conform.conformed_record(known, data)[0]
            if "created_at" not in data and kind not in _ITEMS:
                data["created_at"] = event.time or self._time
            if kind in _ITEMS and not isinstance(data.get("content_mode"), str):
                data["content_mode"] = "inline" if data.get("content") is not None else "opaque"
        if isinstance(data.get("source_refs"), list):
            data["source_refs"] = [_source(ref) for ref in data["source_refs"]]
        return data


def _standard_kind(data: Json) -> Json:
    native = data.get("context_kind")
    if native in STANDARD_KINDS:
        return data
    data["context_kind"] = "custom"
    if isinstance(native, str):
        data["metadata"] = _noted(data.get("metadata"), {"context_kind": native})
    return data


def _source(ref: Any) -> Any:
    """A source ref with what its schema requires."""
    if not isinstance(ref, dict):
        return ref
    made = {"schema_version": vocab.SCHEMA_VERSION, **ref}
    name = made.get("source_id") or made.get("uri") or made.get("id") or made.get("ref")
    for field in ("source_id", "uri"):
        if not isinstance(made.get(field), str):
            made[field] = str(name or "unknown")
    if not isinstance(made.get("source_kind"), str):
        made["source_kind"] = "unknown"
    return made


def _noted(metadata: Any, native: Json) -> Json:
    """Metadata with something kept under `native`."""
    made = dict(metadata) if isinstance(metadata, dict) else {}
    before = made.get("native")
    made["native"] = {**(before if isinstance(before, dict) else {}), **native}
    return made


def _dumped(event: Json) -> bytes:
    try:
        return orjson.dumps(event)
    except (orjson.JSONEncodeError, RecursionError):
        import json

        return json.dumps(event, ensure_ascii=True, separators=(",", ":"), default=str).encode()


_KEPT: Final = 400_000
"""Blocks that the assemblies kept for later splices may hold together; as in the replay."""
_LEAST: Final = 2

Key = tuple[str | None, str | None, str]


class Blocks:
    """The blocks of the assemblies that later ones may build on."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, list[Any]] = OrderedDict()
        self._cells = 0

    def whole(self, event: Event, data: Json) -> Json:
        """The record with all its blocks; where its base is not known, as it is, and marked so."""
        record = event.record
        given = data.get("ordered_blocks")
        if not isinstance(record, Assembly) or not isinstance(given, list):
            return data
        blocks: list[Any] = given
        ours = _ours(data)
        if record.base is None:
            blocks = _in_order(blocks)
        else:
            base = self._base(event, record.base)
            if base is not None:
                blocks = _spliced(base, blocks, record)
                data = _without_splices(data)
            elif ours is not None:
                ours["unknown_base"] = True
        if record.assembly_id is not None:
            self._keep(self._key(event, record.assembly_id), blocks)
        return {**data, "ordered_blocks": _numbered(blocks)}

    def _base(self, event: Event, name: str) -> list[Any] | None:
        """The blocks of an assembly of this thread; of events that name no thread, the last of that name."""
        found = self._known.get(self._key(event, name))
        if found is not None or (event.session_id is not None and event.thread_id is not None):
            return found
        return next((blocks for key, blocks in reversed(self._known.items()) if key[2] == name), None)

    def _key(self, event: Event, name: str) -> Key:
        return event.session_id or None, event.thread_id, name

    def _keep(self, key: Key, blocks: list[Any]) -> None:
        before = self._known.pop(key, None)
        self._cells += len(blocks) - (len(before) if before is not None else 0)
        self._known[key] = blocks
        while self._cells > _KEPT and len(self._known) > _LEAST:
            self._cells -= len(self._known.popitem(last=False)[1])


def _spliced(base: list[Any], fresh: list[Any], record: Assembly) -> list[Any]:
    blocks: list[Any] = []
    at = taken = 0
    for splice in record.splices:
        blocks += base[at : splice.at]
        blocks += fresh[taken : taken + splice.inserted]
        at, taken = splice.at + splice.removed, taken + splice.inserted
    return blocks + base[at:]


def _position(block: Any) -> float | None:
    value = block.get("position") if isinstance(block, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _in_order(blocks: list[Any]) -> list[Any]:
    """By `position`; a block without one keeps its place."""
    places = [_position(block) for block in blocks]
    if all(place is None for place in places):
        return blocks
    rows = sorted((index if place is None else place, index) for index, place in enumerate(places))
    return [blocks[index] for _, index in rows]


def _numbered(blocks: list[Any]) -> list[Any]:
    """Positions that agree with the order; blocks that are no objects become ones."""
    made = [block if isinstance(block, dict) else {"item_refs": [block]} for block in blocks]
    if any("position" in block for block in made):
        made = [{**block, "position": n} for n, block in enumerate(made)]
    return made


def _ours(data: Json) -> Json | None:
    metadata = data.get("metadata")
    ours = metadata.get("ctxctl") if isinstance(metadata, dict) else None
    return ours if isinstance(ours, dict) else None


def _without_splices(data: Json) -> Json:
    ours = {name: value for name, value in (_ours(data) or {}).items() if name not in ("base", "splices")}
    metadata = {name: value for name, value in data["metadata"].items() if name != "ctxctl"}
    if ours:
        metadata["ctxctl"] = ours
    return {**data, "metadata": metadata}
