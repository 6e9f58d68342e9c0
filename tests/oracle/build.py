"""Short words for writing `context_event` traces by hand; every event they make fits the schemas."""

from __future__ import annotations

import json
from typing import Any

Event = dict[str, Any]

TIME = "2026-01-02T03:04:05Z"
VERSION = "0.1.1"

# Texts and their size in o200k_base tokens; `test_oracle.test_sizes` holds the numbers against tiktoken.
ALPHA = "alpha"
BETA = "beta"
HELLO = "hello world"
MORNING = "good morning"
ONE_TWO = "one two three"
FOUR_FIVE = "four five six"
RED = "red green blue black"
UP = "up down left right"
ABC = "a b c d e"
XYZ = "v w x y z"
CAT = "the cat sat on the mat all day"
WALK = "we like to walk in the park now"
WRAPPED_HELLO = "<doc>\nhello world\n</doc>"

SIZES = {
    ALPHA: 1,
    BETA: 1,
    HELLO: 2,
    MORNING: 2,
    ONE_TWO: 3,
    FOUR_FIVE: 3,
    RED: 4,
    UP: 4,
    ABC: 5,
    XYZ: 5,
    CAT: 8,
    WALK: 8,
    WRAPPED_HELLO: 9,
    '{"a":1,"b":[2,3]}': 11,
}


def event(event_type: str, data: dict[str, Any], **envelope: Any) -> Event:
    """One event; `event_id` is given by `lines` where the envelope has none."""
    made = {"schema_version": VERSION, "event_type": event_type, "source": "oracle", "time": TIME}
    return {**made, **envelope, "data": data}


def at(turn: str | None, step: str | None, *events: Event, **envelope: Any) -> list[Event]:
    """The events with this turn and step (None: left out) and further envelope fields; their own ones win."""
    ids = {"turn_id": turn, "step_id": step, **envelope}
    return [{**{k: v for k, v in ids.items() if v is not None}, **e} for e in events]


def lines(events: list[Event]) -> bytes:
    """The trace file of these events: session `s` and an event id of its own for what names none."""
    out = []
    for number, given in enumerate(events, 1):
        made = {"event_id": f"e{number}", "session_id": "s", **given}
        made = {key: value for key, value in made.items() if value is not None}
        out.append(json.dumps(made, ensure_ascii=False) + "\n")
    return "".join(out).encode()


def item(
    name: str,
    content: Any = None,
    *,
    kind: str = "durable_memory",
    visibility: tuple[str, ...] = ("model",),
    estimate: int | None = None,
    version: str | None = None,
    updated: bool = False,
    digest: str | None = None,
    ref: str | None = None,
    **more: Any,
) -> Event:
    """An item added (or updated).  Without `content` and `ref` it is opaque; `digest` is its source's."""
    data: dict[str, Any] = {"schema_version": VERSION, "item_id": name, "context_kind": kind}
    data |= {"content_mode": "inline" if content is not None else "ref" if ref else "opaque"}
    data |= {"visibility": list(visibility)}
    if content is not None:
        data["content"] = content
    if ref is not None:
        data["content_ref"] = ref
    if estimate is not None:
        data["token_estimate"] = estimate
    if digest is not None:
        source = {"schema_version": VERSION, "source_id": name, "uri": f"x://{name}", "source_kind": "file"}
        data["source_refs"] = [{**source, "digest": digest}]
    if version is not None:
        data["metadata"] = {"version": version}
    return event(f"context.item.{'updated' if updated else 'added'}", data, **more)


def update(name: str, content: Any = None, **more: Any) -> Event:
    """An item updated."""
    return item(name, content, updated=True, **more)


def remove(name: str, cause: str | None = None, **more: Any) -> Event:
    """An item removed, with its recorded cause."""
    data = {"schema_version": VERSION, "item_id": name, "context_kind": "custom"}
    data |= {"content_mode": "opaque", "visibility": ["model"]}
    if cause:
        data["metadata"] = {"cause": cause}
    return event("context.item.removed", data, **more)


def block(ref: str, position: int | None = None, wrapper: Any = None, **more: Any) -> dict[str, Any]:
    """A block of one item."""
    made: dict[str, Any] = {"block_id": f"b-{ref}", "item_refs": [ref]}
    if position is not None:
        made["position"] = position
    if wrapper is not None:
        made["wrapper"] = wrapper
    return {**made, **more}


def assembly(
    name: str, refs: list[Any], *, target: str = "model", ctxctl: dict[str, Any] | None = None, **more: Any
) -> Event:
    """An assembly; a block that is only a ref may be given as a string."""
    blocks = [block(ref) if isinstance(ref, str) else ref for ref in refs]
    data: dict[str, Any] = {"schema_version": VERSION, "assembly_id": name, "target": target}
    data |= {"ordered_blocks": blocks, "created_at": TIME}
    if ctxctl:
        data["metadata"] = {"ctxctl": ctxctl}
    return event("context.assembly.created", data, **more)


def append(name: str, refs: list[Any], **more: Any) -> Event:
    """An assembly of a thread in declared append mode."""
    return assembly(name, refs, ctxctl={"mode": "append"}, **more)


def inject(
    assembly_id: str | None = None, point: str = "message_history", target: str = "model", **more: Any
) -> Event:
    """An injection."""
    data = {"schema_version": VERSION, "injection_id": "i", "target": target, "injection_point": point}
    data |= {"visibility": [target], "created_at": TIME}
    if assembly_id:
        data["assembly_id"] = assembly_id
    return event("context.injection.applied", data, **more)


def select(
    selected: list[str],
    omitted: dict[str, str] | None = None,
    candidates: list[str] | None = None,
    **more: Any,
) -> Event:
    """A completed selection; `omitted` maps a ref to its reason."""
    data: dict[str, Any] = {"schema_version": VERSION, "selection_id": "sel", "surface_id": "surf"}
    data |= {"selected_item_refs": selected, "created_at": TIME}
    data["omitted_item_refs"] = [{"item_ref": ref, "reason": why} for ref, why in (omitted or {}).items()]
    if candidates is not None:
        data["candidate_item_refs"] = candidates
    return event("context.selection.completed", data, **more)


def budget(
    max_tokens: int | None = None,
    reserved: int | None = None,
    dropped: dict[str, str] | None = None,
    cut: dict[str, int] | None = None,
    **more: Any,
) -> Event:
    """A budget of the model; `dropped` maps a ref to its reason, `cut` a ref to the tokens that are left."""
    data: dict[str, Any] = {"schema_version": VERSION, "budget_id": "bud", "target": "model"}
    data |= {"created_at": TIME, "overflow_strategy": "custom"}
    if max_tokens is not None:
        data["max_tokens"] = max_tokens
    if reserved is not None:
        data["reserved_tokens"] = reserved
    records = [{"item_ref": ref, "action": "dropped", "reason": why} for ref, why in (dropped or {}).items()]
    records += [
        {"item_ref": ref, "action": "truncated", "kept_tokens": left} for ref, left in (cut or {}).items()
    ]
    if records:
        data["truncation_records"] = records
    return event("context.budget.applied", data, **more)


def summary(name: str, content: str, **more: Any) -> Event:
    """A summary."""
    data = {"schema_version": VERSION, "summary_id": name, "content": content, "created_at": TIME}
    return event("context.summary.created", data, **more)


def compact(sources: list[str], into: str | None = None, **more: Any) -> Event:
    """A completed compaction of these items into a summary."""
    data: dict[str, Any] = {"schema_version": VERSION, "compaction_id": "cmp", "scope": "session"}
    data |= {"source_item_refs": sources, "method": "abstractive_summary", "trigger": "token_pressure"}
    data["created_at"] = TIME
    if into:
        data["summary_ref"] = into
    return event("context.compaction.completed", data, **more)


def redact(name: str, **more: Any) -> Event:
    """A redaction."""
    data = {"item_id": name, "redaction_state": "masked", "redaction_method": "rule"}
    return event("context.redaction.applied", {**data, "policy_refs": ["policy:secrets"]}, **more)


def usage(
    tokens: int, cached: int | None = None, written: int | None = None, output: int | None = None, **more: Any
) -> Event:
    """What the provider billed: the whole input, and the parts of it read from and written to its cache."""
    given = {
        "input_tokens": tokens,
        "cached_tokens": cached,
        "cache_write_tokens": written,
        "output_tokens": output,
    }
    data = {key: value for key, value in given.items() if value is not None}
    return event("ctxctl.usage.reported", data, **more)
