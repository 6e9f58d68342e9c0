"""Streams of the Responses API: the last event has the whole answer; a stream that was cut has its items."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.wire.dialect import listed

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.done")
_MAX_INDEX: Final = 10_000
_DELTAS: Final = {
    "response.output_text.delta": ("content", "output_text"),
    "response.refusal.delta": ("content", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text"),
}


class _Item:
    """An output item that comes in pieces."""

    def __init__(self) -> None:
        self.start: Json = {}
        self.done: Json | None = None
        self.texts: dict[tuple[str, int], tuple[str, list[str]]] = {}
        self.arguments: dict[str, list[str]] = {}

    def whole(self) -> Json:
        if self.done is not None:
            return self.done
        made = dict(self.start)
        for (field, at), (kind, pieces) in sorted(self.texts.items()):
            blocks = list(listed(made.get(field)))
            block: Json = {"type": kind, ("refusal" if kind == "refusal" else "text"): "".join(pieces)}
            made[field] = [*blocks[:at], block]
        made.update((field, "".join(pieces)) for field, pieces in self.arguments.items())
        return made


def of_items(found: list[Json]) -> Json | None:
    """The response that the events of a stream amount to; None if they carry none."""
    body: Json = {}
    items: dict[int, _Item] = {}
    ended: Json | None = None
    for event in found:
        kind = event.get("type")
        response = event.get("response")
        if isinstance(response, dict):
            if kind in _ENDS:
                ended = response
            else:
                body.update(response)
        elif kind == "error":
            body["error"] = event.get("error") or event.get("message") or True
        elif isinstance(kind, str):
            _piece(items, kind, event)
    output = [items[at].whole() for at in sorted(items)]
    output = [item for item in output if item]
    if ended is not None:
        # Some back ends send the end without the output.
        return ended if listed(ended.get("output")) or not output else {**ended, "output": output}
    if not body and not output:
        return None
    body.setdefault("object", "response")
    body["output"] = output
    return body


def _piece(items: dict[int, _Item], kind: str, event: Json) -> None:
    at = _number(event.get("output_index"))
    item = event.get("item")
    if kind == "response.output_item.added" and isinstance(item, dict):
        items.setdefault(at, _Item()).start = item
    elif kind == "response.output_item.done" and isinstance(item, dict):
        items.setdefault(at, _Item()).done = item
    delta = event.get("delta")
    if not isinstance(delta, str):
        return
    if kind in _DELTAS:
        field, block = _DELTAS[kind]
        inner = _number(event.get("content_index", event.get("summary_index")))
        items.setdefault(at, _Item()).texts.setdefault((field, inner), (block, []))[1].append(delta)
    elif kind == "response.function_call_arguments.delta":
        items.setdefault(at, _Item()).arguments.setdefault("arguments", []).append(delta)
    elif kind == "response.custom_tool_call_input.delta":
        items.setdefault(at, _Item()).arguments.setdefault("input", []).append(delta)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < _MAX_INDEX else 0
