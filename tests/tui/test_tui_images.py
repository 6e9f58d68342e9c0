"""Sizes of images by their first bytes, and what is said of content that is no text.  No event loop."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tui import binary


def png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return b"\x89PNG\r\n\x1a\n" + chunk + b"\0" * 200


def jpeg(width: int, height: int, *, exif: int = 0) -> bytes:
    app = b"\xff\xe1" + struct.pack(">H", exif + 2) + b"E" * exif if exif else b""
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + app + b"\xff\xff\xfe\x00\x04hi" + frame + b"\xff\xda" + b"\0" * 200


def webp(form: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + form + struct.pack("<I", 90) + body + b"\0" * 100


SAMPLES = [
    (png(640, 480), ("image/png", 640, 480)),
    (jpeg(1920, 1080), ("image/jpeg", 1920, 1080)),
    (jpeg(7, 9, exif=40_000), ("image/jpeg", 7, 9)),
    (b"GIF89a" + struct.pack("<HH", 320, 200) + b"\0" * 100, ("image/gif", 320, 200)),
    (webp(b"VP8X", b"\0" * 4 + b"\x1f\3\0" + b"\x57\2\0"), ("image/webp", 800, 600)),
    (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 30, 40)), ("image/webp", 30, 40)),
    (webp(b"VP8L", b"\x2f" + (49 | 59 << 14).to_bytes(4, "little")), ("image/webp", 50, 60)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), SAMPLES, ids=[f"{e[0]} {e[1]}" for _, e in SAMPLES])
def test_dimensions_come_from_the_head(data: bytes, expected: tuple[str, int, int]) -> None:
    assert binary.dimensions(data) == expected
    assert binary.dimensions(data[:9]) is None


@pytest.mark.parametrize(("data", "expected"), SAMPLES, ids=[f"{e[0]} {e[1]}" for _, e in SAMPLES])
@pytest.mark.parametrize("head", ["", "data:image/png;base64,", "data:image/png;name=a.png;base64,"])
def test_base64_is_read_as_far_as_needed(data: bytes, expected: tuple[str, int, int], head: str) -> None:
    found = binary.of_base64(head + base64.b64encode(data).decode())
    assert found == binary.Image(*expected, bytes=len(data))


def test_only_the_head_of_a_large_image_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = base64.b64decode

    def watched(text: str) -> bytes:
        seen.append(len(text))
        return real(text)

    monkeypatch.setattr(binary.base64, "b64decode", watched)
    text = base64.b64encode(png(10, 20) + b"\0" * 3_000_000).decode()
    found = binary.of_base64(text)
    assert found is not None
    assert (found.width, found.bytes) == (10, len(png(10, 20)) + 3_000_000)
    assert seen
    assert max(seen) <= binary.HEAD * 4 // 3


@given(st.binary(max_size=400))
def test_any_bytes_are_taken(data: bytes) -> None:
    for head in (b"", *(sample[:20] for sample, _ in SAMPLES)):
        found = binary.dimensions(head + data)
        assert found is None or (found[1] >= 0 and found[2] >= 0)


@given(st.text(max_size=200))
def test_any_text_is_taken(text: str) -> None:
    for head in ("", "data:image/png;base64,", "data:image/", "iVBORw0KGgo", "/9j/"):
        found = binary.of_base64(head + text)
        assert found is None or found.bytes >= 0
        binary.image_in(head + text)
        binary.image_in('"' + head + text)


def test_an_image_in_json_is_found() -> None:
    body = base64.b64encode(png(3, 4)).decode()
    found = binary.image_in('{"type":"image","source":{"media_type":"image/png","data":"' + body + '"}}')
    assert found is not None
    assert binary.image_phrase(found) == f"image/png 3 \u00d7 4, {len(png(3, 4))} bytes"
    assert binary.image_in('{"text":"iVBORw0KGgo is how base64 of a PNG begins"}') is None


def test_an_image_without_bytes_says_what_its_record_says() -> None:
    record = {
        "mime_type": "image/jpeg",
        "byte_size": 12_345,
        "metadata": {"native": {"width": 8, "height": 9}},
    }
    lines = dict(binary.binary_lines(record, "image", 85, "declared", "no text"))
    text = "\n".join(line for _, line in binary.binary_lines(record, "image", 85, "declared", "no text"))
    assert lines["!"] == "no text"
    for word in ("image/jpeg", "12,345", "8 \u00d7 9", "85 (declared)"):
        assert word in text


def test_what_is_not_recorded_is_said() -> None:
    text = "\n".join(line for _, line in binary.binary_lines({}, "image", 0, "uncounted", "no text"))
    assert text.count("not recorded") == 3
    assert "uncounted" in text
    assert binary.binary_lines({}, "tool_result", 0, "uncounted", "no text") == [("!", "no text")]
