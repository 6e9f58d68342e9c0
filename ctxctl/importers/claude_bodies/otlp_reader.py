"""Bodies in Claude Code's log records: inline (`OTEL_LOG_RAW_API_BODIES=1`), or by reference (`file:DIR`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.providers.spans.files import values_of
from ctxctl.providers.spans.span import Span, spans
from ctxctl.trace.source import Source, open_source

NAME: Final = "claude-bodies"
_ADDRESS: Final = "/v1/messages"
_MOST: Final = 64 << 20
"""The most bytes that are read of a body in a file of its own."""


class _Event(NamedTuple):
    told: Json
    """The record's attributes."""
    time: str | None
    line: int


def read(source: Source, report: Report) -> Iterator[Json]:
    """The capture's events: requests in order, each with its answer; other records are left out."""
    run = Run(NAME, report)
    asked: list[_Event] = []
    answered: dict[str, _Event] = {}
    for value, _ in values_of(run, source):
        for record in spans(value):
            _sort(record, run.line.number, asked, answered)
    sessions: dict[str | None, list[_Event]] = {}
    for event in asked:
        sessions.setdefault(string(event.told.get("session.id")), []).append(event)
    cut = 0
    for session, own in sessions.items():
        run.session = session
        calls = Calls(run)
        for event in sorted(own, key=_order):
            cut += not _take(event, answered.get(_name(event) or ""), calls, source)
            yield from run.drain()
        calls.exchanges.finish()
        yield from run.end_session()
    if cut:
        message = f"{cut} bodies are cut, or in files that are not beside the capture; left out"
        run.problem("bodies-not-found", message)
    if not asked:
        run.problem("no-model-calls", "no body of a request in it")
    yield from run.finish()


def _sort(record: Span, line: int, asked: list[_Event], answered: dict[str, _Event]) -> None:
    told = record.attributes
    event = _Event(told, string(told.get("event.timestamp")) or record.start, line)
    name = told.get("event.name")
    if name == "api_request_body":
        asked.append(event)
    elif name == "api_response_body" and (key := _name(event)) is not None:
        answered.setdefault(key, event)


def _name(event: _Event) -> str | None:
    return string(event.told.get("request_body_id"))


def _order(event: _Event) -> str:
    # Batches come in order, and so do the records of one: the sort is stable.
    return event.time or ""


def _take(event: _Event, answer: _Event | None, calls: Calls, source: Source) -> bool:
    """Hand a request on; return whether its body could be read."""
    request = _body(event, source)
    if request is None:
        return False
    told = answer.told if answer is not None else {}
    calls.run.line = Line(event.line, 0, b"")
    calls.take(
        Call(
            url=_ADDRESS,
            request=request,
            response=_body(answer, source) if answer is not None else None,
            line=event.line,
            answer_line=answer.line if answer is not None else 0,
            time=event.time,
            native_id=string(told.get("request_id")),
            session=calls.run.session,
            turn=string(event.told.get("prompt.id")),
            error=None if answer is not None else "no answer recorded",
        )
    )
    return True


def _body(event: _Event, source: Source) -> Any:
    """The body inline, or in the file of that name beside the capture; None for what is cut or not there."""
    text: Any = event.told.get("body")
    ref = string(event.told.get("body_ref"))
    if text is None and ref is not None and source.path is not None and not source.spooled:
        base = ref.replace("\\", "/").rpartition("/")[2]
        try:
            with open_source(source.path.parent / base) as file:
                text = file.read(0, _MOST)
        except (CtxctlError, OSError):
            return None
    try:
        value = orjson.loads(text) if isinstance(text, str | bytes) else None
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
