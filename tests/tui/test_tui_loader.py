"""The thread that watches a session never ends without a word."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from textual.message import Message

from ctxctl.session.live import LiveSession
from ctxctl.tui import messages
from ctxctl.tui.loader import Loader
from ctxctl.tui.requests import Answered
from tests.oracle.build import lines
from tests.unit.engine.making import add, inject


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(lines([add("i", "text", turn="1"), inject("a", turn="1"), add("j", "text", turn="2")]))
    return path


@pytest.mark.parametrize(
    ("error", "told"),
    [("dictionary changed size during iteration", True), ("Event loop is closed", False)],
)
def test_an_error_of_sending_is_told_unless_nobody_listens(trace: Path, error: str, *, told: bool) -> None:
    found: list[object] = []
    over = Event()
    failed: list[str] = []

    def post(message: Message) -> None:
        assert isinstance(message, Answered)
        if isinstance(message.value, messages.Grown) and not failed:
            failed.append(error)
            raise RuntimeError(error)
        found.append(message)
        if isinstance(message.value, messages.Failed):
            over.set()

    loader = Loader(lambda: pytest.fail("not opened"), post, lambda: LiveSession(trace))
    loader.start()
    loader._thread.join(30)
    assert not loader._thread.is_alive()
    assert failed
    assert over.is_set() == told
    assert loader.idle.is_set()
    loader.stop()
