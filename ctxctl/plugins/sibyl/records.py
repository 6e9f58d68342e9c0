"""What a JSON value of a Sibyl capture is: a call of the tool, its answer, a pack, a request beside it.

A pack comes alone, as `request`/`response` pair, in the envelope of MCP (`structuredContent`, or JSON in the
text of a content block), in JSON-RPC messages, or in any of these inside a log's own envelope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed, shallow

TITLE: Final = "# Sibyl Context Pack: "
"""How a pack's markdown begins."""
_PACK_KEYS: Final = ("goal", "intent", "query", "layer", "total_items", "usage_hint", "usage_metadata")
_ENVELOPES: Final = ("message", "payload", "data", "body", "pack", "context_pack", "result", "response")
_TIMES: Final = ("timestamp", "time", "ts", "created_at")
_BODIES: Final = ("messages", "contents", "input")
_MAX_DEPTH: Final = 4
_ENDS: Final = re.compile(r"(?:^|[_./:-])context$")
_MENDED: Final = 4 << 20
"""Characters of the longest damaged text that is mended."""
AUDITED: Final = "memory.context_pack"
"""The audit action of a pack."""


class Call(NamedTuple):
    """A `tools/call` of the tool `context`."""

    arguments: Json
    native_id: str | None = None
    time: Any = None
    whole: bool = True
    """All that was asked is here: what is absent was not named.  An audit row holds some of it."""


class Answer(NamedTuple):
    """What the tool returned: a pack or an error."""

    pack: Json | None
    error: str | None = None
    native_id: str | None = None
    time: Any = None
    call: Call | None = None
    """The call it answers, where one record holds both."""


class SentRequest(NamedTuple):
    """A request to a model, or a line of a transcript, in which a pack may be found."""

    content: Any
    """What of it goes to the model."""
    model: str | None = None


class Audit(NamedTuple):
    """A row of the memory audit: which ids a pack had, no text."""

    row: Json


Record = Call | Answer | SentRequest | Audit


def records(value: Any, depth: int = 0, time: Any = None) -> Iterator[Record]:
    """The records that a JSON value holds, in order; nothing for a value of another kind."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            yield from records(one, depth + 1, time)
        return
    if not isinstance(value, dict):
        return
    time = next((value[key] for key in _TIMES if isinstance(value.get(key), str)), time)
    if is_pack(value):
        yield Answer(value, time=time)
    elif value.get("jsonrpc") is not None or value.get("method") == "tools/call":
        yield from _rpc(value, time)
    elif value.get("action") == AUDITED:
        yield Audit(value)
    elif isinstance(value.get("events"), list):
        rows = value["events"]
        yield from (Audit(row) for row in rows if isinstance(row, dict) and row.get("action") == AUDITED)
    elif isinstance(value.get("request"), dict):
        yield from _pair(value, time)
    elif _is_result(value):
        answer = _result(value, None, time)
        if answer is not None:
            yield answer
    elif (sent := sent_of(value)) is not None:
        yield sent
    else:
        for key in _ENVELOPES:
            if isinstance(value.get(key), dict):
                yield from records(value[key], depth + 1, time)


def is_pack(value: Json) -> bool:
    """Whether an object is a context pack, by its own keys."""
    sections = value.get("sections")
    if not isinstance(sections, list):
        return False
    told = sum(key in value for key in _PACK_KEYS)
    facets = any(isinstance(s, dict) and "facet" in s and "items" in s for s in sections)
    return told >= 4 or (facets and told >= 1)


def sent_of(value: Json) -> SentRequest | None:
    """A request body, or a line of a transcript that can hold tool results, by what it sends."""
    if any(isinstance(value.get(key), list) for key in _BODIES) and "goal" not in value:
        model = value.get("model")
        content = [value[key] for key in (*_BODIES, "system", "instructions") if key in value]
        return SentRequest(content, model if isinstance(model, str) else None)
    message = value.get("message")
    if isinstance(message, dict) and "content" in message:
        return SentRequest(message["content"])
    if isinstance(value.get("output"), str | list) and "call_id" in value:
        return SentRequest(value["output"])
    return None


def _pair(value: Json, time: Any) -> Iterator[Record]:
    request = value["request"]
    body = request.get("body")
    sent = sent_of(body if isinstance(body, dict) else request)
    if sent is not None:
        yield sent
        return
    call = _call(request, time)
    response = value.get("response", value.get("result"))
    answer = _answer(response, time)
    if answer is None and call is not None and isinstance(value.get("error"), str | dict):
        answer = Answer(None, _error(value["error"]), time=time)
    if answer is not None:
        yield answer._replace(call=call)
    elif call is not None:
        yield call


def _call(request: Json, time: Any) -> Call | None:
    """A call in any of its spellings: a message, its params, or the arguments alone."""
    inner = request.get("params")
    native = _ident(request.get("id"))
    if isinstance(inner, dict):
        request = inner
    arguments = request.get("arguments", request.get("input"))
    name = request.get("name", request.get("tool"))
    if isinstance(arguments, dict) and (name is None or is_tool(name)):
        return Call(arguments, native, time)
    return Call(request, native, time) if isinstance(request.get("goal"), str) else None


def is_tool(name: Any) -> bool:
    """Whether a tool's name is Sibyl's `context`, with or without a server's prefix."""
    return isinstance(name, str) and _ENDS.search(name) is not None


def _rpc(value: Json, time: Any) -> Iterator[Record]:
    native = _ident(value.get("id"))
    if value.get("method") == "tools/call":
        params = value.get("params")
        if isinstance(params, dict) and is_tool(params.get("name")):
            arguments = params.get("arguments")
            yield Call(arguments if isinstance(arguments, dict) else {}, native, time)
    elif value.get("error") is not None:
        yield Answer(None, _error(value["error"]), native, time)
    elif isinstance(value.get("result"), dict):
        answer = _result(value["result"], native, time)
        if answer is not None:
            yield answer


def _answer(response: Any, time: Any) -> Answer | None:
    if isinstance(response, str):
        return _of_text(response, None, time)
    if isinstance(response, list):
        return _result({"content": response}, None, time)
    if not isinstance(response, dict):
        return None
    if is_pack(response):
        return Answer(response, time=time)
    if isinstance(response.get("result"), dict):
        return _result(response["result"], _ident(response.get("id")), time)
    if response.get("error") is not None:
        return Answer(None, _error(response["error"]), _ident(response.get("id")), time)
    return _result(response, None, time)


def _is_result(value: Json) -> bool:
    if isinstance(value.get("structuredContent"), dict):
        return True
    return isinstance(value.get("content"), list) and "role" not in value and "type" not in value


def _result(result: Json, native: str | None, time: Any) -> Answer | None:
    """A tool's result as MCP gives it."""
    if is_pack(result):
        return Answer(result, None, native, time)
    texts = [
        block["text"]
        for block in listed(result.get("content"))
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    if result.get("isError") is True:
        return Answer(None, "\n".join(texts) or "the tool gave an error without a text", native, time)
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        if isinstance(structured.get("result"), dict):
            structured = structured["result"]
        if is_pack(structured):
            return Answer(structured, None, native, time)
    found = (_of_text(text, native, time) for text in texts)
    return next((answer for answer in found if answer is not None), None)


def _of_text(text: str, native: str | None, time: Any) -> Answer | None:
    """A pack in a text: its JSON, or its markdown alone."""
    stripped = text.lstrip()
    if stripped.startswith(TITLE):
        return Answer({"markdown": text}, None, native, time)
    if stripped[:1] != "{":
        return None
    try:
        value = shallow(orjson.loads(stripped))
    except orjson.JSONDecodeError:
        if '"sections"' not in stripped or len(stripped) > _MENDED:
            return None
        # Some client or proxy cut it, or put a notice behind it.
        from ctxctl.ingest.document import mended_document

        value = shallow(mended_document(stripped))
    return Answer(value, None, native, time) if isinstance(value, dict) and is_pack(value) else None


def _error(error: Any) -> str:
    if isinstance(error, dict):
        message = error.get("message", error.get("detail"))
        return message if isinstance(message, str) and message else "the call failed without a message"
    return error if isinstance(error, str) and error else "the call failed without a message"


def _ident(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    return str(value)
