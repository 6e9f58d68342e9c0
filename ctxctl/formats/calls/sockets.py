"""Calls over one WebSocket: each `response.create` that was sent, with the response that answered it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.calls import bodies
from ctxctl.formats.calls.http import Call
from ctxctl.formats.kit.parts import string

_LAST: Final = frozenset({"response.completed", "response.done", "response.failed", "response.incomplete"})
_NOT_BODY: Final = frozenset({"type", "generate"})


def calls(whole: Call, sent: Any, received: Any) -> Iterator[Call]:
    """One call per message that asked the model; `whole` gives what they share, and their merged bodies.

    A message with `generate: false` only warms the cache: it is no request of the conversation.
    Answers are told apart by `response.created`, and belong to requests in order.
    """
    asked = [_parsed(message) for message in sent] if isinstance(sent, list) else []
    asked = [m for m in asked if m.get("type") == "response.create" or ("type" not in m and "input" in m)]
    answers = list(_answers(received if isinstance(received, list) else []))
    if not asked:
        yield whole
        return
    for number, message in enumerate(asked):
        answer = answers[number] if number < len(answers) else []
        if message.get("generate") is False:
            continue
        inner = message.get("response")
        body = inner if isinstance(inner, dict) and "input" in inner else message
        identity = string(_response_id(answer)) or whole.native_id
        yield whole._replace(
            request={key: value for key, value in body.items() if key not in _NOT_BODY},
            response=bodies.as_events(list(answer)) if answer else None,
            method="POST",
            native_id=identity,
            status=None if whole.status in (101, "101") else whole.status,
            error=whole.error if answer else whole.error or "no response recorded",
        )


def _answers(received: list[Any]) -> Iterator[list[Json]]:
    """The events of each response, in order."""
    current: list[Json] = []
    for message in received:
        event = _parsed(message)
        kind = event.get("type")
        if kind == "response.created" and current:
            yield current
            current = []
        if isinstance(kind, str) and kind.startswith("response."):
            current.append(event)
        if isinstance(kind, str) and kind in _LAST:
            yield current
            current = []
    if current:
        yield current


def _parsed(message: Any) -> Json:
    found = bodies.opened(message)
    if isinstance(found, dict) and set(found) == {"raw"}:
        found = bodies.opened(found["raw"])
    return found if isinstance(found, dict) else {}


def _response_id(answer: list[Json]) -> Any:
    for event in answer:
        response = event.get("response")
        if isinstance(response, dict) and "id" in response:
            return response["id"]
    return None
