"""The body of an answer, whatever way it came: whole, as a stream of events, in another server's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxctl.ingest.build import Json
from ctxctl.providers.calls import encodings
from ctxctl.providers.dialects import stream

if TYPE_CHECKING:
    from ctxctl.providers.dialects.base import Dialect


def final_response(body: Any, dialect: Dialect) -> Json | None:
    """The response that a body amounts to, in the dialect's shape; None if there is none that can be read."""
    if isinstance(body, list):
        chunks = [_unwrapped(chunk) for chunk in body if isinstance(chunk, dict)]
        if len(chunks) == 1:
            return _alike(chunks[0], dialect)
        body = encodings.as_events(chunks) if chunks else None
    if isinstance(body, str):
        if encodings.is_stream(body):
            return stream.streamed_response(body, dialect)
        pieces = encodings.objects_of_text(body)
        return _alike(_joined(pieces), dialect) if pieces else None
    return _alike(_unwrapped(body), dialect) if isinstance(body, dict) else None


def _unwrapped(body: Json) -> Json:
    """The response inside the envelope of Google's Code Assist."""
    inner = body.get("response")
    return inner if isinstance(inner, dict) and "candidates" in inner and "candidates" not in body else body


def _alike(body: Json, dialect: Dialect) -> Json:
    """A chat answer of Ollama or Cohere in the shape of Chat Completions, whose requests theirs are like."""
    message = body.get("message")
    if dialect.name != "openai-chat" or not isinstance(message, dict) or "choices" in body:
        return body
    made: Json = {
        "id": body.get("id"),
        "model": body.get("model"),
        "choices": [{"index": 0, "message": {"role": "assistant", **message}}],
    }
    usage = _usage(body)
    if usage is not None:
        made["usage"] = usage
    return made


def _usage(body: Json) -> Json | None:
    if "prompt_eval_count" in body:
        return {"prompt_tokens": body["prompt_eval_count"], "completion_tokens": body.get("eval_count")}
    usage = body.get("usage")
    tokens = usage.get("tokens") if isinstance(usage, dict) else None
    if isinstance(tokens, dict):
        return {"prompt_tokens": tokens.get("input_tokens"), "completion_tokens": tokens.get("output_tokens")}
    return usage if isinstance(usage, dict) else None


def _joined(pieces: list[Json]) -> Json:
    """The chunks of an answer that came as JSON lines (Ollama): texts in a row, the rest of the last one."""
    if len(pieces) == 1 or not isinstance(pieces[0].get("message"), dict):
        return pieces[-1]
    texts: dict[str, list[str]] = {"content": [], "thinking": []}
    calls: list[Any] = []
    for piece in pieces:
        message = piece.get("message")
        if isinstance(message, dict):
            for key, found in texts.items():
                text = message.get(key)
                if isinstance(text, str):
                    found.append(text)
            made = message.get("tool_calls")
            calls += made if isinstance(made, list) else []
    whole: Json = {"role": "assistant", "content": "".join(texts["content"])}
    if texts["thinking"]:
        whole["thinking"] = "".join(texts["thinking"])
    if calls:
        whole["tool_calls"] = calls
    return {**pieces[-1], "message": whole}
