"""Texts inside a text: what its escapes spell, and what it carries as base64.

Both are read for finding secrets and never shown.  Time is linear in the text, with at most `ROUNDS` readings
of escapes in escapes.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import Error, a2b_base64, crc32
from bisect import bisect_right
from collections.abc import Iterator
from html.entities import html5
from typing import Final, NamedTuple

from ctxctl.linear import re2

ROUNDS: Final = 4
"""Levels of escapes in escapes that are read."""

ESCAPED: Final = (
    r"%[2-7][0-9A-Fa-f]|&#[0-9xX]|&(?:quot|apos|amp|lt|gt|equals|colon|sol|plus|lowbar|period|num|comma|nbsp|Tab|NewLine);"
    r"|\\u00[2-7]|\\x[2-7]|\\\\\\\\"
)
"""Escapes that rules cannot read: of URLs, of HTML, and of JSON in JSON in JSON."""
_ESCAPE: Final = re.compile(
    rb"(?:%[0-9A-Fa-f]{2})+"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"
    rb"|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrtbf\"'`/])?"
)
_LINE_END: Final = r"(?:\r?\n|(?:\\r)?\\n)[ \t]{0,8}"
_SIGNS: Final = r"[A-Za-z0-9+/_-]"
_BASE64: Final = re2.compile(
    f"{_SIGNS}{{60,}}(?:{_LINE_END}{_SIGNS}{{60,}})*(?:{_LINE_END}{_SIGNS}+)?={{0,2}}|{_SIGNS}{{24,}}={{0,2}}".encode()
)
"""One line of base64, or lines of one width."""
BASE64: Final = r"[A-Za-z0-9+/_-]{24}"
"""The beginning of what may be base64."""
_BREAKS: Final = re.compile(rb"[ \t]+|(?:\\[rn])+|[\r\n]+")
_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_SEGMENT: Final = 24
_CONTROLS: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b" ", "f": b" "}
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class Reading:
    """A text in which escapes stand for what they spell, with the way back to the text itself."""

    def __init__(self, data: bytes) -> None:
        pieces: list[bytes] = []
        self._read: list[int] = [0]
        """Places in the reading from which on what it says stands elsewhere."""
        self._stands: list[int] = [0]
        """Where it stands in the text."""
        size = last = 0
        for match in _ESCAPE.finditer(data):
            size += match.start() - last
            pieces.append(data[last : match.start()])
            last = match.start()
            for sign, width in _signs(match[0]):
                self._read.append(size)
                self._stands.append(last)
                pieces.append(sign)
                size += len(sign)
                last += width
            self._read.append(size)
            self._stands.append(last)
        self.text = b"".join([*pieces, data[last:]])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text a stretch of the reading stands; `end` is above `start`."""
        n = bisect_right(self._read, start) - 1
        m = bisect_right(self._read, end - 1) - 1
        after = self._stands[m] + end - self._read[m]
        if m + 1 < len(self._read) and self._read[m + 1] == end:
            after = max(after, self._stands[m + 1])
        return self._stands[n] + start - self._read[n], after


def _signs(escape: bytes) -> Iterator[tuple[bytes, int]]:
    """What each escape of a stretch spells, and its length in the text."""
    if escape[:1] == b"%":
        for at in range(0, len(escape), 3):
            yield bytes((int(escape[at + 1 : at + 3], 16),)), 3
    elif escape[:1] == b"&":
        yield _entity(escape), len(escape)
    else:
        spelled = escape.lstrip(b"\\").decode("ascii")
        if spelled[:1] in ("u", "x") and len(spelled) > 1:
            yield chr(int(spelled[1:], 16)).encode("utf-8", "replace"), len(escape)
        else:
            yield _CONTROLS.get(spelled, spelled.encode()), len(escape)


def _entity(escape: bytes) -> bytes:
    name = escape[1:-1].decode("ascii")
    if not name.startswith("#"):
        return html5.get(f"{name};", escape.decode("ascii")).encode()
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(number).encode("utf-8", "replace") if 0 < number < 0x110000 else b""


class Carried(NamedTuple):
    """What a stretch of base64 carries."""

    start: int
    end: int
    data: bytes
    """Decoded."""


def carried(data: bytes) -> Iterator[Carried]:
    """What each stretch of a text carries that may be base64; most of what comes is noise."""
    for match in _BASE64.finditer(data):
        start, end = match.span()
        run = data[start:end]
        if run.islower() or run.isupper():
            continue  # a path, a hash: base64 of a text has letters of both cases
        found = _decoded(run)
        if found is not None:
            yield Carried(start, end, found)
        at = run.rfind(b"/") + 1
        if at and len(run) - at >= _SEGMENT:  # the last part of a path
            found = _decoded(run[at:])
            if found is not None:
                yield Carried(start + at, end, found)


def _decoded(run: bytes) -> bytes | None:
    plain = _BREAKS.sub(b"", run).rstrip(b"=").translate(_TO_STANDARD)
    left = len(plain) % 4
    try:
        return a2b_base64(plain[: len(plain) - left] + (plain[-left:] + b"==" if left > 1 else b""))
    except Error:
        return None


def recoded(run: bytes, data: bytes) -> bytes:
    """Base64 of `data` in the form of `run`: its alphabet, its padding, the width of its lines."""
    made = b64encode(data)
    if b"-" in run or b"_" in run:
        made = made.translate(_TO_URL)
    if not run.endswith(b"=") and len(_BREAKS.sub(b"", run)) % 4:
        made = made.rstrip(b"=")
    broken = _BREAKS.search(run)
    if broken is None:
        return made
    width = broken.start()
    ends = re.match(rb"(?:\r?\n|(?:\\r)?\\n)[ \t]*", run[width:])
    end = ends[0] if ends is not None else b"\n"
    return end.join(made[at : at + width] for at in range(0, len(made), width))


def texts_of(data: bytes) -> Iterator[tuple[int, int]]:
    """Where texts may stand in data that is no text: of a PNG in all chunks but its pixels, else anywhere."""
    chunks = list(_chunks(data))
    if not chunks:
        yield 0, len(data)
    for kind, start, end in chunks:
        if kind not in (b"IDAT", b"fdAT"):
            yield start, end


def with_checksums(data: bytes) -> bytes:
    """A PNG whose chunks have the sums of what they hold; any other data as it is."""
    made = bytearray(data)
    for kind, start, end in _chunks(data):
        if kind and kind not in (b"IDAT", b"fdAT"):
            made[end : end + 4] = crc32(data[start - 4 : end]).to_bytes(4, "big")
    return bytes(made)


def _chunks(image: bytes) -> Iterator[tuple[bytes, int, int]]:
    """The kind, beginning and end of each chunk of a PNG; what stands behind the last one has no kind."""
    at = len(_PNG)
    if not image.startswith(_PNG):
        return
    while at + 12 <= len(image):
        end = at + 8 + int.from_bytes(image[at : at + 4], "big")
        if end + 4 > len(image):
            break
        yield image[at + 4 : at + 8], at + 8, end
        at = end + 4
    if at < len(image):
        yield b"", at, len(image)
