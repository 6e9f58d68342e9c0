"""What a block's JSON says in a request's body beside its text: a signature, `is_error`, an image's detail.

Two placements of one text are the same for a provider only where this is the same, too.  It is made of the
block's place (`metadata.ctxctl.wire`, see `formats.wire.slots`), less what reaches no model: ids by which an
API joins calls and results, types and roles (an item's own), states, fields that say nothing, and a client's
own, whose names begin with an underscore (Copilot's `__copilotMessageSource`).
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import xxhash

_HOLES: Final = ("$", "$1")
_BOOKKEEPING: Final = frozenset(
    {"id", "call_id", "tool_use_id", "tool_call_id", "index", "role", "status", "type", "logprobs"}
)
_CALLS: Final = ("input", "arguments", "args")
"""Fields beside which `name` is that of the tool, which the text begins with."""
_LONGEST: Final = 2000
_DEEPEST: Final = 20


def form_of(place: dict[str, Any]) -> str:
    """Canonical JSON of it, empty where there is nothing; of what is long, a digest."""
    made: dict[str, Any] = {}
    opened = place.get("open")
    for template in (*(opened if isinstance(opened, list) else ()), place.get("leaf")):
        if isinstance(template, dict):
            made.update(_said(template, 0))
    if not made:
        return ""
    text = orjson.dumps(made, option=orjson.OPT_SORT_KEYS)
    if len(text) > _LONGEST:
        text = orjson.dumps({"#": xxhash.xxh3_128_hexdigest(text)})
    return text.decode()


def _said(value: dict[str, Any], depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    tool = any(name in value for name in _CALLS)
    for name, inner in value.items():
        if name.startswith("_") or name in _BOOKKEEPING or name in _HOLES or (tool and name == "name"):
            continue
        if isinstance(inner, dict) and depth < _DEEPEST:
            if not any(hole in inner for hole in _HOLES):
                inner = _said(inner, depth + 1)
            else:
                continue
        if inner not in (None, False, "", [], {}):
            made[name] = inner
    return made
