"""A server in the place of the providers: it answers four APIs by a script, and keeps what came.

`python -m tools.clients.standin [--port N]` runs it alone, and prints a line for each request.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tools.clients.dialects import DIALECTS, OWN, RESPONSES, Answered, Dialect, Usage, answered
from tools.clients.script import Json, Say
from tools.clients.sockets import Socket, accept

_MODELS: Final = ("gpt-5", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")


@dataclass(frozen=True)
class Call:
    """A request to a model."""

    dialect: str
    path: str
    body: bytes
    """As it came, decoded."""
    usage: Usage
    told: bool
    """Whether the answer says the usage: a chat stream does where it is asked to."""
    headers: dict[str, str]
    socket: bool = False
    """It came over a WebSocket."""


class StandIn(ThreadingHTTPServer):
    """The server; it answers from when it is made until `close`.

    Attributes:
        calls: Requests to a model, in order.
        strays: Requests for what no provider has, `METHOD PATH`: answered with 404.
    """

    daemon_threads = True

    def __init__(self, port: int = 0, *, loud: bool = False) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.calls: list[Call] = []
        self.strays: list[str] = []
        self.loud = loud
        self._lock = threading.Lock()
        self._sizes: dict[str, int] = {}
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        """End it."""
        self.shutdown()
        self.server_close()

    def take(
        self,
        dialect: Dialect,
        path: str,
        raw: bytes,
        headers: dict[str, str],
        history: list[Any] | None = None,
    ) -> Answered:
        """Answer one request to a model.

        Args:
            dialect: Of its API.
            path: Of the request.
            raw: Its body.
            headers: Their names in lower case.
            history: Over a WebSocket, where everything is streamed, all that the request stands for.
        """
        sent: Json = json.loads(raw)
        body = sent if history is None else {**sent, "input": history, "stream": True}
        with self._lock:
            bills: list[Usage] = []

            def bill(say: Say) -> Usage:
                bills.append(self._bill(dialect.name, raw, say))
                return bills[-1]

            made = answered(dialect, path, body, len(self.calls) + 1, bill)
            chat = dialect.name == "openai-chat" and bool(body.get("stream"))
            told = not chat or bool((body.get("stream_options") or {}).get("include_usage"))
            self.calls.append(Call(dialect.name, path, raw, bills[0], told, headers, history is not None))
        return made

    def _bill(self, dialect: str, raw: bytes, say: Say) -> Usage:
        """A quarter of the bytes; what the request before had is in the cache, if this one is larger."""
        total, before = len(raw) // 4 + OWN, self._sizes.get(dialect, 0)
        self._sizes[dialect] = total
        return Usage(
            total, before if before + OWN < total else 0, len(say.text) // 4 + 20 * len(say.calls) + 3
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """List the models; nothing else is there."""
        path = self.path.partition("?")[0]
        if self.headers.get("Upgrade", "").lower() == "websocket" and path == "/v1/responses":
            self._talk()
        elif path == "/v1/models":
            data = [
                {"id": name, "object": "model", "type": "model", "display_name": name} for name in _MODELS
            ]
            self._answer(200, {"object": "list", "data": data, "has_more": False})
        else:
            self._stray()

    def do_HEAD(self) -> None:
        """Be there."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Answer for a model."""
        raw, path = self._body(), self.path.partition("?")[0]
        dialect = next((one for one in DIALECTS if one.path.fullmatch(path)), None)
        if dialect is not None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            made = self.server.take(dialect, path, raw, headers)
            self._log(f"{dialect.name} {path} {len(raw)} bytes")
            self._send(200, made)
        elif path == "/v1/messages/count_tokens":
            self._answer(200, {"input_tokens": len(raw) // 4})
        elif path.endswith(":countTokens"):
            self._answer(200, {"totalTokens": len(raw) // 4})
        else:
            self._stray()

    def _talk(self) -> None:
        """Answer Responses over a WebSocket, each from what came before it in this connection."""
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept(self.headers["Sec-WebSocket-Key"]))
        self.end_headers()
        self.close_connection = True
        socket, histories = Socket(self.rfile, self.wfile), dict[str, list[Any]]()
        headers = {name.lower(): value for name, value in self.headers.items()}
        while (raw := socket.receive()) is not None:
            body: Json = json.loads(raw)
            if body.get("type") != "response.create":
                continue
            history = histories.get(body.get("previous_response_id") or "", []) + body.get("input", [])
            made = self.server.take(RESPONSES, "/v1/responses", raw, headers, history)
            self._log(f"WebSocket {len(raw)} bytes")
            for piece in made.pieces:
                data = piece.partition(b"data: ")[2].strip()
                socket.send(data)
                event = json.loads(data)
                if event["type"] == "response.completed":
                    histories[event["response"]["id"]] = history + event["response"]["output"]

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            raw = b"".join(pieces)
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        encoding = self.headers.get("Content-Encoding")
        return (
            gzip.decompress(raw)
            if encoding == "gzip"
            else zlib.decompress(raw)
            if encoding == "deflate"
            else raw
        )

    def _stray(self) -> None:
        self.server.strays.append(f"{self.command} {self.path}")
        self._log(f"stray: {self.command} {self.path}")
        self._answer(404, {"type": "error", "error": {"type": "not_found_error", "message": "no such path"}})

    def _answer(self, status: int, value: Json) -> None:
        self._send(status, Answered("application/json", [json.dumps(value).encode()]))

    def _send(self, status: int, made: Answered) -> None:
        self.send_response(status)
        self.send_header("Content-Type", made.content_type)
        if made.content_type == "application/json":
            self.send_header("Content-Length", str(sum(map(len, made.pieces))))
            self.end_headers()
            self.wfile.write(b"".join(made.pieces))
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in made.pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _log(self, line: str) -> None:
        if self.server.loud:
            print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Run it until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tools.clients.standin", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    server = StandIn(parser.parse_args().port, loud=True)
    print(server.url, file=sys.stderr, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()


if __name__ == "__main__":
    main()
