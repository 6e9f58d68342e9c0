"""`ui_messages.json`: what the chat showed, and what it knows of each request."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import count, string
from ctxctl.formats.kit.usage import usage_record
from ctxctl.formats.roo.window import milliseconds

_CONDENSED: Final = ("contextCondense", "contextTruncation")


class Asked(NamedTuple):
    """One request as the chat knows it (`api_req_started`)."""

    time: float
    """Milliseconds since 1970, when it was sent."""
    native: Any
    """The time as stored: the request's id."""
    text: str | None
    """What was new in it, in one string; later versions do not keep it."""
    bill: Json | None
    fields: Json
    """As stored, without the text."""


def requests(chat: list[Any]) -> list[Asked]:
    """The requests in the order in which they were sent."""
    found = []
    for message in chat:
        if isinstance(message, dict) and message.get("say") == "api_req_started":
            found.append(asked(message))
    return sorted(found, key=lambda one: one.time)


def asked(message: Json) -> Asked:
    """One request; its fields are JSON in the message's text."""
    text = message.get("text")
    try:
        fields = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        fields = None
    fields = fields if isinstance(fields, dict) else {}
    sent = string(fields.get("request"))
    # What the chat shows until the request is put together.
    sent = None if sent is not None and sent.endswith("Loading...") else sent
    kept = {name: value for name, value in fields.items() if name != "request"}
    native = message.get("ts")
    return Asked(milliseconds(native), native, sent, bill(kept), kept)


def bill(fields: Json) -> Json | None:
    """What a request was billed.

    `apiProtocol` says whether `tokensIn` leaves out what the cache held ("anthropic") or not ("openai").
    Versions that do not say so add cache reads and writes to it themselves.
    """
    read, written = count(fields.get("cacheReads")), count(fields.get("cacheWrites"))
    given = count(fields.get("tokensIn"))
    if given == 0 and not read and not written and not count(fields.get("tokensOut")):
        # A request that failed before anything was billed.
        return None
    names = ("apiProtocol", "cost", "cancelReason", "inferenceProvider")
    return usage_record(
        input_tokens=given,
        output_tokens=fields.get("tokensOut"),
        cached=read,
        cache_write=written,
        excludes_cache=fields.get("apiProtocol") != "openai",
        native={name: fields[name] for name in names if fields.get(name) is not None},
    )


def condensations(chat: list[Any]) -> list[Json]:
    """What the chat says of each condensation, in order; `ts` is when it was done."""
    found = []
    for message in chat:
        if not isinstance(message, dict):
            continue
        for name in _CONDENSED:
            told = message.get(name)
            if isinstance(told, dict):
                fields = {field: value for field, value in told.items() if field != "summary"}
                found.append({"ts": message.get("ts"), "kind": name, "text": told.get("summary"), **fields})
    return sorted(found, key=lambda one: milliseconds(one["ts"]))


def model_of(chat: list[Any]) -> str | None:
    """The model, where the chat names it (Cline's `modelInfo`)."""
    for message in chat:
        info = message.get("modelInfo") if isinstance(message, dict) else None
        if isinstance(info, dict):
            return string(info.get("modelId"))
    return None
