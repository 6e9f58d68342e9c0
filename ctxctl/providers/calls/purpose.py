"""What an HTTP call was for: asking a model, or something else that a capture holds beside it."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from ctxctl.ingest.build import Json

MODEL: Final = "model"

_PATHS: Final = (
    ("embeddings", re.compile(r"/(?:v\d+/)?(?:embeddings?|embed)\b|:(?:batch)?embedContents?\b", re.I)),
    ("token counts", re.compile(r"/count_tokens\b|:countTokens\b|/input_tokens\b|/tokenize\b", re.I)),
    ("moderation", re.compile(r"/moderations?\b", re.I)),
    ("batches", re.compile(r"/batches\b|:batchGenerateContent\b", re.I)),
    ("audio", re.compile(r"/audio/|/speech\b|/transcriptions?\b", re.I)),
    ("images", re.compile(r"/images/(?:generations|edits|variations)\b", re.I)),
    ("files", re.compile(r"/files\b|/vector_stores\b|/uploads\b|/cachedContents\b|/containers\b", re.I)),
    ("sign-in", re.compile(r"/oauth2?\b|/token$|/login\b|/device/code\b|/copilot_internal", re.I)),
    (
        "telemetry",
        re.compile(r"/telemetry\b|/metrics\b|/events?(?:/|$)|event_logging|/traces$|/statsig", re.I),
    ),
    ("model list", re.compile(r"/models$|/models/[^/:]+$", re.I)),
    ("search", re.compile(r"/rerank\b", re.I)),
)
_UNREAD: Final = (
    ("Bedrock Converse", re.compile(r"/model/[^/]+/converse(?:-stream)?$", re.I)),
    (
        "text completion",
        re.compile(r"/v1/(?:engines/[^/]+/)?completions$|/v1/complete$|/api/generate$", re.I),
    ),
)


def path_of(url: Any) -> str:
    """A URL's path, without its query (which may hold a key)."""
    if not isinstance(url, str):
        return ""
    try:
        return urlsplit(url).path
    except ValueError:
        return url.partition("?")[0]


def without_query(url: Any) -> str | None:
    """A URL without its query and its user, which may hold a key."""
    if not isinstance(url, str) or not url:
        return None
    bare = url.partition("?")[0].partition("#")[0]
    scheme, sep, rest = bare.partition("://")
    if not sep:
        return bare
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def purpose(method: Any, url: Any, body: Any) -> str:
    """`MODEL` for what may be a request to a model, else what the call was for, as a plural noun."""
    if isinstance(body, dict) and _is_rpc(body):
        return "MCP messages"
    path = path_of(url)
    for name, pattern in _PATHS:
        if pattern.search(path):
            return name
    if isinstance(method, str) and method.upper() in ("GET", "DELETE", "HEAD", "OPTIONS", "CONNECT"):
        return "other requests"
    return MODEL if isinstance(body, dict) else "other requests"


def unread_dialect(url: Any, body: Json) -> str | None:
    """The name of a provider's dialect that is known and not read; None for every other body."""
    path = path_of(url)
    for name, pattern in _UNREAD:
        if pattern.search(path):
            return name
    if isinstance(body.get("messages"), list) and ("inferenceConfig" in body or "toolConfig" in body):
        return "Bedrock Converse"
    if "chat_history" in body and isinstance(body.get("message"), str):
        return "Cohere chat v1"
    if isinstance(body.get("prompt"), str | list) and "messages" not in body and "model" in body:
        return "text completion"
    return None


def _is_rpc(body: Json) -> bool:
    return body.get("jsonrpc") == "2.0" and ("method" in body or "result" in body or "error" in body)
