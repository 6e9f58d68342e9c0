"""The same ingest on a Ray cluster of this machine: the bytes of one process, whatever becomes of a worker.

Needs Ray (`pip install ray opentelemetry-sdk opentelemetry-exporter-prometheus`: its agent imports these as
soon as any package of OpenTelemetry is there); skipped where it is not installed.
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


class _Killer(threading.Thread):
    """Kills the first worker of the cluster that is seen at a task."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self.over = False

    def run(self) -> None:
        while not self.over and not self.killed:
            for number in filter(str.isdigit, os.listdir("/proc")):
                try:
                    busy = Path(f"/proc/{number}/cmdline").read_bytes().startswith(b"ray::_work")
                except OSError:
                    continue
                if busy:
                    os.kill(int(number), signal.SIGKILL)
                    self.killed.append(int(number))
                    break
            time.sleep(0.002)


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
        killer = _Killer()
        killer.start()
        added(tmp_path / f"ray-{turn}", logs, runner=runner)
        killer.over = True
        killer.join()
        assert killer.killed
        assert files_in(tmp_path / f"ray-{turn}") == expected
