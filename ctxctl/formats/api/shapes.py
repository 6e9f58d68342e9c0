"""What a record of a log of bodies is: a request, an answer, both, or neither."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.formats import wire
from ctxctl.formats.api import INNER, REQUESTS, RESPONSES
from ctxctl.formats.build import Json
from ctxctl.formats.calls import bodies
from ctxctl.formats.wire import stream

_URLS: Final = ("url", "path", "endpoint", "uri")
_TIMES: Final = ("timestamp", "time", "ts", "created_at", "start_time", "started_at", "logged_at", "date")
_STATUS: Final = ("status", "status_code", "statusCode", "response_status")
_IDS: Final = ("request_id", "requestId", "id", "call_id")
_SESSIONS: Final = ("session_id", "sessionId", "session")
_THREADS: Final = ("thread_id", "threadId", "thread")
_TURNS: Final = ("turn_id", "turnId", "turn")


class Shape(NamedTuple):
    """A record's bodies, as the capture keeps them, and what stands beside them."""

    request: Any = None
    response: Any = None
    url: str | None = None
    time: Any = None
    status: Any = None
    id: str | None = None
    session: str | None = None
    thread: str | None = None
    turn: str | None = None
    error: str | None = None


def is_request(value: Any) -> bool:
    """Whether a value is the body of a request to a model."""
    return isinstance(value, dict) and wire.of_body(value) is not None


def is_answer(value: Any) -> bool:
    """Whether a value is the body of an answer: JSON, an event stream, or the chunks of one."""
    if isinstance(value, str):
        return bodies.is_stream(value)
    if isinstance(value, list):
        return (
            bool(value)
            and all(isinstance(one, dict) for one in value)
            and (wire.of_response(value[0]) is not None or stream.dialect_of(value[0]) is not None)
        )
    return isinstance(value, dict) and wire.of_response(value) is not None


def shape(record: Any) -> Shape | None:
    """What a record holds; None if no body of either kind."""
    if is_answer(record) and not _held(record, REQUESTS, is_request)[0]:
        return Shape(response=record)
    if not isinstance(record, dict):
        return None
    if is_request(record) and not _held(record, RESPONSES, is_answer)[0]:
        return Shape(request=record)
    request, asked = _held(record, REQUESTS, is_request)
    response, answered = _held(record, RESPONSES, is_answer)
    if not request and is_request(record):
        request = record
    if not response and not request:
        response, answered = _held(record, ("body", "payload", "data"), is_answer)
    error = record.get("error")
    if not request and not response:
        return None
    outer = (record, asked, answered)
    return Shape(
        request=request or None,
        response=response or (answered if isinstance(record.get("status"), int) else None) or None,
        url=_text(_first(outer, _URLS)),
        time=_first(outer, _TIMES),
        status=_first((answered, record), _STATUS),
        id=_text(_first((record,), _IDS)),
        session=_text(_first((record,), _SESSIONS)),
        thread=_text(_first((record,), _THREADS)),
        turn=_text(_first((record,), _TURNS)),
        error=error if isinstance(error, str) else None,
    )


def _held(record: Any, names: tuple[str, ...], wanted: Any) -> tuple[Any, Json]:
    """The body in one of a record's fields, and the object around it, if there is one."""
    if not isinstance(record, dict):
        return None, {}
    for name in names:
        value = bodies.opened(record.get(name))
        if wanted(value):
            return value, {}
        for inner in (*INNER, "body_raw", "text", "content") if isinstance(value, dict) else ():
            found = bodies.opened(value.get(inner))
            if wanted(found):
                return found, value
    return None, {}


def _first(objects: tuple[Json, ...], names: tuple[str, ...]) -> Any:
    return next((o[name] for o in objects for name in names if o.get(name) is not None), None)


def _text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
