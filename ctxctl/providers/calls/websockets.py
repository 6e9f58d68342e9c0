"""Calls over one WebSocket: each `response.create` that was sent, with the response that answered it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import string
from ctxctl.providers.calls import encodings
from ctxctl.providers.calls.encodings import Unpacker
from ctxctl.providers.calls.http import Call

_LAST: Final = frozenset({"response.completed", "response.done", "response.failed", "response.incomplete"})
_WARMED: Final = 16
"""Messages in a row that warm the cache and stand in front of a request, and requests behind one of them;
beyond that a request keeps the id that it goes on from.  Clients send one, and go on from it once."""
_NOT_BODY: Final = frozenset({"type", "generate"})


def calls_of_messages(
    whole: Call, sent: Any, received: Any, unpacker: Unpacker | None = None
) -> Iterator[Call]:
    """One call per message that asked the model; `whole` gives what they share, and their merged bodies.

    A message with `generate: false` only warms the cache: it is no request of the conversation, and a request
    that goes on from it has its input in front.
    Answers are told apart by `response.created`, and belong to requests in order.
    """
    asked = [_parsed(message, unpacker) for message in sent] if isinstance(sent, list) else []
    asked = [m for m in asked if m.get("type") == "response.create" or ("type" not in m and "input" in m)]
    answers = list(_answers(received if isinstance(received, list) else [], unpacker))
    if not asked:
        # The message that was sent is the call's own body.
        yield whole._replace(response=encodings.as_events(list(answers[-1]))) if answers else whole
        return
    warmed: dict[str, tuple[Json, int]] = {}
    """By response, what warmed the cache up to it, and in how many messages."""
    used: Counter[str] = Counter()
    for number, message in enumerate(asked):
        answer = answers[number] if number < len(answers) else []
        inner = message.get("response")
        body = inner if isinstance(inner, dict) and "input" in inner else message
        named = string(body.get("previous_response_id"))
        after = 0
        if named is not None and named in warmed:
            before, behind = warmed[named]
            used[named] += 1
            if behind <= _WARMED and used[named] <= _WARMED:
                body, after = _behind(before, body), behind
        if message.get("generate") is False:
            if (identity := string(_response_id(answer))) is not None:
                warmed[identity] = body, after + 1
            continue
        identity = string(_response_id(answer)) or whole.native_id
        yield whole._replace(
            request={key: value for key, value in body.items() if key not in _NOT_BODY},
            response=encodings.as_events(list(answer)) if answer else None,
            method="POST",
            native_id=identity,
            status=None if whole.status in (101, "101") else whole.status,
            error=whole.error if answer else whole.error or "no response recorded",
        )


def _behind(before: Json, body: Json) -> Json:
    """A request with what its connection was warmed with in front: nothing was generated in between."""
    given = [one for held in (before, body) for one in _items(held.get("input"))]
    own = {name: value for name, value in body.items() if name != "previous_response_id"}
    first = before.get("previous_response_id")
    return {**before, **own, "input": given, **({"previous_response_id": first} if first is not None else {})}


def _items(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def _answers(received: list[Any], unpacker: Unpacker | None) -> Iterator[list[Json]]:
    """The events of each response, in order."""
    current: list[Json] = []
    for message in received:
        event = _parsed(message, unpacker)
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


def _parsed(message: Any, unpacker: Unpacker | None) -> Json:
    found = encodings.decoded_body(message, unpacker=unpacker)
    if isinstance(found, dict) and set(found) == {"raw"}:
        found = encodings.decoded_body(found["raw"], unpacker=unpacker)
    return found if isinstance(found, dict) else {}


def _response_id(answer: list[Json]) -> Any:
    for event in answer:
        response = event.get("response")
        if isinstance(response, dict) and "id" in response:
            return response["id"]
    return None
