"""Events written out again: as ctxctl writes them, or so that every line follows the published schemas alone.

A strict export knows nothing of our additions: splices become whole assemblies, content refs the contents,
and kinds that the draft lacks `custom`.  Neither kind of export holds what was redacted anywhere in the
trace, not even on the lines before the redaction: an export is made after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import IO, Any, Final, cast

import orjson

from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.plugins.agent_context import conform, kinds
from ctxctl.report.content_policy import Settling
from ctxctl.report.expand import Blocks
from ctxctl.session import Inspector
from ctxctl.trace.codec import parse_line
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
_KIND_OF: Final = {kind.event_type: kind for kind in kinds.KINDS if kind.schema is not None} | {
    other: kinds.BY_NAME[name]
    for other, name in (
        (vocab.ITEM_UPDATED, "context_item"),
        (vocab.SURFACE_UPDATED, "context_surface"),
        (vocab.SELECTION_STARTED, "context_selection"),
        (vocab.COMPACTION_STARTED, "context_compaction"),
        (vocab.MISSING_REQUESTED, "missing_context"),
        (vocab.MISSING_RESOLVED, "missing_context"),
    )
}


def strict(
    inspector: Inspector, report: Report, progress: Callable[[float], None], *, cite: bool
) -> Iterator[bytes]:
    """Lines of which each validates against the published schemas by itself; reads the trace twice.

    `cite`: contents are named by their digest instead of being copied.
    """
    writer = _Strict(inspector, cite=cite)
    for event, line in _lines(inspector, progress):
        made = writer.event(event, line)
        faults = validate_event(made)
        if faults:
            message = f"cannot be made to follow the schemas: {'; '.join(faults)}; left out"
            report(Problem(event.line, event.offset, "not-exported", message))
            continue
        yield _dumped(made) + b"\n"


def plain(
    inspector: Inspector, report: Report, progress: Callable[[float], None], *, cite: bool
) -> Iterator[bytes]:
    """The trace as ctxctl writes it: contents once, windows as differences."""
    settling = Settling(inspector.trace.contents, inspector.redactor, cite=cite)
    buffer = BytesIO()
    writer = TraceWriter(cast("IO[bytes]", buffer), source="ctxctl", report=report)
    for event, line in _lines(inspector, progress):
        writer.write(settling.applied(event, line))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _lines(inspector: Inspector, progress: Callable[[float], None]) -> Iterator[tuple[Event, Json]]:
    """Every line as it stands in the trace, redacted or not: what is written of it is settled later."""
    trace = inspector.trace
    size = max(1, trace.source.size)
    for count, event in enumerate(trace.events()):
        line = parse_line(trace.line(event.offset, event.length))
        if line is not None:
            yield event, line
        if not count & 255:
            progress(event.offset / size)


class _Strict:
    """Makes events that say everything by themselves."""

    def __init__(self, inspector: Inspector, *, cite: bool) -> None:
        self._settling = Settling(inspector.trace.contents, inspector.redactor, cite=cite)
        self._blocks = Blocks()
        self._time = vocab.NO_TIME

    def event(self, event: Event, line: Json) -> Json:
        """One event, whole."""
        line = dict(line)
        data = line.get("data")
        if isinstance(data, dict):
            line["data"] = self._record(event, dict(data))
        elif data is not None:
            line["metadata"] = _noted(line.get("metadata"), {"data": line.pop("data")})
        line = self._settling.applied(event, line, whole=True)
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
            data = conform.conformed(known, data)[0]
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
