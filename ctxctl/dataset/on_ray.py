"""Batches on a Ray cluster: the same function on the same pieces as in local processes, so the same files.

Ray runs a task again whose worker is lost.  Only captures' paths go to workers: every machine of the cluster
must see the captures at the same place, and needs ctxctl with the extra `fleet`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ctxctl.errors import UnavailableError

if TYPE_CHECKING:
    from ctxctl.dataset.add import Runner

_RETRIES: Final = 3
"""How often a task is run again whose worker has ended."""
_AHEAD: Final = 2
"""Tasks for each core that wait or run."""


def on_ray(address: str | None, jobs: int | None) -> Runner:
    """Runs batches on a cluster.

    Args:
        address: `HOST:PORT` of one; None: one on this machine, for as long as this process lives.
        jobs: How many tasks run at a time; None: as many as the cluster has cores.

    Raises UnavailableError (`needs-ray`, `ray-unreachable`).
    """
    try:
        import ray as installed
    except ImportError:
        raise UnavailableError("needs-ray", "--on ray needs Ray", hint="pip install 'ctxctl[ray]'") from None
    ray: Any = installed
    if not ray.is_initialized():
        try:
            ray.init(
                address=address, num_cpus=None if address else jobs, include_dashboard=False,
                log_to_driver=False, logging_level=logging.ERROR,
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UnavailableError("ray-unreachable", f"no Ray cluster at {address}: {error}") from error
    cores = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(work: str, pieces: Sequence[bytes], *, apart: bool = False) -> Iterator[tuple[int, bytes | None]]:
        return _run(ray, work, pieces, cores)

    return run


def _run(ray: Any, work: str, pieces: Sequence[bytes], cores: int) -> Iterator[tuple[int, bytes | None]]:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)(_work)
    waiting = deque(range(len(pieces)))
    busy: dict[Any, int] = {}
    while waiting or busy:
        while waiting and len(busy) < cores * _AHEAD:
            number = waiting.popleft()
            busy[task.remote(work, pieces[number])] = number
        (done,), _ = ray.wait(list(busy), num_returns=1)
        number = busy.pop(done)
        try:
            result: bytes | None = ray.get(done)
        except ray.exceptions.WorkerCrashedError:
            result = None
        del done
        yield number, result


def _work(work: str, piece: bytes) -> bytes:
    """A piece of work, in a worker of the cluster."""
    from ctxctl.entry_points import loaded

    made: bytes = loaded(work)(piece)
    return made
