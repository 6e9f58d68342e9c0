"""Plays HTTP by raw sockets, both sides from a script, so that the bytes are what they are.

A step of either side is a function of its `Side`; what one side does when it waits for the other is told by
gates.  What is compared is all that each side got, and how its connection ended.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

TIMEOUT = 20.0
"""Seconds after which a step has failed."""


@dataclass
class Side:
    """One end of a connection."""

    sock: socket.socket
    gates: dict[str, threading.Event]
    host: bytes
    """What the client asks for by name: the address that it connects to."""
    got: bytearray = field(default_factory=bytearray)
    end: str = "open"
    """How it ended: `open`, `eof`, `reset`."""

    def more(self) -> bool:
        try:
            data = self.sock.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError):
            self.end = "reset"
            return False
        if not data:
            self.end = "eof"
            return False
        self.got += data
        return True


Step = Callable[[Side], None]


@dataclass(frozen=True)
class Scenario:
    name: str
    client: Sequence[Step]
    server: Sequence[Step]
    asks: int = 1
    """Requests to a model that the recorder should see in it."""
    loose: bool = False
    """How far each side comes is chance."""


def send(data: bytes) -> Step:
    def step(side: Side) -> None:
        try:
            side.sock.sendall(data.replace(b"{host}", side.host))
        except (ConnectionResetError, BrokenPipeError):
            side.end = "reset"

    return step


def dribble(data: bytes, size: int) -> Step:
    """Send in pieces, each a segment of its own."""

    def step(side: Side) -> None:
        whole = data.replace(b"{host}", side.host)
        for at in range(0, len(whole), size):
            side.sock.sendall(whole[at : at + size])

    return step


def until(mark: bytes, times: int = 1) -> Step:
    """Read until this has come so many times."""

    def step(side: Side) -> None:
        while side.got.count(mark) < times:
            assert side.more(), f"{bytes(side.got[-200:])!r} and then {side.end}, not {mark!r}"

    return step


def until_size(size: int) -> Step:
    def step(side: Side) -> None:
        while len(side.got) < size:
            assert side.more(), f"{len(side.got)} bytes and then {side.end}, not {size}"

    return step


def whole(data: bytes) -> Step:
    """Read as many bytes as this has."""
    return lambda side: until_size(len(data.replace(b"{host}", side.host)))(side)


def rest(side: Side) -> None:
    """Read to the end."""
    while side.more():
        pass


def flood(piece: bytes) -> Step:
    """Send until the other side is gone."""

    def step(side: Side) -> None:
        try:
            while True:
                side.sock.sendall(piece)
        except (ConnectionResetError, BrokenPipeError):
            side.end = "reset"

    return step


def close(side: Side) -> None:
    side.sock.close()


def half(side: Side) -> None:
    """Send nothing more, but read on."""
    side.sock.shutdown(socket.SHUT_WR)


def reset(side: Side) -> None:
    side.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    side.sock.close()


def opens(gate: str) -> Step:
    return lambda side: side.gates.setdefault(gate, threading.Event()).set()


def waits(gate: str) -> Step:
    def step(side: Side) -> None:
        assert side.gates.setdefault(gate, threading.Event()).wait(TIMEOUT), f"gate {gate}"

    return step


class Upstream:
    """A server that plays one scenario after the other."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(TIMEOUT)
        self.port: int = self._listening.getsockname()[1]
        self.failure: BaseException | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listening.close()

    def calm(self) -> bool:
        """Whether nobody has connected."""
        self._listening.setblocking(False)
        try:
            self._listening.accept()[0].close()
        except BlockingIOError:
            return True
        finally:
            self._listening.settimeout(TIMEOUT)
        return False

    def play(self, scenario: Scenario, port: int) -> tuple[Side, Side]:
        """Play it with a client that connects to this port; returns the client and the server."""
        gates: dict[str, threading.Event] = {}
        sides: list[Side] = []
        self.failure = None

        def serve() -> None:
            try:
                sock, _ = self._listening.accept()
                with sock:
                    sock.settimeout(TIMEOUT)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    side = Side(sock, gates, f"127.0.0.1:{self.port}".encode())
                    sides.append(side)
                    for step in scenario.server:
                        step(side)
            except BaseException as error:
                self.failure = error

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = Side(sock, gates, f"127.0.0.1:{port}".encode())
            for step in scenario.client:
                step(client)
        thread.join(TIMEOUT)
        if self.failure is not None:
            raise self.failure
        return client, sides[0]


def ask(port: int, data: bytes) -> bytes:
    """Send this and read to the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as sock:
        side = Side(sock, {}, f"127.0.0.1:{port}".encode())
        send(data)(side)
        rest(side)
    return bytes(side.got)
