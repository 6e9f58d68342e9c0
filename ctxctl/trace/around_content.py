"""Lines whose structured content is too large to be parsed: everything else of them is."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

from ctxctl.trace.coerce import parse_json
from ctxctl.trace.contents import PARSE_BYTES

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parsed_around_content(line: bytes) -> dict[str, Any] | None:
    """A sound line with a large structured content: the event, with that content as the JSON that it is.

    The content is an `orjson.Fragment`, which `orjson.dumps` writes as it stands.  Parsed, it would take some
    twenty times its size; the reader does not parse it either (`contents.PARSE_BYTES`).  None for all other
    lines, damaged ones among them.
    """
    if len(line) <= PARSE_BYTES:
        return None
    try:
        head = _OBJECT.decode(line)
        data = _OBJECT.decode(head["data"])
        content = bytes(data["content"])
        if len(content) <= PARSE_BYTES or content[:1] not in b"[{" or b"\\u" in content:
            return None  # escapes may be halves of characters, which no line may hold
        parsed = _parsed(data, "content", orjson.Fragment(content))
        return _parsed(head, "data", parsed)
    except (msgspec.MsgspecError, KeyError, ValueError, RecursionError):
        return None


def _parsed(fields: dict[str, msgspec.Raw], but: str, value: Any) -> dict[str, Any]:
    """Return the fields of an object in their order, parsed `but` for one, whose value is given."""
    return {name: value if name == but else parse_json(bytes(raw)) for name, raw in fields.items()}
