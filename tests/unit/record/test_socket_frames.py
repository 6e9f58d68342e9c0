"""What is read out of a WebSocket's bytes, and what is not."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.protocol import Protocol, Side

from ctxctl.record.proxy.websocket import MessageReader, UnreadableError

DEFLATE = "permessage-deflate; client_max_window_bits=10; server_no_context_takeover"
MESSAGES = ["{}", "é" * 70_000, "", "x" * 126]


def sent(side: Side, *, deflate: bool) -> bytes:
    """Each message whole, then each in three fragments with a ping between them."""
    end = Protocol(side)
    if deflate:
        ours = side is Side.SERVER  # which takes no context along
        end.extensions = [PerMessageDeflate(not ours, ours, 15, 15 if ours else 10)]
    for message in MESSAGES:
        end.send_text(message.encode())
    for message in MESSAGES:
        data = message.encode()
        end.send_text(data[:5], fin=False)
        end.send_ping(b"p")
        end.send_continuation(data[5:9], fin=False)
        end.send_continuation(data[9:], fin=True)
    end.send_binary(b"\0")
    end.send_close(1000, "done")
    return b"".join(end.data_to_send())


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize("side", list(Side))
def test_messages_are_found_however_they_come(side: Side, deflate: bool, size: int) -> None:
    reader = MessageReader([DEFLATE] if deflate else [], masked=side is Side.CLIENT, limit=1 << 20)
    data = sent(side, deflate=deflate)
    found = [text for at in range(0, len(data), size) for text in reader.feed(data[at : at + size])]
    assert [text.decode() for text in found] == MESSAGES * 2
    assert reader.feed(b"after the close") == []


def test_a_message_is_bounded() -> None:
    whole = MessageReader([], masked=False, limit=100)
    with pytest.raises(UnreadableError, match="too large"):
        whole.feed(b"\x81\x7e\x00\x65")
    pieces = MessageReader([], masked=False, limit=100)
    pieces.feed(b"\x01\x32" + b"x" * 50)
    with pytest.raises(UnreadableError, match="too large"):
        pieces.feed(b"\x80\x33" + b"x" * 51)


def test_what_is_inflated_is_bounded() -> None:
    packer = zlib.compressobj(wbits=-15)
    bomb = packer.compress(bytes(200 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    reader = MessageReader(["permessage-deflate"], masked=False, limit=1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="too large"):
            reader.feed(b"\xc1\x7f" + len(bomb).to_bytes(8, "big") + bomb)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "extensions",
    [
        ["x-webkit-frame"],
        ["permessage-deflate", "x"],
        ["permessage-deflate; server_max_window_bits=99"],
        [";;"],
    ],
)
def test_what_was_agreed_upon_must_be_known(extensions: list[str]) -> None:
    with pytest.raises(UnreadableError):
        MessageReader(extensions, masked=False, limit=100)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"\xff" * 20, b"\x80\x00", b"\x81\x82\0\0\0\0hi"])
def test_what_is_no_frame_ends_the_reading(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="no frames"):
        MessageReader([], masked=False, limit=1000).feed(data)
