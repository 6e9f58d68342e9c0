"""What can be said of content that is no text: type, dimensions, sizes; never its bytes.  Plain Python."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.labels import number
from ctxctl.tui.images import Image, of_base64

_DEPTH: Final = 6
_LOOKED: Final = 2000
"""Values of a record that are looked at."""
_IN_TEXT: Final = re.compile(r'"(?=data:image/|iVBORw0KGgo|/9j/|R0lGOD|UklGR)')
"""Where the base64 of an image may begin in JSON."""
_HEAD: Final = 1 << 20
"""Characters of a text in which an image is looked for."""


def image_in(text: str) -> Image | None:
    """The first image that a text holds as base64: as a whole, or as a string of its JSON."""
    if text.startswith(("data:image/", "iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")):
        return of_base64(text)
    for match in _IN_TEXT.finditer(text, 0, _HEAD):
        end = text.find('"', match.end())
        found = of_base64(text, match.end(), len(text) if end < 0 else end)
        if found is not None and found.bytes > 64:
            return found
    return None


def said(image: Image) -> str:
    """An image as a phrase."""
    size = "" if image.width is None else f" {_pixels(image.width, image.height or 0)}"
    return f"{image.mime}{size}, {number(image.bytes)} bytes"


def _pixels(width: int, height: int) -> str:
    return f"{number(width)} \u00d7 {number(height)}"


def lines(data: dict[str, Any], kind: str, tokens: int, method: str, note: str) -> list[tuple[str, str]]:
    """(kind, text) lines about an item without text, by its record; the first is the `note`."""
    found = [("!", note)]
    image = _held_image(data)
    mime = data.get("mime_type") if isinstance(data.get("mime_type"), str) else None
    mime = mime or (image.mime if image else None)
    size = data.get("byte_size")
    if not isinstance(size, int) or isinstance(size, bool):
        size = image.bytes if image else None
    if kind != "image" and not (mime or size or image):
        return found
    wide = _recorded_size(data, 0)
    if image is not None and image.width is not None and image.height is not None:
        wide = (image.width, image.height)
    counted = method not in ("", "uncounted")
    cost = f"{number(tokens)} ({method})" if counted else number(tokens) if tokens else "uncounted"
    facts = [
        ("kind", kind),
        ("type", mime or "not recorded"),
        ("bytes", "not recorded" if size is None else number(size)),
        ("tokens", cost),
    ]
    if kind == "image" or (mime or "").startswith("image/"):
        pixels = "not recorded" if wide is None else _pixels(*wide)
        facts.insert(2, ("dimensions", pixels))
    return [*found, (" ", ""), *((" ", f"{label:<12}{value}") for label, value in facts)]


def _held_image(data: dict[str, Any]) -> Image | None:
    """An image that the record holds as base64 anywhere."""
    left = _LOOKED
    waiting: list[tuple[Any, int]] = [(data, 0)]
    while waiting and left > 0:
        value, depth = waiting.pop()
        left -= 1
        if isinstance(value, str):
            found = of_base64(value) if len(value) > 100 else None
            if found is not None:
                return found
        elif depth < _DEPTH and isinstance(value, dict | list):
            inner = list(value.values() if isinstance(value, dict) else value)[:left]
            waiting += [(one, depth + 1) for one in inner]
    return None


def _recorded_size(value: Any, depth: int) -> tuple[int, int] | None:
    """Width and height as a record gives them."""
    if depth > _DEPTH or not isinstance(value, dict):
        return None
    width, height = value.get("width"), value.get("height")
    if isinstance(width, int) and isinstance(height, int) and not isinstance(width, bool):
        return width, height
    for one in list(value.values())[:_LOOKED]:
        found = _recorded_size(one, depth + 1)
        if found is not None:
            return found
    return None
