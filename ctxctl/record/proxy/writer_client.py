"""The recorder's process, as the proxy's own process sees it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from ctxctl import errors

if TYPE_CHECKING:
    from ctxctl.record.options import Options

_CODE = "import sys; sys.path[:] = {!r}; from ctxctl.record.proxy.writer_process import main; main({})"


@dataclass
class Totals:
    """Counts that the recorder's process gives at its end."""

    written: int = 0
    dropped: int = 0
    redacted: dict[str, int] = field(default_factory=dict)
    recorded: int = 0
    """Requests to a model."""
    passed: int = 0
    """Others."""
    unread: dict[str, int] = field(default_factory=dict)
    """WebSockets that could not be read, or not to their end, by why."""
    kept: bool = True
    """False: it ended before its time, and what it wrote until then is not counted here."""


class Scribe:
    """Starts the recorder; `connection` is where copies go.

    Args:
        options: Where to, and how.
        code: Of Python, for its process to begin with.
    """

    def __init__(self, options: Options, code: str = "") -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # Not `-m`: that would look for modules in the working directory, which may be anybody's.
            program = code + _CODE.format(sys.path, theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        self.connection = ours
        self._read = b""
        # Names of files may hold what is no UTF-8, which orjson refuses.
        ours.sendall(json.dumps(_told(options)).encode() + b"\n")
        self._ready = False

    def ready(self, seconds: float | None = None) -> bool:
        """Wait until it can write, at most for so long; returns whether it can.

        Raises:
            CtxctlError: what `Options.recorder` raises.
            UnavailableError: `no-recorder`: its process did not start.
        """
        told = self._line(seconds)
        if told is None and not self._ended:
            return False
        self._ready = True
        if told is None or "error" in told:
            self._process.wait()
            self._closed()
            raise _error(told)
        return True

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def finish(self, seconds: float) -> Totals | None:
        """What came of it; None if it is still writing.  To be called when nothing more is sent.

        Raises what `ready` raises, if that was not called.
        """
        if not self._ready:
            self.ready()
        told = self._line(seconds)
        if told is None and self._process.poll() is None and not self._ended:
            return None
        self._process.kill()  # it has said its last word
        self._process.wait()
        self._closed()
        return Totals(**told) if told is not None else Totals(kept=False)

    def leave(self) -> None:
        """Do not wait for it any longer; it goes on until it has written what it has."""
        self._closed()

    def _closed(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()

    _ended = False

    def _line(self, seconds: float | None) -> dict[str, Any] | None:
        """The next line; None: it says nothing more, or not in time."""
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


def _told(options: Options) -> dict[str, Any]:
    return {
        "out": str(options.out),
        "session": options.session,
        "source": options.source,
        "redact": options.redact if isinstance(options.redact, bool) else str(options.redact),
        "fsync": options.fsync,
        "rotate_bytes": options.rotate_bytes,
    }


def _error(told: dict[str, Any] | None) -> errors.CtxctlError:
    if told is None:
        return errors.UnavailableError("no-recorder", "the recorder's process did not start")
    name, slug, message, hint = told["error"]
    kind: type[errors.CtxctlError] = getattr(errors, name)
    return kind(slug, message, hint=hint)
