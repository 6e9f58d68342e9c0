"""From the bytes of an HTTP answer to what a model said, or why it said nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed
from ctxctl.providers.calls import answers, encodings
from ctxctl.providers.dialects import stream
from ctxctl.providers.dialects.base import Dialect
from ctxctl.record import guard

_LIMIT: Final = 64 << 20
_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,79}\Z")
_ENDS: Final = {
    "anthropic": ("message_stop", "error"),
    "openai-responses": (
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.done",
        "error",
    ),
}
"""Types of the event that a stream ends with."""
MARKS: Final = (
    b"[DONE]",
    b"message_stop",
    b"response.completed",
    b"response.incomplete",
    b"response.failed",
    b"response.done",
)
"""One of these stands in what a stream ends with."""
_TAIL: Final = 1 << 20
_ANSWERS: Final = ("content", "choices", "output", "candidates", "usage", "usageMetadata")
"""Fields of an answer that says something."""


class RawAnswer(NamedTuple):
    """An answer as it came over the wire."""

    status: int | None
    """The status; None where nothing came."""
    headers: Mapping[str, str]
    """Content's type and encoding, names in lower case."""
    body: bytes
    how: str
    too_much: bool = False
    """Whether there was more than is kept."""


class ReadAnswer(NamedTuple):
    """What is to be recorded of an answer."""

    response: Json | None = None
    """The body that an unstreamed call gives."""
    failure: Json | None = None
    """Fields of `ctxctl.step.failed`; never a text of the answer, which may hold anything."""
    cut: bool = False
    """Whether there was more of the answer than came."""
    bill: Json | None = None
    """What was billed; None where the response itself says it."""


def read(raw: RawAnswer, dialect: Dialect) -> ReadAnswer:
    """What an answer says."""
    if raw.status is None:
        return ReadAnswer(failure={"error": f"no answer: {_words(raw.how)}"})
    data, problem = _decoded(raw.body, raw.headers.get("content-encoding"))
    if raw.status >= 300 or raw.status < 200:
        kind = error_type(encodings.decoded_body(data))
        error = f"HTTP {raw.status}" + (f": {kind}" if kind else "")
        return ReadAnswer(failure={"error": error, "status": raw.status})
    text = data.decode("utf-8", "replace")
    streamed = encodings.is_stream(text) or "event-stream" in raw.headers.get("content-type", "")
    response = (
        stream.streamed_response(text, dialect)
        if streamed
        else answers.final_response(encodings.decoded_body(data), dialect)
    )
    why = _why(raw, problem)
    if streamed and _ended(text, dialect):
        # Clients stop reading where the stream says so, whatever follows.
        why = None
    elif streamed:
        why = why or "the stream stopped before its end"
    elif isinstance(encodings.decoded_body(data), dict):
        why = None
    if response is None:
        why = why or ("an empty answer" if not data else "an answer that is not read")
        return ReadAnswer(failure={"error": why, "status": raw.status})
    failure: Json | None = None
    kind = error_type(response) if response.get("error") else None
    if kind is not None or response.get("error"):
        failure = {"error": kind or "error", "status": raw.status}
    elif why is not None:
        failure = {"error": why, "status": raw.status, "partial": True}
    return ReadAnswer(_without_error(response), failure, cut=why is not None)


def _why(raw: RawAnswer, problem: str | None) -> str | None:
    """Why there may be more of an answer than came; None if there is no sign of it."""
    if raw.how != "complete":
        return f"cut: {_words(raw.how)}"
    if raw.too_much:
        return "cut: larger than what is kept"
    return problem


def _words(how: str) -> str:
    return how.replace("_", " ")[:80]


def _without_error(response: Json) -> Json | None:
    """The response, unless it is nothing but an error."""
    return response if any(response.get(name) for name in _ANSWERS) else None


def error_type(body: Any) -> str | None:
    """What kind of error an answer tells of, as one word; None if it does not say."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, str):
        return error if _TYPE.match(error) else None
    for holder in (error, body):
        if isinstance(holder, dict):
            for name in ("type", "code", "status"):
                value = holder.get(name)
                if isinstance(value, str) and value not in ("error", "") and _TYPE.match(value):
                    return value
    return None


def _decoded(raw: bytes, encoding: str | None) -> tuple[bytes, str | None]:
    """A body without its encoding, as far as it can be decoded, and what was wrong with it."""
    if not encoding or not raw:
        return raw, None
    try:
        return guard.inflate(raw, encoding, _LIMIT), None
    except guard.UnsupportedError:
        return b"", "not read: its encoding is unknown here"
    except ValueError:
        return _salvaged(raw, encoding), "cut: its encoding does not end"


def _salvaged(raw: bytes, encoding: str) -> bytes:
    """The beginning of a body that was cut, as far as one encoding of it goes."""
    made, size = [], 0
    try:
        for piece in guard.pieces(raw, encoding.strip().lower()):
            size += len(piece)
            if size > _LIMIT:
                break
            made.append(piece)
    except ValueError:
        pass
    return b"".join(made)


def _ended(text: str, dialect: Dialect) -> bool:
    """Whether a stream says that it is over, in a dialect where a stream says so."""
    if "data: [DONE]" in text or "data:[DONE]" in text:
        return True
    ends = _ENDS.get(dialect.name)
    for event in stream.events(text[-_TAIL:] if len(text) > _TAIL else text):
        if ends is not None:
            if event.get("type") in ends:
                return True
        elif "error" in event or any(
            isinstance(one, dict) and (one.get("finish_reason") or one.get("finishReason"))
            for one in (*listed(event.get("choices")), *listed(event.get("candidates")), *_inner(event))
        ):
            return True
    return False


def is_end(data: bytes, dialect: Dialect) -> bool:
    """Whether the last event of a stream says that nothing follows it."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\r\n")
    block = text.rpartition("\n\n")[2]
    if block.endswith(("data: [DONE]", "data:[DONE]")):
        return True
    ends = _ENDS.get(dialect.name, ())
    return any(event.get("type") in ends for event in stream.events(block))


def _inner(event: Json) -> list[Any]:
    inner = event.get("response")
    return listed(inner.get("candidates")) if isinstance(inner, dict) else []
