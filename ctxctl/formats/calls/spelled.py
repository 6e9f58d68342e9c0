"""Bodies as an SDK's caller spells them, put as the SDK sends them.

google-genai (Python and JavaScript) takes `model`, `contents` and one `config`; it sends the system instruction,
tools and safety settings beside `contents`, and what is left of the config as `generationConfig`.
"""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json

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


def as_sent(body: Json) -> Json:
    """The body that the SDK sends for what it was called with; the same object where that is the body already."""
    if "contents" not in body or "messages" in body:
        return body
    contents = _contents(body["contents"])
    config = body.get("config")
    if contents is body["contents"] and not isinstance(config, dict):
        return body
    made = {name: value for name, value in body.items() if name != "config" or not isinstance(config, dict)}
    made["contents"] = contents
    rest: Json = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        plain = name.replace("_", "").lower()
        if plain in _BESIDE:
            made.setdefault(name, value)
        elif plain not in _NOT_SENT and value is not None:
            rest[name] = value
    if rest and not {"generationConfig", "generation_config"} & made.keys():
        made["generationConfig"] = rest
    return made


def _contents(contents: Any) -> Any:
    """Contents with their parts: a text, a part, or a list that has some of these among the contents."""
    if isinstance(contents, str) or _is_part(contents):
        return [_of_user([contents])]
    if not isinstance(contents, list) or not any(isinstance(c, str) or _is_part(c) for c in contents):
        return contents
    made: list[Any] = []
    parts: list[Any] = []
    for one in contents:
        if isinstance(one, str) or _is_part(one):
            # Parts in a row are one message of the user.
            if not parts:
                made.append(_of_user(parts))
            parts.append({"text": one} if isinstance(one, str) else one)
        else:
            parts = []
            made.append(one)
    return made


def _of_user(parts: list[Any]) -> Json:
    parts[:] = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"role": "user", "parts": parts}


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and "parts" not in value and "role" not in value and bool(_PART & value.keys())
