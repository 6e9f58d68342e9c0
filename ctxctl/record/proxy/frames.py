"""The messages that went over a WebSocket, read out of copies of its bytes.

Nothing is answered or sent here: each direction is read alone, as its other end reads it.  The codec is that
of `websockets`: frames, fragments and permessage-deflate, each bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from websockets.extensions.permessage_deflate import PerMessageDeflate

_PIECE: Final = 1 << 16
_PREFIX: Final = {True: "client", False: "server"}


class UnreadableError(ValueError):
    """These are no frames, or not such as are read here."""


class Reader:
    """The messages of one direction.

    Memory: one message, whole and as far as it came over the wire.

    Args:
        masked: The direction is that from the client.
        extensions: Values of the answer's `Sec-WebSocket-Extensions`.
        limit: Bytes of one message at most, also of one that was compressed.

    Raises:
        UnreadableError: an extension that is not known here.
        ModuleNotFoundError: `websockets` is not installed.
    """

    def __init__(self, extensions: Iterable[str], *, masked: bool, limit: int) -> None:
        from websockets.protocol import Protocol, Side

        self._protocol = Protocol(Side.SERVER if masked else Side.CLIENT, max_size=limit)
        deflate = _deflate(extensions, _PREFIX[masked])
        self._protocol.extensions = [deflate] if deflate is not None else []
        self._parts: list[bytes] = []
        self._text = False
        self.pending = 0
        """Bytes that came since the last message was whole: what is held, at most."""

    def feed(self, data: bytes) -> list[bytes]:
        """The texts that are whole with these bytes, in order; what is binary or no message is left out.

        Raises:
            UnreadableError: what came cannot be understood, nor what will come.
        """
        from websockets.exceptions import PayloadTooBig
        from websockets.frames import Frame, Opcode

        found: list[bytes] = []
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            self.pending += len(piece)
            self._protocol.receive_data(piece)
            # Pongs and closing are the business of the two ends.
            self._protocol.data_to_send()
            for frame in self._protocol.events_received():
                if not isinstance(frame, Frame) or frame.opcode not in (
                    Opcode.TEXT,
                    Opcode.BINARY,
                    Opcode.CONT,
                ):
                    continue
                if frame.opcode is not Opcode.CONT:
                    self._text, self._parts = frame.opcode is Opcode.TEXT, []
                if self._text:
                    self._parts.append(bytes(frame.data))
                if frame.fin:
                    if self._text:
                        found.append(b"".join(self._parts))
                    self._parts, self.pending = [], 0
            if self._protocol.parser_exc is not None:
                large = isinstance(self._protocol.parser_exc, PayloadTooBig)
                raise UnreadableError("a message that is too large" if large else "no frames of a WebSocket")
        return found


def _deflate(extensions: Iterable[str], side: str) -> PerMessageDeflate | None:
    """What undoes the compression that was agreed upon; None: none was."""
    from websockets.exceptions import InvalidHeader
    from websockets.extensions.permessage_deflate import PerMessageDeflate
    from websockets.headers import parse_extension

    try:
        agreed = [one for value in extensions for one in parse_extension(value)]
    except InvalidHeader:
        raise UnreadableError("an extension header that is none") from None
    if not agreed:
        return None
    if len(agreed) > 1 or agreed[0][0].lower() != "permessage-deflate":
        raise UnreadableError("an extension that is not known")
    given = dict(agreed[0][1])
    bits = given.get(f"{side}_max_window_bits") or "15"
    if bits not in map(str, range(8, 16)):
        raise UnreadableError("a window of a size that there is not")
    return PerMessageDeflate(
        remote_no_context_takeover=f"{side}_no_context_takeover" in given,
        local_no_context_takeover=True,
        remote_max_window_bits=int(bits),
        local_max_window_bits=15,
    )
