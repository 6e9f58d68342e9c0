"""Steps as OpenTelemetry spans of the GenAI conventions, one OTLP/JSON request a line.

This is the form of the collector's file exporter: ids in hex, times in nanoseconds as text.  Names of
attributes are those of the semantic conventions for generative AI (status: development, 2026); what they lack
has the prefix ``ctxctl.``.  No contents: each span would repeat its whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import orjson

from ctxctl.model.results import Step, Turn
from ctxctl.session import Inspector
from ctxctl.text import json_safe

Json = dict[str, Any]
_BATCH: Final = 64
"""Spans that one request holds."""
_CLIENT: Final = 3
_MOST: Final = 2**63 - 1


def otlp_lines(inspector: Inspector, version: str, progress: Callable[[float], None]) -> Iterator[bytes]:
    """Lines of requests; the same trace gives the same ids.  `version` is ctxctl's."""
    waiting: list[Json] = []
    ordinal = -1
    for result in inspector.replay(progress):
        if isinstance(result, Turn):
            continue
        ordinal += 1
        waiting.append(_span(ordinal, result))
        if len(waiting) == _BATCH:
            yield _request(waiting, version)
            waiting = []
    if waiting:
        yield _request(waiting, version)


def _request(spans: list[Json], version: str) -> bytes:
    scope = {"name": "ctxctl", "version": version}
    resource = {"attributes": _attributes({"service.name": "ctxctl"})}
    made = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}
    # Names of a capture's go to a terminal as they go into a file.
    return json_safe(orjson.dumps(made)) + b"\n"


def _span(ordinal: int, step: Step) -> Json:
    session = step.session or ""
    moment = _nanoseconds(step.time)
    model = _sound(step.model) if step.model is not None else None
    return {
        "traceId": _digits(32, "session", session),
        "spanId": _digits(16, "step", session, step.thread, str(ordinal)),
        "name": "chat" if model is None else f"chat {model}",
        "kind": _CLIENT,
        "startTimeUnixNano": moment,
        "endTimeUnixNano": moment,
        "attributes": _attributes({**_conventional(step, model), **_own(ordinal, step)}),
    }


def _conventional(step: Step, model: str | None) -> Json:
    usage, cache = step.usage, step.cache
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": None if usage is None else usage.provider,
        "gen_ai.request.model": model,
        "gen_ai.conversation.id": step.session,
        "gen_ai.usage.input_tokens": None if usage is None else usage.reported_input,
        "gen_ai.usage.output_tokens": None if usage is None else usage.reported_output,
        "gen_ai.usage.cache_read.input_tokens": None if usage is None else usage.reported_cached,
        "gen_ai.usage.cache_creation.input_tokens": cache.reported_cache_write,
    }


def _own(ordinal: int, step: Step) -> Json:
    window, ledger = step.window, step.ledger
    made: Json = {
        "ctxctl.ordinal": ordinal, "ctxctl.thread": step.thread,
        "ctxctl.turn": step.turn, "ctxctl.step": step.step,
        "ctxctl.turn.id": step.turn_id, "ctxctl.step.id": step.step_id,
        "ctxctl.window.used": window.used, "ctxctl.window.used.method": window.used_method,
        "ctxctl.window.used.error": window.used_error, "ctxctl.window.recorded": window.recorded,
        "ctxctl.window.unrecorded": window.unrecorded, "ctxctl.window.cap": window.cap,
        "ctxctl.window.limit.source": window.limit_source, "ctxctl.window.threshold": window.threshold,
        "ctxctl.window.limit": window.limit, "ctxctl.window.uncounted": window.uncounted,
        "ctxctl.ledger.new": ledger.new, "ctxctl.ledger.freed": ledger.freed,
        "ctxctl.ledger.stale": ledger.stale,
        "ctxctl.cache.possible_prefix": step.cache.possible_prefix,
        "ctxctl.cache.written_1h": step.cache.reported_cache_write_1h,
    }  # fmt: skip
    if step.cache.miss is not None:
        made["ctxctl.cache.missed"] = step.cache.miss.tokens
        made["ctxctl.cache.miss_cause"] = step.cache.miss.cause
    for name, tokens in step.segments.items():
        made[f"ctxctl.segment.{name}"] = tokens
    for name in step.counts.__struct_fields__:
        made[f"ctxctl.items.{name}"] = getattr(step.counts, name)
    if step.usage is not None:
        made["ctxctl.usage.output.counted"] = step.usage.counted_output
        if step.usage.believed_output is not None:
            made["ctxctl.usage.output.believed"] = step.usage.believed_output
    if step.flags:
        made["ctxctl.flags"] = list(step.flags)
    return made


def _attributes(values: Json) -> list[Json]:
    """Attributes with a known value, as the protocol spells them."""
    return [
        {"key": _sound(name), "value": _value(value)} for name, value in values.items() if value is not None
    ]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(max(-_MOST, min(value, _MOST)))}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": _sound(str(value))}


def _sound(text: str) -> str:
    """A text without lone surrogates, which are no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _digits(size: int, *parts: str) -> str:
    """An id that the same parts always give; never all zeros, which the protocol takes for none."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:size]


def _nanoseconds(time: str | None) -> str:
    """Nanoseconds since 1970, as text; 0, the protocol's "unknown", where no time can be read."""
    try:
        moment = datetime.fromisoformat(time) if time is not None else None
    except ValueError:
        moment = None
    if moment is None:
        return "0"
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:
        return "0"
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return str(max(0, micros * 1000))
