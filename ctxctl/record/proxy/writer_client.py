"""Starts the writer process, which records, and sends it copies of what is relayed.

It is another process because redacting and cutting a large request keeps Python's lock for longer than a
relay may wait.  Nothing here waits for it: what it does not take in time is left out, and each exchange that
lacks something counts as lost.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl import errors

if TYPE_CHECKING:
    from ctxctl.record.options import Options
    from ctxctl.record.proxy.messages import Fields


FRAME: Final = struct.Struct("!cII")
"""The head of a frame: its kind, the number of its exchange, and the bytes that follow."""
BACKLOG: Final = 128 << 20
"""Bytes that wait for the writer process at most."""
MAX_BODY: Final = 64 << 20
"""Bytes of one body that are copied, counted as they come over the wire."""
_AT_ONCE: Final = 64
"""Buffers that one system call sends."""
_POLL: Final = 0.01
_SECRET: Final = frozenset(
    (b"authorization", b"proxy-authorization", b"cookie", b"set-cookie", b"x-api-key", b"api-key",
     b"x-goog-api-key", b"ocp-apim-subscription-key", b"x-amz-security-token")
)  # fmt: skip
"""Header fields that are never copied."""


class Copies:
    """The relay's end of the connection to the writer process; for use in the relay's loop alone.

    Args:
        connection: The socket; None: nobody takes copies.
    """

    def __init__(self, connection: socket.socket | None) -> None:
        self._socket = connection
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0
        self._armed = False
        self._number = 0
        self.lost = 0
        """Exchanges that are not whole in the trace."""
        if connection is not None:
            connection.setblocking(False)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sent."""
        return not self._waiting

    @property
    def begun(self) -> int:
        """The number of exchanges so far."""
        return self._number

    def begin(self) -> Copy:
        """Begin the copy of the next exchange."""
        self._number += 1
        return Copy(self, self._number)

    def put(self, kind: bytes, number: int, payload: bytes = b"", *, beyond: int = 0) -> bool:
        """Queue one frame; False: there is no room, or nobody takes copies."""
        if self._socket is None or self._size + len(payload) > BACKLOG + beyond:
            return False
        self._waiting.append(FRAME.pack(kind, number, len(payload)))
        if payload:
            self._waiting.append(payload)
        self._size += FRAME.size + len(payload)
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().add_writer(self._socket, self._send)
        return True

    def _send(self) -> None:
        """Send some of what waits, as the writer process takes more, and let the relay go on."""
        assert self._socket is not None
        try:
            sent = self._socket.sendmsg(list(islice(self._waiting, _AT_ONCE)))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop()
            return
        self._size -= sent
        while sent:
            first = self._waiting.popleft()
            if sent < len(first):
                self._waiting.appendleft(memoryview(first)[sent:])
                break
            sent -= len(first)
        if not self._waiting:
            self._disarm()

    def _disarm(self) -> None:
        if self._armed and self._socket is not None:
            self._armed = False
            asyncio.get_running_loop().remove_writer(self._socket)

    def _drop(self) -> None:
        """Close the connection, and drop what waits."""
        self._disarm()
        self._waiting.clear()
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    async def close(self, seconds: float, *, over: bool = False) -> None:
        """Send what waits and close the connection, after which the writer process finishes.

        Args:
            seconds: How long to send at most; what is not taken by then is lost.
            over: Whether the program has ended, and its sessions with it.
        """
        if over:
            self.put(b"Q", 0, beyond=BACKLOG)
        until = asyncio.get_running_loop().time() + seconds
        while self._waiting and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_POLL)
        self._drop()


class Copy:
    """Copies one exchange; the calls follow the order on the wire."""

    __slots__ = ("_copies", "_ended", "_number", "_sizes", "_whole")

    def __init__(self, copies: Copies, number: int) -> None:
        self._copies = copies
        self._number = number
        self._sizes = {b"B": 0, b"D": 0}
        self._whole = True
        self._ended = False

    def request(self, method: bytes, url: str, fields: Fields) -> None:
        """Copy the head of the request."""
        self._put(b"R", _encoded({"method": method.decode("latin-1"), "url": url, "headers": _texts(fields)}))

    def body(self, piece: bytes) -> None:
        """Copy a piece of the request's body."""
        self._piece(b"B", piece)

    def request_sent(self) -> None:
        """Note that the request is whole."""
        self._put(b"G", str(self._sizes[b"B"]).encode())

    def head(self, status: int, fields: Fields) -> None:
        """Copy the head of the answer."""
        self._put(b"H", _encoded({"status": status, "headers": _texts(fields)}))

    def data(self, piece: bytes) -> None:
        """Copy a piece of the answer's body, as it came over the wire."""
        self._piece(b"D", piece)

    def switched(self, fields: Fields) -> None:
        """Copy an answer that begins a WebSocket; `from_program` and `from_server` follow."""
        self._put(b"W", _encoded({"headers": _texts(fields)}))

    def from_program(self, data: bytes) -> None:
        """Copy bytes of the WebSocket that the program sent."""
        self._put(b"S", data)

    def from_server(self, data: bytes) -> None:
        """Copy bytes of the WebSocket that the server sent."""
        self._put(b"T", data)

    def end(self, how: str) -> None:
        """End the copy: `complete`, `upstream_reset`, `client_gone` or `malformed`; the first call counts."""
        if self._ended:
            return
        self._ended = True
        self._put(b"E", how.encode())
        if not self._whole:
            # So that the writer process does not keep it open; some room is kept for this alone.
            self._copies.put(b"X", self._number, beyond=1 << 20)

    def _piece(self, kind: bytes, piece: bytes) -> None:
        size = self._sizes[kind]
        self._sizes[kind] = size + len(piece)
        if size <= MAX_BODY:
            # The piece that exceeds the limit shows the writer process that the body does.
            self._put(kind, piece)

    def _put(self, kind: bytes, payload: bytes = b"") -> None:
        if self._whole and not self._copies.put(kind, self._number, payload):
            self._whole = False
            self._copies.lost += 1


def _texts(fields: Fields) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in fields
        if name.lower() not in _SECRET
    ]


def _encoded(value: Any) -> bytes:
    import orjson

    return orjson.dumps(value)


_CODE = "import sys; sys.path[:] = {!r}; from ctxctl.record.proxy.writer_process import main; main({})"


@dataclass
class Totals:
    """The counts that the writer process gives at its end."""

    written: int = 0
    dropped: int = 0
    redacted: dict[str, int] = field(default_factory=dict)
    recorded: int = 0
    """The number of requests to a model."""
    passed: int = 0
    """The number of other requests."""
    unread: dict[str, int] = field(default_factory=dict)
    """WebSockets that could not be read to their end, by reason."""
    kept: bool = True
    """False: the process died, and what it wrote before is not counted here."""


class WriterClient:
    """Starts the writer process; copies go to `connection`.

    Args:
        options: Where to record, and how.
        code: Python code that the process runs first.
    """

    def __init__(self, options: Options, code: str = "") -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # Not `-m`, which looks for modules in the working directory: that may be anybody's.
            program = code + _CODE.format(sys.path, theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        self.connection = ours
        self._read = b""
        # File names need not be UTF-8, and orjson refuses what is not.
        ours.sendall(json.dumps(_options_json(options)).encode() + b"\n")
        self._ready = False

    def ready(self, seconds: float | None = None) -> bool:
        """Wait until the process can write, for this many seconds at most; return whether it can.

        Raises:
            CtxctlError: what `Options.recorder` raises.
            UnavailableError: `no-recorder`: the process did not start.
        """
        message = self._line(seconds)
        if message is None and not self._ended:
            return False
        self._ready = True
        if message is None or "error" in message:
            self._process.wait()
            self._closed()
            raise _error(message)
        return True

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def finish(self, seconds: float) -> Totals | None:
        """Return the totals, or None if it is still writing; call this when nothing more is sent.

        Raises what `ready` raises, if that was not called before.
        """
        if not self._ready:
            self.ready()
        message = self._line(seconds)
        if message is None and self._process.poll() is None and not self._ended:
            return None
        self._process.kill()  # it has given its totals
        self._process.wait()
        self._closed()
        return Totals(**message) if message is not None else Totals(kept=False)

    def abandon(self) -> None:
        """Stop waiting for it; it goes on until it has written what it has."""
        self._closed()

    def _closed(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()

    _ended = False

    def _line(self, seconds: float | None) -> dict[str, Any] | None:
        """Return its next line; None: there is none, or not in time."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._read:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([descriptor], [], [], left)[0]:
                return None
            data = os.read(descriptor, 1 << 16)
            if not data:
                self._ended = True
                return None
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        found: dict[str, Any] = orjson.loads(line)
        return found


def _options_json(options: Options) -> dict[str, Any]:
    return {
        "out": str(options.out),
        "session": options.session,
        "source": options.source,
        "redact": options.redact if isinstance(options.redact, bool) else str(options.redact),
        "fsync": options.fsync,
        "rotate_bytes": options.rotate_bytes,
    }


def _error(line: dict[str, Any] | None) -> errors.CtxctlError:
    if line is None:
        return errors.UnavailableError("no-recorder", "the recorder's process did not start")
    name, slug, message, hint = line["error"]
    kind: type[errors.CtxctlError] = getattr(errors, name)
    return kind(slug, message, hint=hint)
