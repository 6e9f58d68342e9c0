"""What the recording proxy adds on loopback: ``python -m tools.bench.proxy`` prints milliseconds.

A server that streams, a client that times the first byte of each answer, and between them nothing, or the
proxy with its recorder writing.  p50 and p99 of the time to the first byte directly and by the proxy, each
with a request of 2 KB and of 400 KB, new connections and kept ones in turns; then requests a second over one
connection, directly and by the proxy; last, exchanges that the recorder did not take.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = 5.0
"""Milliseconds that may be added, p99."""
SIZES = (2_000, 400_000)
_ROUNDS = 400
_PAUSE = 0.02
"""Seconds between two requests, as many as an agent makes: what is measured is one, not a queue of them."""
_EVENTS = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Air scatters blue."}}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
]
_SERVER = """
import asyncio, sys
answer = bytes.fromhex(sys.argv[1])
class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.left, self.head = transport, 0, b""
    def data_received(self, data):
        while data:
            if not self.left:
                self.head += data
                head, end, data = self.head.partition(b"\\r\\n\\r\\n")
                if not end:
                    return
                self.head, self.left = b"", int(head.rpartition(b"Length: ")[2])
            taken = min(self.left, len(data))
            self.left, data = self.left - taken, data[taken:]
            if not self.left:
                self.transport.write(answer)
async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def main() -> None:
    """Measure."""
    from ctxctl.record.options import Options
    from ctxctl.record.proxy.server import Proxy
    from ctxctl.record.proxy.upstreams import Upstream
    from ctxctl.record.proxy.writer_client import WriterClient

    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    for event in _EVENTS:
        data = b"data: " + json.dumps(event).encode() + b"\n\n"
        answer += b"%x\r\n%b\r\n" % (len(data), data)
    answer += b"0\r\n\r\n"
    server = subprocess.Popen([sys.executable, "-c", _SERVER, answer.hex()], stdout=subprocess.PIPE)
    assert server.stdout is not None
    there = int(server.stdout.readline())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CTXCTL_STATE_DIR"] = folder
        scribe = WriterClient(Options(Path(folder) / "run.jsonl"))
        proxy = Proxy([Upstream("http", "127.0.0.1", there)], copies=scribe.connection)
        by = next(iter(proxy.listeners.values())).port
        found = [_first_bytes(there, by, size) for size in SIZES]
        rates = [_rate(port) for port in (there, by)]
        lost = proxy.copies.lost
        proxy.stop()
        assert scribe.finish(120.0) is not None
    server.kill()
    server.wait()
    server.stdout.close()
    print(*(number for numbers in found for number in numbers), *rates, lost)


def _request(size: int, number: int) -> bytes:
    messages = [{"role": "user", "content": f"{number} " + "word " * (size // 5)}]
    body = json.dumps({"model": "gpt-5", "stream": True, "messages": messages}).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" + body


def _first_bytes(there: int, by: int, size: int) -> list[float]:
    """p50 and p99 directly, then by the proxy, each in turns with the other."""
    took: dict[int, list[float]] = {there: [], by: []}
    kept = {port: _connected(port) for port in took}
    for number in range(_ROUNDS):
        time.sleep(_PAUSE)
        for port in took:
            fresh = number % 4 == 0
            if fresh:
                kept[port].close()
            data = _request(size, number)
            body = data.partition(b"\r\n\r\n")[2]
            head = data[: -len(body)] % (b"127.0.0.1:%d" % port, len(body))
            begun = time.perf_counter()
            if fresh:
                kept[port] = _connected(port)
            kept[port].sendall(head + body)
            got = kept[port].recv(1 << 16)
            took[port].append(time.perf_counter() - begun)
            while not got.endswith(b"0\r\n\r\n"):
                got += kept[port].recv(1 << 16)
    for one in kept.values():
        one.close()
    return [_at(took[port], part) for port in (there, by) for part in (0.5, 0.99)]


def _rate(port: int) -> int:
    data = _request(1_000, 0)
    body = data.partition(b"\r\n\r\n")[2]
    whole = data[: -len(body)] % (b"127.0.0.1:%d" % port, len(body)) + body
    with _connected(port) as sock:
        begun = time.perf_counter()
        for _ in range(_ROUNDS):
            sock.sendall(whole)
            got = b""
            while not got.endswith(b"0\r\n\r\n"):
                got += sock.recv(1 << 16)
        return round(_ROUNDS / (time.perf_counter() - begun))


def _connected(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _at(values: list[float], part: float) -> float:
    return round(sorted(values)[int(len(values) * part)] * 1e3, 2)


if __name__ == "__main__":
    main()
