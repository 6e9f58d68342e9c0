"""``ctxctl diff --ui``: which frames it opens the screen on, and where it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.errors import UsageError

ROOT = Path(__file__).parents[3]
CODING = ROOT / "traces" / "coding-agent.jsonl"
ROLLOUT = ROOT / "fixtures" / "codex" / "rollout.jsonl"


def test_without_a_terminal_it_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "--ui", f"{CODING}@3", "@4"]) == 2
    said = capfd.readouterr().err
    assert "--ui needs a terminal" in said
    assert "the diff is printed" in said


class Opened:
    """What the UI was asked to do, done as its loader would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[tuple[str, str]] = []
        self.apart = False
        self.raised: UsageError | None = None
        self.closed: Any = None
        monkeypatch.setattr("ctxctl.cli.output.is_terminal", lambda _: True)
        monkeypatch.setattr("ctxctl.tui.app.run", self.run)

    def run(self, opening: Any, name: str, *, settings: Any, pair: Any) -> int:
        try:
            two = opening()
        except UsageError as error:
            self.raised = error
            return 2
        with two:
            found = pair(two)
            one = found.a.other or two
            self.apart = found.a.other is not None
            assert found.b.other is None
            assert two.name == name
            for inspector, frame in ((one, found.a), (two, found.b)):
                step = inspector.step(frame.ordinal)
                self.names.append((Path(inspector.name).name, f"{step.turn}.{step.step}"))
        return 0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    return Opened(monkeypatch)


def test_two_frames_of_one_trace(opened: Opened) -> None:
    assert run(["diff", "--ui", f"{CODING}@3.1", "@9.2"]) == 0
    assert opened.names == [(CODING.name, "3.1"), (CODING.name, "9.2")]
    assert not opened.apart


def test_one_frame_stands_beside_the_one_before(opened: Opened) -> None:
    assert run(["diff", "--ui", f"{CODING}@3.2"]) == 0
    assert opened.names == [(CODING.name, "3.1"), (CODING.name, "3.2")]


def test_two_files_of_different_formats(opened: Opened) -> None:
    assert run(["diff", "--ui", f"{ROLLOUT}@1.1", f"{CODING}@2.1"]) == 0
    assert opened.names == [(ROLLOUT.name, "1.1"), (CODING.name, "2.1")]
    assert opened.apart


def test_a_frame_that_is_not_there(opened: Opened) -> None:
    assert run(["diff", "--ui", f"{CODING}@3", "@999"]) == 2
    assert opened.raised is not None
    assert opened.raised.slug == "no-such-frame"


def test_the_first_frame_has_none_before(opened: Opened) -> None:
    assert run(["diff", "--ui", f"{CODING}@1.1"]) == 2
    assert opened.raised is not None
    assert opened.raised.slug == "no-frame-before"
