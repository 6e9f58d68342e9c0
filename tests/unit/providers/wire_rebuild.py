"""Puts request bodies together again from frames, and says where one differs from what went over the wire.

A frame gives items, their order and their texts; the assembly's blocks give each its place
(`ctxctl.providers.dialects.slots`).  Nothing here knows how a dialect is cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from unittest.mock import patch

from ctxctl.providers.dialects import exchanges
from ctxctl.session import Inspector

Json = dict[str, Any]
FIELDS = {
    "anthropic": ("tools", "system", "messages"),
    "openai-chat": ("tools", "functions", "messages"),
    "openai-responses": ("tools", "instructions", "input"),
    "gemini": ("tools", "systemInstruction", "system_instruction", "contents"),
}
"""What a model sees of a body, by dialect."""


@contextmanager
def bodies() -> Iterator[list[tuple[str, Json]]]:
    """Collects the dialect and body of each request that becomes a step, in the order of the steps."""
    seen: list[tuple[str, Json]] = []
    plain = exchanges.Exchanges._step

    def step(self: exchanges.Exchanges, exchange: Any, request: Any, *rest: Any, **options: Any) -> Any:
        thread = plain(self, exchange, request, *rest, **options)
        seen.append((request.dialect.name, json.loads(json.dumps(exchange.request, default=str))))
        return thread

    with patch.object(exchanges.Exchanges, "_step", step):
        yield seen


def places(inspector: Inspector) -> dict[tuple[Any, ...], list[tuple[str, Json]]]:
    """By session, thread and step: reference and place of each block of the window."""
    windows: dict[str, list[tuple[str, Json]]] = {}
    steps: dict[tuple[Any, ...], list[tuple[str, Json]]] = {}
    for event in inspector.trace.events():
        if event.event_type != "context.assembly.created":
            continue
        record = json.loads(inspector.trace.line(event.offset, event.length))
        data = record["data"]
        ours = data["metadata"]["ctxctl"]
        blocks = [
            (b["item_refs"][0], b.get("metadata", {}).get("ctxctl", {}).get("wire", {}))
            for b in data["ordered_blocks"]
        ]
        if "base" in ours:
            whole, at, rest = [], 0, iter(blocks)
            before = windows[ours["base"]]
            for start, removed, inserted in ours["splices"]:
                whole += before[at:start]
                whole += [next(rest) for _ in range(inserted)]
                at = start + removed
            blocks = whole + before[at:]
        windows[data["assembly_id"]] = blocks
        steps[record.get("session_id"), record.get("thread_id"), record.get("step_id")] = blocks
    return steps


def rebuilt(rows: list[tuple[Json, str | None]]) -> Json:
    """The body's fields from each item's place and text."""
    entries: list[tuple[Json, list[str]]] = []
    for place, text in rows:
        if place.get("joins"):
            entries[-1][1].append(text or "")
        else:
            entries.append((place, [] if text is None else [text]))
    body: Json = {}
    stack: list[dict[str, Callable[[Any], None]]] = []
    for place, texts in entries:
        del stack[place.get("at", 0) :]
        root = body.setdefault(place["in"], [])
        for template in place.get("open", ()):
            holes: dict[str, Callable[[Any], None]] = {}
            made = _opened(template, holes)
            (stack[-1]["parts"] if stack else root.append)(made)
            stack.append(holes)
        put = stack[-1][place.get("to", "parts")] if stack else root.append
        put(_filled(place["leaf"], "".join(texts) if texts else None, None))
    return body


def _opened(template: Any, holes: dict[str, Callable[[Any], None]]) -> Any:
    if isinstance(template, list):
        return [_opened(inner, holes) for inner in template]
    if not isinstance(template, dict):
        return template
    if template.get("$") == "merge":
        made = {key: _opened(value, holes) for key, value in template.items() if key != "$"}
        holes["parts"] = made.update
        return made
    made = {}
    for key, value in template.items():
        if isinstance(value, dict) and list(value) == ["$"]:
            made[key] = []
            holes[value["$"]] = made[key].append
        elif isinstance(value, dict) and list(value) == ["$1"]:
            holes[value["$1"]] = lambda inner, key=key, made=made: made.update({key: inner})
        else:
            made[key] = _opened(value, holes)
    return made


def _filled(leaf: Any, text: str | None, name: str | None) -> Any:
    if isinstance(leaf, list):
        return [_filled(inner, text, None) for inner in leaf]
    if not isinstance(leaf, dict):
        return leaf
    if list(leaf) == ["$"]:
        assert text is not None, leaf
        hole = leaf["$"]
        if hole == "text":
            return text
        if hole == "json":
            return json.loads(text)
        rest = text[len(name or "tool") + 1 :]
        return json.loads(rest) if hole == "call" else rest
    named = leaf.get("name")
    return {
        key: _filled(value, text, named if isinstance(named, str) and named else None)
        for key, value in leaf.items()
    }


def difference(made: Any, sent: Any, path: str = "") -> str | None:
    """Where a rebuilt value differs from what was sent; None if it is the same.

    The same under canonical JSON: cache markers aside, a string as one text block, blobs by digest.
    """
    if isinstance(made, dict) and "#" in made:
        same = isinstance(sent, str) and made["#"] == sha256(sent.encode()).hexdigest()
        return None if same else f"{path}: another blob"
    if isinstance(made, list) and len(made) == 1 and not isinstance(sent, list):
        inner = made[0]
        text = isinstance(sent, str) and isinstance(inner, dict)
        return difference(inner.get("text") if text else inner, sent, f"{path}[0]")
    if isinstance(made, dict) and isinstance(sent, dict):
        keys = set(made) | {key for key in sent if key != "cache_control"}
        for key in sorted(keys):
            if key not in made or key not in sent:
                return f"{path}.{key}: only {'sent' if key in sent else 'made'}"
            found = difference(made[key], sent[key], f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(made, list) and isinstance(sent, list):
        if len(made) != len(sent):
            return f"{path}: {len(made)} made, {len(sent)} sent"
        for at, (one, other) in enumerate(zip(made, sent, strict=True)):
            found = difference(one, other, f"{path}[{at}]")
            if found is not None:
                return found
        return None
    if made == sent and isinstance(made, bool) == isinstance(sent, bool):
        return None
    return f"{path}: {str(made)[:80]!r} made, {str(sent)[:80]!r} sent"


def compare(made: Json, dialect: str, sent: Json) -> str | None:
    """Where a rebuilt body differs from the one that was sent, in what a model sees of it."""
    for field in FIELDS[dialect]:
        value = sent.get(field)
        mine = made.get(field, [])
        if field == "input" and sent.get("previous_response_id"):
            # What the provider holds comes before it.
            own = len(value) if isinstance(value, list) else bool(value)
            mine = mine[len(mine) - own :]
        if not value:
            if mine:
                return f"{field}: not sent"
            continue
        if field == "input" and isinstance(value, str):
            mine = [block for item in mine for block in item["content"]]
        elif len(mine) == 1 and isinstance(value, dict) and field != "contents":
            mine = mine[0]
            if isinstance(value.get("parts"), dict):
                value = {**value, "parts": [value["parts"]]}
        elif field.startswith("system") and isinstance(value, str) and isinstance(mine[0], dict):
            mine = mine[0].get("parts", mine)
        found = difference(mine, value, field)
        if found is not None:
            return found
    return None


def check(inspector: Inspector, seen: list[tuple[str, Json]]) -> int:
    """Hold every step's frame against the body that was sent; returns how many were compared."""
    where = places(inspector)
    order = list(where)
    assert len(order) == len(seen), (len(order), len(seen))
    ordinals, compared = {}, 0
    for at in range(inspector.summary.steps if inspector.summary else 0):
        step = inspector.frame(at).step
        ordinals[step.session, step.thread, step.step_id] = at
    for key, (dialect, sent) in zip(order, seen, strict=True):
        at = next(o for k, o in ordinals.items() if _same_step(k, key))
        frame = inspector.frame(at)
        blocks = where[key]
        refs = [f"{p.item}@{p.version}" if p.version is not None else p.item for p in frame.placements]
        assert refs == [ref for ref, _ in blocks], (key, "order")
        texts = [inspector.text(p.content) if p.content is not None else None for p in frame.placements]
        if '"type": "compact' in json.dumps(sent) and any(
            p.kind == "thread_summary" for p in frame.placements
        ):
            continue  # the provider left out what its compaction took
        made = rebuilt([(place, text) for (_, place), text in zip(blocks, texts, strict=True)])
        found = compare(made, dialect, sent)
        assert found is None, (key, found)
        compared += 1
    return compared


def _same_step(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return one == other or ((one[1] or "main", one[2]) == (other[1] or "main", other[2]) and one[0] in (
        other[0], "", None
    ))  # fmt: skip
