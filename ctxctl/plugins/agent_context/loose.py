"""Records as they were found, with the ids and the refs that they name, and the groups they come into."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.plugins.agent_context import records
from ctxctl.plugins.agent_context.records import Json, Kind

REFS: Final = (
    "surface_refs", "item_refs", "selection_refs", "budget_ref", "budget_refs", "assembly_refs",
    "injection_refs", "compaction_refs", "missing_context_refs", "summary_ref", "summary_refs",
    "surface_id", "assembly_id", "candidate_item_refs", "selected_item_refs", "omitted_item_refs",
    "available_item_refs", "source_item_refs", "resolution_refs", "item_ref", "item_id",
)  # fmt: skip
"""Fields that name other records."""
BINDING: Final = (
    "surface_refs", "item_refs", "selection_refs", "budget_ref", "assembly_refs", "injection_refs",
    "compaction_refs", "missing_context_refs",
)  # fmt: skip
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

    def __init__(self, kind: Kind, data: Json, line: int, file: str | None, bundle: int = 0) -> None:
        self.bundle = bundle
        """Number of the document or line that held it, with others perhaps."""
        self.kind = kind
        self.data = data
        self.line = line
        self.file = file
        self.id = text_of(data.get(kind.id))
        self.mark = build.digest_of(build.canonical(data))
        self.group: Group | None = None

    @cached_property
    def ids(self) -> dict[str, str]:
        """The runtime's ids that it names."""
        return ids_of(self.data)

    @cached_property
    def refs(self) -> tuple[str, ...]:
        """The ids that its refs name, each once, in order."""
        return tuple(dict.fromkeys(_refs(self.data, self.kind)))


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
        for name, value in record.ids.items():
            self.ids.setdefault(name, value)


def _refs(data: Json, kind: Kind) -> Iterator[str]:
    for field in REFS:
        if field != kind.id:
            yield from names(data.get(field))
    yield from names(data.get("source_refs"))
    for field in ("ordered_blocks", "segments", "window_segments"):
        rows = data.get(field)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield from names(row.get("item_refs"))


def names(value: Any) -> Iterator[str]:
    """The ids that a ref, or a list of refs, names."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            waiting += reversed(one)
        elif isinstance(one, dict):
            name = next((text for key in _NAMES if (text := text_of(one.get(key))) is not None), None)
            if name is not None:
                yield name


def ids_of(data: Json) -> dict[str, str]:
    """The runtime's ids that a record names: in fields of its own, in `runtime_refs`, in its metadata."""
    found: dict[str, str] = {}
    metadata = data.get("metadata")
    for place in (data, metadata if isinstance(metadata, dict) else {}):
        for name in IDS:
            value = text_of(place.get(name))
            if value is not None:
                found.setdefault(name, value)
    refs = data.get("runtime_refs")
    for ref in refs if isinstance(refs, list) else [refs]:
        if isinstance(ref, dict):
            kind = ref.get("kind", ref.get("type"))
            known = _RUNTIME.get(kind.lower()) if isinstance(kind, str) else None
            value = text_of(ref.get("id", ref.get("ref")))
            if known is not None and value is not None:
                found.setdefault(known, value)
            for field in IDS:
                own = text_of(ref.get(field))
                if own is not None:
                    found.setdefault(field, own)
    return found


def text_of(value: Any) -> str | None:
    """A text or a number as the text of an id."""
    if isinstance(value, str) and value:
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
