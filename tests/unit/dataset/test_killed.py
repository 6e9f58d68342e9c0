"""`fleet add` killed at any moment: the next run makes all well, and readers never fail.

CTXCTL_KILLS=200 tries so many moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

from ctxctl.dataset.log import live
from ctxctl.errors import CtxctlError
from tests.unit.dataset.fleet_kit import fleet, rows_in, session, write
from tests.unit.dataset.kit import ROOT

_KILLS = int(os.environ.get("CTXCTL_KILLS", "6"))
_ADD = """
import sys
from ctxctl.dataset import add, upkeep
add._CAPTURES, add._BATCHES, upkeep.MANY = 2, 1, 3
from ctxctl.trace import inputs
inputs.YOUNG = -60.0
from ctxctl.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def _command(logs: Path | Sequence[Path], to: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    places = [str(one) for one in ([logs] if isinstance(logs, Path) else logs)]
    arguments = ["fleet", "add", *places, "--to", str(to), "--jobs", "1", "--host", "here"]
    return subprocess.Popen(
        [sys.executable, "-c", _ADD, *arguments], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


class _Reader(threading.Thread):
    """Reads the newest version again and again."""

    def __init__(self, place: Path) -> None:
        super().__init__(daemon=True)
        self.place, self.reads, self.over = place, 0, False
        self.failed: Exception | None = None

    def run(self) -> None:
        while not self.over and self.failed is None:
            try:
                rows = rows_in(live(str(self.place)))
                sources = {row[0] for row in rows["sources"]}
                assert len(rows["steps"]) == len(set(rows["steps"]))
                assert {row[1] for row in rows["sessions"]} <= sources
                self.reads += 1
            except CtxctlError as error:
                if error.slug != "no-dataset":
                    self.failed = error
            except Exception as error:
                self.failed = error
            time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_kill_at_any_moment_leaves_nothing_wrong(tmp_path: Path) -> None:
    logs, to = fleet(tmp_path / "logs", 8), tmp_path / "d"
    folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "STATE")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT), "CTXCTL_CONFIG": "off"}
    begun = time.monotonic()
    assert _command(logs, tmp_path / "whole", environment).wait() == 0
    whole = time.monotonic() - begun
    chance = random.Random(7)
    reader = _Reader(to)
    reader.start()
    killed = 0
    for number in range(_KILLS):
        write(logs / "claude" / "p0" / f"s-{number % 8}.jsonl", session(number % 8, 2 + number % 5))
        process = _command(logs, to, environment)
        try:
            process.wait(chance.uniform(0.3, 1.05) * whole)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        if number % 10 == 9 or number == _KILLS - 1:
            _check(logs, to, tmp_path / f"fresh-{number}", environment)
    reader.over = True
    reader.join(60)
    assert reader.failed is None
    assert reader.reads > 0
    assert killed > 0


def _check(logs: Path, to: Path, fresh: Path, environment: dict[str, str]) -> None:
    """After one run to its end, the rows are those of a dataset that is made anew."""
    done = _command(logs, to, environment)
    assert done.wait() == 0, done.stderr.read() if done.stderr else b""
    key = (Path(environment["XDG_CONFIG_HOME"]) / "ctxctl" / "fleet-keys" / live(str(to)).head.id).read_text()
    again = _command(logs, fresh, {**environment, "CTXCTL_FLEET_KEY": key.strip()})
    assert again.wait() == 0
    assert rows_in(live(str(to))) == rows_in(live(str(fresh)))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_writers_at_once_come_to_what_they_do_one_after_the_other(tmp_path: Path) -> None:
    """Two commands make one dataset at the same time, of folders that overlap, and then change it so."""
    logs = tmp_path / "logs"
    for number in range(30):
        write(logs / f"p{number % 3}" / f"s-{number}.jsonl", session(number, 2 + number % 3))
    one, other = [logs / "p0", logs / "p1"], [logs / "p1", logs / "p2"]
    folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "STATE")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT), "CTXCTL_CONFIG": "off"}
    environment["CTXCTL_FLEET_KEY"] = "5a" * 32
    both, after = tmp_path / "both", tmp_path / "after"
    for turn in range(3):
        for number in range(10 * turn, 30, 7) if turn else ():
            write(logs / f"p{number % 3}" / f"s-{number}.jsonl", session(number, 5 + turn))
        running = [_command(some, both, environment) for some in (one, other)]
        assert [process.wait() for process in running] == [0, 0], [_said(process) for process in running]
        for some in (one, other):
            assert _command(some, after, environment).wait() == 0
        found = rows_in(live(str(both)))
        assert found == rows_in(live(str(after)))
        assert len(found["sources"]) == 30
        assert all(len(rows) == len(set(rows)) for rows in found.values())
    assert live(str(both)).version > 6  # both of them have committed, several times


def _said(process: subprocess.Popen[bytes]) -> str:
    return process.stderr.read().decode() if process.stderr else ""
