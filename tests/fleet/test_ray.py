"""The same ingest on a Ray cluster of this machine: the bytes of one process, whatever becomes of a worker.

Needs Ray (`make fleet-ray` has it in an environment of its own); skipped where it is not installed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

from ctxctl.dataset import add as adding
from ctxctl.dataset.on_ray import on_ray
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import added, files_in, fleet


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    """Two workers, without a dashboard or reports of use."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    yield
    import ray

    ray.shutdown()


def _kill_one(after: float) -> None:
    """Kill a worker that is at a task."""
    time.sleep(after)
    own = os.getpid()
    for number in os.listdir("/proc"):
        if not number.isdigit():
            continue
        try:
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            parents = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"ray::_work" in command and int(parents) != own:
            os.kill(int(number), signal.SIGKILL)
            return


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for workers in /proc")
def test_a_cluster_makes_the_bytes_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    monkeypatch.setattr(adding, "_CAPTURES", 2)
    logs = fleet(tmp_path / "logs", 24)
    added(tmp_path / "one", logs)
    expected = files_in(tmp_path / "one")
    runner = on_ray(None, 2)
    for turn in range(3):
        killer = threading.Thread(target=_kill_one, args=(0.3 + turn * 0.4,), daemon=True)
        killer.start()
        added(tmp_path / f"ray-{turn}", logs, runner=runner)
        killer.join()
        assert files_in(tmp_path / f"ray-{turn}") == expected
