"""Reads HTTP messages: what a request asks a model and whose it is, and what the answer says or lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed
from ctxctl.providers.calls import answers, encodings
from ctxctl.providers.calls.purpose import MODEL, purpose, unread_dialect, without_query
from ctxctl.providers.dialects import of_body, stream
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
"""By dialect, the types of event that a stream ends with."""
MARKS: Final = (
    b"[DONE]",
    b"message_stop",
    b"response.completed",
    b"response.incomplete",
    b"response.failed",
    b"response.done",
)
"""The last event of a stream holds one of these."""
_TAIL: Final = 1 << 20
_ANSWERS: Final = ("content", "choices", "output", "candidates", "usage", "usageMetadata")
"""An answer that holds more than an error has one of these fields."""


class RawAnswer(NamedTuple):
    """An answer as it came over the wire."""

    status: int | None
    """None where nothing came."""
    headers: Mapping[str, str]
    """The content's type and encoding, by names in lower case."""
    body: bytes
    how: str
    """How the exchange ended: `complete`, or why it did not get to its end."""
    too_much: bool = False
    """Whether more came than is kept."""


class ReadAnswer(NamedTuple):
    """What is to be recorded of an answer."""

    response: Json | None = None
    """The answer as an unstreamed call gives it."""
    failure: Json | None = None
    """Fields of `ctxctl.step.failed`; never a text of the answer, which may hold secrets."""
    cut: bool = False
    """Whether the answer is incomplete."""
    bill: Json | None = None
    """What was billed; None where the response itself holds it."""


def read_answer(raw: RawAnswer, dialect: Dialect) -> ReadAnswer:
    """Return what is to be recorded of an answer."""
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
    """Return why an answer may be incomplete; None if nothing suggests it."""
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
    """Return the type of the error that an answer reports, as one word; None if it names none."""
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
    """Return a body without its encoding, as far as it can be decoded, and what is wrong with it."""
    if not encoding or not raw:
        return raw, None
    try:
        return guard.inflate(raw, encoding, _LIMIT), None
    except guard.UnsupportedError:
        return b"", "not read: its encoding is unknown here"
    except ValueError:
        return _salvaged(raw, encoding), "cut: its encoding does not end"


def _salvaged(raw: bytes, encoding: str) -> bytes:
    """Return the beginning of a body that was cut, decoded as far as it goes."""
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
    """Whether a stream announces its end, in a dialect where streams do."""
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
    """Whether the last event of a stream announces its end."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\r\n")
    block = text.rpartition("\n\n")[2]
    if block.endswith(("data: [DONE]", "data:[DONE]")):
        return True
    ends = _ENDS.get(dialect.name, ())
    return any(event.get("type") in ends for event in stream.events(block))


def _inner(event: Json) -> list[Any]:
    inner = event.get("response")
    return listed(inner.get("candidates")) if isinstance(inner, dict) else []


_HEADERS: Final = (
    "x-ctxctl-session", "x-claude-code-session-id", "session_id", "session-id", "conversation_id",
    "x-session-id", "x-conversation-id", "x-opencode-session", "x-session-affinity", "x-litellm-session-id",
    "x-litellm-trace-id", "helicone-session-id", "x-portkey-trace-id",
    "x-amzn-bedrock-agentcore-runtime-session-id",
)  # fmt: skip
"""Headers by which clients name their session, the surest first."""
_FIELDS: Final = ("session_id", "conversation_id", "thread_id", "sessionId", "conversationId")
"""Fields of `metadata` that name a session."""
_CLAUDE: Final = re.compile(r"_session_([0-9A-Za-z-]{8,64})\Z")


class Agent(NamedTuple):
    """A sub-agent, as a request names it."""

    id: str
    parent: str | None
    """The id of the agent that started it; None: the session's main agent."""
    kind: str | None = None
    """Its type or name."""


class ModelRequest(NamedTuple):
    """A request to a model."""

    body: Json
    dialect: Dialect
    session: str | None
    """None if the request names none."""
    agent: Agent | None = None
    """The sub-agent that asks; None: the main agent, or unknown."""


def model_request(method: str, url: str, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
    """Return what a request asks a model; None if it asks none, or in an unknown dialect.

    `headers` has names in lower case.  Raises `guard.TooLargeError`, `guard.UndecodableError`.
    """
    if purpose(method, url, {}) != MODEL:
        return None
    encoding = headers.get("content-encoding")
    whole = guard.inflate(body, encoding, _LIMIT) if encoding else body
    if whole.lstrip()[:1] != b"{" or len(whole) > _LIMIT:
        return None
    try:
        given = orjson.loads(whole)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(given, dict) or purpose(method, url, given) != MODEL:
        return None
    inner = given.get("request")
    if isinstance(inner, dict) and "contents" in inner and "contents" not in given:
        # Google's Code Assist wraps the request.
        given = {**inner, "model": given.get("model")}
    if unread_dialect(url, given) is not None:
        return None
    dialect = of_body(given, without_query(url))
    return None if dialect is None else ModelRequest(given, dialect, *caller_of(headers, given))


def session_of(headers: Mapping[str, str], body: Json) -> str | None:
    """Return the session that a request names in a header, its metadata, or as history or cache key."""
    for name in _HEADERS:
        value = headers.get(name)
        if value and len(value) <= 200:
            return value
    client = body.get("client_metadata")
    if isinstance(client, dict) and (found := _short(client.get("session_id"))) is not None:
        return found
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        found = _of_user(metadata.get("user_id")) or _named(metadata, _FIELDS)
        if found is not None:
            return found
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return _short(conversation) or _short(body.get("prompt_cache_key"))


def caller_of(headers: Mapping[str, str], body: Json) -> tuple[str | None, Agent | None]:
    """Return the session that a request belongs to, and the sub-agent that asks.

    Claude Code names the agent beside the session.  Codex names the thread, which is the session's own where
    no sub-agent asks.  OpenCode gives a sub-agent a session of its own, and names its parent's.
    """
    session = session_of(headers, body)
    agent = _short(headers.get("x-claude-code-agent-id"))
    if agent is not None:
        return session, Agent(agent, _short(headers.get("x-claude-code-parent-agent-id")))
    parent = _short(headers.get("x-parent-session-id"))
    if parent is not None and session is not None and parent != session:
        return parent, Agent(session, parent)
    return session, _of_codex(headers, body, session)


def _of_codex(headers: Mapping[str, str], body: Json, session: str | None) -> Agent | None:
    """Codex names it in headers, or in the body where that goes over a WebSocket."""
    metadata = body.get("client_metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    turn = _object(headers.get("x-codex-turn-metadata") or metadata.get("x-codex-turn-metadata"))
    if not turn and "x-codex-window-id" not in headers and "x-codex-window-id" not in metadata:
        return None
    thread = _short(headers.get("thread-id") or metadata.get("thread_id") or turn.get("thread_id"))
    if thread is None or session is None or thread == session:
        return None
    parent = headers.get("x-codex-parent-thread-id") or metadata.get("x-codex-parent-thread-id")
    parent = _short(parent or turn.get("parent_thread_id"))
    name = _short(turn.get("agent_name"))
    return Agent(thread, parent if parent != session else None, name.rpartition("/")[2] if name else None)


def _object(value: Any) -> Json:
    try:
        made = orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return {}
    return made if isinstance(made, dict) else {}


def _of_user(value: Any) -> str | None:
    """Claude Code names its session inside of the user's id."""
    if not isinstance(value, str):
        return None
    found = _CLAUDE.search(value)
    if found is not None:
        return found.group(1)
    if value.startswith("{"):
        try:
            inner = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
        return _named(inner, ("session_id",)) if isinstance(inner, dict) else None
    return None


def _named(value: Json, names: tuple[str, ...]) -> str | None:
    return next((found for name in names if (found := _short(value.get(name))) is not None), None)


def _short(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 200 else None


def repeat_key(body: Json, session: str | None, dialect: Dialect) -> bytes:
    """Return a key by which the same request is recognised when it is sent again."""
    made = sha256(f"{session}\n{dialect.name}\n".encode("utf-8", "replace"))
    try:
        made.update(orjson.dumps(body))
    except (orjson.JSONEncodeError, RecursionError):
        made.update(repr(id(body)).encode())
    return made.digest()
