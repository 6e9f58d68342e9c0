"""Messages of ShareGPT (`from`, `value`) as Chat Completions has them."""

from __future__ import annotations

from typing import Final

import orjson

from ctxctl.formats.build import Json

_ROLES: Final = {
    "human": "user", "user": "user", "prompter": "user", "gpt": "assistant", "assistant": "assistant",
    "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "model": "assistant",
    "bot": "assistant", "system": "system", "tool": "tool", "observation": "tool",
    "function_response": "tool", "tool_response": "tool",
}  # fmt: skip
_CALLS: Final = ("function_call", "tool_call")


def as_message(message: Json) -> Json:
    """The message; one that has a role and content already is given back as it is."""
    if "role" in message or "from" not in message:
        return message
    speaker, said = str(message["from"]), message.get("value")
    if speaker in _CALLS:
        return {"role": "assistant", **_called(said)}
    rest = {name: value for name, value in message.items() if name not in ("from", "value")}
    return {**rest, "role": _ROLES.get(speaker.lower(), "user"), "content": said}


def _called(said: object) -> Json:
    """A call written down as JSON; what is none stands as it is."""
    if isinstance(said, str) and said.lstrip().startswith("{"):
        try:
            value = orjson.loads(said)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return {"content": None, "function_call": value}
    return {"content": said}
