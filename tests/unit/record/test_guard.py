"""The parts of `record.guard` that no receiver shows: decoding whatever the pieces, hosts, headers."""

from __future__ import annotations

import gzip
import random
import zlib

import brotli
import pytest
import zstandard
from multidict import CIMultiDict

from ctxctl.record import guard

TEXT = random.Random(5).randbytes(70_000) + b"hello " * 50_000


def _raw(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


CASES = [
    ("gzip", gzip.compress(TEXT)), ("X-GZIP", gzip.compress(TEXT)),
    ("gzip", gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])), ("deflate", zlib.compress(TEXT)),
    ("deflate", _raw(TEXT)), ("br", brotli.compress(TEXT)), ("zstd", _zstd(TEXT)),
    ("zstd", _zstd(TEXT[:9]) + _zstd(TEXT[9:])), ("gzip, br", brotli.compress(gzip.compress(TEXT))),
    ("identity", TEXT), ("", TEXT), (None, TEXT), ("gzip, identity", gzip.compress(TEXT)),
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "data"), CASES)
def test_every_encoding_is_undone(encoding: str | None, data: bytes) -> None:
    assert guard.inflate(data, encoding) == TEXT
    assert guard.inflate(data, encoding, len(TEXT)) == TEXT
    assert guard.inflate(b"", encoding) == b""
    with pytest.raises(guard.TooLargeError):
        guard.inflate(data, encoding, len(TEXT) - 1)


@pytest.mark.parametrize(("encoding", "data"), [case for case in CASES if case[1] is not TEXT])
def test_damage_is_noticed(encoding: str, data: bytes) -> None:
    for broken in (data[:-1], data[: len(data) // 2], data[:5], b"x" + data, data + b"x"):
        with pytest.raises(guard.UndecodableError):
            guard.inflate(broken, encoding)


def test_a_small_body_that_grows_out_of_all_measure_is_refused_below_the_limit() -> None:
    packed = brotli.compress(bytes(32 << 20), quality=3)
    with pytest.raises(guard.TooLargeError):
        guard.inflate(packed, "br", 64 << 20)


def test_who_may_come_in() -> None:
    hosts = guard.own_hosts(4318)
    assert guard.refused({"host": "127.0.0.1:4318"}, hosts) is None
    assert guard.refused({"HOST": " LocalHost:4318 "}, hosts) is None
    assert guard.refused({"host": "127.0.0.1:4318", "origin": ""}, hosts)
    assert guard.refused({}, hosts)
    assert guard.refused({}, hosts, hostless=True) is None
    assert guard.refused({"Origin": "null"}, hosts, hostless=True)
    assert guard.refused(CIMultiDict([("Host", "localhost:4318"), ("host", "evil.test")]), hosts)
    assert "evil" not in str(guard.refused({"host": "evil.test"}, hosts))
    assert "localhost" in guard.own_hosts(80)
    assert "localhost" not in hosts


def test_a_content_type_that_is_told_twice_is_none() -> None:
    assert guard.media_type({"content-type": "Application/JSON; charset=utf-8"}) == "application/json"
    assert (
        guard.media_type(CIMultiDict([("Content-Type", "application/json"), ("Content-Type", "text/plain")]))
        == ""
    )
    assert guard.media_type({}) == ""
