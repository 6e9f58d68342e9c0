"""Asks an MCP server, on stdio, for the list of its tools."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ctxctl.errors import UnreadableError
from ctxctl.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PATIENCE: Final = 60.0
"""Seconds for the whole exchange: a server may have to be downloaded first."""
MOST_BYTES: Final = 16 << 20
"""Bytes of all that a server says."""
MOST_TOOLS: Final = 5000
MOST_PAGES: Final = 200
_PROTOCOL: Final = "2025-06-18"
_CHUNK: Final = 1 << 16
_GRACE: Final = 2.0
"""Seconds for a server to end after its input has ended, and again after SIGTERM."""
_SAID: Final = 2000
"""Bytes of a server's standard error that are kept."""


def tools_of(
    command: Sequence[str], folder: Path, version: str, *, patience: float = PATIENCE
) -> list[dict[str, Any]]:
    """Run a server in a folder, ask for its tools, and end it; return the tools.

    Raises UnreadableError("no-tool-list") where it cannot be run, ends, says nothing in time or too much.
    """
    asking = _Asking(command, folder, time.monotonic() + patience)
    try:
        return asking.tools(version)
    finally:
        asking.end()


class _Asking:
    """A running server that is asked for its tools."""

    def __init__(self, command: Sequence[str], folder: Path, until: float) -> None:
        self._name = visible(os.path.basename(command[0])[:80])
        self._until = until
        self._left = MOST_BYTES
        self._ids = 0
        self._lines: list[bytes] = []
        self._rest: list[bytes] = []
        self._said = b""
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=folder, bufsize=0, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not a usable command"
            raise UnreadableError("no-tool-list", f"cannot run {self._name}: {why}") from None
        self._to, self._from, self._errors = (
            pipe.fileno()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
            if pipe
        )
        self._poll = select.poll()
        for source in (self._from, self._errors):
            self._poll.register(source, select.POLLIN)

    def tools(self, version: str) -> list[dict[str, Any]]:
        """Return the tools of all pages of `tools/list`."""
        about = {"name": "ctxctl", "version": version}
        self._ask("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about})
        self._send({"method": "notifications/initialized"})
        found: list[dict[str, Any]] = []
        cursor: object = None
        for _ in range(MOST_PAGES):
            page = self._ask("tools/list", {} if cursor is None else {"cursor": cursor})
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise self._failed("its answer to tools/list holds no tools")
            found += (tool for tool in listed if isinstance(tool, dict))
            if len(found) > MOST_TOOLS:
                raise self._failed(f"it lists more than {MOST_TOOLS:,} tools")
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return found
        raise self._failed(f"its list of tools has more than {MOST_PAGES:,} pages")

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._ids += 1
        self._send({"id": self._ids, "method": method, "params": params})
        while True:
            message = self._heard(method)
            if isinstance(message.get("method"), str):
                self._answer(message)
            elif message.get("id") == self._ids:
                error = message.get("error")
                if error is not None:
                    text = error.get("message") if isinstance(error, dict) else error
                    raise self._failed(f"{method} failed: {visible(str(text)[:300])}")
                result = message.get("result")
                return result if isinstance(result, dict) else {}

    def _answer(self, message: dict[str, Any]) -> None:
        """Answer a server's own request: only a ping has a result."""
        if "id" not in message:
            return
        if message["method"] == "ping":
            self._send({"id": message["id"], "result": {}})
        else:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})

    def _send(self, message: dict[str, Any]) -> None:
        rest = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        while rest:
            _, ready, _ = select.select([], [self._to], [], max(0.0, self._until - time.monotonic()))
            if not ready:
                raise self._failed("it does not listen")
            try:
                rest = rest[os.write(self._to, rest[:512]) :]
            except OSError:
                raise self._ended() from None

    def _heard(self, method: str) -> dict[str, Any]:
        """Return the next message; other lines, as the greeting of a package runner, are passed over."""
        while True:
            while self._lines:
                try:
                    message = json.loads(self._lines.pop(0))
                except (ValueError, RecursionError):
                    continue
                if isinstance(message, dict):
                    return message
            self._read(method)

    def _read(self, method: str) -> None:
        wait = self._until - time.monotonic()
        ready = {fd for fd, _ in self._poll.poll(max(0.0, wait) * 1000)} if wait > 0 else set()
        if not ready:
            raise self._failed(f"it has not answered {method} in time")
        if self._errors in ready:
            data = os.read(self._errors, _CHUNK)
            self._said = (self._said + data)[-_SAID:]
            if not data:
                self._poll.unregister(self._errors)
        if self._from in ready:
            data = os.read(self._from, _CHUNK)
            if not data:
                raise self._ended()
            self._left -= len(data)
            if self._left < 0:
                raise self._failed(f"it says more than {MOST_BYTES >> 20} MiB")
            *whole, last = data.split(b"\n")
            for line in whole:
                self._lines.append(b"".join([*self._rest, line]))
                self._rest = []
            self._rest.append(last)

    def _ended(self) -> UnreadableError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        with suppress(OSError):
            os.set_blocking(self._errors, False)
            self._said = (self._said + os.read(self._errors, _CHUNK))[-_SAID:]
        code = self._process.returncode
        return self._failed("it ended" + ("" if code is None else f" with exit code {code}"))

    def _failed(self, why: str) -> UnreadableError:
        said = [line for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        hint = f"it said: {visible(said[-1].strip()[:300])}" if said else None
        return UnreadableError("no-tool-list", f"{self._name} gives no list of tools: {why}", hint=hint)

    def end(self) -> None:
        """End the server and all processes of its group."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
                break
        # A runner may end before the server that it runs.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
