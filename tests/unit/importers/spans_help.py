"""Short ways to write spans, and what an import of a few bytes gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.importers import registry
from tests.formats.damage import Imported, imported

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def read(data: bytes | str | Any, name: str | None = None) -> Imported:
    """The import of bytes, of a text, or of a value as JSON, by the format that claims it."""
    if not isinstance(data, bytes | str):
        data = json.dumps(data)
    data = data.encode() if isinstance(data, str) else data
    found = registry.of_head(data[: registry.HEAD])
    assert found is not None, "claimed by no format"
    assert name is None or found.name == name, found.name
    return imported(found, data)


def items(found: Imported) -> list[tuple[str, str | None]]:
    """Kind and text of every item, in the order in which they were announced."""
    return [
        (event["data"]["context_kind"], event["data"].get("content"))
        for event in found.events
        if ".item." in event["event_type"]
    ]


def records(found: Imported, kind: str) -> list[Json]:
    """The items of a kind."""
    return [
        event["data"]
        for event in found.events
        if ".item." in event["event_type"] and event["data"]["context_kind"] == kind
    ]


def requests(found: Imported) -> list[tuple[str | None, str | None, str | None]]:
    """Session, thread and turn of every request."""
    return [
        (event.get("session_id"), event.get("thread_id"), event.get("turn_id"))
        for event in found.events
        if event["event_type"].endswith("injection.applied")
    ]


def bills(found: Imported) -> list[Json]:
    """What was reported, without the native fields."""
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    return [
        {name: event["data"][name] for name in names if name in event["data"]}
        for event in found.events
        if event["event_type"].endswith("usage.reported")
    ]


def span(number: int, attributes: Json, **fields: Any) -> Json:
    """A span as an SDK writes it."""
    return {
        "name": "chat",
        "traceId": "f" * 32,
        "spanId": f"{number:016x}",
        "startTime": [1767225600 + number, 0],
        "attributes": attributes,
        "events": [],
        **fields,
    }


def chat(number: int, **more: Any) -> Json:
    """An inference span with a question."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Question {number}?"}]}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.input.messages": json.dumps(asked),
        **more,
    }
    return span(number, attributes)
