"""Another process that counts tokens while this one goes on.

A process and not a thread: what this one does meanwhile would keep Python's lock.  It is started where there
is a second core and memory to spare, and nothing depends on it: whoever asked counts for itself what it does
not answer.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import sys
from collections import deque
from collections.abc import Sequence
from typing import IO, Final

from ctxctl.tokens.counting_child import JOB

_MEMORY: Final = 512 << 20
"""Bytes that must be available: some 100 MB are used, and nobody is to be pushed out for them."""
_FILE: Final = 64 << 20
"""Size of the file that hands texts over; used from its beginning again and again."""
ROOM: Final = _FILE // 4
"""Bytes of texts that may be under way at once."""
_SILENCE: Final = 60_000
"""Milliseconds without an answer after which none is expected; texts come in pieces that take some fifty."""
_CODE: Final = (
    "import sys; sys.path[:] = {path!r}; from ctxctl.tokens.counting_child import main; "
    "main({base!r}, 0, {texts}, 1)"
)

Counts = list[tuple[int, bool]]
"""(tokens, exact) of each text of a job."""


class CountingProcess:
    """Counts jobs of texts, in their order.  Not for several threads at once.

    Raises OSError if it cannot be started.
    """

    def __init__(self, base: str) -> None:
        import subprocess  # slow to import, as the next one is, and only large captures need them
        import tempfile

        self._texts: IO[bytes] = tempfile.TemporaryFile(prefix="ctxctl-", buffering=0)  # noqa: SIM115 - kept
        self._at = 0
        self._jobs: deque[tuple[int, int]] = deque()
        """Number of texts and bytes in the file of each job that has no answer yet."""
        self._answer = b""
        self.under_way = 0
        """Bytes in the file that are not counted yet."""
        self.lost = False
        """It died, or fell silent, or answered nonsense: there will be no more counts."""
        try:
            # Not `-m`, which looks for modules in the working directory: that may be anybody's.
            code = _CODE.format(path=sys.path, base=base, texts=self._texts.fileno())
            flags = ["-P", "-B"] if sys.dont_write_bytecode else ["-P"]
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", code],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                pass_fds=[self._texts.fileno()],
            )  # fmt: skip
        except BaseException:
            self._texts.close()
            raise

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def put(self, texts: Sequence[bytes]) -> bool:
        """Hand over a job of at least one text, in UTF-8; False if there is no room for it, or no process."""
        size = sum(map(len, texts))
        room = size + 4 * len(texts)
        if self.lost or self.under_way + room > ROOM:
            return False
        whole = b"".join((struct.pack(f"={len(texts)}I", *map(len, texts)), *texts))
        if self._at + len(whole) > _FILE:
            self._at = 0
        try:
            os.pwrite(self._texts.fileno(), whole, self._at)
            assert self._process.stdin is not None
            self._process.stdin.write(JOB.pack(self._at, len(texts), size))
        except OSError:
            self._give_up()
            return False
        self._at += room
        self._jobs.append((len(texts), room))
        self.under_way += room
        return True

    def take(self, *, wait: bool) -> Counts | None:
        """The counts of the job that is next in order; None if they are not there yet, or never will be.

        Args:
            wait: Wait for them; None means then that the process is lost.
        """
        if self.lost or not self._jobs:
            return None
        number, room = self._jobs[0]
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        there = select.poll()
        there.register(descriptor, select.POLLIN)
        while len(self._answer) < 8 * number:
            if not there.poll(_SILENCE if wait else 0):
                if wait:
                    self._give_up()
                return None
            data = os.read(descriptor, 1 << 16)
            if not data:
                self._give_up()
                return None
            self._answer += data
        found = struct.unpack_from(f"={number}q", self._answer)
        self._answer = self._answer[8 * number :]
        self._jobs.popleft()
        self.under_way -= room
        return [(count, True) if count >= 0 else (~count, False) for count in found]

    def _give_up(self) -> None:
        self.lost = True
        self.under_way = 0
        self._jobs.clear()
        self.close()

    def close(self) -> None:
        """End the process; what it has not counted yet stays uncounted."""
        process, self.lost = self._process, True
        with contextlib.suppress(OSError):
            process.kill()  # it has nothing to lose, and a stopped one would not end of itself
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
        process.wait()
        self._texts.close()


def may_start() -> bool:
    """Whether another process would have a core and memory to itself, and this one is nobody's worker."""
    processes = sys.modules.get("multiprocessing")
    if processes is not None and processes.parent_process() is not None:
        return False  # the cores are taken by its like
    return _cores() > 1 and _available() >= _MEMORY


def _cores() -> int:
    """Cores that this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _available() -> int:
    """Bytes of memory that can be had without pushing anybody out, as far as the system says."""
    found = _MEMORY
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/meminfo", "rb") as file:
        found = 1024 * next(int(line.split()[1]) for line in file if line.startswith(b"MemAvailable:"))
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", "rb") as file:
        found = min(found, int(file.read()))
    return found
