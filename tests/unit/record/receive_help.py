"""A receiver in a thread of the test, and plain HTTP to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.record.options import Options
from ctxctl.record.receive import listening, receive
from ctxctl.record.recorder import Recorder

NDJSON = "application/x-ndjson"


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver(NamedTuple):
    """One that listens."""

    port: int
    recorder: Recorder
    said: list[str]

    def post(
        self,
        path: str,
        body: bytes | str | list[Any] | dict[str, Any],
        media: str | None = None,
        **headers: str,
    ) -> Answer:
        """POST; a list becomes JSON lines, a table a JSON document."""
        if isinstance(body, list):
            body = "".join(json.dumps(line) + "\n" for line in body)
            media = media or NDJSON
        elif isinstance(body, dict):
            body, media = json.dumps(body), media or "application/json"
        data = body.encode() if isinstance(body, str) else body
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if media is not None:
            sent["Content-Type"] = media
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()

    def raw(self, data: bytes, wait: float = 20) -> bytes:
        """Send bytes; what came back until the receiver closed the connection or said nothing for so long."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as plug:
            plug.sendall(data)
            got = b""
            try:
                while part := plug.recv(65536):
                    got += part
            except OSError:
                pass
            return got


@contextmanager
def receiving(out: Path, *, otlp: bool = False, events: bool = True, **options: Any) -> Iterator[Receiver]:
    """A receiver for as long as the `with` runs; everything is written when it is left."""
    said: list[str] = []
    given = Options(out, say=said.append, **options)
    recorder = given.recorder()
    sockets = listening(0)
    loop = asyncio.new_event_loop()
    end = asyncio.Event()
    ports: list[int] = []
    ready = threading.Event()

    def opened(port: int) -> None:
        ports.append(port)
        ready.set()

    async def main() -> None:
        await receive(
            given, recorder, sockets, otlp=otlp, events=events, until=lambda: _wait(end), ready=opened
        )

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    try:
        assert ready.wait(30)
        yield Receiver(ports[0], recorder, said)
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        loop.close()
    assert not thread.is_alive()


async def _wait(end: asyncio.Event) -> None:
    await end.wait()
