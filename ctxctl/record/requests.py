"""From an HTTP request to what it asks a model, and which session it says it belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json
from ctxctl.providers.calls.purpose import MODEL, purpose, unread_dialect, without_query
from ctxctl.providers.dialects import of_body
from ctxctl.providers.dialects.base import Dialect
from ctxctl.record import guard

_LIMIT: Final = 64 << 20
_HEADERS: Final = (
    "x-ctxctl-session", "x-claude-code-session-id", "session_id", "session-id", "conversation_id",
    "x-session-id", "x-conversation-id", "x-opencode-session", "x-session-affinity", "x-litellm-session-id",
    "x-litellm-trace-id", "helicone-session-id", "x-portkey-trace-id",
    "x-amzn-bedrock-agentcore-runtime-session-id",
)  # fmt: skip
"""Headers by which clients name their session, the surest first."""
_FIELDS: Final = ("session_id", "conversation_id", "thread_id", "sessionId", "conversationId")
"""Names of `metadata` that name a session."""
_CLAUDE: Final = re.compile(r"_session_([0-9A-Za-z-]{8,64})\Z")


class Agent(NamedTuple):
    """A sub-agent, as a request names it."""

    id: str
    parent: str | None
    """Id of the agent that began it; None: the session's own."""
    kind: str | None = None
    """What it is called."""


class Model(NamedTuple):
    """A request to a model."""

    body: Json
    dialect: Dialect
    session: str | None
    """As the request says; None if it does not."""
    agent: Agent | None = None
    """The sub-agent that asks, as the request says."""


def asked_model(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Model | None:
    """What a request asks a model; None if it asks none, or in a dialect that is not read.

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
    return None if dialect is None else Model(given, dialect, *caller_of(headers, given))


def session_of(headers: Mapping[str, str], body: Json) -> str | None:
    """The session that a request names: in a header, its metadata, the provider's history or cache key."""
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
    """The session that a request belongs to, and the sub-agent in it that asks.

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
    """Codex says it in headers, and in the body where that goes over a WebSocket."""
    told = body.get("client_metadata")
    told = told if isinstance(told, dict) else {}
    turn = _object(headers.get("x-codex-turn-metadata") or told.get("x-codex-turn-metadata"))
    if not turn and "x-codex-window-id" not in headers and "x-codex-window-id" not in told:
        return None
    thread = _short(headers.get("thread-id") or told.get("thread_id") or turn.get("thread_id"))
    if thread is None or session is None or thread == session:
        return None
    parent = headers.get("x-codex-parent-thread-id") or told.get("x-codex-parent-thread-id")
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


def key_of(body: Json, session: str | None, dialect: Dialect) -> bytes:
    """What the same request is known by when it is sent again."""
    made = sha256(f"{session}\n{dialect.name}\n".encode("utf-8", "replace"))
    try:
        made.update(orjson.dumps(body))
    except (orjson.JSONEncodeError, RecursionError):
        made.update(repr(id(body)).encode())
    return made.digest()
