"""The types that msgspec decodes lines into. Bodies stay raw until they are needed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ctxctl.trace.coerce import MAX_COUNT

Raw = msgspec.Raw
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]

NOTHING = Raw()
"""The value of a raw field that the line lacks."""

IDS = (
    "event_id", "source", "time", "context_id", "session_id", "thread_id", "turn_id", "step_id",
    "task_id", "run_id", "attempt_id",
)  # fmt: skip


class Head(msgspec.Struct, gc=False):
    """An event's valid envelope."""

    event_type: str = ""
    event_id: str | None = None
    source: str | None = None
    time: str | None = None
    context_id: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    step_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    attempt_id: str | None = None
    schema_version: str | None = None
    data: Raw = NOTHING


class LooseHead(msgspec.Struct, gc=False):
    """An event's envelope with any value in each field, for lines that `Head` rejects."""

    event_type: Any = None
    event_id: Any = None
    source: Any = None
    time: Any = None
    context_id: Any = None
    session_id: Any = None
    thread_id: Any = None
    turn_id: Any = None
    step_id: Any = None
    task_id: Any = None
    run_id: Any = None
    attempt_id: Any = None
    schema_version: Any = None
    data: Raw = NOTHING


class Marked(msgspec.Struct, gc=False):
    """The writer's additional fields of an envelope."""

    metadata: Any = None


class ItemWire(msgspec.Struct, gc=False):
    """A valid `context_item`."""

    item_id: str
    context_kind: str = "custom"
    content_mode: str = ""
    title: str | None = None
    content: Raw = NOTHING
    content_ref: Any = None
    source_refs: list[Any] = []
    token_estimate: Count | None = None
    visibility: list[str] = []
    priority: float | None = None
    redaction_state: str | None = None
    metadata: dict[str, Any] | None = None
    redaction_method: Any = None
    redaction_reason: Any = None
    redacted_by: Any = None
    policy_refs: Any = None


class Body(msgspec.Struct, gc=False):
    """The fields in which items, summaries and blocks have text."""

    content: Raw = NOTHING
    text: Raw = NOTHING
    summary: Raw = NOTHING


class PlainBlock(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A block of an assembly that only lists its items, as nearly all do."""

    item_refs: list[str]
    block_id: str | None = None
    position: float | None = None
    segment: str | None = None
    role: str | None = None


class AssemblyWire(msgspec.Struct, gc=False):
    """`context_assembly` with raw blocks. The other fields are coerced later."""

    ordered_blocks: list[Raw]
    assembly_id: Any = None
    target: Any = None
    separator_policy: Any = None
    hash: Any = None
    model: Any = None
    model_ref: Any = None
    metadata: Any = None
    redaction_state: Any = None


decode_head = msgspec.json.Decoder(Head).decode
decode_loose = msgspec.json.Decoder(LooseHead).decode
decode_marked = msgspec.json.Decoder(Marked).decode
decode_item = msgspec.json.Decoder(ItemWire).decode
decode_body = msgspec.json.Decoder(Body).decode
decode_plain_block = msgspec.json.Decoder(PlainBlock).decode
decode_assembly = msgspec.json.Decoder(AssemblyWire).decode
