"""Worker processes: each does one piece of work after the other, and results come as they are done.

Processes are spawned, not forked (a fork of a program with threads may hang), end with the one that started
them, and ignore the interrupt key, which is for that one to act on.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from ctxctl.entry_points import loaded

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

WORTH: Final = 6 << 20
"""Bytes to be read from which on a second process pays: starting one and loading the code there costs about
as much as reading three megabytes."""
_NO_MORE: Final = b""
"""In place of a piece, to a worker that is to write what it holds back, and end."""
_YOUNG: Final = 20_000
"""New objects from which on a worker looks for cycles.  With 400,000 a worker had 172 MB after 240 sessions
instead of 124, and took no less CPU time (several runs by turns)."""
_LOOK: Final = 0.2
"""Seconds between two looks whether to stop."""
_PATIENCE: Final = 1.0
"""Seconds that a worker has to end."""


def usable_cores() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def processes_for(size: int, pieces: int) -> int:
    """How many processes work of so many bytes in so many pieces is worth; 1: this one alone."""
    return 1 if size < WORTH else max(1, min(usable_cores(), pieces))


class _Worker(NamedTuple):
    process: SpawnProcess
    link: Connection


def work_through(
    work: str, pieces: Sequence[bytes], processes: int, stop: Callable[[], bool] | None = None
) -> Iterator[tuple[int, bytes | None]]:
    """Each piece's number and result, in the order in which they are done.

    Whoever stops asking ends the workers at once.

    Args:
        work: `module:name` of a function of bytes that returns bytes and does not raise.
        pieces: What it is given; none of them is empty.
        processes: With one, the work is done here; else in so many processes, as far as the system lets them
            start.  The result is None where two processes ended before it was done.
        stop: Asked several times a second; work ends when it says so.  With it nothing is done here.
    """
    waiting = deque(range(len(pieces)))
    busy: dict[Connection, tuple[_Worker, int]] = {}
    tried: set[int] = set()
    """Pieces whose process ended before they were done."""
    try:
        for _ in range(min(processes, len(pieces)) if processes > 1 or stop else 0):
            _give(_started(work), waiting, pieces, busy)
        while busy:
            from multiprocessing.connection import wait

            if stop is not None and stop():
                return
            for link in cast("list[Connection]", wait(list(busy), None if stop is None else _LOOK)):
                worker, number = busy.pop(link)
                try:
                    result = link.recv_bytes()
                except (EOFError, OSError):
                    _end([worker])
                    lost = number in tried
                    if not lost:  # whoever killed it may have meant another
                        tried.add(number)
                        waiting.appendleft(number)
                    _give(_started(work), waiting, pieces, busy)
                    if lost:
                        yield number, None
                else:
                    _give(worker, waiting, pieces, busy)
                    yield number, result
    finally:
        _end([worker for worker, _ in busy.values()])
    if stop is not None:
        return
    function = loaded(work)
    for number in waiting:  # what has ended a process does not end this one
        yield number, None if number in tried else function(pieces[number])


def _give(
    worker: _Worker | None,
    waiting: deque[int],
    pieces: Sequence[bytes],
    busy: dict[Connection, tuple[_Worker, int]],
) -> None:
    """Let a worker do the next piece; end it where there is none."""
    if worker is None:
        return
    if not waiting:
        with contextlib.suppress(OSError):
            worker.link.send_bytes(_NO_MORE)
        worker.process.join(_PATIENCE)
        _end([worker])
        return
    number = waiting.popleft()
    busy[worker.link] = (worker, number)
    with contextlib.suppress(OSError):  # it has ended: its link tells
        worker.link.send_bytes(pieces[number])


def _started(work: str) -> _Worker | None:
    """A new process; None where the system refuses one."""
    from multiprocessing import get_context, resource_tracker

    context = get_context("spawn")
    # A process that tidies up gets standard error, and a UI puts what is no file in its place.
    with contextlib.redirect_stderr(sys.__stderr__):
        resource_tracker.ensure_running()
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(work, theirs), name="ctxctl worker", daemon=True)
    try:
        process.start()
    except OSError:
        ours.close()
        return None
    finally:
        theirs.close()
    return _Worker(process, ours)


def _end(workers: list[_Worker]) -> None:
    """End processes, whatever they are doing."""
    for worker in workers:
        worker.link.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def serve(work: str, link: Connection) -> None:
    """What a worker does: the pieces that come, until there are no more, or nobody is there to send any."""
    import gc
    import signal
    import threading

    from ctxctl.tokens.cache import kept_open

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function = loaded(work)
    gc.freeze()  # what is loaded stays
    gc.set_threshold(_YOUNG, 10, 10)
    with kept_open(), contextlib.suppress(EOFError, OSError):
        while piece := link.recv_bytes():
            link.send_bytes(function(piece))


def _end_with_parent() -> None:
    """End at once where the one that started this process is gone, in the middle of a piece too."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
