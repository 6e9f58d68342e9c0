"""Whether a value is the body of a request to a model, or of an answer; and finding one in its envelopes."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.formats import wire
from ctxctl.formats.calls import bodies, envelopes
from ctxctl.formats.calls.spelled import as_sent
from ctxctl.formats.wire import stream

_ASKING: Final = frozenset({"messages", "contents", "input", "prompt", "model", "jsonrpc", "request"})
"""A request to some service has one of these; what has none may be an envelope."""
_ANSWERING: Final = frozenset(
    {"choices", "candidates", "usage", "usageMetadata", "error", "jsonrpc", "response", "output", "role"}
)
"""As `_ASKING`, of answers."""
_EVENT: Final = re.compile(r"\s*+(?:(?:event|id|retry)?+:[^\n]*+\n\s*+)*+data:\s*+(?:\{|\[DONE)")


def is_request(value: Any) -> bool:
    """Whether a value is the body of a request to a model, as it is sent or as an SDK's caller spells it."""
    return isinstance(value, dict) and wire.of_body(as_sent(value)) is not None


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


def request_of(raw: Any) -> Any:
    """A request's body as a capture holds it, out of its envelopes; else what `bodies.opened` makes of it."""
    found = bodies.opened(raw)
    if isinstance(found, dict) and _ASKING & found.keys():
        return found
    inner = envelopes.opened(raw, is_request)
    return found if inner is None else inner


def answer_of(raw: Any) -> Any:
    """The answer's body that a capture holds, out of its envelopes; else what `bodies.opened` makes of it."""
    found = bodies.opened(raw)
    if is_answer(found) or (isinstance(found, dict) and (_ANSWERING & found.keys() or _is_chat(found))):
        return found
    inner = envelopes.opened(raw, is_answer_inside)
    return found if inner is None else inner


def _is_chat(found: dict[str, Any]) -> bool:
    """An answer of Ollama or Cohere: a message, and no envelope."""
    message = found.get("message")
    return isinstance(message, dict) and "role" in message


def is_answer_inside(value: Any) -> bool:
    """As `is_answer`, of what is in a field: a model's text may begin as an event stream does."""
    return _EVENT.match(value) is not None if isinstance(value, str) else is_answer(value)
