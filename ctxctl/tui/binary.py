"""What can be said of content that is no text: type, dimensions, sizes, never its bytes.  Plain Python.

Of an image no more than the first bytes are read, for its size; nothing is ever decoded further.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, NamedTuple

from ctxctl.wording import number

HEAD: Final = 64 << 10
"""Bytes of an image that are looked at: the size of a JPEG stands behind its metadata."""
_DATA: Final = re.compile(r"data:(?P<mime>[\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.ASCII)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_\-\s]*={0,2}")
_STARTS: Final = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""How base64 of an image begins."""
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""JPEG markers that a frame's size stands behind."""


class Image(NamedTuple):
    """What the first bytes of an image tell of it."""

    mime: str
    width: int | None
    height: int | None
    bytes: int
    """Size of the image; of base64 it follows from the length of the text."""


def dimensions(data: bytes) -> tuple[str, int, int] | None:
    """Mime type, width and height of a PNG, JPEG, GIF or WebP by its first bytes; None where they do not
    say.  Takes any bytes and never raises.
    """
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and len(data) >= 24:
        return "image/png", _big(data[16:20]), _big(data[20:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return "image/gif", _little(data[6:8]), _little(data[8:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        size = _webp(data)
        return None if size is None else ("image/webp", *size)
    if data[:2] == b"\xff\xd8":
        size = _jpeg(data)
        return None if size is None else ("image/jpeg", *size)
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if form == b"VP8X" and len(data) >= 30:
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if form == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 " and len(data) >= 30 and data[23:26] == b"\x9d\x01\x2a":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _FRAMES:
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        elif marker == 0xDA:
            return None
        else:
            at += 2 + max(_big(data[at + 2 : at + 4]), 2)
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def of_base64(text: str, start: int = 0, end: int | None = None) -> Image | None:
    """The image whose base64, with or without ``data:…``, begins at `start`; None where it is none."""
    end = len(text) if end is None else end
    match = _DATA.match(text, start, min(start + 200, end))
    mime = match["mime"].lower() if match else ""
    if match:
        start = match.end()
    known = next((kind for head, kind in _STARTS.items() if text.startswith(head, start)), "")
    if not known and not mime.startswith("image/"):
        return None
    run = _RUN.match(text, start, min(start + HEAD * 4 // 3, end))
    head = _decoded(run.group() if run else "")
    found = dimensions(head)
    size = max(end - start, 0) * 3 // 4 - text.count("=", max(end - 2, start), end)
    if found is None:
        return Image(mime or known, None, None, size)
    return Image(found[0], found[1], found[2], size)


def _decoded(text: str) -> bytes:
    """The bytes of as much base64 as is well-formed, in either alphabet."""
    text = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


_DEPTH: Final = 6
_LOOKED: Final = 2000
"""Values of a record that are looked at, at most."""
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


def image_phrase(image: Image) -> str:
    """A phrase that describes an image."""
    size = "" if image.width is None else f" {_pixels(image.width, image.height or 0)}"
    return f"{image.mime}{size}, {number(image.bytes)} bytes"


def _pixels(width: int, height: int) -> str:
    return f"{number(width)} \u00d7 {number(height)}"


def binary_lines(
    data: dict[str, Any], kind: str, tokens: int, method: str, note: str
) -> list[tuple[str, str]]:
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
