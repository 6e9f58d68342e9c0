"""One event of an Amplifier log, whichever of the loggers wrote it, and the bill that such events tell.

There are three envelopes: that of hooks-logging (`ts`, `lvl`, `schema`, some fields taken out of `data`),
that of hook-context-intelligence (`timestamp`, `workspace`, everything in `data`), and one with `type` for
`event`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.lines import Line
from ctxctl.ingest.parts import count, mapping, string
from ctxctl.providers.usage import usage_record

_HOISTED: Final = frozenset(
    {"redaction", "status", "duration_ms", "module", "component", "error", "request_id", "span_id",
     "parent_span_id", "session_id", "timestamp", "parent_id", "lvl"}
)  # fmt: skip
"""Fields that one logger keeps in the payload, another in the envelope or not at all."""
_BODIES: Final = ("raw", "params", "response")


class Record(NamedTuple):
    """An event without its envelope."""

    event: str
    session: str | None
    time: str | None
    """When it was logged, or emitted; None if the log holds no time, or a masked one."""
    emitted: str | None
    """The kernel's own time stamp, the same in each logger's copy; None if it is masked or lacking."""
    data: Json
    line: Line
    top: Json
    """The envelope: hooks-logging takes `status`, `request_id`, `error` and others out of `data`."""
    file: str | None = None
    """Of a session's several files, the one that holds it."""

    def field(self, name: str) -> Any:
        """A field of the payload, wherever the logger put it."""
        value = self.data.get(name)
        return value if value is not None else self.top.get(name)

    @property
    def parent(self) -> str | None:
        """The session that this one was set off by."""
        return string(self.data.get("parent_id")) or string(self.data.get("parent"))


def record(event: str, value: Json, line: Line, file: str | None = None) -> Record:
    """The event of a log line."""
    data = mapping(value.get("data"))
    inner, outer = data.get("timestamp"), value.get("ts") or value.get("timestamp")
    emitted = _time(inner) if inner is not None else _time(outer)
    session = string(value.get("session_id")) or string(data.get("session_id"))
    return Record(event, session, _time(outer) or emitted, emitted, data, line, value, file)


def _time(value: Any) -> str | None:
    """A time stamp that no redaction has masked; `build.Maker` looks closer."""
    return value if isinstance(value, str) and value[:4].isdigit() and "[" not in value else None


def body(found: Record) -> Json | None:
    """The provider's own request or response, where the log holds it."""
    for name in _BODIES:
        value = found.data.get(name)
        if isinstance(value, dict) and value:
            return value
    return None


def distinct_records(records: Iterable[Record]) -> Iterator[Record]:
    """The records without the copies: two loggers, or one that is registered twice, write each event twice.

    A copy has the same event, session and kernel time, or the same provider's id of the response.  Where the
    time is masked, only neighbours with equal payloads are copies.  Of two neighbours the one with
    the provider's body is kept.  Holds one number for each event.
    """
    seen: set[int] = set()
    held: Record | None = None
    names: list[int] = []
    for found in records:
        now = _names(found)
        if held is not None and _same(held, names, found, now):
            held = found if body(held) is None and body(found) is not None else held
            names += now
            seen.update(now)
            continue
        if any(name in seen for name in now):
            continue
        if held is not None:
            yield held
        held, names = found, now
        seen.update(now)
    if held is not None:
        yield held


def _names(found: Record) -> list[int]:
    data = found.data
    made: list[int] = []
    if found.emitted is not None:
        call, block = data.get("tool_call_id"), data.get("block_index")
        made.append(hash((found.event, found.session, found.emitted, repr(call), repr(block))))
    elif found.event == "tool:post" and (call := string(data.get("tool_call_id"))) is not None:
        made.append(hash((found.event, found.session, call)))
    response = body(found) if found.event == "llm:response" else None
    if response is not None and (name := string(response.get("id"))) is not None:
        made.append(hash((found.event, found.session, "id", name)))
    return made


def _same(held: Record, names: list[int], found: Record, now: list[int]) -> bool:
    if any(name in names for name in now):
        return True
    if held.event != found.event or held.session != found.session or (held.emitted and found.emitted):
        return False
    return held.emitted is found.emitted and _payload(held) == _payload(found)


def _payload(found: Record) -> str:
    """What two loggers' copies have in common."""
    return canonical({name: value for name, value in found.data.items() if name not in _HOISTED})


_REPR: Final = re.compile(r"\b([a-z_]+)=(\d{1,15})\b")


def reported_usage(usage: Any, provider: str | None, model: str | None) -> Json | None:
    """A usage record of Amplifier's own: `llm:response`, `content_block:end` or `provider:response`.

    Two generations: `input_tokens` holds cache reads and not cache writes; `input` is the provider's own
    number, which leaves both out where the provider is Anthropic.
    """
    if isinstance(usage, str):
        # loop-basic logs the printed form of the record.
        usage = {name: int(number) for name, number in _REPR.findall(usage[:2000])}
    if not isinstance(usage, dict):
        return None
    if "input_tokens" not in usage:
        return usage_record(
            input_tokens=usage.get("input"),
            output_tokens=usage.get("output"),
            cached=usage.get("cache_read"),
            cache_write=usage.get("cache_write"),
            excludes_cache=_anthropic(provider, model),
            provider=provider,
            model=model,
            native=usage,
        )
    billed, read, written = (
        count(usage.get(name)) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    )
    if billed is not None and read is not None and read > billed:
        # A provider module that passed Anthropic's number on unchanged.
        billed += read
    if billed is not None and written is not None and _anthropic(provider, model):
        billed += written
    return usage_record(
        input_tokens=billed,
        output_tokens=usage.get("output_tokens"),
        cached=read,
        cache_write=written,
        reasoning=usage.get("reasoning_tokens"),
        provider=provider,
        model=model,
        native=usage,
    )


def _anthropic(provider: str | None, model: str | None) -> bool:
    """Whether cache writes are billed beside the input, as Anthropic's API has it."""
    return "anthropic" in (provider or "").lower() or "claude" in (model or "").lower()
