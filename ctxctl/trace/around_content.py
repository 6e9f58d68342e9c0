"""Parse lines without their structured content, if that is too large."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

from ctxctl.trace.coerce import parse_json
from ctxctl.trace.contents import PARSE_BYTES

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parsed_around_content(line: bytes) -> dict[str, Any] | None:
    """Return the event of a sound line with a large structured content, left as JSON.

    The content is an `orjson.Fragment`, which `orjson.dumps` writes unchanged. Parsed, it would take some
    twenty times its size; the reader does not parse it either (`contents.PARSE_BYTES`). None for all other
    lines, including damaged ones.
    """
    if len(line) <= PARSE_BYTES:
        return None
    try:
        head = _OBJECT.decode(line)
        data = _OBJECT.decode(head["data"])
        content = bytes(data["content"])
        if len(content) <= PARSE_BYTES or content[:1] not in b"[{" or b"\\u" in content:
            return None  # escapes may be half characters, which no line may contain
        parsed = _parsed(data, "content", orjson.Fragment(content))
        return _parsed(head, "data", parsed)
    except (msgspec.MsgspecError, KeyError, ValueError, RecursionError):
        return None


def _parsed(fields: dict[str, msgspec.Raw], but: str, value: Any) -> dict[str, Any]:
    """Return the fields of an object in order, parsed except for one with a given value."""
    return {name: value if name == but else parse_json(bytes(raw)) for name, raw in fields.items()}
