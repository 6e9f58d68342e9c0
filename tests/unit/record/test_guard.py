"""The parts of `record.guard` that no receiver shows: decoding whatever the pieces, hosts, headers."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from multidict import CIMultiDict

from ctxctl.record import guard

Pack = Callable[[bytes], bytes]
TEXT = random.Random(5).randbytes(70_000) + b"hello " * 50_000


def _raw(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def _twice(pack: Pack) -> Pack:
    return lambda data: pack(data[:9]) + pack(data[9:])


CODED: list[tuple[str, Pack]] = [
    ("gzip", gzip.compress), ("X-GZIP", gzip.compress), ("gzip", _twice(gzip.compress)),
    ("deflate", zlib.compress), ("deflate", _raw), ("br", brotli.compress), ("zstd", _zstd),
    ("zstd", _twice(_zstd)), ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    ("gzip, identity", gzip.compress),
]  # fmt: skip
PLAIN: list[tuple[str | None, Pack]] = [("identity", bytes), ("", bytes), (None, bytes)]


@pytest.mark.parametrize(("encoding", "pack"), [*CODED, *PLAIN])
def test_every_encoding_is_undone(encoding: str | None, pack: Pack) -> None:
    data = pack(TEXT)
    assert guard.inflate(data, encoding) == TEXT
    assert guard.inflate(data, encoding, len(TEXT)) == TEXT
    assert guard.inflate(b"", encoding) == b""
    with pytest.raises(guard.TooLargeError):
        guard.inflate(data, encoding, len(TEXT) - 1)


@pytest.mark.parametrize(("encoding", "pack"), CODED)
def test_damage_is_noticed(encoding: str, pack: Pack) -> None:
    data = pack(TEXT)
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
