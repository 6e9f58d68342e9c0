"""From an HTTP request to what it asks a model, and which session it says it belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.calls.purpose import MODEL, purpose, unread, without_query
from ctxctl.formats.wire import of_body
from ctxctl.formats.wire.dialect import Dialect
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


class Model(NamedTuple):
    """A request to a model."""

    body: Json
    dialect: Dialect
    session: str | None
    """As the request says; None if it does not."""


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
    if unread(url, given) is not None:
        return None
    dialect = of_body(given, without_query(url))
    return None if dialect is None else Model(given, dialect, session_of(headers, given))


def session_of(headers: Mapping[str, str], body: Json) -> str | None:
    """The session that a request names: in a header, its metadata, the provider's history or cache key."""
    for name in _HEADERS:
        value = headers.get(name)
        if value and len(value) <= 200:
            return value
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        found = _of_user(metadata.get("user_id")) or _named(metadata, _FIELDS)
        if found is not None:
            return found
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return _short(conversation) or _short(body.get("prompt_cache_key"))


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
