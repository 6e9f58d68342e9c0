"""The server's side of a WebSocket (RFC 6455), as far as the Responses API needs it: texts both ways."""

from __future__ import annotations

import base64
import hashlib
from io import BufferedIOBase
from typing import Final

_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


def accept(key: str) -> str:
    """What a server answers to a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _MAGIC).digest()).decode()


class Socket:
    """A connection after its handshake."""

    def __init__(self, coming: BufferedIOBase, going: BufferedIOBase) -> None:
        self._coming, self._going = coming, going

    def receive(self) -> bytes | None:
        """The next text; None: the client has closed."""
        pieces: list[bytes] = []
        while True:
            head = self._coming.read(2)
            if len(head) < 2:
                return None
            final, kind, size = head[0] & 0x80, head[0] & 0x0F, head[1] & 0x7F
            if size > 125:
                size = int.from_bytes(self._coming.read(2 if size == 126 else 8), "big")
            mask = self._coming.read(4)
            data = self._coming.read(size)
            data = bytes(a ^ b for a, b in zip(data, mask * (size // 4 + 1), strict=False))
            if kind == _CLOSE:
                self._send(_CLOSE, data[:2])
                return None
            if kind == _PING:
                self._send(_PONG, data)
            elif kind != _PONG:
                pieces.append(data)
                if final:
                    return b"".join(pieces)

    def send(self, text: bytes) -> None:
        """Send a text."""
        self._send(_TEXT, text)

    def _send(self, kind: int, data: bytes) -> None:
        size = len(data)
        short = bytes((0x80 | kind, size if size < 126 else 126 if size < 1 << 16 else 127))
        rest = b"" if size < 126 else size.to_bytes(2 if size < 1 << 16 else 8, "big")
        self._going.write(short + rest + data)
        self._going.flush()
