"""A line on standard error that says how far a long piece of work has come."""

from __future__ import annotations

from threading import Event, Thread
from typing import TextIO

from ctxctl.labels import progress

_PATIENCE = 0.5
"""Seconds before the line appears."""
_PACE = 0.2
_CLEAR = "\r\x1b[2K"


class Progress:
    """Call it with the share done, 0 to 1, as often as you like; use as a context manager.

    A thread draws, so that work that never calls (a conversion, one large step) still shows a sign of life.
    """

    def __init__(self, doing: str, stream: TextIO | None) -> None:
        self._doing = doing
        self._stream = stream
        self._share = 0.0
        self._over = Event()
        self._thread: Thread | None = None

    def __call__(self, share: float) -> None:
        """Note the share done."""
        self._share = share

    def __enter__(self) -> Progress:
        if self._stream is not None:
            self._thread = Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the line away for good."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        stream = self._stream
        assert stream is not None
        if self._over.wait(_PATIENCE):
            return
        try:
            while True:
                share = f" {progress(self._share)}" if self._share else ""
                stream.write(f"{_CLEAR}ctxctl: {self._doing}{share} ...")
                stream.flush()
                if self._over.wait(_PACE):
                    break
            stream.write(_CLEAR)
            stream.flush()
        except (OSError, ValueError):  # the terminal went away
            return
