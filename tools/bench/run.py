"""The frame of a run: a folder for all that it leaves, and its progress."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.bench import generate
from tools.bench.cases import Bench


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for caches and outputs, and one for the inputs, both removed at the end.

    Where `CTXCTL_BENCH_DIR` names a folder, the inputs are left there for the next run.
    """
    named = os.environ.get(generate.FOLDER)
    top = Path(named) if named else Path(tempfile.mkdtemp(prefix="ctxctl-bench-"))
    top.mkdir(parents=True, exist_ok=True)
    os.environ[generate.FOLDER] = str(top)
    # In the same folder as the inputs, so that two runs at once do not share it.
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=top))
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield scratch
    finally:
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(scratch, ignore_errors=True)
        if not named:
            del os.environ[generate.FOLDER]
            shutil.rmtree(top, ignore_errors=True)


def progress(bench: Bench, seconds: float) -> None:
    """Prepare and run everything, and say on stderr what is under way."""
    for number, _ in enumerate(bench.prepare(), 1):
        _tell(f"[{number}/{bench.preparations}] preparing")
    total = sum(case.runs for case in bench.cases.values())
    for number, name in enumerate(bench.rounds(seconds), 1):
        _tell(f"[{number}/{total}] {name}")
    _tell("")
    for case in bench.cases.values():
        if case.failed is not None:
            print(f"{case.name}: not measured: {case.failed}", file=sys.stderr)


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
