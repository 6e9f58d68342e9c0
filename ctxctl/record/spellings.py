"""Texts inside a text: what its escapes spell, and what it carries as base64.

Both are read for finding secrets and never shown.  Time is linear in the text, with at most `ROUNDS` readings
of escapes in escapes.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from binascii import Error, a2b_base64, crc32
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from html.entities import html5
from typing import Final, NamedTuple

from ctxctl.linear import re2

ROUNDS: Final = 4
"""Levels of escapes in escapes that are read."""

ESCAPED: Final = (
    r"%[2-7][0-9A-Fa-f]|=(?:3D|5F|2D|2B|2F|\r?\n|(?:\\+r)?\\+n)|&#[0-9xX]|&(?:quot|apos|amp|lt|gt|equals|colon|sol|plus|lowbar|period|num|comma|nbsp|Tab|NewLine);"
    r"|\\u00(?:[2-7]|00)|\\x[2-7]|\\\\\\\\|(?:\x1b|\\u001[bB]|\\x1[bB]|\\0?33|\\e)\["
)
"""Escapes that rules cannot read: of URLs, of HTML, of JSON in JSON in JSON, and a terminal's colours."""
_ESCAPE: Final = re.compile(
    rb"(?:\x1b|\\+(?:u001[bB]|x1[bB]|0?33|e))\[[0-9;:]{0,24}[A-Za-z]|(?:%[0-9A-Fa-f]{2})+|=(?:3D|5F|2D|2B|2F)|(?<=[^\n]{60})=\r?\n|(?<=[^\n\\]{60})=(?:\\+r)?\\+n"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"
    rb"|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrtbf\"'`/])?"
)
_LINE_END: Final = r"(?:\r?\n|(?:\\r)?\\n)[ \t]{0,32}"
_SIGNS: Final = r"[A-Za-z0-9+/_-]"
_BASE64: Final = re2.compile(
    f"{_SIGNS}{{48,}}(?:{_LINE_END}{_SIGNS}{{48,}})*(?:{_LINE_END}{_SIGNS}+)?={{0,2}}|{_SIGNS}{{24,}}={{0,2}}".encode()
)
"""One line of base64, or lines of one width."""
BASE64: Final = r"[A-Za-z0-9+/_-]{24}"
"""The beginning of what may be base64."""
_BREAKS: Final = re.compile(rb"[ \t]+|(?:\\[rn])+|[\r\n]+")
_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_SEGMENT: Final = 24
_LEAST_HEX: Final = 32
_HEX: Final = re.compile(rb"(?:0?[xX])?([0-9a-fA-F]+)={0,2}\Z")
_CONTROL_SIGNS: Final = bytes(sign for sign in (*range(32), 127) if sign not in (9, 10, 13, 27))
_WIDE: Final = re.compile(rb"(?:\xff\xfe|\xfe\xff)(?s:..)|(?:[\t\n\r -~]\0){8}|(?:\0[\t\n\r -~]){8}")
"""The beginning of a text in UTF-16."""
_PACKED: Final = (b"\x1f\x8b\x08", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How gzip and zlib begin."""
_PACKED_DEPTH: Final = 2
"""Levels of packed data in packed data that are opened."""
_MEMBERS: Final = 32
"""Packed data one behind the other that are unpacked."""
_MOST: Final = 1 << 20
_RATIO: Final = 64
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
    if escape[-1:].isalpha() and b"[" in escape:
        yield b"", len(escape)  # the colour of what comes next, or the end of a line
    elif escape[:1] == b"%":
        for at in range(0, len(escape), 3):
            yield bytes((int(escape[at + 1 : at + 3], 16),)), 3
    elif escape[:1] == b"&":
        yield _entity(escape), len(escape)
    elif escape[:1] == b"=":  # quoted-printable, of which a line that goes on ends like this
        yield (b"" if escape[1] in b"\r\n\\" else bytes.fromhex(escape[1:].decode("ascii"))), len(escape)
    else:
        spelled = escape.lstrip(b"\\").decode("ascii")
        if spelled[:1] in ("u", "x") and len(spelled) > 1:
            sign = chr(int(spelled[1:], 16)) if int(spelled[1:], 16) else ""  # half a sign of UTF-16
            yield sign.encode("utf-8", "replace"), len(escape)
        else:
            yield _CONTROLS.get(spelled, spelled.encode()), len(escape)


def _entity(escape: bytes) -> bytes:
    name = escape[1:-1].decode("ascii")
    if not name.startswith("#"):
        return html5.get(f"{name};", escape.decode("ascii")).encode()
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(number).encode("utf-8", "replace") if 0 < number < 0x110000 else b""


class Carried(NamedTuple):
    """What a stretch of base64 or of hexadecimal carries."""

    start: int
    end: int
    data: bytes
    """Decoded; of packed data (gzip, zlib) and of UTF-16 the text in it."""
    again: Callable[[bytes], bytes] | None = None
    """The stretch with other data in it; None where it holds more than was unpacked."""


def carried(data: bytes) -> Iterator[Carried]:
    """What each stretch of a text carries that may be base64; most of what comes is noise."""
    for match in _BASE64.finditer(data):
        start, end = match.span()
        run = data[start:end]
        if run.islower() or run.isupper() or _HEX.match(run) is not None:
            # A path, a hash: base64 of a text has letters of both cases.
            yield from _of_hexadecimal(run, start)
            continue
        found = _decoded(run)
        if found is not None:
            yield _opened(Carried(start, end, found, partial(recoded, run)))
        at = run.rfind(b"/") + 1
        if at and len(run) - at >= _SEGMENT:  # the last part of a path
            found = _decoded(run[at:])
            if found is not None:
                yield _opened(Carried(start + at, end, found, partial(recoded, run[at:])))


def _of_hexadecimal(run: bytes, start: int) -> Iterator[Carried]:
    """What a stretch of hexadecimal spells, if that is a text or packed."""
    match = _HEX.match(run)
    if match is None:
        return
    at, digits = match.start(1), match[1]
    if len(digits) < _LEAST_HEX or len(digits) % 2:
        return
    data = bytes.fromhex(digits.decode("ascii"))
    upper = digits.isupper()

    def again(made: bytes) -> bytes:
        return run[:at] + (made.hex().upper() if upper else made.hex()).encode() + run[match.end(1) :]

    found = _opened(Carried(start, start + len(run), data, again))
    if found.data is not data or _is_text(data):
        yield found


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return len(data.translate(None, _CONTROL_SIGNS)) == len(data)


def _opened(carried: Carried, depth: int = 0) -> Carried:
    """What data that are packed, or UTF-16, hold; other data as they are."""
    data, again = carried.data, carried.again
    assert again is not None
    wide = _WIDE.match(data)
    if wide is not None:
        name = "utf-16-be" if data[:2] == b"\xfe\xff" or data[:1] == b"\0" else "utf-16-le"
        text = data.decode(name, "replace").encode("utf-8", "replace")
        return carried._replace(
            data=text, again=lambda made: again(made.decode("utf-8", "replace").encode(name))
        )
    if not data.startswith(_PACKED):
        return carried
    packed = data[:2] == b"\x1f\x8b"
    text, whole = unpacked(data, 31 if packed else 15)
    if not text:
        return carried
    pack = partial(gzip_packed) if packed else zlib.compress
    inner = carried._replace(data=text, again=(lambda made: again(pack(made))) if whole else None)
    return (
        _opened(inner, depth + 1) if whole and depth < _PACKED_DEPTH and text.startswith(_PACKED) else inner
    )


def gzip_packed(data: bytes) -> bytes:
    """Data as gzip, without a time."""
    import gzip

    return gzip.compress(data, mtime=0)


def unpacked(data: bytes, bits: int) -> tuple[bytes, bool]:
    """What zlib unpacks of some data, in bounds, and whether that is all; nothing, if it is no such data.

    At most 64 times what was packed, and a megabyte: the rest of a bomb is left alone.  Several packed data
    may stand one behind the other; what stands behind them is given as it is.
    """
    made, rest, magic = b"", data, data[:2]
    room = min(_MOST, len(data) * _RATIO + 4096)
    for _ in range(_MEMBERS):
        unpack = zlib.decompressobj(bits)
        try:
            made += unpack.decompress(rest, room - len(made))
        except zlib.error:
            return made + _unchecked(rest, bits), not made
        rest = unpack.unused_data
        if not unpack.eof or not rest or len(made) >= room:
            return made, unpack.eof and not rest
        if rest[:2] != magic:
            break
    return made + b"\n" + rest, False


def _unchecked(data: bytes, bits: int) -> bytes:
    """What data hold that are packed well, and whose checksum is wrong."""
    start = 10 if bits > 15 else 2
    if bits > 15 and data[3:4] != b"\0":
        return b""  # a file's name comes first
    try:
        return zlib.decompressobj(-15).decompress(data[start:], min(_MOST, len(data) * _RATIO + 4096))
    except zlib.error:
        return b""


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


def packed_texts(image: bytes) -> Iterator[tuple[int, int, bytes, bool]]:
    """The packed texts of a PNG: beginning and end in it, what they say, and whether that is all of it."""
    for kind, start, end in _chunks(image):
        at = _packed_at(kind, image[start:end])
        if at:
            text, whole = unpacked(image[start + at : end], 15)
            if text:
                yield start + at, end, text, whole


def _packed_at(kind: bytes, chunk: bytes) -> int:
    """Where in a chunk the packed text begins; 0 if it has none."""
    name = chunk.find(b"\0", 0, 80) + 1
    if kind == b"zTXt" and name:
        return name + 1
    if kind == b"iTXt" and name and chunk[name : name + 1] == b"\x01":
        language = chunk.find(b"\0", name + 2) + 1
        return chunk.find(b"\0", language) + 1 if language else 0
    return 0


def with_texts(image: bytes, texts: dict[int, bytes]) -> bytes:
    """A PNG with other packed texts, by the places where those before began; sizes and sums are mended."""
    made = [image[: len(_PNG)]]
    for kind, start, end in _chunks(image):
        if not kind:
            made.append(image[start:end])
            continue
        at = _packed_at(kind, image[start:end])
        said = texts.get(start + at) if at else None
        held = image[start:end] if said is None else image[start : start + at] + zlib.compress(said)
        summed = crc32(kind + held) if said is not None else None
        tail = image[end : end + 4] if summed is None else summed.to_bytes(4, "big")
        made += len(held).to_bytes(4, "big"), kind, held, tail
    return b"".join(made)


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
