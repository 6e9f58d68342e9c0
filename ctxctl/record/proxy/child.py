"""Runs the program in the same terminal and passes on the signals that are meant for it.

The program is in this process's group, as behind `env` or `time`, so that the terminal's signals and job
control reach it as if it ran alone.  The main thread takes signals one by one instead of by handlers: only so
is the sender known.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_PASSED_ON: Final = frozenset(
    (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
     signal.SIGALRM, signal.SIGWINCH, signal.SIGTSTP)
)  # fmt: skip
_OF_TERMINALS: Final = frozenset(
    (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU)
)
"""Signals that a terminal sends to the whole process group."""
_TAKEN: Final = _PASSED_ON | {signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU}
_BY_PROCESS: Final = 0
"""`si_code` of a signal that was sent with `kill` (SI_USER)."""
_TICK: Final = 0.02


class Signals:
    """Blocks the signals of this process while its `with` runs, so that they can be taken one by one.

    Enter it before any thread is started: threads begin with the same mask.
    """

    def __init__(self) -> None:
        self.before: set[signal.Signals] = set()
        """The mask as it was before; the program is started with it."""

    def __enter__(self) -> Signals:
        self.before = set(signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN))  # type: ignore[arg-type]
        return self

    def __exit__(self, *_: object) -> None:
        # Signals that are still waiting were meant for a program that has ended.
        while self.take(0.0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def take(self, seconds: float) -> tuple[int, int, int] | None:
        """Return the next signal as number, `si_code` and sender; None: none came in that time."""
        if hasattr(signal, "sigtimedwait"):
            info = signal.sigtimedwait(_TAKEN, seconds)
            return (info.si_signo, info.si_code, info.si_pid) if info is not None else None
        until = time.monotonic() + seconds
        while True:
            if there := signal.sigpending() & _TAKEN:
                number = signal.sigwait(there)
                return number, (1 if number in _OF_TERMINALS else _BY_PROCESS), 0
            if time.monotonic() >= until:
                return None
            time.sleep(_TICK)


class Child:
    """The running program.

    Raises:
        OSError: it cannot be started; `start_failure_code` gives the exit code.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> None:
        self._signals = signals
        # Python ignores these two, which a program would inherit.
        usual = [s for s in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)) if s is not None]
        attributes: dict[str, Any] = {"setsigmask": list(signals.before), "setsigdef": usual}
        try:
            self.pid = os.posix_spawnp(command[0], list(command), dict(environment), **attributes)
        except OSError as error:
            path = shutil.which(command[0])
            if error.errno != errno.ENOEXEC or path is None:
                raise
            # A script without `#!`, which `env` gives to the shell too.
            shell = ["/bin/sh", path, *command[1:]]
            self.pid = os.posix_spawn(shell[0], shell, dict(environment), **attributes)
        self._seen: int | None = None
        self.by_terminal: set[int] = set()
        """Signals that came from the terminal, for the whole process group."""

    def wait(self, beside: Callable[[], None] | None = None) -> int:
        """Wait for its end, and stop and go on with it; return the exit code, or minus a signal's number.

        Args:
            beside: Called about once a second while waiting.
        """
        while True:
            if beside is not None:
                beside()
            status = self._look(os.WUNTRACED)
            if status is not None and os.WIFSTOPPED(status):
                self._stop(os.WSTOPSIG(status))
            elif status is not None:
                while (taken := self._signals.take(0.0)) is not None:
                    self._note(*taken)
                return os.waitstatus_to_exitcode(status)
            elif (taken := self._signals.take(1.0)) is not None and not self._note(*taken):
                self._pass_on(*taken)

    def _look(self, options: int) -> int | None:
        """Return its wait status if it has changed, else None."""
        if self._seen is not None:
            return self._seen
        pid, status = os.waitpid(self.pid, os.WNOHANG | options)
        if not pid:
            return None
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            self._seen = status
        return status

    def _note(self, number: int, code: int, sender: int) -> bool:
        """Note a signal of the terminal, which the program got as well; False for any other signal."""
        if code != _BY_PROCESS and number in _OF_TERMINALS:
            self.by_terminal.add(number)
            return True
        return False

    def _pass_on(self, number: int, code: int, sender: int) -> None:
        # Not what the system sent to the whole group (the terminal is gone), nor what the program sent to its
        # group.  A signal to the group from elsewhere cannot be told from one to this process.
        if code <= 0 and number in _PASSED_ON and sender != self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _stop(self, number: int) -> None:
        """Stop as the program has, so that the shell notices; make it go on when this process does."""
        if number not in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            return  # SIGSTOP to it alone: the proxy must be there as soon as it goes on
        while self._signals.take(0.0) is not None:
            pass  # a second one would stop this process again
        before = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        # Here this process stands still until SIGCONT.
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        signal.signal(number, before)
        # A shell wakes the whole group; another sender perhaps only this process.
        for _ in range(10):
            if self._look(os.WCONTINUED) is not None:
                return
            time.sleep(_TICK / 4)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)


def start_failure_code(error: OSError) -> int:
    """Return the exit code that shells give where a program cannot be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError | NotADirectoryError) else NOT_EXECUTABLE


def exit_code(status: int) -> int:
    """Return a shell's exit code for this end."""
    return status if status >= 0 else 128 - status


def wait_until(signals: Signals, done: Callable[[], bool], stop: frozenset[int]) -> int | None:
    """Wait until `done()`, or until one of these signals comes; return that signal."""
    while not done():
        taken: Any = signals.take(0.05)
        if taken is not None and taken[0] in stop:
            return int(taken[0])
    return None
