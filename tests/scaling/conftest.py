"""The process that runs commands under counters: one for all tests of scaling that a worker of a run has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def ask(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Run a command on a dimension of a size, under counters; others `before` it without."""
    # Kept from run to run: compiling with counters takes longer than all else of the start.
    keeper = getattr(pytestconfig, "cache", None)
    compiled = keeper.mkdir("counted") if keeper is not None else tmp_path_factory.mktemp("counted")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("CTXCTL_", "XDG_"))},
        "CTXCTL_CONFIG": "off", "CTXCTL_PAGER": "", "COLUMNS": "100", "LINES": "40", "TZ": "UTC",
        "HOME": str(tmp_path_factory.mktemp("home")),
    }  # fmt: skip
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.scaling.worker", str(compiled)],
        cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stdin is not None
    assert worker.stdout is not None

    def asked(command: list[str], dimension: str, n: int, before: Sequence[list[str]] = ()) -> dict[str, Any]:
        assert worker.stdin is not None
        assert worker.stdout is not None
        request = {"command": command, "dimension": dimension, "n": n, "before": before}
        print(json.dumps(request), file=worker.stdin, flush=True)
        answer: dict[str, Any] = json.loads(worker.stdout.readline())
        return answer

    yield asked
    worker.stdin.close()
    worker.wait(30)
