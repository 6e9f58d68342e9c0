"""The difference of two renderings of one version: the same content in other bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ctxctl.model.content import Content
from ctxctl.model.results import Placement

_MAX_CHARS: Final = 4_000_000
"""Longest text that is analysed, in characters."""
_MAX_DEPTH: Final = 60


def is_rendered_anew(was: Placement, now: Placement) -> bool:
    """Return whether an unchanged version was sent in another form. A cut text does not count."""
    return (
        was.key != now.key
        and was.version is not None
        and was.version == now.version
        and not (was.truncated or now.truncated)
        and (was.form != now.form or _other_text(was, now))
    )


def _other_text(was: Placement, now: Placement) -> bool:
    return was.digest is not None and now.digest is not None and was.digest != now.digest


def rendering_difference(was: Placement, now: Placement, text: Callable[[Content], str]) -> str:
    """Return `signature`, `is_error`, `key order in input_schema.properties`, `spacing` or `text`."""
    found = _fields(was.form, now.form)
    if _other_text(was, now):
        if was.content is not None and now.content is not None:
            found.insert(0, _texts(text(was.content), text(now.content)))
        else:
            found.insert(0, "text")
    return ", ".join(found)


def _fields(was: str, now: str) -> list[str]:
    if was == now:
        return []
    one, other = _json(was or "{}"), _json(now or "{}")
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ["fields"]
    return ["fields" if name == "#" else name for name in _differing(one, other, "")]


def _differing(one: dict[str, Any], other: dict[str, Any], path: str) -> list[str]:
    found = []
    for name in sorted({*one, *other}):
        a, b = one.get(name), other.get(name)
        if isinstance(a, dict) and isinstance(b, dict) and not {"#"} & {*a, *b}:
            found += _differing(a, b, f"{path}{name}.")
        elif a != b:
            found.append(path + name)
    return found


def _texts(was: str, now: str) -> str:
    one, other = json_in(was), json_in(now)
    if one is None or other is None or was[: one[0]] != now[: other[0]] or one[1] != other[1]:
        return "text"
    path = _reordered(one[1], other[1], "", 0)
    if path is None:
        return "spacing"
    return f"key order in {path}" if path else "key order"


def json_in(text: str) -> tuple[int, Any] | None:
    """Return where the JSON of a text begins (in a tool call, after the name) and its value; else None."""
    if len(text) > _MAX_CHARS:
        return None
    for start in (0, text.find(" ") + 1):
        if text[start : start + 1] in ("{", "["):
            value = _json(text[start:])
            if value is not None:
                return start, value
    return None


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _reordered(one: Any, other: Any, path: str, depth: int) -> str | None:
    """Return the path of the first object with another order of keys; None if there is none."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(one, dict):
        if list(one) != list(other):
            return path
        pairs = [(f"{path}.{name}" if path else name, one[name], other[name]) for name in one]
    elif isinstance(one, list):
        pairs = [(f"{path}[{n}]", a, b) for n, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        return None
    found = (_reordered(a, b, where, depth + 1) for where, a, b in pairs)
    return next((path for path in found if path is not None), None)
