"""Whether a value is the body of a request to a model, or of an answer; and finding one in its envelopes.

Bodies as an SDK's caller spells them are put as the SDK sends them.  google-genai (Python and JavaScript)
takes `model`, `contents` and one `config`; it sends the system instruction, tools and safety settings beside
`contents`, and the rest of the config as `generationConfig`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.providers import dialects
from ctxctl.providers.calls import encodings, envelopes
from ctxctl.providers.calls.encodings import Unpacker
from ctxctl.providers.dialects import stream

_ASKING: Final = frozenset({"messages", "contents", "input", "prompt", "model", "jsonrpc", "request"})
"""A request to some service has one of these; what has none may be an envelope."""
_ANSWERING: Final = frozenset(
    {"choices", "candidates", "usage", "usageMetadata", "error", "jsonrpc", "response", "output", "role"}
)
"""As `_ASKING`, of answers."""
_EVENT: Final = re.compile(r"\s*+(?:(?:event|id|retry)?+:[^\n]*+\n\s*+)*+data:\s*+(?:\{|\[DONE)")


def is_request(value: Any) -> bool:
    """Whether a value is the body of a request to a model, as it is sent or as an SDK's caller spells it."""
    return isinstance(value, dict) and dialects.of_body(as_sent(value)) is not None


def is_answer(value: Any) -> bool:
    """Whether a value is the body of an answer: JSON, an event stream, or the chunks of one."""
    if isinstance(value, str):
        return encodings.is_stream(value)
    if isinstance(value, list):
        return (
            bool(value)
            and all(isinstance(one, dict) for one in value)
            and (dialects.of_response(value[0]) is not None or stream.dialect_of(value[0]) is not None)
        )
    return isinstance(value, dict) and dialects.of_response(value) is not None


def request_of(raw: Any, unpacker: Unpacker | None = None) -> Any:
    """A request's body as a capture holds it, out of its envelopes; else what `bodies.opened` makes of it."""
    found = encodings.decoded_body(raw, unpacker=unpacker)
    if isinstance(found, dict) and _ASKING & found.keys():
        return found
    inner = envelopes.enveloped_body(raw, is_request, unpacker=unpacker)
    return found if inner is None else inner


def answer_of(raw: Any, unpacker: Unpacker | None = None) -> Any:
    """The answer's body that a capture holds, out of its envelopes; else what `bodies.opened` makes of it."""
    found = encodings.decoded_body(raw, unpacker=unpacker)
    if is_answer(found) or (isinstance(found, dict) and (_ANSWERING & found.keys() or _is_chat(found))):
        return found
    inner = envelopes.enveloped_body(raw, is_answer_inside, unpacker=unpacker)
    return found if inner is None else inner


def _is_chat(found: dict[str, Any]) -> bool:
    """An answer of Ollama or Cohere: a message, and no envelope."""
    message = found.get("message")
    return isinstance(message, dict) and "role" in message


def is_answer_inside(value: Any) -> bool:
    """As `is_answer`, of what is in a field: a model's text may begin as an event stream does."""
    return _EVENT.match(value) is not None if isinstance(value, str) else is_answer(value)


_BESIDE: Final = frozenset(
    {
        "systeminstruction", "tools", "toolconfig", "safetysettings", "cachedcontent", "labels",
        "modelarmorconfig", "servicetier",
    }
)  # fmt: skip
"""Fields of a config that are sent beside `contents`, spelled without `_` and in lower case."""
_NOT_SENT: Final = frozenset(
    {"httpoptions", "abortsignal", "automaticfunctioncalling", "shouldreturnhttpresponse"}
)
"""Fields of a config that only tell the SDK what to do."""
_PART: Final = frozenset(
    {
        "text", "inlineData", "inline_data", "fileData", "file_data", "functionCall", "function_call",
        "functionResponse", "function_response", "executableCode", "executable_code",
    }
)  # fmt: skip
_DEPTH: Final = 64


def as_sent(body: Json) -> Json:
    """The body that the SDK sends for what it was called with; the same object where it is that already."""
    if "contents" not in body or "messages" in body:
        return body
    config = body.get("config")
    contents = _contents(body["contents"], _user(config))
    if contents is body["contents"] and not isinstance(config, dict):
        return body
    made = {name: value for name, value in body.items() if name != "config" or not isinstance(config, dict)}
    made["contents"] = _said(contents)
    rest: Json = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        plain = name.replace("_", "").lower()
        if value is None or plain in _NOT_SENT:
            continue
        if plain in _BESIDE:
            made.setdefault(name, _said(value))
        else:
            rest[name] = _said(value)
    if rest and not {"generationConfig", "generation_config"} & made.keys():
        made["generationConfig"] = rest
    return made


def _contents(contents: Any, user: Json) -> Any:
    """Contents with their parts: a text, a part, or a list that has some of these among the contents."""
    if isinstance(contents, str) or _is_part(contents):
        contents = [contents]
    if not isinstance(contents, list) or not any(isinstance(c, str) or _is_part(c) for c in contents):
        return contents
    made: list[Any] = []
    parts: list[Any] | None = None
    for one in contents:
        if not isinstance(one, str) and not _is_part(one):
            parts = None
            made.append(one)
            continue
        if parts is None:
            # Parts in a row are one message of the user.
            parts = []
            made.append({**user, "parts": parts})
        parts.append({"text": one} if isinstance(one, str) else one)
    return made


def _user(config: Any) -> Json:
    """A user's content without parts; its fields stand in the order of the SDK, and count in its digest."""
    python = isinstance(config, dict) and any("_" in name for name in config)
    return {"parts": [], "role": "user"} if python else {"role": "user", "parts": []}


def _said(value: Any, depth: int = _DEPTH) -> Any:
    """A value without the fields that are null: the SDK's types dump all they have, and send what is set."""
    if depth > 0 and isinstance(value, dict):
        return {name: _said(inner, depth - 1) for name, inner in value.items() if inner is not None}
    if depth > 0 and isinstance(value, list):
        return [_said(inner, depth - 1) for inner in value]
    return value


def _is_part(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "parts" not in value
        and "role" not in value
        and bool(_PART & value.keys())
    )
