"""Waiting for changes of some files where others change all the time."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ctxctl.trace.file_events import FileWaiter


def test_what_others_write_beside_it_holds_nobody_up(tmp_path: Path) -> None:
    """A wait ends when its time is over, not when the directory has come to rest."""
    waker = FileWaiter()
    waker.at([str(tmp_path)], lambda path: os.path.basename(path) == "mine", deep=False)
    started, over = threading.Event(), threading.Event()

    def noise() -> None:
        with (tmp_path / "other").open("wb", buffering=0) as file:
            for _ in range(3000):
                if over.wait(0.002):
                    return
                file.write(b"x")
                started.set()

    writer = threading.Thread(target=noise)
    writer.start()
    started.wait()
    try:
        waker.wait(0.3, lambda: False)
        assert writer.is_alive(), "it waited for the noise to end"
    finally:
        over.set()
        writer.join()
        waker.close()


def test_what_is_waited_for_is_told(tmp_path: Path) -> None:
    waker = FileWaiter()
    waker.at([str(tmp_path)], lambda path: os.path.basename(path) == "mine", deep=False)
    waker.wait(0.05, lambda: False)  # from here on it listens
    (tmp_path / "mine").write_text("x")
    waited = threading.Event()

    def wait() -> None:
        waker.wait(600.0, waited.is_set)
        waited.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    try:
        assert waited.wait(20.0)
    finally:
        waited.set()
        waiter.join()
        waker.close()
