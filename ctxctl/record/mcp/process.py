"""Runs a server as a child process, and passes its standard input and output on byte for byte."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Side = Literal["client", "server"]
"""The side that spoke."""
_CHUNK: Final = 1 << 16
_PASSED_ON: Final = frozenset(
    (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
)
_BY_TERMINAL: Final = 0x80
"""`si_code` of a signal that the kernel sent: the terminal, to the whole group, the server among them."""
_LINGER: Final = 0.5
"""Seconds without a byte after which a pipe that a dead server left to others is let go."""


class Server:
    """A running server.

    Args:
        command: The server and its arguments; raises OSError if it cannot be run.
        heard: Takes what is passed on; must not wait and must not raise.
    """

    def __init__(self, command: list[str], heard: Callable[[Side, bytes], None]) -> None:
        self._heard = heard
        # The server shares this process's group, its terminal and every descriptor that it was given.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, close_fds=False
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = os.dup(self._process.stdin.fileno())
        self._from = os.dup(self._process.stdout.fileno())
        self._process.stdin.close()
        self._process.stdout.close()
        self._gone = threading.Event()

    def run(self) -> int:
        """Pass everything on until the server has ended; return its exit code, or minus a signal."""
        signals = _PASSED_ON if hasattr(signal, "sigwaitinfo") else frozenset()
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        if signals:
            threading.Thread(target=self._pass_signals, daemon=True).start()
        else:
            for number in _PASSED_ON:
                signal.signal(number, lambda number, _frame: self._process.send_signal(number))
        threading.Thread(target=self._client, daemon=True).start()
        answers = threading.Thread(target=self._answers, daemon=True)
        answers.start()
        code = self._process.wait()
        self._gone.set()
        answers.join()
        return code

    def _client(self) -> None:
        self._pass("client", 0, self._to)
        os.close(self._to)
        _let_go(0)  # a client that goes on writing learns that nobody reads

    def _answers(self) -> None:
        self._pass("server", self._from, 1)
        os.close(self._from)
        _let_go(1)

    def _pass(self, side: Side, source: int, target: int) -> None:
        """Pass bytes on until either end is closed."""
        try:
            while self._is_there(source) and (data := os.read(source, _CHUNK)):
                self._heard(side, data)  # noted first: an answer must not be noted before its question
                rest = memoryview(data)
                while rest:
                    rest = rest[_written(target, rest) :]
        except OSError:
            pass  # one end is gone: closing the other one tells it

    def _is_there(self, source: int) -> bool:
        """Wait for bytes or the end; False where the server is gone and only others hold its pipe."""
        if source == 0:
            return True
        poll = select.poll()
        poll.register(source, select.POLLIN)
        while not poll.poll(_LINGER * 1000):
            if self._gone.is_set():
                return False
        return True

    def _pass_signals(self) -> None:
        while True:
            found = signal.sigwaitinfo(_PASSED_ON)
            if found.si_code != _BY_TERMINAL:
                with suppress(ProcessLookupError):
                    self._process.send_signal(found.si_signo)


def _written(target: int, data: memoryview) -> int:
    """Write what the pipe takes, and wait for a pipe that does not block; return the number of bytes."""
    while True:
        try:
            return os.write(target, data)
        except BlockingIOError:
            select.select([], [target], [])


def _let_go(fd: int) -> None:
    """Close a standard descriptor; its number then leads to the null device."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nowhere, fd, inheritable=False)
        os.close(nowhere)


def end_as(code: int) -> int:
    """Return the exit code; if a signal killed the server, kill this process by the same signal."""
    if code >= 0:
        return code
    import resource

    number = -code
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    return 128 + number
