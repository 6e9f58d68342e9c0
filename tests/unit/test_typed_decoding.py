"""Decoders of types are made one at a time: two at once crash the process."""

from __future__ import annotations

import time
from threading import Barrier, Thread

import msgspec
import pytest

from ctxctl import typed_decoding
from ctxctl.typed_decoding import from_json, from_msgpack


class _Inner(msgspec.Struct):
    n: int


class _Outer(msgspec.Struct):
    inner: _Inner


def test_values_of_types() -> None:
    assert from_json(b'{"inner":{"n":1}}', _Outer).inner.n == 1
    assert from_msgpack(msgspec.msgpack.encode({"n": 2}), _Inner).n == 2
    with pytest.raises(msgspec.ValidationError):
        from_json(b'{"inner":{"n":"x"}}', _Outer)


@pytest.mark.parametrize(("decoders", "name"), [("_JSON", "json"), ("_MSGPACK", "msgpack")])
def test_two_threads_make_no_decoder_at_the_same_time(
    decoders: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, most = 0, 0

    class Slow:
        def __init__(self, kind: object) -> None:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            time.sleep(0.02)
            at_work -= 1

        def decode(self, data: bytes) -> object:
            return data

    monkeypatch.setattr(getattr(msgspec, name), "Decoder", Slow)
    monkeypatch.setattr(typed_decoding, decoders, {})
    decode, start = getattr(typed_decoding, f"from_{name}"), Barrier(4)

    def run(kind: type) -> None:
        start.wait()
        decode(b"1", kind)

    threads = [Thread(target=run, args=(kind,)) for kind in (int, str, float, int)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
