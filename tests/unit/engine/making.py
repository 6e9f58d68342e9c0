"""Small traces for engine tests, written as Python calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from ctxctl.model.results import Placement, Step, Turn
from ctxctl.model.vocab import rank_of
from ctxctl.session import Inspector
from ctxctl.session.opening import Opened
from ctxctl.session.params import resolve_params
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source

Json = dict[str, Any]


def event(kind: str, data: Json | None = None, **ids: Any) -> Json:
    """One context_event; ids are turn, step, thread, session and event_id."""
    names = {"turn": "turn_id", "step": "step_id", "thread": "thread_id", "session": "session_id"}
    made = {"schema_version": "0.1.1", "source": "test", "time": "2026-01-01T00:00:00Z"}
    made |= {names.get(name, name): value for name, value in ids.items()}
    return {**made, "event_type": f"context.{kind}", "data": data or {}}


def add(item: str, content: Any = None, *, update: bool = False, **fields: Any) -> Json:
    ids = {k: fields.pop(k) for k in ("turn", "step", "thread", "session") if k in fields}
    data: Json = {
        "item_id": item,
        "context_kind": fields.pop("kind", "retrieval_result"),
        "content_mode": "inline",
        "visibility": fields.pop("visibility", ["model"]),
        **fields,
    }
    if content is not None:
        data["content"] = content
    return event("item.updated" if update else "item.added", data, **ids)


def remove(item: str, cause: str | None = None, **ids: Any) -> Json:
    data: Json = {"item_id": item}
    if cause is not None:
        data["metadata"] = {"cause": cause}
    return event("item.removed", data, **ids)


def assembly(name: str, *blocks: Any, target: str = "model", ours: Json | None = None, **ids: Any) -> Json:
    made = [{"block_id": str(n), "item_refs": [b]} if isinstance(b, str) else b for n, b in enumerate(blocks)]
    data: Json = {"assembly_id": name, "target": target, "ordered_blocks": made}
    if ours:
        data["metadata"] = {"ctxctl": ours}
    return event("assembly.created", data, **ids)


def inject(
    name: str | None = None, point: str = "message_history", *, target: str = "model", **ids: Any
) -> Json:
    data: Json = {"target": target, "injection_point": point}
    if name is not None:
        data["assembly_id"] = name
    return event("injection.applied", data, **ids)


def usage(tokens: int, **ids: Any) -> Json:
    made = event("x", {"input_tokens": tokens, "model": "gpt-4o"}, **ids)
    return {**made, "event_type": "ctxctl.usage.reported"}


def inspect(events: Iterable[Json], *, target: str = "model", policy: str | None = None) -> Inspector:
    """An inspector over events, numbered in order."""
    lines = (orjson.dumps({"event_id": f"e{n}", **e}) for n, e in enumerate(events))
    opened = Opened(
        Trace(Source.from_bytes("test.jsonl", b"\n".join(lines) + b"\n")), "native", "recorded", ()
    )
    params, strategy = resolve_params(opened, target, None, None, policy)
    return Inspector(opened, params, strategy)


def steps(events: Iterable[Json], **options: Any) -> list[Step]:
    return [r for r in inspect(events, **options).replay() if isinstance(r, Step)]


def turns(events: Iterable[Json], **options: Any) -> list[Turn]:
    return [r for r in inspect(events, **options).replay() if isinstance(r, Turn)]


def statuses(step: Step | Turn) -> dict[str, str]:
    return {change.item: change.status for change in step.changes}


def placement(
    item: str, key: int, *, tokens: int = 1, segment: str = "context", stale: bool = False
) -> Placement:
    return Placement(
        item=item,
        version=str(key),
        kind="custom",
        title=None,
        source=None,
        segment=segment,
        rank=rank_of(segment),
        tokens=tokens,
        method="counted",
        content=None,
        digest=None,
        key=key,
        line=1,
        stale=stale,
    )
