"""What the compressed bodies of one capture become is bounded together, by their size."""

from __future__ import annotations

import base64
import gzip
import json
import zlib

import pytest

from ctxctl.providers.calls import encodings
from ctxctl.providers.calls.encodings import Unpacker, decoded_body
from tests.unit.importers.seed_help import events

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a " * 5000}]}
PACKED = gzip.compress(json.dumps(BODY).encode())


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_UNPACKED", 25_000)
    monkeypatch.setattr(encodings, "_RATIO", 10)


def test_the_sum_of_what_is_unpacked_is_bounded_by_what_is_packed() -> None:
    unpacker = Unpacker()
    sizes = [len(unpacker.unpack(PACKED, 1 << 20)) for _ in range(10)]
    whole = len(json.dumps(BODY))
    assert sizes[:2] == [whole, whole]
    assert sum(sizes) <= 25_000 + 10 * 10 * len(PACKED)
    assert unpacker.cut


@pytest.mark.parametrize("data", [b"plain text" * 10_000, b"x\x9c is no zlib" * 10_000])
def test_what_is_not_packed_costs_nothing(data: bytes) -> None:
    unpacker = Unpacker()
    assert unpacker.unpack(data, 1 << 20) == data
    assert not unpacker.cut


def test_bodies_that_compress_usually_are_not_cut() -> None:
    unpacker = Unpacker()
    said = json.dumps({"messages": [f"{n * 7919 % 1000:x}" for n in range(2000)]}).encode()
    assert all(unpacker.unpack(zlib.compress(said), 1 << 20) == said for _ in range(50))
    assert not unpacker.cut


def test_a_body_by_itself_has_an_unpacker_of_its_own() -> None:
    assert all(decoded_body(PACKED) == BODY for _ in range(5))


@pytest.mark.parametrize("format_name", ["vcr", "har", "api"])
def test_a_capture_whose_bodies_are_cut_says_so_once(format_name: str) -> None:
    text = base64.b64encode(PACKED).decode()
    answer = {"choices": [{"message": {"role": "assistant", "content": "x"}}]}
    url = "https://api.openai.com/v1/chat/completions"
    if format_name == "vcr":
        entry = {"request": {"method": "POST", "uri": url, "body": {"base64_string": text}},
                 "response": {"body": {"string": json.dumps(answer)}, "status": {"code": 200}}}  # fmt: skip
        data = json.dumps({"interactions": [entry] * 8}).encode()
    elif format_name == "har":
        body = {"text": text, "encoding": "base64"}
        entry = {"request": {"method": "POST", "url": url, "postData": body},
                 "response": {"status": 200, "content": {"text": json.dumps(answer)}}}  # fmt: skip
        data = json.dumps({"log": {"version": "1.2", "entries": [entry] * 8}}).encode()
    else:
        lines = [{"request": {"body": text, "encoding": "base64"}, "response": answer}] * 8
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    found, problems = events(format_name, data)
    assert [problem.slug for problem in problems].count("bodies-too-large") == 1
    # What was in bounds is read.
    assert "a a a a" in json.dumps(found)
