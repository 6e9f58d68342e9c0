"""What a record of a log of bodies is: a request, an answer, both, or neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ctxctl.importers.api import detection
from ctxctl.ingest.build import Json, canonical
from ctxctl.providers.calls import envelopes
from ctxctl.providers.calls.encodings import Unpacker
from ctxctl.providers.calls.recognise import is_answer, is_answer_inside, is_request

_LONG: Final = 120
_ENDS: Final = ("errored", "canceled", "cancelled", "expired")
"""How a request of a batch may end without an answer."""


class BodyRecord(NamedTuple):
    """A record's bodies, as the capture keeps them, and what stands beside them."""

    request: Any = None
    response: Any = None
    url: str | None = None
    method: str = "POST"
    time: Any = None
    status: Any = None
    id: str | None = None
    batch: str | None = None
    """Its id, where the sender gave it to a request of a batch."""
    session: str | None = None
    thread: str | None = None
    turn: str | None = None
    error: str | None = None

    def failure(self) -> str | None:
        """Why there is no answer, in one line; None where there is one."""
        if self.response is None:
            return self.error or "no reason is given"
        if not isinstance(self.status, int) or self.status < 400:
            return None
        inner = self.response.get("error") if isinstance(self.response, dict) else None
        return self.error or _error(inner) or f"HTTP {self.status}"


def body_record(record: Any, unpacker: Unpacker | None = None) -> BodyRecord | None:
    """The bodies that a record holds; None if it holds neither a request nor an answer."""
    if is_answer(record) and not _held(record, detection.REQUESTS, is_request, unpacker)[0]:
        return BodyRecord(response=record)
    if not isinstance(record, dict):
        return None
    if is_request(record) and not _held(record, detection.RESPONSES, is_answer_inside, unpacker)[0]:
        return BodyRecord(request=record)
    # A message's content may quote a request; it is none.
    asking = detection.REQUESTS if "role" not in record else detection.REQUESTS[:-1]
    request, asked = _held(record, asking, is_request, unpacker)
    response, answered = _held(record, detection.RESPONSES, is_answer_inside, unpacker)
    if not request and is_request(record):
        request = record
    if not response and not request:
        response, answered = _held(record, detection.EITHER, is_answer_inside, unpacker)
    answered = answered or _first_object(record)
    if not response and _failed(record, answered):
        response = answered.get("body") or answered
    if not request and not response:
        return _ended(record, answered) or _addressed(record)
    return _shape(record, request, response, asked, answered)


def requests_of(record: Any) -> list[Any]:
    """The requests in the document that a batch is made with; else the record alone."""
    several = record.get("requests") if isinstance(record, dict) else None
    if isinstance(several, list) and several and all(isinstance(one, dict) for one in several):
        return several
    if isinstance(record, dict) and all(name in record for name in detection.LITELLM):
        return [_logged_by_litellm(record)]
    return [record]


def _logged_by_litellm(record: Json) -> Json:
    """A call from LiteLLM's log, in the form of a request and its response."""
    response, parameters = record.get("response"), record.get("model_parameters")
    asked = {name: record[name] for name in ("model", "messages") if record.get(name)}
    if isinstance(response, dict):
        response = {**response, "response_cost": record.get("response_cost")}
    return {
        "request": {**(parameters if isinstance(parameters, dict) else {}), **asked},
        "response": response,
        "startTime": record["startTime"],
        "id": record.get("id"),
        "session": record.get("trace_id"),
        "error": record.get("error_str"),
    }


def _shape(record: Json, request: Any, response: Any, asked: Json, answered: Json) -> BodyRecord:
    outer = (record, asked, answered)
    return BodyRecord(
        request=request or None,
        response=response or None,
        url=_text(_first(outer, detection.URLS)),
        time=_first(outer, detection.TIMES),
        status=_first((answered, record), detection.STATUS),
        id=_id(record),
        batch=_batch(record),
        session=_text(_first((record,), detection.SESSIONS)),
        thread=_text(_first((record,), detection.THREADS)),
        turn=_text(_first((record,), detection.TURNS)),
        error=_error(record.get("error")),
    )


def _ended(record: Json, answered: Json) -> BodyRecord | None:
    """How a request without an answer ended: refused, cancelled, expired."""
    held = any(name in record for name in detection.RESPONSES)
    if not held or _id(record) is None:
        return None
    kind = answered.get("type")
    told = kind if isinstance(kind, str) and kind in _ENDS else None
    error = _error(answered.get("error")) or _error(record.get("error")) or told
    return _shape(record, None, None, {}, answered)._replace(error=error) if error is not None else None


def _failed(record: Json, answered: Json) -> bool:
    status = _first((answered, record), detection.STATUS)
    return isinstance(status, int) and status >= 400 and bool(answered)


def _first_object(record: Json) -> Json:
    """The first object among the fields that may hold an answer."""
    held = (record.get(name) for name in detection.RESPONSES)
    return next((value for value in held if isinstance(value, dict)), {})


def _addressed(record: Json) -> BodyRecord | None:
    """A call that asks no model, as its address tells."""
    url = _text(_first((record,), detection.URLS))
    body = record.get("body")
    if url is None or not isinstance(body, dict):
        return None
    method = record.get("method")
    return BodyRecord(
        request=body,
        response=record.get("response"),
        url=url,
        method=method if isinstance(method, str) else "POST",
        id=_id(record),
        batch=_batch(record),
    )


def _held(
    record: Any, fields: tuple[str, ...], wanted: Callable[[Any], bool], unpacker: Unpacker | None
) -> tuple[Any, Json]:
    """The body in one of a record's fields, out of its envelopes, and the object in that field."""
    if not isinstance(record, dict):
        return None, {}
    for name in fields:
        value = record.get(name)
        if not value or isinstance(value, int | float):
            continue
        found = envelopes.enveloped_body(value, wanted, unpacker=unpacker)
        if found is not None:
            return found, value if isinstance(value, dict) and found is not value else {}
    return None, {}


def _id(record: Json) -> str | None:
    return _batch(record) or _text(_first((record,), detection.IDS))


def _batch(record: Json) -> str | None:
    """The id that the sender of a batch gave to a request."""
    found = _text(_first((record,), detection.OF_BATCHES))
    if found is None and "key" in record and record.keys() <= detection.KEYED:
        return _text(record["key"])
    return found


def _error(value: Any) -> str | None:
    """Why there is no answer, in one line."""
    while isinstance(value, dict):
        inner = value.get("error") if isinstance(value.get("error"), dict) else value.get("message")
        if inner is None:
            value = canonical(value) if value else None
            break
        value = inner
    return value.partition("\n")[0][:_LONG] if isinstance(value, str) and value else None


def _first(objects: tuple[Json, ...], fields: tuple[str, ...]) -> Any:
    return next((o[name] for o in objects for name in fields if o.get(name) is not None), None)


def _text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
